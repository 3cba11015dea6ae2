//! Node memory: allocation and accounting by kind, slack included.
//!
//! Every node (leaf, inner node, landing buffer, large value, interpolation index) is one allocation that begins with
//! its [`NodeHeader`], so that any thread can free it and account for it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::mem::OutOfMemory;
use crate::mem::heap::{self, Heap};
use crate::mem::node::{KINDS, Kind, NodeHeader};
use crate::mem::tagged_ptr;
use crate::reclaim::epoch::Epochs;
use crate::reclaim::garbage::{FLUSH_BYTES, FlushedGarbage, GarbageBag};
use crate::reclaim::local::LocalHandle;
use crate::sync;
use crate::sync::per_thread::{ThreadSlot, thread_number};
use crate::sync::{Patience, PerThread};

/// The largest node: a large value of 64 MiB, stored raw, and its header.
const MAX_NODE_BYTES: usize = (64 << 20) + 4096;

/// Number of times that a thread which needs garbage freed waits for readers. It is small in the model checker, which
/// then also explores readers that stay longer.
pub const MAX_WAITS: u32 = if cfg!(shuttle) { 2 } else { 100 };

/// Divisor of the live bytes that bounds the garbage, within limits, before writers wait for reclamation
/// (backpressure).
const LIVE_FOR_GARBAGE: i64 = 64;
const MIN_GARBAGE_BYTES: i64 = 512 << 10;
const MAX_GARBAGE_BYTES: i64 = 4 << 20;

/// Divisor of the tree's memory limit that bounds the retired nodes that threads have not flushed.
const BATCHES_DIVISOR: i64 = 32;

/// How long a writer waits for its garbage to be freed, once per flushed batch: behind a long-running reader a writer
/// thus retires little more than 10 MB/s.
const MAX_WAIT: Duration = Duration::from_millis(20);

/// [`NodeHeap::held`] repeats its sums up to `MAX_LOOKS` times where nodes were allocated meanwhile: of more bytes than
/// a fraction of the live bytes, and than a minimum.
const MAX_LOOKS: usize = 4;
const LIVE_FOR_SEEN_TWICE: u64 = 128;
const MIN_SEEN_TWICE_BYTES: u64 = 128 << 10;

/// When the nodes that a thread has retired are flushed, and freed as far as no reader blocks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flush {
    /// In batches, so that threads seldom access shared cache lines.
    #[default]
    InBatches,
    /// At the end of the operation that retired them.
    AtOnce,
}

/// A tree's node memory: the allocator, and the bytes by kind, summed over threads.
pub struct NodeHeap {
    local: PerThread<LocalHandle>,
    /// Counters of threads for which no per-thread state could be allocated. Only a thread with exclusive access enters
    /// with it.
    pub(super) common: LocalHandle,
    /// The epochs that decide when retired nodes are freed.
    pub epochs: Epochs,
    flushed: sync::Mutex<FlushedGarbage>,
    flush: Flush,
    /// Bytes at which a thread's retired nodes are flushed, for threads with numbers below `batching`. Beyond these,
    /// threads are so numerous that even small batches would be too much in total: their retired nodes are flushed at
    /// once.
    batch_bytes: AtomicI64,
    batching: AtomicUsize,
    heap: Heap,
}

/// Sums over all threads.
#[derive(Debug, Clone, Copy, Default)]
pub struct Held {
    /// Bytes of reachable nodes, by kind.
    pub live: [u64; KINDS],
    /// Number of reachable nodes, by kind.
    pub nodes: [u64; KINDS],
    /// Bytes of retired nodes that are not freed yet.
    pub retired: u64,
    /// Bytes of the heap that no node uses.
    pub free: u64,
}

impl Held {
    /// Returns the bytes of reachable nodes of a kind.
    pub fn bytes(&self, kind: Kind) -> u64 {
        self.live[kind as usize]
    }

    /// Returns the number of reachable nodes of a kind.
    pub fn nodes(&self, kind: Kind) -> u64 {
        self.nodes[kind as usize]
    }
}

impl NodeHeap {
    /// Whether the heap supports defragmentation.
    pub const CAN_BE_DEFRAGMENTED: bool = cfg!(all(feature = "node-heap", unix, not(miri)));

    /// Creates a heap without nodes.
    pub fn new(flush: Flush) -> Self {
        Self {
            local: PerThread::default(),
            common: LocalHandle::default(),
            epochs: Epochs::new(),
            flushed: sync::Mutex::default(),
            flush,
            batch_bytes: AtomicI64::new(FLUSH_BYTES),
            batching: AtomicUsize::new(usize::MAX),
            heap: Heap::default(),
        }
    }

    /// Bounds the retired nodes that threads have not flushed by the tree's memory limit, of which `threads` threads
    /// get equal shares.
    pub fn fit_batches(&self, memory_bytes: u64, threads: usize) {
        let most = i64::try_from(memory_bytes).unwrap_or(i64::MAX) / BATCHES_DIVISOR;
        let batch = most / i64::try_from(threads.max(1)).unwrap_or(i64::MAX);
        self.batch_bytes.store(batch.min(FLUSH_BYTES), Ordering::Relaxed);
        self.batching.store(threads, Ordering::Relaxed);
    }

    /// Returns the bytes at which the calling thread's retired nodes are flushed.
    pub(super) fn flush_bytes(&self) -> i64 {
        let is_batching = || thread_number().is_some_and(|number| number < self.batching.load(Ordering::Relaxed));
        match self.flush {
            Flush::InBatches if cfg!(shuttle) || is_batching() => self.batch_bytes.load(Ordering::Relaxed),
            Flush::InBatches | Flush::AtOnce => 0,
        }
    }

    /// Returns the calling thread's state.
    #[inline]
    pub fn local(&self) -> Result<&LocalHandle, OutOfMemory> {
        let bytes = size_of::<LocalHandle>();
        self.local.get_or_make().ok_or(OutOfMemory { bytes })
    }

    /// Adds to the counters of a kind. If there is no memory for a thread's own counters, the common ones are used.
    fn count(&self, kind: usize, nodes: i64, live: i64, retired: i64) {
        match self.local() {
            Ok(local) => local.count(kind, nodes, live, retired),
            Err(_) => self.common.count_shared(kind, nodes, live, retired),
        }
    }

    fn all_locals(&self) -> impl Iterator<Item = &LocalHandle> {
        self.local.iter().chain([&self.common])
    }

    /// Allocates a node of `bytes` (its header included), 16-byte aligned, uninitialised after the header; zeroed if it
    /// cannot be moved.
    ///
    /// # Safety
    /// `self` outlives the node.
    pub unsafe fn allocate(&self, bytes: usize, kind: Kind) -> Result<NonNull<u8>, OutOfMemory> {
        debug_assert!((size_of::<NodeHeader>()..=MAX_NODE_BYTES).contains(&bytes));
        let (pointer, part) = self.heap.allocate(bytes).ok_or(OutOfMemory { bytes })?;
        if !tagged_ptr::fits(pointer.as_ptr()) {
            // SAFETY: the block was allocated above with this length and part, and is not used.
            unsafe { self.heap.free(pointer, bytes, part) };
            return Err(OutOfMemory { bytes });
        }
        let header = NodeHeader {
            memory_or_next: AtomicPtr::new(std::ptr::from_ref(self).cast_mut().cast()),
            requested_bytes: bytes as u32,
            kind,
            part,
        };
        let held = header.held();
        // SAFETY: the allocation is at least a header long and aligned to 16 bytes.
        unsafe { pointer.cast::<NodeHeader>().write(header) };
        self.count(kind as usize, 1, held, 0);
        Ok(pointer)
    }

    /// Shortens a node to `bytes`, in place where it is a mapping of its own and stays one; returns its address then.
    /// On an error the node is unchanged.
    ///
    /// # Safety
    /// `node` came from [`NodeHeap::allocate`] of this heap, has at least `bytes`, and no other thread can reach it. It
    /// is not used again under another address.
    pub unsafe fn shorten(&self, node: NonNull<u8>, bytes: usize) -> Result<NonNull<u8>, OutOfMemory> {
        // SAFETY: the caller guarantees that the node is live, has `bytes`, and belongs to the calling thread alone.
        unsafe {
            let header = node.cast::<NodeHeader>().as_ptr();
            let (kind, before) = ((*header).kind, (*header).held());
            if self
                .heap
                .shorten(node, (*header).requested_bytes(), bytes, (*header).part)
            {
                (*header).requested_bytes = bytes as u32;
                self.count(kind as usize, 0, (*header).held() - before, 0);
                return Ok(node);
            }
            let shorter = self.allocate(bytes, kind)?;
            let own = size_of::<NodeHeader>();
            shorter.add(own).copy_from_nonoverlapping(node.add(own), bytes - own);
            Self::free(node);
            Ok(shorter)
        }
    }

    /// Frees a node that no other thread can reach.
    ///
    /// # Safety
    /// `node` came from [`NodeHeap::allocate`], was not retired, and is not used again.
    pub unsafe fn free(node: NonNull<u8>) {
        // SAFETY: a node begins with its header, which refers to its heap until the node is retired, and the heap
        // outlives the node.
        unsafe {
            let header = node.cast::<NodeHeader>().as_ref();
            let memory = &*header.memory_or_next.load(Ordering::Relaxed).cast::<NodeHeap>();
            memory.count(header.kind(), -1, -header.held(), 0);
            let (requested_bytes, part) = (header.requested_bytes(), header.part);
            memory.heap.free(node, requested_bytes, part);
        }
    }

    /// Flushes the nodes that this thread has retired, and frees what no reader blocks; the rest is freed at a later
    /// flush.
    #[cold]
    pub fn flush(&self, local: &LocalHandle) {
        let retired = local.take_retired();
        let waits = self.free_quiescent(retired).is_some();
        if waits && !self.is_inside() && self.garbage_bytes() > self.garbage_limit() {
            self.wait_for_garbage();
        }
    }

    /// Returns the bytes of flushed nodes that are not freed yet.
    fn garbage_bytes(&self) -> i64 {
        self.flushed.lock().bytes()
    }

    /// Returns the bytes of garbage above which threads that retire nodes wait.
    fn garbage_limit(&self) -> i64 {
        (self.live_bytes() / LIVE_FOR_GARBAGE).clamp(MIN_GARBAGE_BYTES, MAX_GARBAGE_BYTES)
    }

    /// Waits for the threads that block the flushed garbage: mostly other writers that were preempted, which get the
    /// processor sooner this way. The wait is bounded, since one may be a reader that itself waits for this thread.
    #[cold]
    fn wait_for_garbage(&self) {
        let end = Instant::now() + MAX_WAIT;
        let mut patience = Patience::default();
        let mut pause = Duration::from_micros(10);
        for wait in 0.. {
            if wait < MAX_WAITS {
                patience.wait();
            } else {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(1));
            }
            let waits = self.free_quiescent(GarbageBag::default()).is_some();
            if !waits || self.garbage_bytes() <= self.garbage_limit() || Instant::now() >= end {
                return;
            }
        }
    }

    /// Frees the retired nodes of all threads. Nodes that a reader blocks are freed when it leaves, or, if it leaves
    /// while they are being left to it, at the next flush.
    pub fn reclaim_all(&self) {
        let mut retired = GarbageBag::default();
        for local in self.all_locals() {
            retired.append(local.take_retired());
        }
        let mut waits_for = self.free_quiescent(retired);
        let mut patience = Patience::default();
        // First the earlier flushed nodes, then the ones taken above.
        let mut turns = 2;
        for wait in 0..MAX_WAITS {
            let Some(epoch) = waits_for else { return };
            // Within an operation of its own the thread would wait for itself.
            if wait == MAX_WAITS / 2 || self.is_inside() {
                self.leave_over();
            }
            patience.wait();
            waits_for = self.free_quiescent(GarbageBag::default());
            turns -= i32::from(waits_for != Some(epoch));
            if turns == 0 || self.is_inside() {
                return;
            }
        }
    }

    /// Leaves the waiting nodes to the threads that block them.
    fn leave_over(&self) {
        let flushed = self.flushed.lock();
        // Other threads may have freed the waiting nodes meanwhile: a thread that blocks the current ones would not
        // notice an older epoch.
        if let Some(epoch) = flushed.waits_for() {
            self.epochs.leave_over(epoch);
        }
    }

    /// Frees the nodes that were left over to this thread.
    #[cold]
    pub fn free_left_over(&self) {
        self.free_quiescent(GarbageBag::default());
    }

    /// Frees the flushed nodes, `retired` included, that no thread reads. Returns the epoch that the rest waits for.
    fn free_quiescent(&self, retired: GarbageBag) -> Option<u64> {
        let (free, waits_for) = {
            let mut flushed = self.flushed.lock();
            flushed.add(retired);
            let begin = || {
                let epoch = self.epochs.begin();
                // Stored before the scan of the slots, so that a thread which the scan sees inside an operation most
                // likely sees this when it leaves.
                self.epochs.left_over_waits_for(Some(epoch));
                epoch
            };
            let free = flushed.take_free(begin, |epoch| self.is_quiescent(epoch));
            let waits_for = flushed.waits_for();
            self.epochs.left_over_waits_for(waits_for);
            (free, waits_for)
        };
        for node in free.into_nodes() {
            // SAFETY: no thread can reach the node any more; apart from its link its header is unchanged since
            // allocation.
            unsafe {
                let header = node.cast::<NodeHeader>().as_ref();
                let (requested_bytes, part) = (header.requested_bytes(), header.part);
                self.count(header.kind(), 0, 0, -header.held());
                self.heap.free(node, requested_bytes, part);
            }
        }
        waits_for
    }

    /// Returns whether the thread at that slot is outside any operation. If so, it sees what the caller has written
    /// before when it begins one.
    #[cfg(not(shuttle))]
    pub fn is_outside(&self, slot: ThreadSlot) -> bool {
        self.local.at(slot).is_none_or(|local| local.slot.is_outside())
    }

    /// Returns false: the threads of the model checker share one context.
    #[cfg(shuttle)]
    pub fn is_outside(&self, _slot: ThreadSlot) -> bool {
        false
    }

    /// Returns the bytes of per-thread state.
    #[cfg(not(shuttle))]
    pub fn locals_bytes(&self) -> u64 {
        self.local.held_bytes() as u64
    }

    /// Returns 0: the model checker does not use this figure.
    #[cfg(shuttle)]
    pub fn locals_bytes(&self) -> u64 {
        0
    }

    /// Returns whether the calling thread is inside an operation.
    pub fn is_inside(&self) -> bool {
        self.local.get().is_some_and(|local| local.slot.is_inside())
    }

    /// Returns whether no thread reads nodes that were unlinked before `epoch` began.
    pub fn is_quiescent(&self, epoch: u64) -> bool {
        !self.local.iter().any(|local| local.slot.blocks_reclamation(epoch))
    }

    /// Returns whether a node of `bytes` is allocated from a part of the heap, and not directly from the system: then
    /// defragmentation moves it, and otherwise [`NodeHeap::shorten`] returns memory at once.
    pub fn can_be_moved(bytes: usize) -> bool {
        heap::can_be_moved(bytes)
    }

    /// Returns a destination part for defragmentation, for a thread that replaces all leaves in key order: the rest of
    /// the old leaves' room is then contiguous.
    pub fn defragmentation_part(&self) -> PartName {
        let used = self.heap.defragmentation_part();
        PartName {
            used,
            allocated_elsewhere: self.heap.allocated_but_from(used),
        }
    }

    /// Returns whether the holes between nodes are worth a defragmentation, by a quick estimate.
    pub fn is_fragmented(&self) -> bool {
        self.heap.is_fragmented()
    }

    /// Returns whether the holes between nodes are worth a defragmentation, measured exactly and slowly.
    pub fn can_be_defragmented(&self) -> bool {
        self.heap.can_be_defragmented()
    }

    /// Returns whether there are holes between which nodes come and go; see [`Heap::has_holes`].
    pub fn has_holes(&self) -> bool {
        self.heap.has_holes()
    }

    /// Returns whether nodes are replaced so fast that defragmentation does not pay.
    pub fn is_rewritten(&self) -> bool {
        self.heap.is_rewritten()
    }

    /// Returns free pages to the system, except those of `part`, which is being filled.
    pub fn return_free_but_of(&self, part: &OwnPart) {
        self.heap.return_pages_but_of(part.name.used);
    }

    /// Returns free pages to the system. `moved_all` states whether every node was moved to `part`, apart from those
    /// allocated since.
    pub fn return_free(&self, part: &OwnPart, moved_all: bool) {
        let alone = self.heap.allocated_but_from(part.name.used) == part.name.allocated_elsewhere;
        self.heap.return_pages(moved_all && alone);
        self.heap.moved_to(part.name.used);
    }

    /// Collapses resident small pages into huge pages where that takes no more memory.
    pub fn make_huge_pages(&self) {
        self.heap.make_huge_pages();
    }

    /// Returns the bytes of the nodes in use.
    pub fn live_bytes(&self) -> i64 {
        let live = self.all_locals().flat_map(|local| &local.live);
        live.fold(0, |sum, cell| sum.wrapping_add(cell.load(Ordering::Relaxed)))
    }

    /// Returns all free pages to the system.
    pub fn return_all_free(&self) {
        self.heap.return_pages(false);
    }

    /// Returns the number of nodes of a kind in use and their bytes: as [`NodeHeap::held`], without a query of the
    /// heap.
    pub fn live_of(&self, kind: Kind) -> (i64, i64) {
        let of_kind = |cell: &[AtomicI64; KINDS]| cell[kind as usize].load(Ordering::Relaxed);
        let both = self
            .all_locals()
            .map(|local| (of_kind(&local.nodes), of_kind(&local.live)));
        both.fold((0, 0), |(nodes, bytes), (more_nodes, more_bytes)| {
            (nodes + more_nodes, bytes + more_bytes)
        })
    }

    /// Returns what is held of each kind. Nodes that other threads move meanwhile may be counted twice or not at all;
    /// if these were many, the sums are repeated.
    pub fn held(&self) -> Held {
        let mut allocated = self.heap.allocated();
        for _ in 1..MAX_LOOKS {
            let held = self.held_about_now();
            let before = std::mem::replace(&mut allocated, self.heap.allocated());
            let all = held.live.iter().sum::<u64>();
            if allocated - before <= MIN_SEEN_TWICE_BYTES.max(all / LIVE_FOR_SEEN_TWICE) {
                return held;
            }
        }
        self.held_about_now()
    }

    fn held_about_now(&self) -> Held {
        let mut live = [0i64; KINDS];
        let mut nodes = [0i64; KINDS];
        let mut retired = 0i64;
        for local in self.all_locals() {
            for kind in 0..KINDS {
                live[kind] += local.live[kind].load(Ordering::Relaxed);
                nodes[kind] += local.nodes[kind].load(Ordering::Relaxed);
            }
            retired += local.retired.load(Ordering::Relaxed);
        }
        let sum = |value: i64| value.max(0) as u64;
        Held {
            live: live.map(sum),
            nodes: nodes.map(sum),
            retired: sum(retired),
            free: self.heap.free_bytes(),
        }
    }
}

/// A part of the heap used as the destination of defragmentation.
#[derive(Clone, Copy)]
pub struct PartName {
    used: u8,
    /// Bytes that had been allocated from other parts before this one was chosen.
    allocated_elsewhere: u64,
}

impl PartName {
    /// Makes the calling thread allocate from the part until the result is dropped.
    pub fn enter(self) -> OwnPart {
        OwnPart {
            name: self,
            own: heap::allocate_from(self.used),
        }
    }
}

/// Restores the thread's own part when dropped.
pub struct OwnPart {
    name: PartName,
    own: u8,
}

impl OwnPart {
    /// Returns whether a node is from this part.
    ///
    /// # Safety
    /// `node` came from [`NodeHeap::allocate`] and is not freed.
    pub unsafe fn has(&self, node: NonNull<u8>) -> bool {
        // SAFETY: the caller guarantees that the node is not freed, so its header is readable.
        unsafe { node.cast::<NodeHeader>().as_ref() }.part == self.name.used
    }
}

impl Drop for OwnPart {
    fn drop(&mut self) {
        heap::allocate_from(self.own);
    }
}

impl Drop for NodeHeap {
    fn drop(&mut self) {
        // The tree is being dropped, so no reader is left.
        self.reclaim_all();
    }
}
