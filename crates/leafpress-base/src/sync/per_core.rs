//! Pools of values shared by all threads, sized by the number of cores: codec contexts and buffers.
//!
//! A value per thread would grow with the number of threads, most of which are preempted or blocked when there are more
//! of them than cores. Each thread tries a slot by its own number first, so that few threads share no cache lines.

use std::sync::OnceLock;

use super::per_thread::thread_number;
use super::plain::Mutex;

/// Slots per core: one for the running thread, and one for a thread that was preempted while it held its slot.
const SLOTS_PER_CORE: usize = 2;
const MIN_SLOTS: usize = 4;
/// Factor for the number of slots of small values, whose holders may be preempted by the dozen: creating a value for a
/// single use would cost more than the use.
const MORE_SLOTS: usize = 2;
/// Slots that a thread tries before it creates a temporary value.
const TRIES: usize = 16;

/// Returns the number of threads that can run concurrently.
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

/// The values, created on first use.
pub struct PerCore<T> {
    /// Slots per concurrently running thread.
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

    /// Creates an empty pool with more slots, for small values that reads use.
    pub const fn of_small() -> Self {
        Self::of_times(MORE_SLOTS)
    }

    const fn of_times(times: usize) -> Self {
        Self {
            times,
            slots: OnceLock::new(),
        }
    }

    /// Calls `work` with a value that no other thread uses meanwhile. If all slots tried are in use, or there is no
    /// memory for the slots, the value is new and dropped afterwards.
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
                        // All threads are inside `with` at the same time.
                        barrier.wait();
                        value.push(number);
                    });
                });
            }
        });
        let kept = VALUES.slots().unwrap();
        assert_eq!(kept.len(), concurrency());
        // Surplus values were dropped, and no value was lent twice at the same time.
        assert!(kept.iter().all(|slot| slot.0.lock().len() <= 1));
        // A nested use gets a value of its own.
        VALUES.with(|outer| VALUES.with(|inner| assert!(!std::ptr::eq(outer, inner))));
    }
}
