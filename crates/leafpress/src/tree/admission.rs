//! Admission control: how many threads write to a tree concurrently, and how many keep buffers for it.
//!
//! A write holds buffers, a codec context, and nodes that it has unlinked. With more threads than cores most of these
//! belong to threads that were preempted in the middle of a write: memory that is not in use, and epochs that do not
//! end, so that the garbage of other threads is not freed either. So a bounded number of writers is admitted, and the
//! others wait before they hold anything.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::room_for;
use leafpress_base::sync::Patience;
use leafpress_base::sync::per_core::concurrency;
use leafpress_base::sync::per_thread::thread_number;
use leafpress_base::sync::plain::{Mutex, MutexGuard};

/// Bytes of the tree's memory limit per admitted writer.
const BYTES_PER_WRITER: u64 = 2 << 20;
/// Minimum number of admitted writers.
const MIN_WRITERS: usize = 2;
/// Approximate bytes that a thread keeps for a tree: buffers, and the dictionary with the decoded frame. The total of
/// all threads is bounded by a fraction of the tree's memory limit.
const BYTES_PER_KEEPER: u64 = 128 << 10;
const KEEPERS_DIVISOR: u64 = 64;

/// A slot for one writer, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Slot(Mutex<()>);

/// Admits writers.
pub(crate) struct Admission {
    slots: Vec<Slot>,
    /// Number of slots in use.
    writers: AtomicUsize,
    /// Number of threads that may keep buffers and garbage of their own.
    keepers: AtomicUsize,
    /// Number of admitted writers that hold no slot.
    without_slot: AtomicUsize,
    /// Whether writers are refused.
    is_closed: AtomicBool,
}

/// Permission to write, until dropped.
#[expect(dead_code, reason = "held, not accessed")]
pub(crate) enum Admitted<'a> {
    InSlot(MutexGuard<'a, ()>),
    WithoutSlot(Counted<'a>),
}

/// Counts a writer that holds no slot, until dropped.
pub(crate) struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Admission {
    /// Creates the slots.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub(crate) fn new() -> Result<Self, OutOfMemory> {
        let mut slots = room_for(concurrency())?;
        slots.resize_with(concurrency(), Slot::default);
        Ok(Self {
            writers: AtomicUsize::new(slots.len()),
            keepers: AtomicUsize::new(usize::MAX),
            without_slot: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            slots,
        })
    }

    /// Sets the numbers of admitted writers and of threads that keep buffers, for a tree limited to `memory_bytes`.
    pub(crate) fn fit(&self, memory_bytes: u64) {
        let writers = usize::try_from(memory_bytes / BYTES_PER_WRITER).unwrap_or(usize::MAX);
        let writers = writers.max(MIN_WRITERS).min(self.slots.len());
        self.writers.store(writers, Ordering::Relaxed);
        let keepers = usize::try_from(memory_bytes / KEEPERS_DIVISOR / BYTES_PER_KEEPER).unwrap_or(usize::MAX);
        self.keepers.store(keepers.max(writers), Ordering::Relaxed);
    }

    /// Returns how many writers are admitted concurrently.
    fn writers(&self) -> usize {
        self.writers.load(Ordering::Relaxed)
    }

    /// Returns how many threads may keep buffers and garbage of their own: all of them, where the tree has no memory
    /// limit. The same number of buffers is lent to the other threads.
    pub(crate) fn keepers(&self) -> usize {
        self.keepers.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the slots.
    pub(crate) fn held_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// Returns whether the calling thread may keep buffers and garbage of its own.
    pub(crate) fn is_keeper(&self) -> bool {
        thread_number().is_some_and(|number| number < self.keepers())
    }

    /// Waits until the calling thread may write, and returns [`None`] after [`Admission::close`]. With a guard,
    /// `holds_guard`, the thread is admitted without waiting, since admitted writers may wait for the guard's epoch to
    /// end.
    ///
    /// A thread uses the slot of its number; no slot is shared while there are no more threads than slots.
    #[inline]
    pub(crate) fn enter(&self, holds_guard: bool) -> Option<Admitted<'_>> {
        let slot = if holds_guard { None } else { self.slot() };
        let admitted = slot.map_or_else(
            || Admitted::WithoutSlot(Counted::new(&self.without_slot)),
            Admitted::InSlot,
        );
        // Read after the admission: `close` sets it before it looks for admitted writers.
        (!self.is_closed.load(Ordering::SeqCst)).then_some(admitted)
    }

    #[inline]
    fn slot(&self) -> Option<MutexGuard<'_, ()>> {
        // The model checker's threads are not system threads, and would block without its knowledge.
        if cfg!(shuttle) {
            return None;
        }
        let slots = self.slots.get(..self.writers())?;
        let own = slots.get(thread_number()?.checked_rem(slots.len())?)?;
        Some(own.0.try_lock().unwrap_or_else(|| Self::wait(slots, own)))
    }

    /// Refuses writers from now on, and waits for those that were admitted. The calling thread must not hold a guard.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        for slot in &self.slots {
            drop(slot.0.lock());
        }
        let mut patience = Patience::default();
        while self.without_slot.load(Ordering::SeqCst) > 0 {
            patience.wait();
        }
    }

    #[cold]
    fn wait<'a>(slots: &'a [Slot], own: &'a Slot) -> MutexGuard<'a, ()> {
        let free = slots.iter().find_map(|slot| slot.0.try_lock());
        free.unwrap_or_else(|| own.0.lock())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    #[test]
    fn no_more_writers_are_admitted_than_the_memory_allows() {
        let admission = Admission::new().unwrap();
        assert_eq!(admission.writers(), concurrency());
        admission.fit(1 << 20);
        assert_eq!(admission.writers(), MIN_WRITERS);
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..32 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let admitted = admission.enter(false).unwrap();
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(admitted);
                    }
                });
            }
        });
        let most = most.into_inner();
        assert!((1..=MIN_WRITERS).contains(&most), "{most}");
        admission.fit(u64::MAX);
        assert_eq!(admission.writers(), concurrency());
    }

    #[test]
    fn closing_waits_for_admitted_writers_and_refuses_others() {
        for holds_guard in [false, true] {
            let admission = Admission::new().unwrap();
            let admitted = admission.enter(holds_guard);
            assert!(admitted.is_some());
            let is_closed = AtomicUsize::new(0);
            thread::scope(|scope| {
                scope.spawn(|| {
                    admission.close();
                    is_closed.store(1, Ordering::SeqCst);
                });
                while !admission.is_closed.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                assert!(admission.enter(true).is_none());
                assert_eq!(is_closed.load(Ordering::SeqCst), 0);
                drop(admitted);
            });
            assert_eq!(is_closed.into_inner(), 1);
            assert!(admission.enter(false).is_none() && admission.enter(true).is_none());
        }
    }
}
