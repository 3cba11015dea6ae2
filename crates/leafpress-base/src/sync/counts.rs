//! Counters without cache lines shared between threads. An enumeration that converts to `usize` names them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::per_thread::PerThread;

/// A set of counters with one writing thread and any number of readers.
#[derive(Debug)]
pub struct Counts<const COUNTS: usize>([AtomicU64; COUNTS]);

impl<const COUNTS: usize> Default for Counts<COUNTS> {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; COUNTS])
    }
}

impl<const COUNTS: usize> Counts<COUNTS> {
    /// Adds to a counter, and returns the sum. Only the thread that owns the set calls this: the addition is a load and
    /// a store.
    #[inline]
    pub fn add(&self, count: impl Into<usize>, amount: u64) -> u64 {
        let cell = &self.0[count.into()];
        let sum = cell.load(Relaxed).wrapping_add(amount);
        cell.store(sum, Relaxed);
        sum
    }

    /// Adds to a count as [`Counts::add`] does, in a set that several threads write.
    pub fn add_shared(&self, count: impl Into<usize>, amount: u64) -> u64 {
        self.0[count.into()].fetch_add(amount, Relaxed).wrapping_add(amount)
    }

    /// Adds every counter of another set, like [`Counts::add`].
    pub fn add_all(&self, other: &Self) {
        for (count, cell) in other.0.iter().enumerate() {
            self.add(count, cell.load(Relaxed));
        }
    }

    /// Returns the value of a counter.
    #[inline]
    pub fn get(&self, count: impl Into<usize>) -> u64 {
        self.0[count.into()].load(Relaxed)
    }
}

/// The counters of one thread, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Own<const COUNTS: usize>(Counts<COUNTS>);

/// The counters of all threads.
#[derive(Debug, Default)]
pub struct ThreadCounts<const COUNTS: usize> {
    threads: PerThread<Own<COUNTS>>,
    /// Shared by threads whose own could not be allocated.
    common: Counts<COUNTS>,
}

impl<const COUNTS: usize> ThreadCounts<COUNTS> {
    /// Returns the calling thread's counters. Without memory for them, these are shared: concurrent additions may be
    /// lost.
    #[inline]
    pub fn mine(&self) -> &Counts<COUNTS> {
        self.threads.get_or_make().map_or(&self.common, |own| &own.0)
    }

    /// Adds to a counter, and returns the thread's sum.
    #[inline]
    pub fn add(&self, count: impl Into<usize>, amount: u64) -> u64 {
        match self.threads.get_or_make() {
            Some(own) => own.0.add(count, amount),
            None => self.common.add_shared(count, amount),
        }
    }

    /// Returns a counter summed over threads.
    pub fn sum(&self, count: impl Into<usize>) -> u64 {
        let count = count.into();
        let all = self.threads.iter().map(|own| &own.0).chain([&self.common]);
        all.fold(0, |sum, counts| sum.wrapping_add(counts.get(count)))
    }

    /// Returns the bytes of the threads' counters.
    pub fn held_bytes(&self) -> u64 {
        (self.threads.iter().count() * size_of::<Own<COUNTS>>()) as u64
    }
}
