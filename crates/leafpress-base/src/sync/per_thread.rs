//! Per-thread values, indexed by the thread's number.
//!
//! A thread gets the lowest free number on first use, and releases it when it ends: the next thread with the number
//! finds the values of the previous one. So there are never more values than concurrent threads. A thread that is
//! ending, whose thread-local values may be destroyed already, gets a number too: its destructors work as usual.

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::{ptr, slice};

/// Number of buckets. Bucket `n` has the 2^n numbers from 2^n - 1 on.
const BUCKETS: usize = 32;

/// The position of a thread's values.
#[derive(Clone, Copy)]
pub struct ThreadSlot {
    bucket: usize,
    index: usize,
}

impl ThreadSlot {
    /// Position of a thread without a number: there is no such bucket.
    const NONE: Self = Self {
        bucket: BUCKETS,
        index: 0,
    };

    fn of(number: usize) -> Self {
        let bucket = (number + 1).ilog2() as usize;
        Self {
            bucket,
            index: number + 1 - (1 << bucket),
        }
    }

    fn number(self) -> usize {
        self.index + (1 << self.bucket) - 1
    }
}

/// The numbers that threads have released, and the lowest that was never used. The list always has capacity for all
/// numbers in use, so that releasing one needs no memory.
struct Numbers {
    free: Vec<usize>,
    next: usize,
}

static NUMBERS: Shared = Shared {
    is_held: AtomicBool::new(false),
    numbers: UnsafeCell::new(Numbers {
        free: Vec::new(),
        next: 0,
    }),
};

/// The process's numbers, under a lock that a forking thread holds during `fork`: a lock held by another thread would
/// stay held in the child.
struct Shared {
    is_held: AtomicBool,
    numbers: UnsafeCell<Numbers>,
}

// SAFETY: the numbers are accessed only under the lock.
unsafe impl Sync for Shared {}

impl Shared {
    fn with<R>(&self, work: impl FnOnce(&mut Numbers) -> R) -> R {
        struct Held<'s>(&'s Shared);
        impl Drop for Held<'_> {
            fn drop(&mut self) {
                self.0.release();
            }
        }
        self.acquire();
        let held = Held(self);
        // SAFETY: the lock is held until `held` is dropped, and nothing else creates references to the numbers.
        work(unsafe { &mut *held.0.numbers.get() })
    }

    fn acquire(&self) {
        // The lock is held for nanoseconds, when a thread begins or ends.
        while self.is_held.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn release(&self) {
        self.is_held.store(false, Ordering::Release);
    }
}

/// Registers fork handlers that take the lock before a fork, and release it in parent and child.
#[cfg(all(unix, not(miri)))]
fn hold_while_forking() {
    extern "C" fn acquire() {
        NUMBERS.acquire();
    }
    extern "C" fn release() {
        NUMBERS.release();
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the handlers may be called at any time, and only access an atomic. If there is no memory to register
    // them, forks are unprotected.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(acquire), Some(release), Some(release));
    });
}

#[cfg(not(all(unix, not(miri))))]
fn hold_while_forking() {}

impl Numbers {
    /// Takes the lowest free number; [`None`] when there is no memory.
    fn take(&mut self) -> Option<usize> {
        // The lowest one, so that values are in few buckets.
        let least = (0..self.free.len()).min_by_key(|&at| self.free[at]);
        if let Some(at) = least {
            return Some(self.free.swap_remove(at));
        }
        self.free.try_reserve(self.next + 1).ok()?;
        self.next += 1;
        Some(self.next - 1)
    }
}

thread_local! {
    // A type without a destructor, so that it is accessible to the thread's very end.
    static SLOT: Cell<ThreadSlot> = const { Cell::new(ThreadSlot::NONE) };
    static LEAVING: Leaving = const { Leaving };
}

/// Releases the thread's number when dropped.
struct Leaving;

impl Drop for Leaving {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    let slot = SLOT.replace(ThreadSlot::NONE);
    if slot.bucket < BUCKETS {
        NUMBERS.with(|numbers| numbers.free.push(slot.number()));
    }
}

/// Returns the thread's slot, which is assigned now if it has none; [`None`] when there is no memory.
#[cold]
fn take_slot() -> Option<ThreadSlot> {
    let slot = SLOT.get();
    if slot.bucket < BUCKETS {
        return Some(slot);
    }
    hold_while_forking();
    let number = NUMBERS.with(Numbers::take)?;
    SLOT.set(ThreadSlot::of(number));
    if LEAVING.try_with(|_| ()).is_err() {
        late::give_back_at_the_end();
    }
    Some(ThreadSlot::of(number))
}

/// Returns the calling thread's number: the lowest that was free at its first request. [`None`] when there is no
/// memory.
#[inline]
pub fn thread_number() -> Option<usize> {
    let slot = SLOT.get();
    if slot.bucket < BUCKETS {
        return Some(slot.number());
    }
    take_slot().map(ThreadSlot::number)
}

/// For a thread whose thread-local values are being destroyed. Destructors of pthread keys run last, and one that sets
/// its key again is called again.
#[cfg(unix)]
mod late {
    use std::ffi::c_void;
    use std::sync::OnceLock;

    extern "C" fn give_back(_: *mut c_void) {
        super::give_back();
    }

    /// Registers the release of the number. If there are no keys left, the number is leaked, and its values are not
    /// reused.
    pub(super) fn give_back_at_the_end() {
        static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
        let key = KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: `key` is valid for writes, and the destructor may be called in any ending thread.
            let made = unsafe { libc::pthread_key_create(&mut key, Some(give_back)) };
            (made == 0).then_some(key)
        });
        if let Some(key) = key {
            // SAFETY: the key was created, and the value, which must not be null, is never dereferenced.
            unsafe { libc::pthread_setspecific(*key, std::ptr::dangling()) };
        }
    }
}

/// Stub: the number is leaked, and its values are not reused.
#[cfg(not(unix))]
mod late {
    pub(super) fn give_back_at_the_end() {}
}

/// Values, one per thread.
///
/// For the first threads a hit is two loads: the thread's slot, and its bucket's address. The values of these buckets
/// are allocated together, before their threads appear. A later bucket is a table of chunks, which costs one more load:
/// a program with thousands of threads may have thousands of trees, each used by a few of them.
pub struct PerThread<T> {
    /// The first of a bucket's values; null until a thread with one of the bucket's numbers uses it.
    buckets: [AtomicPtr<T>; WHOLE_BUCKETS],
    /// The first of a bucket's chunks, each the address of its first value; null until then.
    chunked: [AtomicPtr<AtomicPtr<T>>; BUCKETS - WHOLE_BUCKETS],
    /// For the drop check and auto traits: the values are owned.
    values: PhantomData<T>,
}

/// Number of buckets whose values are one chunk.
const WHOLE_BUCKETS: usize = CHUNK_BITS + 1;
/// Binary logarithm of the values per chunk of a later bucket.
const CHUNK_BITS: usize = 4;
const CHUNK: usize = 1 << CHUNK_BITS;

/// Returns the number of chunks of a later bucket, given its index among the later buckets.
const fn chunks_of(chunked: usize) -> usize {
    1 << (chunked + WHOLE_BUCKETS - CHUNK_BITS)
}

impl<T> Default for PerThread<T> {
    fn default() -> Self {
        Self {
            buckets: [const { AtomicPtr::new(ptr::null_mut()) }; WHOLE_BUCKETS],
            chunked: [const { AtomicPtr::new(ptr::null_mut()) }; BUCKETS - WHOLE_BUCKETS],
            values: PhantomData,
        }
    }
}

impl<T> std::fmt::Debug for PerThread<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerThread").finish_non_exhaustive()
    }
}

/// Allocates the array that `place` is to point to, unless another thread was first; [`None`] when there is no memory.
fn make_array<T>(place: &AtomicPtr<T>, len: usize, new: impl FnMut() -> T) -> Option<NonNull<T>> {
    if let Some(made) = NonNull::new(place.load(Ordering::Acquire)) {
        return Some(made);
    }
    let mut array = Vec::new();
    array.try_reserve_exact(len).ok()?;
    array.resize_with(len, new);
    let array = Box::into_raw(array.into_boxed_slice());
    // Sequentially consistent: a thread that scans all threads' values after a barrier misses none that was created
    // before it.
    match place.compare_exchange(ptr::null_mut(), array.cast(), Ordering::SeqCst, Ordering::Acquire) {
        Ok(_) => NonNull::new(array.cast()),
        Err(other) => {
            // SAFETY: another thread's array was first, and no other thread has seen this one.
            drop(unsafe { Box::from_raw(array) });
            NonNull::new(other)
        }
    }
}

/// Frees an array allocated by `make_array`.
fn free_array<T>(place: &mut AtomicPtr<T>, len: usize) {
    let first = *place.get_mut();
    if !first.is_null() {
        // SAFETY: the array came from `Box::into_raw` of a slice of `len` values, and nothing borrows them any more.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(first, len)) });
    }
}

impl<T> Drop for PerThread<T> {
    fn drop(&mut self) {
        for (number, bucket) in self.buckets.iter_mut().enumerate() {
            free_array(bucket, 1 << number);
        }
        for (number, table) in self.chunked.iter_mut().enumerate() {
            let (first, len) = (*table.get_mut(), chunks_of(number));
            if !first.is_null() {
                // SAFETY: a table that exists has `len` chunks, and `&mut self` excludes borrows of it.
                let chunks = unsafe { slice::from_raw_parts_mut(first, len) };
                chunks.iter_mut().for_each(|chunk| free_array(chunk, CHUNK));
            }
            free_array(table, len);
        }
    }
}

impl<T> PerThread<T> {
    /// Returns the calling thread's value, if it has one.
    #[inline(always)]
    pub fn get(&self) -> Option<&T> {
        self.at(SLOT.get())
    }

    /// Returns the item of the thread at `slot`, if it has one.
    #[inline(always)]
    pub fn at(&self, slot: ThreadSlot) -> Option<&T> {
        let Some(bucket) = self.buckets.get(slot.bucket) else {
            return self.at_chunked(slot);
        };
        let first = bucket.load(Ordering::Acquire);
        if first.is_null() {
            return None;
        }
        // SAFETY: a bucket that exists has 2^n values, a slot's index is below that (`ThreadSlot::of`), and they live
        // until `self` is dropped.
        Some(unsafe { &*first.add(slot.index) })
    }

    fn at_chunked(&self, slot: ThreadSlot) -> Option<&T> {
        let chunk = self.table(slot.bucket - WHOLE_BUCKETS)?.get(slot.index / CHUNK)?;
        let first = chunk.load(Ordering::Acquire);
        // SAFETY: a chunk that exists has `CHUNK` values, which live until `self` is dropped.
        (!first.is_null()).then(|| unsafe { &*first.add(slot.index % CHUNK) })
    }

    /// Returns a later bucket's chunks, if the bucket was allocated.
    fn table(&self, chunked: usize) -> Option<&[AtomicPtr<T>]> {
        let first = self.chunked.get(chunked)?.load(Ordering::Acquire);
        // SAFETY: a table that exists has `chunks_of(chunked)` chunks, and lives until `self` is dropped.
        (!first.is_null()).then(|| unsafe { slice::from_raw_parts(first, chunks_of(chunked)) })
    }

    /// Returns each array of values, with the slot of its first value.
    fn made(&self) -> impl Iterator<Item = (ThreadSlot, &[T])> {
        let whole = self.buckets.iter().enumerate().map(|(bucket, first)| {
            let len = 1 << bucket;
            (ThreadSlot { bucket, index: 0 }, first, len)
        });
        let chunked = (0..self.chunked.len()).flat_map(|chunked| {
            let table = self.table(chunked).unwrap_or_default().iter().enumerate();
            table.map(move |(number, first)| {
                let slot = ThreadSlot {
                    bucket: chunked + WHOLE_BUCKETS,
                    index: number * CHUNK,
                };
                (slot, first, CHUNK)
            })
        });
        whole.chain(chunked).filter_map(|(slot, first, len)| {
            let first = first.load(Ordering::Acquire);
            // SAFETY: an array that exists has `len` values, which live until `self` is dropped.
            (!first.is_null()).then(|| (slot, unsafe { slice::from_raw_parts(first, len) }))
        })
    }

    /// Returns all threads' values, including those of threads that have ended, and of some that have not appeared yet.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.made().flat_map(|(_, values)| values)
    }

    /// Returns all threads' values with their slots, at which the thread's other values are found.
    pub fn iter_with_slots(&self) -> impl Iterator<Item = (ThreadSlot, &T)> {
        self.made().flat_map(|(ThreadSlot { bucket, index: first }, values)| {
            let values = values.iter().enumerate();
            values.map(move |(at, value)| {
                let index = first + at;
                (ThreadSlot { bucket, index }, value)
            })
        })
    }

    /// Returns the bytes of the values and of the tables that lead to them.
    pub fn held_bytes(&self) -> usize {
        let tables = (0..self.chunked.len()).filter_map(|chunked| self.table(chunked));
        self.made().map(|(_, values)| size_of_val(values)).sum::<usize>() + tables.map(size_of_val).sum::<usize>()
    }
}

impl<T: Default> PerThread<T> {
    /// Returns the calling thread's value, creating it if necessary; [`None`] when there is no memory.
    #[inline(always)]
    pub fn get_or_make(&self) -> Option<&T> {
        match self.get() {
            Some(value) => Some(value),
            None => self.make(),
        }
    }

    /// Returns how many values there will be once the calling thread has one; [`None`] when there is no memory.
    pub fn count_with_mine(&self) -> Option<usize> {
        let slot = take_slot()?;
        let made = self.made().map(|(_, values)| values.len()).sum::<usize>();
        let mine = match self.at(slot) {
            Some(_) => 0,
            None => CHUNK.min(1 << slot.bucket),
        };
        Some(made + mine)
    }

    #[cold]
    fn make(&self) -> Option<&T> {
        let slot = take_slot()?;
        match self.buckets.get(slot.bucket) {
            Some(bucket) => {
                make_array(bucket, 1 << slot.bucket, T::default)?;
            }
            None => {
                let chunked = slot.bucket - WHOLE_BUCKETS;
                let table = self.chunked.get(chunked)?;
                make_array(table, chunks_of(chunked), AtomicPtr::default)?;
                make_array(self.table(chunked)?.get(slot.index / CHUNK)?, CHUNK, T::default)?;
            }
        }
        self.at(slot)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn numbers_and_places_are_one_to_one() {
        let mut seen = BTreeSet::new();
        for number in 0..5000 {
            let slot = ThreadSlot::of(number);
            assert!(slot.index < 1 << slot.bucket);
            assert_eq!(slot.number(), number);
            assert!(seen.insert((slot.bucket, slot.index)));
        }
    }

    #[test]
    fn each_of_many_threads_has_a_value_of_its_own() {
        const THREADS: usize = 20;
        let (values, barrier) = (PerThread::<AtomicUsize>::default(), Barrier::new(THREADS));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    assert!(values.get().is_none());
                    values.get_or_make().unwrap().fetch_add(1, Ordering::Relaxed);
                    barrier.wait();
                    assert_eq!(values.get().unwrap().load(Ordering::Relaxed), 1);
                });
            }
        });
        let touched = values.iter().map(|value| value.load(Ordering::Relaxed));
        assert_eq!(touched.sum::<usize>(), THREADS);
        assert!(values.held_bytes() >= THREADS * size_of::<AtomicUsize>());
    }

    #[test]
    fn a_thread_with_a_high_number_makes_few_values() {
        const THREADS: usize = 200;
        let (values, barrier) = (PerThread::<AtomicUsize>::default(), Barrier::new(THREADS));
        let counted = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        // All threads have a number before one of them creates its value.
                        let number = thread_number().unwrap();
                        barrier.wait();
                        if number >= THREADS - 1 {
                            values.get_or_make().unwrap().fetch_add(1, Ordering::Relaxed);
                            assert!(values.get().is_some());
                        }
                        barrier.wait();
                        number >= THREADS - 1
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| usize::from(thread.join().unwrap()))
                .sum::<usize>()
        });
        assert!(counted >= 1);
        let touched: Vec<_> = values
            .iter_with_slots()
            .filter(|(_, value)| value.load(Ordering::Relaxed) > 0)
            .collect();
        assert_eq!(touched.len(), counted);
        assert!(
            touched
                .iter()
                .all(|(slot, value)| values.at(*slot).is_some_and(|at| ptr::eq(at, *value)))
        );
        assert!(values.iter().count() <= counted * CHUNK);
    }

    /// A value that requests its thread's number when the thread ends.
    struct AtTheEnd(&'static PerThread<AtomicUsize>);

    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            self.0.get_or_make().unwrap().fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn threads_that_end_give_their_numbers_back() {
        static VALUES: std::sync::LazyLock<PerThread<AtomicUsize>> = std::sync::LazyLock::new(PerThread::default);
        thread_local!(static AT_THE_END: AtTheEnd = AtTheEnd(&VALUES));
        const THREADS: usize = 100;
        for _ in 0..THREADS {
            thread::spawn(|| {
                AT_THE_END.with(|_| ());
                VALUES.get_or_make().unwrap();
            })
            .join()
            .unwrap();
        }
        let touched = VALUES.iter().map(|value| value.load(Ordering::Relaxed));
        assert_eq!(touched.sum::<usize>(), THREADS);
        // Other tests run concurrently and take numbers in between.
        let used = VALUES.iter().filter(|value| value.load(Ordering::Relaxed) > 0).count();
        assert!(used < THREADS / 2, "{used}");
    }
}
