//! Per-thread state of a tree: counters and buffers.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::tree::admission::Admission;
use crate::tree::compact::compress::Buffers;
use crate::tree::error::TreeError;
use bumpalo::Bump;
use leafpress_base::mem::room::boxed;
use leafpress_base::reclaim::guard::Guard;
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_base::sync::counts::Counts;
use leafpress_base::sync::per_thread::PerThread;
use leafpress_base::sync::plain::Mutex;
use leafpress_codec::Scratch;

/// The counters. `Inserted` minus `Erased` is the number of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Leaves replaced by others, for any reason.
    Replaced,
    /// Records that were bulk-loaded, into leaves built for them and their neighbours.
    BulkLoaded,
    /// Bytes of the keys and values that were inserted.
    PutBytes,
    /// Bytes written into nodes, by any operation.
    CopiedBytes,
    /// Raw bytes compressed for nodes.
    CompressedBytes,
    /// Point reads answered by a hot record.
    GetHotHits,
    /// Empty values that were inserted and removed, in a tree whose records have marks. Such a tree is not bulk-loaded,
    /// and no ranges are removed from it.
    EmptyInserted,
    EmptyErased,
    /// Records that became hot, leaves that became warm, and leaves that became cold.
    Heated,
    Warmed,
    Cooled,
    /// Timed reads, by what answered them, and their nanoseconds.
    HotTimed,
    HotNs,
    WarmTimed,
    WarmNs,
    ColdTimed,
    ColdNs,
}

/// One thread's counters and buffers, on cache lines of its own, since the states of threads are adjacent in memory.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct ThreadState {
    counts: Counts<{ Count::ColdNs as usize + 1 }>,
    tools: Cell<Option<Box<Scratchpad>>>,
    /// Whether the thread has used its scratchpad since the last search for idle ones.
    used: AtomicBool,
    /// Whether another thread accesses the scratchpad, or is about to check whether it may.
    claimed: AtomicBool,
    /// Bytes of the scratchpad when they were last determined.
    held: AtomicU64,
}

// SAFETY: `tools`, the only field that is not atomic, is accessed by two threads: by the state's own thread, which gets
// the state through `ThreadStates::get`, inside an operation and only while `claimed` is false; and by a thread that
// has set `claimed` and then found the own thread outside any operation. A thread stores its epoch before it reads
// `claimed`, with a barrier in between (Dekker's pattern): at least one of the two sees the other.
unsafe impl Sync for ThreadState {}

/// The owner to which a scratchpad is returned.
#[derive(Default)]
enum Owner {
    /// The thread that made it.
    #[default]
    Thread,
    /// The tree, which lends it to threads that are too numerous to keep one each. The token counts these scratchpads.
    Tree(#[expect(dead_code, reason = "counted, not accessed")] Arc<()>),
    /// None: it is dropped after the operation.
    None,
}

/// Scratch memory of operations: buffers and an arena. A nested operation, which finds the thread's own in use, creates
/// one.
#[derive(Default)]
pub(crate) struct Scratchpad {
    owner: Owner,
    pub scratch: Scratch,
    pub buffers: Buffers,
    pub arena: Bump,
    pub block: Vec<u8>,
}

/// An arena that grew past this is freed after the compaction that needed it.
const MAX_KEPT_ARENA_BYTES: usize = 256 << 10;

impl ThreadState {
    #[inline]
    pub(crate) fn add(&self, count: Count, amount: u64) {
        self.counts.add(count as usize, amount);
    }

    #[inline]
    pub(crate) fn count(&self, count: Count) {
        self.add(count, 1);
    }

    /// Returns this thread's own value of a counter.
    #[inline]
    pub(crate) fn so_far(&self, count: Count) -> u64 {
        self.counts.get(count as usize)
    }

    /// Takes the thread's scratchpad, if there is one. The guard keeps other threads from accessing it.
    #[inline]
    fn take_tools(&self, _guard: &Guard<'_>) -> Option<Box<Scratchpad>> {
        if self.claimed.load(Ordering::Acquire) {
            return None;
        }
        self.tools.take()
    }

    #[inline]
    fn return_tools(&self, tools: Box<Scratchpad>, _guard: &Guard<'_>) {
        self.used.store(true, Ordering::Relaxed);
        if !self.claimed.load(Ordering::Acquire) {
            self.tools.set(Some(tools));
        }
    }

    /// Records the size of the scratchpad that the thread has taken, and the work done with it.
    pub(crate) fn note_used(&self, tools: &mut Scratchpad) {
        self.held.store(tools.held_bytes(), Ordering::Relaxed);
        self.add(Count::CopiedBytes, std::mem::take(&mut tools.buffers.copied_bytes));
        self.add(
            Count::CompressedBytes,
            std::mem::take(&mut tools.buffers.compressed_bytes),
        );
    }

    /// Calls `work` with the scratchpad of a thread that is outside any operation according to `is_outside`; returns
    /// `None` for other threads.
    fn while_outside<R>(
        &self,
        is_outside: impl FnOnce() -> bool,
        work: impl FnOnce(&Cell<Option<Box<Scratchpad>>>) -> R,
    ) -> Option<R> {
        if self.claimed.swap(true, Ordering::SeqCst) {
            return None;
        }
        let result = is_outside().then(|| work(&self.tools));
        self.claimed.store(false, Ordering::Release);
        result
    }

    /// Returns the bytes of the scratchpad, or their last known number.
    fn tools_bytes(&self, is_outside: impl FnOnce() -> bool) -> u64 {
        let held = self.while_outside(is_outside, |cell| {
            let tools = cell.take();
            let held = tools.as_ref().map_or(0, |tools| tools.held_bytes());
            cell.set(tools);
            held
        });
        if let Some(held) = held {
            self.held.store(held, Ordering::Relaxed);
        }
        self.held.load(Ordering::Relaxed)
    }
}

impl Scratchpad {
    fn held_bytes(&self) -> u64 {
        let held = size_of::<Self>()
            + self.scratch.held_bytes()
            + self.buffers.held_bytes()
            + self.arena.allocated_bytes()
            + self.block.capacity();
        held as u64
    }

    /// Resets the arena, and shrinks it if it has grown large.
    pub(crate) fn reset_arena(&mut self) {
        if self.arena.allocated_bytes() > MAX_KEPT_ARENA_BYTES {
            self.arena = Bump::new();
        } else {
            self.arena.reset();
        }
    }
}

/// Scratchpads that are lent to threads without their own.
#[derive(Default)]
struct SpareScratchpads {
    /// Those not lent at present.
    #[expect(clippy::vec_box, reason = "operations have them boxed")]
    kept: Vec<Box<Scratchpad>>,
    /// Every scratchpad owned by the tree has a clone of it, lent or not.
    token: Arc<()>,
    /// Whether one was lent since the last search for idle ones.
    used: bool,
}

/// The states of all threads.
#[derive(Default)]
pub(crate) struct ThreadStates {
    contexts: PerThread<ThreadState>,
    lent: Mutex<SpareScratchpads>,
}

impl ThreadStates {
    /// Returns the calling thread's state.
    #[inline]
    pub(crate) fn get(&self) -> Result<&ThreadState, TreeError> {
        let bytes = size_of::<ThreadState>();
        self.contexts.get_or_make().ok_or(TreeError::OutOfMemory { bytes })
    }

    /// Returns a scratchpad for an operation of the calling thread, and whether it was created for the thread to keep.
    #[inline]
    pub(crate) fn take_tools(
        &self,
        context: &ThreadState,
        admission: &Admission,
        guard: &Guard<'_>,
    ) -> Result<(Box<Scratchpad>, bool), TreeError> {
        match context.take_tools(guard) {
            Some(tools) => Ok((tools, false)),
            None if admission.is_keeper() => Ok((boxed(Scratchpad::default())?, true)),
            None => self.borrow_tools(admission.keepers()),
        }
    }

    /// Borrows a scratchpad of the tree. The tree keeps at most `most` of them: operations beyond that get one that
    /// stays small and is dropped.
    #[cold]
    fn borrow_tools(&self, most: usize) -> Result<(Box<Scratchpad>, bool), TreeError> {
        let mut lent = self.lent.lock();
        if let Some(tools) = lent.kept.pop() {
            return Ok((tools, false));
        }
        let mut tools = boxed(Scratchpad::default())?;
        let is_kept = Arc::strong_count(&lent.token) <= most;
        if is_kept {
            tools.owner = Owner::Tree(Arc::clone(&lent.token));
        } else {
            tools.owner = Owner::None;
            tools.scratch.never_prime();
        }
        Ok((tools, is_kept))
    }

    #[inline]
    pub(crate) fn return_tools(&self, context: &ThreadState, tools: Box<Scratchpad>, guard: &Guard<'_>) {
        match tools.owner {
            Owner::Thread => context.return_tools(tools, guard),
            Owner::Tree(_) => self.take_back(context, tools),
            Owner::None => context.held.store(0, Ordering::Relaxed),
        }
    }

    #[cold]
    fn take_back(&self, context: &ThreadState, tools: Box<Scratchpad>) {
        context.held.store(0, Ordering::Relaxed);
        let mut lent = self.lent.lock();
        lent.used = true;
        if lent.kept.try_reserve(1).is_ok() {
            lent.kept.push(tools);
        }
    }

    /// Returns the bytes of all threads' counters and scratchpads. The counters live as long as the tree.
    pub(crate) fn held_bytes(&self, memory: &NodeHeap) -> u64 {
        let tools = self.contexts.iter_with_slots();
        let tools = tools.map(|(slot, context)| context.tools_bytes(|| memory.is_outside(slot)));
        let lent = self
            .lent
            .lock()
            .kept
            .iter()
            .map(|tools| tools.held_bytes())
            .sum::<u64>();
        self.contexts.held_bytes() as u64 + lent + tools.sum::<u64>()
    }

    /// Frees the scratchpads of threads that are outside any operation, and, if `idle_only`, have not begun one since
    /// the last call. Returns the bytes freed, and whether some are left.
    pub(crate) fn free_scratchpads(&self, memory: &NodeHeap, idle_only: bool) -> (u64, bool) {
        let (mut freed, mut left) = (0, false);
        for (slot, context) in self.contexts.iter_with_slots() {
            if context.used.swap(false, Ordering::Relaxed) && idle_only {
                left = true;
                continue;
            }
            match context.while_outside(|| memory.is_outside(slot), Cell::take) {
                Some(tools) => {
                    context.held.store(0, Ordering::Relaxed);
                    freed += tools.map_or(0, |tools| tools.held_bytes());
                }
                None => left = true,
            }
        }
        let mut lent = self.lent.lock();
        let is_used = std::mem::take(&mut lent.used);
        left |= Arc::strong_count(&lent.token) > lent.kept.len() + 1;
        if is_used && idle_only {
            left = true;
        } else {
            freed += lent.kept.drain(..).map(|tools| tools.held_bytes()).sum::<u64>();
        }
        (freed, left)
    }

    /// Returns a counter summed over threads.
    pub(crate) fn sum(&self, count: Count) -> u64 {
        self.contexts
            .iter()
            .fold(0, |sum, context| sum.wrapping_add(context.so_far(count)))
    }
}

// A scratchpad holds plain bytes and no addresses of nodes, which may be freed before the next operation.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<Scratchpad>();
};
