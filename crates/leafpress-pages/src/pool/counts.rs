//! Counters of a pool, without cache lines shared between threads.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst, fence};

/// Holds are part of the synchronization of threads, unlike the counters.
use leafpress_base::sync::AtomicU32 as HoldCell;
use leafpress_base::sync::counts;
use leafpress_base::sync::per_thread::PerThread;
use leafpress_base::sync::{Mutex, MutexGuard};

/// The counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    RawHits,
    CompressedHits,
    Misses,
    Prefetched,
    Updates,
    Removes,
    Compressions,
    Incompressible,
    Restorations,
    RawEvictions,
    CompressedEvictions,
    WriteBacks,
    WriteErrors,
    SyncErrors,
    Sweeps,
    SweepNs,
    StoreReadBytes,
    StoreWriteBytes,
    /// Guards that were given a pin, and those of them that were dropped.
    PinsHandedOut,
    PinsHandedBack,
}

type OwnCounts = counts::Counts<{ Count::PinsHandedBack as usize + 1 }>;

/// Hazard slots per thread: raw pages that it holds without a pin in their entries.
const HOLDS: usize = 8;

/// A hazard slot. It is claimed by its owner thread and cleared by the thread that drops the guard.
#[derive(Debug, Default)]
pub(super) struct HoldSlot(HoldCell);

impl HoldSlot {
    /// Releases the page.
    #[inline]
    pub(super) fn release(&self) {
        self.0.store(0, Release);
    }
}

/// Hits that a thread collects before it reports them to the eviction policy.
const HITS: usize = 32;

/// Counters of one thread, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct ThreadCounts {
    counts: OwnCounts,
    hits: [AtomicU32; HITS],
    gathered: AtomicU32,
    /// Hazard slots: an entry's number plus one, or 0.
    holds: [HoldSlot; HOLDS],
}

impl ThreadCounts {
    #[inline]
    pub(super) fn add(&self, count: Count, n: u64) {
        self.counts.add(count as usize, n);
    }

    /// Publishes a hold of an entry's page, if there is a free slot. A thread that needs exclusive access marks the
    /// entry and then scans all slots: so the page is safe if the entry, examined after this, is not marked (hazard
    /// pointers).
    #[inline]
    pub(super) fn hold(&self, number: u32) -> Option<&HoldSlot> {
        let free = self.holds.iter().find(|slot| slot.0.load(Relaxed) == 0)?;
        free.0.compare_exchange(0, number + 1, SeqCst, Relaxed).ok()?;
        Some(free)
    }

    /// Collects a hit, and passes all to `report` once there are enough.
    pub(super) fn note_hit(&self, number: u32, report: impl FnOnce(&mut dyn Iterator<Item = u32>)) {
        let gathered = self.gathered.load(Relaxed) as usize % HITS;
        self.hits[gathered].store(number, Relaxed);
        self.gathered.store(gathered as u32 + 1, Relaxed);
        if gathered + 1 == HITS {
            report(&mut self.hits.iter().map(|hit| hit.load(Relaxed)));
        }
    }
}

/// Counters of all threads.
#[derive(Default)]
pub(super) struct PoolCounts {
    threads: PerThread<ThreadCounts>,
    /// Counters of threads whose own could not be allocated.
    common: OwnCounts,
    bytes: AtomicUsize,
    /// Retired entries, to be freed once no thread holds their pages, with capacity for as many as threads can hold.
    limbo: Mutex<Vec<u32>>,
}

impl PoolCounts {
    /// Returns the calling thread's counters; [`None`] if there is no memory for them.
    #[inline]
    pub(super) fn mine(&self) -> Option<&ThreadCounts> {
        match self.threads.get() {
            Some(mine) => Some(mine),
            None => self.begin(),
        }
    }

    /// Registers the calling thread.
    #[cold]
    fn begin(&self) -> Option<&ThreadCounts> {
        let mine = {
            let mut limbo = self.limbo.lock();
            // Threads that register concurrently wait here.
            let most = self.threads.count_with_mine()? * HOLDS;
            let more = most.saturating_sub(limbo.len());
            limbo.try_reserve_exact(more).ok()?;
            self.threads.get_or_make()?
        };
        self.bytes.store(self.threads.held_bytes(), Relaxed);
        // A thread that marked an entry and does not find these slots yet has marked it before their owner examines it.
        fence(SeqCst);
        Some(mine)
    }

    #[inline]
    pub(super) fn add(&self, count: Count, n: u64) {
        self.add_to(self.mine(), count, n);
    }

    /// Counts a dropped guard that was given a pin, on any thread: a thread without counters allocates none for that.
    #[inline]
    pub(super) fn pin_handed_back(&self) {
        self.add_to(self.threads.get(), Count::PinsHandedBack, 1);
    }

    #[inline]
    fn add_to(&self, mine: Option<&ThreadCounts>, count: Count, n: u64) {
        match mine {
            Some(mine) => mine.add(count, n),
            None => _ = self.common.add_shared(count as usize, n),
        }
    }

    /// Retired entries whose pages threads hold or held just before.
    pub(super) fn limbo(&self) -> MutexGuard<'_, Vec<u32>> {
        self.limbo.lock()
    }

    /// Retires an entry whose page a thread holds. The error contains the full list.
    pub(super) fn put_in_limbo(&self, number: u32) -> Result<(), MutexGuard<'_, Vec<u32>>> {
        let mut limbo = self.limbo.lock();
        if limbo.len() == limbo.capacity() {
            return Err(limbo);
        }
        limbo.push(number);
        Ok(())
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Returns true if a thread holds the entry's page. The entry must have been marked before.
    pub(super) fn is_held(&self, number: u32) -> bool {
        // Pairs with the fence in `begin`.
        fence(SeqCst);
        let holds = |thread: &ThreadCounts| thread.holds.iter().any(|slot| slot.0.load(SeqCst) == number + 1);
        self.threads.iter().any(holds)
    }

    /// Number of pages held by callers, through a slot or a pin. Pins of the pool's own work are not included.
    pub(super) fn pages_in_hand(&self) -> u64 {
        let held = |thread: &ThreadCounts| thread.holds.iter().filter(|slot| slot.0.load(Relaxed) != 0).count();
        let by_slot = self.threads.iter().map(held).sum::<usize>() as u64;
        by_slot + self.pins_handed_out()
    }

    /// Number of pins held by guards.
    pub(super) fn pins_handed_out(&self) -> u64 {
        // In this order, so that a guard that comes and goes meanwhile does not make the result too small.
        let back = self.sum(Count::PinsHandedBack);
        self.sum(Count::PinsHandedOut).saturating_sub(back)
    }

    pub(super) fn sum(&self, count: Count) -> u64 {
        let own = self.threads.iter().map(|thread| thread.counts.get(count as usize));
        own.sum::<u64>() + self.common.get(count as usize)
    }
}
