//! What each thread keeps for a tree: its counters and its buffers.

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
use leafpress_base::sync::per_thread::PerThread;
use leafpress_base::sync::plain::Mutex;
use leafpress_codec::Scratch;

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
    /// Records that came into leaves made for them and their neighbours.
    BulkLoaded,
    /// Bytes of the keys and values that were put.
    PutBytes,
    /// Bytes written into nodes, by whatever put them there.
    CopiedBytes,
    /// Raw bytes given to the codec for what is in nodes.
    CompressedBytes,
    /// Point reads answered by a hot record.
    GetHotHits,
    /// Empty values that came into a tree whose records have marks, and that left it. Such a tree is not loaded in bulk, and no ranges are
    /// removed from it.
    EmptyInserted,
    EmptyErased,
    /// Records that became hot, leaves that became warm, and that became cold.
    Heated,
    Warmed,
    Cooled,
    /// Reads that were timed, by what answered them, and the nanoseconds that they took.
    HotTimed,
    HotNs,
    WarmTimed,
    WarmNs,
    ColdTimed,
    ColdNs,
}

const COUNTS: usize = Count::ColdNs as usize + 1;

/// One thread's counters and buffers, on cache lines of its own: threads' contexts lie side by side.
#[repr(align(128))]
pub(crate) struct ThreadState {
    /// Only the owning thread writes, so a load and a store are an addition.
    counts: [AtomicU64; COUNTS],
    tools: Cell<Option<Box<Scratchpad>>>,
    /// Whether the thread has used its tools since they were last looked for.
    used: AtomicBool,
    /// Whether another thread is at the tools, or is about to see whether it may be.
    claimed: AtomicBool,
    /// What the tools held when that was last asked.
    held: AtomicU64,
}

impl Default for ThreadState {
    fn default() -> Self {
        Self {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            tools: Cell::default(),
            used: AtomicBool::default(),
            claimed: AtomicBool::default(),
            held: AtomicU64::default(),
        }
    }
}

// SAFETY: `tools`, the only part that is not atomic, is touched by two: by the context's own thread, which reaches it through `ThreadStates::get`,
// at an operation and only while it finds `claimed` false; and by whoever has set `claimed` and then found that thread at no operation. A
// thread notes that it is at an operation before it looks at `claimed`, with a barrier between: one of the two sees the other.
unsafe impl Sync for ThreadState {}

/// Whom tools go back to.
#[derive(Default)]
enum Owner {
    /// The thread that made them.
    #[default]
    Thread,
    /// The tree, which lends them to threads that are too many to keep some of their own. The token counts them.
    Tree(#[expect(dead_code, reason = "counted, not looked at")] Arc<()>),
    /// Nobody: they are dropped after the operation.
    Nobody,
}

/// Buffers that operations borrow. A nested operation, which finds them taken, makes its own.
#[derive(Default)]
pub(crate) struct Scratchpad {
    owner: Owner,
    pub scratch: Scratch,
    pub buffers: Buffers,
    pub arena: Bump,
    pub block: Vec<u8>,
}

/// An arena that grew past this is given back after the compaction that needed it.
const MAX_KEPT_ARENA_BYTES: usize = 256 << 10;

impl ThreadState {
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

    /// The thread's tools, if it has some at hand. Its guard, which it needs to have, keeps others from them.
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

    /// Notes what the tools hold that the thread has taken, and what was done with them.
    pub(crate) fn note_used(&self, tools: &mut Scratchpad) {
        self.held.store(tools.held_bytes(), Ordering::Relaxed);
        self.add(Count::CopiedBytes, std::mem::take(&mut tools.buffers.copied_bytes));
        self.add(
            Count::CompressedBytes,
            std::mem::take(&mut tools.buffers.compressed_bytes),
        );
    }

    /// Does something with the tools of a thread that is at no operation, as `is_outside` says when it is asked; nothing for others.
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

    /// Bytes of the tools, or of those that the thread had when that was last asked.
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

    /// Makes the arena empty, and small if it had grown large.
    pub(crate) fn reset_arena(&mut self) {
        if self.arena.allocated_bytes() > MAX_KEPT_ARENA_BYTES {
            self.arena = Bump::new();
        } else {
            self.arena.reset();
        }
    }
}

/// Tools that are lent to threads which keep none.
#[derive(Default)]
struct Lent {
    /// Those at hand.
    #[expect(clippy::vec_box, reason = "operations have them boxed")]
    kept: Vec<Box<Scratchpad>>,
    /// All tools of the tree's have a clone of it: those at hand, and those that operations have.
    token: Arc<()>,
    /// Whether some were lent since they were last looked for.
    used: bool,
}

/// All threads' contexts.
#[derive(Default)]
pub(crate) struct ThreadStates {
    contexts: PerThread<ThreadState>,
    lent: Mutex<Lent>,
}

impl ThreadStates {
    /// The calling thread's.
    #[inline]
    pub(crate) fn get(&self) -> Result<&ThreadState, TreeError> {
        let bytes = size_of::<ThreadState>();
        self.contexts.get_or_make().ok_or(TreeError::OutOfMemory { bytes })
    }

    /// Tools for an operation of the calling thread, and whether they were made for it to keep.
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

    /// Tools of the tree's. Of those that it makes it keeps `most`: operations past that get some that stay small and are dropped.
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
            tools.owner = Owner::Nobody;
            tools.scratch.never_prime();
        }
        Ok((tools, is_kept))
    }

    #[inline]
    pub(crate) fn return_tools(&self, context: &ThreadState, tools: Box<Scratchpad>, guard: &Guard<'_>) {
        match tools.owner {
            Owner::Thread => context.return_tools(tools, guard),
            Owner::Tree(_) => self.take_back(context, tools),
            Owner::Nobody => context.held.store(0, Ordering::Relaxed),
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

    /// Bytes of all threads' counters and tools. The counters' are held as long as the tree is.
    pub(crate) fn held_bytes(&self, memory: &NodeHeap) -> u64 {
        let tools = self.contexts.iter_with_places();
        let tools = tools.map(|(place, context)| context.tools_bytes(|| memory.is_outside(place)));
        let lent = self
            .lent
            .lock()
            .kept
            .iter()
            .map(|tools| tools.held_bytes())
            .sum::<u64>();
        self.contexts.held_bytes() as u64 + lent + tools.sum::<u64>()
    }

    /// Frees the tools of threads that are at no operation, and were at none since this was last asked if `idle_only`. Returns what was freed,
    /// and whether some are left.
    pub(crate) fn free_tools(&self, memory: &NodeHeap, idle_only: bool) -> (u64, bool) {
        let (mut freed, mut left) = (0, false);
        for (place, context) in self.contexts.iter_with_places() {
            if context.used.swap(false, Ordering::Relaxed) && idle_only {
                left = true;
                continue;
            }
            match context.while_outside(|| memory.is_outside(place), Cell::take) {
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

    /// A count summed over threads.
    pub(crate) fn sum(&self, count: Count) -> u64 {
        self.contexts
            .iter()
            .fold(0, |sum, context| sum.wrapping_add(context.so_far(count)))
    }
}

// What a thread keeps holds plain bytes and no addresses of nodes, which may be gone by the next operation.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<Scratchpad>();
};
