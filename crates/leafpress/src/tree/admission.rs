//! Admission control: how many threads write to a tree concurrently, and how many keep buffers for it.
//!
//! A write holds buffers, a codec context, and nodes that it has unlinked. With more threads than cores most of these
//! belong to threads that were preempted in the middle of a write: memory that is not in use, and epochs that do not
//! end, so that the garbage of other threads is not freed either. So a bounded number of writers is admitted, and the
//! others wait before they hold anything.

use std::sync::atomic::{AtomicUsize, Ordering};

use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::room_for;
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
}

/// Permission to write, until dropped.
pub(crate) struct Admitted<'a>(#[expect(dead_code, reason = "held, not accessed")] Option<MutexGuard<'a, ()>>);

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

    /// Waits until the calling thread may write. It must not hold a guard, since admitted writers may wait for the
    /// guard's epoch to end.
    ///
    /// A thread uses the slot of its number; no slot is shared while there are no more threads than slots.
    #[inline]
    pub(crate) fn enter(&self) -> Admitted<'_> {
        // The model checker's threads are not system threads, and would block without its knowledge.
        if cfg!(shuttle) {
            return Admitted(None);
        }
        let Some(slots) = self.slots.get(..self.writers()) else {
            return Admitted(None);
        };
        let Some(own) = thread_number().and_then(|number| slots.get(number.checked_rem(slots.len())?)) else {
            return Admitted(None);
        };
        Admitted(Some(own.0.try_lock().unwrap_or_else(|| Self::wait(slots, own))))
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
                        let admitted = admission.enter();
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
}
