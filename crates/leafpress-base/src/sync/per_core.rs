//! Values that threads share out among them, as many as the machine has use for: working memory of codecs and buffers.
//!
//! A value for each thread would grow with the number of threads, most of which are preempted or wait when there are more of them than
//! cores. Each thread tries a slot of its own number first, so that with few threads nobody looks at another's cache line.

use std::sync::OnceLock;

use super::per_thread::thread_number;
use super::plain::Mutex;

/// Slots of a core: one for the thread that runs, and one for a thread that was preempted while it held its slot.
const SLOTS_PER_CORE: usize = 2;
const MIN_SLOTS: usize = 4;
/// Times as many slots for small values, which threads hold that wait for nobody and may be preempted by the dozen: a value made for one use
/// would take longer than its use.
const MORE_SLOTS: usize = 2;
/// Slots that a thread tries before it makes a value of its own.
const TRIES: usize = 16;

/// How many threads can be at work at once: more of them only take turns.
pub fn concurrency() -> usize {
    static CONCURRENCY: OnceLock<usize> = OnceLock::new();
    *CONCURRENCY.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (SLOTS_PER_CORE * cores).max(MIN_SLOTS)
    })
}

/// A value on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Slot<T>(Mutex<T>);

/// The values, made when they are first asked for.
pub struct PerCore<T> {
    /// Times as many slots as threads can be at work.
    times: usize,
    slots: OnceLock<Vec<Slot<T>>>,
}

impl<T: Default> Default for PerCore<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Default> PerCore<T> {
    /// Creates an empty pool.
    pub const fn new() -> Self {
        Self::of_times(1)
    }

    /// Some more slots, for values that are small and used for reads.
    pub const fn of_small() -> Self {
        Self::of_times(MORE_SLOTS)
    }

    const fn of_times(times: usize) -> Self {
        Self {
            times,
            slots: OnceLock::new(),
        }
    }

    /// Calls `work` with a value that no other thread uses meanwhile. Where all that were tried are in use, and where there is no memory for
    /// the slots, it is a new one that is dropped afterwards.
    #[inline]
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        if let Some(slots) = self.slots()
            && let Some(number) = thread_number()
        {
            for slot in slots
                .iter()
                .cycle()
                .skip(number % slots.len())
                .take(TRIES.min(slots.len()))
            {
                if let Some(mut value) = slot.0.try_lock() {
                    return work(&mut value);
                }
            }
        }
        work(&mut T::default())
    }

    #[inline]
    fn slots(&self) -> Option<&Vec<Slot<T>>> {
        match self.slots.get() {
            Some(slots) => Some(slots),
            None => self.make(),
        }
    }

    #[cold]
    fn make(&self) -> Option<&Vec<Slot<T>>> {
        let mut slots = Vec::new();
        let count = self.times * concurrency();
        slots.try_reserve_exact(count).ok()?;
        slots.resize_with(count, Slot::default);
        Some(self.slots.get_or_init(|| slots))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn a_value_is_used_by_one_thread_at_a_time_and_few_are_kept() {
        const THREADS: usize = 64;
        static VALUES: PerCore<Vec<usize>> = PerCore::new();
        let barrier = Barrier::new(THREADS);
        thread::scope(|scope| {
            for number in 0..THREADS {
                let barrier = &barrier;
                scope.spawn(move || {
                    VALUES.with(|value| {
                        // All threads are in here at once.
                        barrier.wait();
                        value.push(number);
                    });
                });
            }
        });
        let kept = VALUES.slots().unwrap();
        assert_eq!(kept.len(), concurrency());
        // What did not fit was dropped, and no value was lent twice at once.
        assert!(kept.iter().all(|slot| slot.0.lock().len() <= 1));
        // A nested use has a value of its own.
        VALUES.with(|outer| VALUES.with(|inner| assert!(!std::ptr::eq(outer, inner))));
    }
}
