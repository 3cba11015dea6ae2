//! Node memory: allocation with its slack known, and what is held of each kind.
//!
//! Every node (leaf, inner node, landing buffer, large value, interpolation index) is one allocation that begins with its [`NodeHeader`], so that a
//! node can be freed and accounted for by whichever thread reclaims it.

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
use crate::sync::per_thread::{Place, thread_number};
use crate::sync::{Patience, PerThread};

/// The largest node: a large value of 64 MiB, stored raw, and its header.
const MAX_NODE_BYTES: usize = (64 << 20) + 4096;

/// How often whoever wants something to be freed at once waits for readers. The model checker is to see them outlast that.
pub const MAX_WAITS: u32 = if cfg!(shuttle) { 2 } else { 100 };

/// What waits to be freed is at most one part in so many of what nodes hold, within bounds, before writers wait for it.
const LIVE_FOR_GARBAGE: i64 = 64;
const MIN_GARBAGE_BYTES: i64 = 512 << 10;
const MAX_GARBAGE_BYTES: i64 = 4 << 20;

/// What threads have retired and not flushed is at most one part in so many of what the tree may hold.
const BATCHES_DIVISOR: i64 = 32;

/// How long a writer waits for what it has replaced to be freed. Every time it has retired as much as is flushed: behind a reader that stays
/// for long, writers so retire little more than 10 MB a second.
const MAX_WAIT: Duration = Duration::from_millis(20);

/// What is held is looked at again, up to so many times, where nodes were made meanwhile: of more bytes than one part in so many of what nodes
/// hold, and than these.
const MAX_LOOKS: usize = 4;
const LIVE_FOR_SEEN_TWICE: u64 = 128;
const MIN_SEEN_TWICE_BYTES: u64 = 128 << 10;

/// When what a thread has retired is freed, as far as no reader is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flush {
    /// When it has become much, so that threads seldom look at each other's lines.
    #[default]
    InBatches,
    /// When the operation that retired it is over.
    AtOnce,
}

/// A tree's nodes: where they come from and go to, and what they hold, by kind, summed over threads.
pub struct NodeHeap {
    local: PerThread<LocalHandle>,
    /// The sums of threads that there was no memory for cells of their own for. Only who alone has the tree enters with it.
    pub(super) common: LocalHandle,
    /// The epochs that decide when retired nodes are freed.
    pub epochs: Epochs,
    flushed: sync::Mutex<FlushedGarbage>,
    flush: Flush,
    /// What the nodes that a thread has retired hold when they are flushed, of the threads whose numbers are below `batching`. Others are so
    /// many that even small batches would be much: what they retire is flushed at once.
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
    /// Room that the heap has and no node uses.
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
    /// Whether there are holes to be closed.
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

    /// Bounds what threads have retired and not flushed by what the tree may hold, of which so many threads take an equal part.
    pub fn fit_batches(&self, memory_bytes: u64, threads: usize) {
        let most = i64::try_from(memory_bytes).unwrap_or(i64::MAX) / BATCHES_DIVISOR;
        let batch = most / i64::try_from(threads.max(1)).unwrap_or(i64::MAX);
        self.batch_bytes.store(batch.min(FLUSH_BYTES), Ordering::Relaxed);
        self.batching.store(threads, Ordering::Relaxed);
    }

    /// What the nodes that the calling thread has retired hold when they are flushed.
    pub(super) fn flush_bytes(&self) -> i64 {
        let is_batching = || thread_number().is_some_and(|number| number < self.batching.load(Ordering::Relaxed));
        match self.flush {
            Flush::InBatches if cfg!(shuttle) || is_batching() => self.batch_bytes.load(Ordering::Relaxed),
            Flush::InBatches | Flush::AtOnce => 0,
        }
    }

    /// The calling thread's.
    #[inline]
    pub fn local(&self) -> Result<&LocalHandle, OutOfMemory> {
        let bytes = size_of::<LocalHandle>();
        self.local.get_or_make().ok_or(OutOfMemory { bytes })
    }

    /// Counts nodes of a kind, which hold so many bytes more or less. Where there is no memory for a thread's own cells those of all serve.
    fn count(&self, kind: usize, nodes: i64, live: i64, retired: i64) {
        match self.local() {
            Ok(local) => local.count(kind, nodes, live, retired),
            Err(_) => self.common.count_shared(kind, nodes, live, retired),
        }
    }

    fn all_locals(&self) -> impl Iterator<Item = &LocalHandle> {
        self.local.iter().chain([&self.common])
    }

    /// Allocates a node of `bytes` (its header included), 16-byte aligned, uninitialised behind the header.
    ///
    /// # Safety
    /// `self` outlives the node.
    pub unsafe fn allocate(&self, bytes: usize, kind: Kind) -> Result<NonNull<u8>, OutOfMemory> {
        debug_assert!((size_of::<NodeHeader>()..=MAX_NODE_BYTES).contains(&bytes));
        let (pointer, part) = self.heap.allocate(bytes).ok_or(OutOfMemory { bytes })?;
        if !tagged_ptr::fits(pointer.as_ptr()) {
            // SAFETY: the block came from the line above.
            unsafe { self.heap.free(pointer, bytes, part) };
            return Err(OutOfMemory { bytes });
        }
        let header = NodeHeader {
            memory_or_next: AtomicPtr::new(std::ptr::from_ref(self).cast_mut().cast()),
            asked: bytes as u32,
            kind,
            part,
        };
        let held = header.held();
        // SAFETY: the allocation is at least a header long and aligned to 16.
        unsafe { pointer.cast::<NodeHeader>().write(header) };
        self.count(kind as usize, 1, held, 0);
        Ok(pointer)
    }

    /// Frees a node that no other thread can reach.
    ///
    /// # Safety
    /// `node` came from [`NodeHeap::allocate`], was not retired, and is not used again.
    pub unsafe fn free(node: NonNull<u8>) {
        // SAFETY: a node begins with its header, which says its memory until it is retired, and its memory outlives it.
        unsafe {
            let header = node.cast::<NodeHeader>().as_ref();
            let memory = &*header.memory_or_next.load(Ordering::Relaxed).cast::<NodeHeap>();
            memory.count(header.kind(), -1, -header.held(), 0);
            let (asked, part) = (header.asked(), header.part);
            memory.heap.free(node, asked, part);
        }
    }

    /// Frees what this thread has retired, as soon as no reader is in its way: what is in one's way now, with what is flushed next.
    #[cold]
    pub fn flush(&self, local: &LocalHandle) {
        let retired = local.take_retired();
        let waits = self.free_quiescent(retired).is_some();
        if waits && !self.is_inside() && self.garbage_bytes() > self.garbage_limit() {
            self.wait_for_garbage();
        }
    }

    /// What waits to be freed of what was flushed.
    fn garbage_bytes(&self) -> i64 {
        self.flushed.lock().bytes()
    }

    /// What may wait to be freed before those who retire more wait as well.
    fn garbage_limit(&self) -> i64 {
        (self.live_bytes() / LIVE_FOR_GARBAGE).clamp(MIN_GARBAGE_BYTES, MAX_GARBAGE_BYTES)
    }

    /// Waits for those who are in the way of what was flushed: most of the time other writers that lost their processor, which they get
    /// the sooner. Not for ever, since one may be a reader that itself waits for this thread.
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

    /// Frees what all threads have retired. What a reader stays in the way of is freed when it leaves, or, if it leaves in the very
    /// moment in which it is left to it, with what is flushed next.
    pub fn reclaim_all(&self) {
        let mut retired = GarbageBag::default();
        for local in self.all_locals() {
            retired.append(local.take_retired());
        }
        let mut waits_for = self.free_quiescent(retired);
        let mut patience = Patience::default();
        // What was flushed before, and then what was taken above.
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

    /// Leaves what waits to the threads that are in the way of it.
    fn leave_over(&self) {
        let flushed = self.flushed.lock();
        // Others may have freed what waited meanwhile: a thread in the way of what waits now would not notice an older epoch.
        if let Some(epoch) = flushed.waits_for() {
            self.epochs.leave_over(epoch);
        }
    }

    /// Frees what was left over to this thread.
    #[cold]
    pub fn free_left_over(&self) {
        self.free_quiescent(GarbageBag::default());
    }

    /// Frees what nobody reads of what was flushed, `retired` included. Returns the epoch that the rest waits for.
    fn free_quiescent(&self, retired: GarbageBag) -> Option<u64> {
        let (free, waits_for) = {
            let mut flushed = self.flushed.lock();
            flushed.add(retired);
            let begin = || {
                let epoch = self.epochs.begin();
                // Before the look at who is in the way, so that of those who are not seen to leave hardly one does not see this.
                self.epochs.left_over_waits_for(Some(epoch));
                epoch
            };
            let free = flushed.take_free(begin, |epoch| self.is_quiescent(epoch));
            let waits_for = flushed.waits_for();
            self.epochs.left_over_waits_for(waits_for);
            (free, waits_for)
        };
        for node in free.into_nodes() {
            // SAFETY: no thread can reach the node any more; but for its link its header is as it was made.
            unsafe {
                let header = node.cast::<NodeHeader>().as_ref();
                let (asked, part) = (header.asked(), header.part);
                self.count(header.kind(), 0, 0, -header.held());
                self.heap.free(node, asked, part);
            }
        }
        waits_for
    }

    /// Whether the thread with that place is at no operation. If so, it sees what the caller has written before when it begins one.
    #[cfg(not(shuttle))]
    pub fn is_outside(&self, place: Place) -> bool {
        self.local.at(place).is_none_or(|local| local.slot.is_outside())
    }

    /// The model checker's threads have one context in common.
    #[cfg(shuttle)]
    pub fn is_outside(&self, _place: Place) -> bool {
        false
    }

    /// What is kept for each thread.
    #[cfg(not(shuttle))]
    pub fn locals_bytes(&self) -> u64 {
        self.local.held_bytes() as u64
    }

    /// The same, which the model checker does not ask for.
    #[cfg(shuttle)]
    pub fn locals_bytes(&self) -> u64 {
        0
    }

    /// Whether the calling thread is at an operation.
    pub fn is_inside(&self) -> bool {
        self.local.get().is_some_and(|local| local.slot.is_inside())
    }

    /// Whether no thread reads what was unlinked before `epoch` began.
    pub fn is_quiescent(&self, epoch: u64) -> bool {
        !self.local.iter().any(|local| local.slot.is_in_the_way(epoch))
    }

    /// Whether a node of so many bytes is from a part of the heap, and not from the system.
    pub fn can_be_moved(bytes: usize) -> bool {
        heap::can_be_moved(bytes)
    }

    /// A part of the heap that leaves are moved to. For a thread that replaces all leaves, from the first to the last: what is left of
    /// the old ones' room is then in one piece.
    pub fn defragmentation_part(&self) -> PartName {
        let used = self.heap.defragmentation_part();
        PartName {
            used,
            allocated_elsewhere: self.heap.allocated_but_from(used),
        }
    }

    /// Whether the holes between nodes have become worth the work of moving leaves together, by a quick estimate.
    pub fn is_fragmented(&self) -> bool {
        self.heap.is_fragmented()
    }

    /// The same, slow and exact.
    pub fn can_be_defragmented(&self) -> bool {
        self.heap.can_be_defragmented()
    }

    /// The same of holes that nodes come and go between.
    pub fn has_holes(&self) -> bool {
        self.heap.has_holes()
    }

    /// Whether nodes are replaced faster than it pays to move them together.
    pub fn is_rewritten(&self) -> bool {
        self.heap.is_rewritten()
    }

    /// Gives pages that no node uses back to the system, those of `part` excepted, which is being filled.
    pub fn return_free_but_of(&self, part: &OwnPart) {
        self.heap.return_pages_but_of(part.name.used);
    }

    /// Gives pages that no node uses back to the system. `moved_all` says whether every node was moved to `part`, those excepted that
    /// have come since.
    pub fn return_free(&self, part: &OwnPart, moved_all: bool) {
        let alone = self.heap.allocated_but_from(part.name.used) == part.name.allocated_elsewhere;
        self.heap.return_pages(moved_all && alone);
        self.heap.moved_to(part.name.used);
    }

    /// Puts what is resident on huge pages where that takes no more memory.
    pub fn make_huge_pages(&self) {
        self.heap.make_huge_pages();
    }

    /// Bytes of the nodes that are in use.
    pub fn live_bytes(&self) -> i64 {
        let live = self.all_locals().flat_map(|local| &local.live);
        live.fold(0, |sum, cell| sum.wrapping_add(cell.load(Ordering::Relaxed)))
    }

    /// Gives all pages that no node uses back to the system.
    pub fn return_all_free(&self) {
        self.heap.return_pages(false);
    }

    /// How many nodes of a kind are in use, and the bytes they hold: what [`NodeHeap::held`] says, without asking the heap.
    pub fn live_of(&self, kind: Kind) -> (i64, i64) {
        let of_kind = |cell: &[AtomicI64; KINDS]| cell[kind as usize].load(Ordering::Relaxed);
        let both = self
            .all_locals()
            .map(|local| (of_kind(&local.nodes), of_kind(&local.live)));
        both.fold((0, 0), |(nodes, bytes), (more_nodes, more_bytes)| {
            (nodes + more_nodes, bytes + more_bytes)
        })
    }

    /// What is held of each kind. Nodes that others move meanwhile may be counted twice or not at all; where these were many it is all
    /// counted again.
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

/// A part of the heap that leaves are moved to.
#[derive(Clone, Copy)]
pub struct PartName {
    used: u8,
    /// Bytes that were ever allocated from other parts before this one was taken.
    allocated_elsewhere: u64,
}

impl PartName {
    /// Has the calling thread's nodes come from it until the result is dropped.
    pub fn enter(self) -> OwnPart {
        OwnPart {
            name: self,
            own: heap::allocate_from(self.used),
        }
    }
}

/// Gives the thread its own part back when dropped.
pub struct OwnPart {
    name: PartName,
    own: u8,
}

impl OwnPart {
    /// Whether a node is from this part.
    ///
    /// # Safety
    /// `node` came from [`NodeHeap::allocate`] and is not freed.
    pub unsafe fn has(&self, node: NonNull<u8>) -> bool {
        // SAFETY: as the caller promises.
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
        // With the tree its readers have gone.
        self.reclaim_all();
    }
}
