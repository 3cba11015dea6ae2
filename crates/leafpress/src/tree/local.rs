//! What each thread keeps for a tree: its counters and its buffers.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::codec::Scratch;
use crate::sync::per_thread::PerThread;
use crate::tree::compact::compress::Buffers;
use crate::tree::error::Error;
use bumpalo::Bump;

/// The counters, one name each. `Inserted` less `Erased` is the number of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Count {
    Gets,
    GetFrames,
    GetBytes,
    GetLandingHits,
    Puts,
    Removes,
    Inserted,
    Erased,
    Splits,
    Merges,
    BgPasses,
    BgCompactions,
    BgTrylockMisses,
    BgSkipped,
    BgErrors,
    FgLandingFull,
    FgSyncCompactions,
    FgSyncCompactionErrors,
    FgSplitFallbacks,
    BgEnqueueAttempts,
    BgEnqueued,
    BgEnqueueDuplicates,
    BgQueueFull,
    BgQueuePops,
    /// Leaves replaced by others, for whatever reason.
    Replaced,
}

const COUNTS: usize = Count::Replaced as usize + 1;

/// One thread's counters and buffers, on cache lines of its own: threads' contexts lie side by side.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Context {
    /// Only the owning thread writes, so a load and a store are an addition.
    counts: [AtomicU64; COUNTS],
    tools: Cell<Option<Box<Tools>>>,
}

// SAFETY: other threads only read the counters; `tools` is touched by the thread the context belongs to, which reaches it
// through `Contexts::get`.
unsafe impl Sync for Context {}

/// Buffers that operations borrow. A nested operation, which finds them taken, makes its own.
#[derive(Default)]
pub(crate) struct Tools {
    pub scratch: Scratch,
    pub buffers: Buffers,
    pub arena: Bump,
    pub block: Vec<u8>,
}

/// An arena that grew past this is given back after the compaction that needed it.
const MAX_KEPT_ARENA_BYTES: usize = 1 << 20;

impl Context {
    #[inline]
    pub(crate) fn add(&self, count: Count, amount: u64) {
        let cell = &self.counts[count as usize];
        cell.store(cell.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn count(&self, count: Count) {
        self.add(count, 1);
    }

    /// This thread's own number of a count so far.
    #[inline]
    pub(crate) fn so_far(&self, count: Count) -> u64 {
        self.counts[count as usize].load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn take_tools(&self) -> Box<Tools> {
        self.tools.take().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn return_tools(&self, tools: Box<Tools>) {
        self.tools.set(Some(tools));
    }
}

impl Tools {
    /// Makes the arena empty, and small if it had grown large.
    pub(crate) fn reset_arena(&mut self) {
        if self.arena.allocated_bytes() > MAX_KEPT_ARENA_BYTES {
            self.arena = Bump::new();
        } else {
            self.arena.reset();
        }
    }
}

/// All threads' contexts.
#[derive(Default)]
pub(crate) struct Contexts(PerThread<Context>);

impl Contexts {
    /// The calling thread's.
    #[inline]
    pub(crate) fn get(&self) -> Result<&Context, Error> {
        let bytes = size_of::<Context>();
        self.0.get_or_make().ok_or(Error::OutOfMemory { bytes })
    }

    /// A count summed over threads.
    pub(crate) fn sum(&self, count: Count) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, context| sum.wrapping_add(context.so_far(count)))
    }
}

// What a thread keeps holds plain bytes and no addresses of nodes, which may be gone by the next operation.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<Tools>();
};
