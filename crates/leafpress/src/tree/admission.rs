//! How many threads write to a tree at once, and how many keep buffers for it.
//!
//! A write holds buffers, a codec's context, and nodes that it has unlinked. With more threads than cores most of these belong to threads that
//! were preempted in the middle of a write: memory that nobody works with, and epochs that do not end, so that what others retire is not
//! freed either. So a bounded number of writers is admitted, and the others wait before they hold anything.

use std::sync::atomic::{AtomicUsize, Ordering};

use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::room_for;
use leafpress_base::sync::per_core::concurrency;
use leafpress_base::sync::per_thread::thread_number;
use leafpress_base::sync::plain::{Mutex, MutexGuard};

/// One writer is admitted for so many bytes that the tree may hold...
const BYTES_PER_WRITER: u64 = 2 << 20;
/// ...but at least these.
const MIN_WRITERS: usize = 2;
/// What a thread keeps for a tree, about: buffers, with a dictionary before what is decoded. All that threads keep is to be one part in so many of
/// what the tree may hold.
const BYTES_PER_KEEPER: u64 = 128 << 10;
const KEEPERS_DIVISOR: u64 = 64;

/// A place for one writer, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Slot(Mutex<()>);

/// Admits writers.
pub(crate) struct Admission {
    slots: Vec<Slot>,
    /// Of the slots, those that are used.
    writers: AtomicUsize,
    /// Threads that may keep buffers and garbage of their own.
    keepers: AtomicUsize,
}

/// The caller may write until this is dropped.
pub(crate) struct Admitted<'a>(#[expect(dead_code, reason = "held, not looked at")] Option<MutexGuard<'a, ()>>);

impl Admission {
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

    /// Sets how many writers are admitted to a tree that may hold so many bytes, and how many threads keep something for it.
    pub(crate) fn fit(&self, memory_bytes: u64) {
        let writers = usize::try_from(memory_bytes / BYTES_PER_WRITER).unwrap_or(usize::MAX);
        let writers = writers.max(MIN_WRITERS).min(self.slots.len());
        self.writers.store(writers, Ordering::Relaxed);
        let keepers = usize::try_from(memory_bytes / KEEPERS_DIVISOR / BYTES_PER_KEEPER).unwrap_or(usize::MAX);
        self.keepers.store(keepers.max(writers), Ordering::Relaxed);
    }

    /// How many writers are admitted at once.
    fn writers(&self) -> usize {
        self.writers.load(Ordering::Relaxed)
    }

    /// How many threads may keep buffers and garbage of their own: all, where what the tree may hold has no bound. As many buffers are lent to
    /// others.
    pub(crate) fn keepers(&self) -> usize {
        self.keepers.load(Ordering::Relaxed)
    }

    /// Bytes that it holds.
    pub(crate) fn held_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// Whether the calling thread may keep buffers and garbage of its own.
    pub(crate) fn is_keeper(&self) -> bool {
        thread_number().is_some_and(|number| number < self.keepers())
    }

    /// Waits until the calling thread may write. It may hold no guard, since those that are admitted may wait for it to end.
    ///
    /// A thread has the slot of its number, which threads that are no more than slots do not share.
    #[inline]
    pub(crate) fn enter(&self) -> Admitted<'_> {
        // The model checker's threads are not the system's, and would wait for each other unseen.
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
