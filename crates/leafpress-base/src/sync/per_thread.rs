//! A value for each thread, found by the thread's number.
//!
//! A thread gets the least free number when it first asks, and gives it back when it ends: the next thread with the number finds what the
//! last one left. So there are never more values than threads at one time. A thread that is ending, whose thread-local values may be
//! gone, gets a number all the same: what its destructors do works as before.

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::{ptr, slice};

/// Bucket `n` has the 2^n numbers from 2^n - 1 on.
const BUCKETS: usize = 32;

/// Where a thread's values are.
#[derive(Clone, Copy)]
pub struct Place {
    bucket: usize,
    index: usize,
}

impl Place {
    /// Of a thread that has no number: there is no such bucket.
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

/// The numbers that threads have given back, and the least that no thread has had yet. The list has room for all of them, so that giving
/// one back needs no memory.
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

/// The process's numbers, under a lock that whoever forks holds meanwhile: one that another thread held would stay held in the child.
struct Shared {
    is_held: AtomicBool,
    numbers: UnsafeCell<Numbers>,
}

// SAFETY: the numbers are touched by who holds the lock alone.
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
        // SAFETY: the lock is held until `held` is dropped, and nothing else makes references to them.
        work(unsafe { &mut *held.0.numbers.get() })
    }

    fn acquire(&self) {
        // Held for nanoseconds, when a thread begins or ends.
        while self.is_held.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn release(&self) {
        self.is_held.store(false, Ordering::Release);
    }
}

/// Has forks take the lock, and parent and child give it back.
#[cfg(all(unix, not(miri)))]
fn hold_while_forking() {
    extern "C" fn acquire() {
        NUMBERS.acquire();
    }
    extern "C" fn release() {
        NUMBERS.release();
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the functions may be called at any time, and touch an atomic alone. Where there is no memory for it forks go on as before.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(acquire), Some(release), Some(release));
    });
}

#[cfg(not(all(unix, not(miri))))]
fn hold_while_forking() {}

impl Numbers {
    /// [`None`] when there is no memory.
    fn take(&mut self) -> Option<usize> {
        // The least, for values to lie in few buckets.
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
    // It has no destructor, and so is there to the thread's very end.
    static PLACE: Cell<Place> = const { Cell::new(Place::NONE) };
    static LEAVING: Leaving = const { Leaving };
}

/// Gives the thread's number back.
struct Leaving;

impl Drop for Leaving {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    let place = PLACE.replace(Place::NONE);
    if place.bucket < BUCKETS {
        NUMBERS.with(|numbers| numbers.free.push(place.number()));
    }
}

/// The thread's place, which it gets now if it has none; [`None`] when there is no memory.
#[cold]
fn take_place() -> Option<Place> {
    let place = PLACE.get();
    if place.bucket < BUCKETS {
        return Some(place);
    }
    hold_while_forking();
    let number = NUMBERS.with(Numbers::take)?;
    PLACE.set(Place::of(number));
    if LEAVING.try_with(|_| ()).is_err() {
        late::give_back_at_the_end();
    }
    Some(Place::of(number))
}

/// The calling thread's number: the least that no other thread had when it first asked for one. [`None`] when there is no memory.
#[inline]
pub fn thread_number() -> Option<usize> {
    let place = PLACE.get();
    if place.bucket < BUCKETS {
        return Some(place.number());
    }
    take_place().map(Place::number)
}

/// For a thread whose thread-local values are being destroyed. Keys of the C library come last there, and a destructor of theirs that sets
/// one again has it called again.
#[cfg(unix)]
mod late {
    use std::ffi::c_void;
    use std::sync::OnceLock;

    extern "C" fn give_back(_: *mut c_void) {
        super::give_back();
    }

    /// Where there are no keys left the number is lost: the values stay, for nobody.
    pub(super) fn give_back_at_the_end() {
        static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
        let key = KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: the key is written to a place of its type, and the destructor may be called at any time.
            let made = unsafe { libc::pthread_key_create(&mut key, Some(give_back)) };
            (made == 0).then_some(key)
        });
        if let Some(key) = key {
            // SAFETY: the key was made, and the value, which must not be null, is not looked at.
            unsafe { libc::pthread_setspecific(*key, std::ptr::dangling()) };
        }
    }
}

/// The number is lost: the values stay, for nobody.
#[cfg(not(unix))]
mod late {
    pub(super) fn give_back_at_the_end() {}
}

/// A value for each thread.
///
/// A hit is two loads for the first threads: the thread's place, and its bucket's address. So the values of these are made together, before
/// their threads come. A later bucket is a table of chunks, which costs a load more: a program with thousands of threads may have thousands of
/// trees, each used by a few of them.
pub struct PerThread<T> {
    /// The first of a bucket's values; null until a thread with one of the bucket's numbers comes.
    buckets: [AtomicPtr<T>; WHOLE_BUCKETS],
    /// The first of a bucket's chunks, each the address of its first value; null until then.
    chunked: [AtomicPtr<AtomicPtr<T>>; BUCKETS - WHOLE_BUCKETS],
    /// The values are shared and dropped as if they stood here.
    values: PhantomData<T>,
}

/// Buckets whose values are one chunk.
const WHOLE_BUCKETS: usize = CHUNK_BITS + 1;
/// The logarithm of how many values a chunk of a later bucket has.
const CHUNK_BITS: usize = 4;
const CHUNK: usize = 1 << CHUNK_BITS;

/// How many chunks a later bucket has, by its number less that of the first such.
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

/// Makes the array that `place` is to point to, unless another thread was first; [`None`] when there is no memory.
fn make_array<T>(place: &AtomicPtr<T>, len: usize, new: impl FnMut() -> T) -> Option<NonNull<T>> {
    if let Some(made) = NonNull::new(place.load(Ordering::Acquire)) {
        return Some(made);
    }
    let mut array = Vec::new();
    array.try_reserve_exact(len).ok()?;
    array.resize_with(len, new);
    let array = Box::into_raw(array.into_boxed_slice());
    // In the one order of such steps: who looks for all threads' values behind a barrier misses none that came before it.
    match place.compare_exchange(ptr::null_mut(), array.cast(), Ordering::SeqCst, Ordering::Acquire) {
        Ok(_) => NonNull::new(array.cast()),
        Err(other) => {
            // SAFETY: another thread's array came first, and nobody has seen this one.
            drop(unsafe { Box::from_raw(array) });
            NonNull::new(other)
        }
    }
}

/// Frees what `make_array` made.
fn free_array<T>(place: &mut AtomicPtr<T>, len: usize) {
    let first = *place.get_mut();
    if !first.is_null() {
        // SAFETY: the array came from `Box::into_raw` of a slice of so many values, and nobody borrows them any more.
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
                // SAFETY: a table that is there has so many chunks, and nobody borrows `self` any more.
                let chunks = unsafe { slice::from_raw_parts_mut(first, len) };
                chunks.iter_mut().for_each(|chunk| free_array(chunk, CHUNK));
            }
            free_array(table, len);
        }
    }
}

impl<T> PerThread<T> {
    /// The calling thread's value, if it has one.
    #[inline(always)]
    pub fn get(&self) -> Option<&T> {
        self.at(PLACE.get())
    }

    /// Returns the item of the thread at `place`, if it has one.
    #[inline(always)]
    pub fn at(&self, place: Place) -> Option<&T> {
        let Some(bucket) = self.buckets.get(place.bucket) else {
            return self.at_chunked(place);
        };
        let first = bucket.load(Ordering::Acquire);
        if first.is_null() {
            return None;
        }
        // SAFETY: a bucket that is there has 2^n values, a place's index is below that (`Place::of`), and they stay until `self` is dropped.
        Some(unsafe { &*first.add(place.index) })
    }

    fn at_chunked(&self, place: Place) -> Option<&T> {
        let chunk = self.table(place.bucket - WHOLE_BUCKETS)?.get(place.index / CHUNK)?;
        let first = chunk.load(Ordering::Acquire);
        // SAFETY: a chunk that is there has `CHUNK` values, which stay until `self` is dropped.
        (!first.is_null()).then(|| unsafe { &*first.add(place.index % CHUNK) })
    }

    /// A later bucket's chunks, if the bucket was made.
    fn table(&self, chunked: usize) -> Option<&[AtomicPtr<T>]> {
        let first = self.chunked.get(chunked)?.load(Ordering::Acquire);
        // SAFETY: a table that is there has so many chunks, and stays until `self` is dropped.
        (!first.is_null()).then(|| unsafe { slice::from_raw_parts(first, chunks_of(chunked)) })
    }

    /// The values that were made together, each time with the place of the first.
    fn made(&self) -> impl Iterator<Item = (Place, &[T])> {
        let whole = self.buckets.iter().enumerate().map(|(bucket, first)| {
            let len = 1 << bucket;
            (Place { bucket, index: 0 }, first, len)
        });
        let chunked = (0..self.chunked.len()).flat_map(|chunked| {
            let table = self.table(chunked).unwrap_or_default().iter().enumerate();
            table.map(move |(number, first)| {
                let place = Place {
                    bucket: chunked + WHOLE_BUCKETS,
                    index: number * CHUNK,
                };
                (place, first, CHUNK)
            })
        });
        whole.chain(chunked).filter_map(|(place, first, len)| {
            let first = first.load(Ordering::Acquire);
            // SAFETY: as in `at` and `at_chunked`.
            (!first.is_null()).then(|| (place, unsafe { slice::from_raw_parts(first, len) }))
        })
    }

    /// All threads' values: also of threads that have ended, and of some that have not come yet.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.made().flat_map(|(_, values)| values)
    }

    /// The same, each with its place, at which the thread's other values are found.
    pub fn iter_with_places(&self) -> impl Iterator<Item = (Place, &T)> {
        self.made().flat_map(|(Place { bucket, index: first }, values)| {
            let values = values.iter().enumerate();
            values.map(move |(at, value)| {
                let index = first + at;
                (Place { bucket, index }, value)
            })
        })
    }

    /// Bytes that the values take, and the tables that lead to them.
    pub fn held_bytes(&self) -> usize {
        let tables = (0..self.chunked.len()).filter_map(|chunked| self.table(chunked));
        self.made().map(|(_, values)| size_of_val(values)).sum::<usize>() + tables.map(size_of_val).sum::<usize>()
    }
}

impl<T: Default> PerThread<T> {
    /// The calling thread's value, made now if there is none; [`None`] when there is no memory.
    #[inline(always)]
    pub fn get_or_make(&self) -> Option<&T> {
        match self.get() {
            Some(value) => Some(value),
            None => self.make(),
        }
    }

    /// How many values there will be once the calling thread has one; [`None`] when there is no memory.
    pub fn count_with_mine(&self) -> Option<usize> {
        let place = take_place()?;
        let made = self.made().map(|(_, values)| values.len()).sum::<usize>();
        let mine = match self.at(place) {
            Some(_) => 0,
            None => CHUNK.min(1 << place.bucket),
        };
        Some(made + mine)
    }

    #[cold]
    fn make(&self) -> Option<&T> {
        let place = take_place()?;
        match self.buckets.get(place.bucket) {
            Some(bucket) => {
                make_array(bucket, 1 << place.bucket, T::default)?;
            }
            None => {
                let chunked = place.bucket - WHOLE_BUCKETS;
                let table = self.chunked.get(chunked)?;
                make_array(table, chunks_of(chunked), AtomicPtr::default)?;
                make_array(self.table(chunked)?.get(place.index / CHUNK)?, CHUNK, T::default)?;
            }
        }
        self.at(place)
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
            let place = Place::of(number);
            assert!(place.index < 1 << place.bucket);
            assert_eq!(place.number(), number);
            assert!(seen.insert((place.bucket, place.index)));
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
                        // All have a number before one of them makes its value.
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
            .iter_with_places()
            .filter(|(_, value)| value.load(Ordering::Relaxed) > 0)
            .collect();
        assert_eq!(touched.len(), counted);
        assert!(
            touched
                .iter()
                .all(|(place, value)| values.at(*place).is_some_and(|at| ptr::eq(at, *value)))
        );
        assert!(values.iter().count() <= counted * CHUNK);
    }

    /// A value that asks for its thread's number when the thread ends.
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
        // Other tests run at the same time and take numbers in between.
        let used = VALUES.iter().filter(|value| value.load(Ordering::Relaxed) > 0).count();
        assert!(used < THREADS / 2, "{used}");
    }
}
