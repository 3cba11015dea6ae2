//! What a pool did, counted without sharing cache lines between threads.

use std::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst, fence,
};

/// Part of how threads keep out of each other's way, unlike the counts.
use leafpress_base::sync::AtomicU32 as HoldCell;
use leafpress_base::sync::per_thread::PerThread;
use leafpress_base::sync::{Mutex, MutexGuard};

/// The counts, one name each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
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
    /// Guards that were given a pin, and those of them that are gone.
    PinsHandedOut,
    PinsHandedBack,
}

const COUNTS: usize = Count::PinsHandedBack as usize + 1;

/// Raw pages that a thread holds without counting a pin in their entries.
const HOLDS: usize = 8;

/// A place for a page that is held. It is taken by the thread that it belongs to and emptied by whoever drops the page.
#[derive(Debug, Default)]
pub(super) struct HoldSlot(HoldCell);

impl HoldSlot {
    /// Lets go of the page.
    #[inline]
    pub(super) fn release(&self) {
        self.0.store(0, Release);
    }
}

/// Hits that a thread gathers before it tells the order of pages.
const HITS: usize = 32;

/// One thread's counts, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct ThreadCounts {
    counts: [AtomicU64; COUNTS],
    hits: [AtomicU32; HITS],
    gathered: AtomicU32,
    /// Raw pages in hand: an entry's number and one, or 0.
    holds: [HoldSlot; HOLDS],
}

impl ThreadCounts {
    /// Only the owning thread writes, so a load and a store are an addition.
    #[inline]
    pub(super) fn add(&self, count: Count, n: u64) {
        let cell = &self.counts[count as usize];
        cell.store(cell.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// Holds an entry's page, if there is a free slot. Who wants the page to itself marks its entry and then looks at all slots: so the
    /// page is safe if the entry, looked at after this, is not marked.
    #[inline]
    pub(super) fn hold(&self, number: u32) -> Option<&HoldSlot> {
        let free = self.holds.iter().find(|slot| slot.0.load(Relaxed) == 0)?;
        free.0.compare_exchange(0, number + 1, SeqCst, Relaxed).ok()?;
        Some(free)
    }

    /// Gathers a hit, and hands all to `tell` when there are enough.
    pub(super) fn note_hit(&self, number: u32, tell: impl FnOnce(&mut dyn Iterator<Item = u32>)) {
        let gathered = self.gathered.load(Relaxed) as usize % HITS;
        self.hits[gathered].store(number, Relaxed);
        self.gathered.store(gathered as u32 + 1, Relaxed);
        if gathered + 1 == HITS {
            tell(&mut self.hits.iter().map(|hit| hit.load(Relaxed)));
        }
    }
}

/// All threads' counts.
#[derive(Default)]
pub(super) struct Counts {
    threads: PerThread<ThreadCounts>,
    /// Of threads for which there was no memory.
    common: [AtomicU64; COUNTS],
    bytes: AtomicUsize,
    /// Entries that are to be freed when nobody holds their pages any more, with room for as many as threads can hold.
    limbo: Mutex<Vec<u32>>,
}

impl Counts {
    /// The calling thread's; [`None`] when there is no memory for them.
    #[inline]
    pub(super) fn mine(&self) -> Option<&ThreadCounts> {
        match self.threads.get() {
            Some(mine) => Some(mine),
            None => self.begin(),
        }
    }

    /// A thread's first step here.
    #[cold]
    fn begin(&self) -> Option<&ThreadCounts> {
        let mine = {
            let mut limbo = self.limbo.lock();
            // Threads that begin at the same time wait here.
            let most = self.threads.count_with_mine()? * HOLDS;
            let more = most.saturating_sub(limbo.len());
            limbo.try_reserve_exact(more).ok()?;
            self.threads.get_or_make()?
        };
        self.bytes.store(self.threads.held_bytes(), Relaxed);
        // Who marked an entry and does not find these slots yet has marked it before their threads look at it.
        fence(SeqCst);
        Some(mine)
    }

    #[inline]
    pub(super) fn add(&self, count: Count, n: u64) {
        match self.mine() {
            Some(mine) => mine.add(count, n),
            None => {
                self.common[count as usize].fetch_add(n, Relaxed);
            }
        }
    }

    /// A guard that was given a pin is gone, in whatever thread: one that has no counts here needs none for that.
    #[inline]
    pub(super) fn pin_handed_back(&self) {
        match self.threads.get() {
            Some(mine) => mine.add(Count::PinsHandedBack, 1),
            None => {
                self.common[Count::PinsHandedBack as usize].fetch_add(1, Relaxed);
            }
        }
    }

    /// Entries whose pages threads hold, or held a moment ago.
    pub(super) fn limbo(&self) -> MutexGuard<'_, Vec<u32>> {
        self.limbo.lock()
    }

    /// Puts an entry into limbo whose page a thread holds. The error is limbo, full.
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

    /// Whether any thread holds the entry's page. To be asked after the entry was marked.
    pub(super) fn is_held(&self, number: u32) -> bool {
        // With the one in `begin`.
        fence(SeqCst);
        let holds = |thread: &ThreadCounts| thread.holds.iter().any(|slot| slot.0.load(SeqCst) == number + 1);
        self.threads.iter().any(holds)
    }

    /// Pages in callers' hands, by a slot or by a pin. Pins of the pool's own work are not among them.
    pub(super) fn pages_in_hand(&self) -> u64 {
        let held = |thread: &ThreadCounts| thread.holds.iter().filter(|slot| slot.0.load(Relaxed) != 0).count();
        let by_slot = self.threads.iter().map(held).sum::<usize>() as u64;
        by_slot + self.pins_handed_out()
    }

    /// Pins that guards have.
    pub(super) fn pins_handed_out(&self) -> u64 {
        // In this order, so that a guard that comes and goes meanwhile is not one too few.
        let back = self.sum(Count::PinsHandedBack);
        self.sum(Count::PinsHandedOut).saturating_sub(back)
    }

    pub(super) fn sum(&self, count: Count) -> u64 {
        let of = |counts: &[AtomicU64; COUNTS]| counts[count as usize].load(Relaxed);
        self.threads.iter().map(|thread| of(&thread.counts)).sum::<u64>() + of(&self.common)
    }
}
