//! Node memory: allocation with its slack known, and what is held of each kind.
//!
//! Every node (leaf, inner node, landing buffer, large value, table of shortcuts) is one allocation that begins with its [`NodeHeader`], so that a
//! node can be freed and accounted for by whichever thread reclaims it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use seize::{Collector, Guard, LocalGuard};
use thread_local::ThreadLocal;

use super::Error;
use super::child;
#[cfg(all(feature = "node-heap", unix, not(miri)))]
use super::heap;
use super::retired::{HandOnAt, Reclaim, Waiting};
use heap::Heap;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Leaf,
    Inner,
    Landing,
    Large,
    Shortcuts,
}

const KINDS: usize = 5;

/// How every node begins.
#[repr(C)]
pub(crate) struct NodeHeader {
    memory: *const Memory,
    /// Bytes asked for.
    asked: u32,
    kind: Kind,
    /// The part of the heap that the node is from.
    part: u8,
}

impl NodeHeader {
    fn kind(&self) -> usize {
        self.kind as usize
    }

    /// Bytes asked for, the header's included.
    pub(super) fn asked(&self) -> usize {
        self.asked as usize
    }

    /// Bytes the node takes in its heap.
    fn held(&self) -> i64 {
        heap::held_bytes(self.asked()) as i64
    }
}

/// The largest node: a large value of 64 MiB, stored raw, and its header.
const MAX_NODE_BYTES: usize = (64 << 20) + 4096;

/// One thread's share of the sums, on cache lines of its own: threads' shares lie side by side, and fetching each other's lines would
/// cost them more than all else they do. Only that thread writes, so a load and a store are an addition.
#[derive(Default)]
#[repr(align(128))]
struct Cells {
    live: [AtomicI64; KINDS],
    nodes: [AtomicI64; KINDS],
    retired: AtomicI64,
    waiting: Mutex<Waiting>,
}

fn add(cell: &AtomicI64, amount: i64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

/// What a tree's nodes hold, by kind, summed over threads.
pub(crate) struct Memory {
    cells: ThreadLocal<Cells>,
    hand_on_at: HandOnAt,
    heap: Heap,
}

/// Sums over all threads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Held {
    pub live: [u64; KINDS],
    pub nodes: [u64; KINDS],
    pub retired: u64,
    /// Room that the heap has and no node uses.
    pub free: u64,
}

impl Held {
    pub(crate) fn bytes(&self, kind: Kind) -> u64 {
        self.live[kind as usize]
    }

    pub(crate) fn nodes(&self, kind: Kind) -> u64 {
        self.nodes[kind as usize]
    }
}

impl Memory {
    /// Whether there are holes to be tidied away.
    pub(crate) const CAN_BE_TIDIED: bool = cfg!(all(feature = "node-heap", unix, not(miri)));

    pub(crate) fn new() -> Self {
        Self {
            cells: ThreadLocal::new(),
            hand_on_at: HandOnAt::default(),
            heap: Heap::default(),
        }
    }

    fn cells(&self) -> &Cells {
        self.cells.get_or_default()
    }

    /// Allocates a node of `bytes` (its header included), 16-byte aligned, uninitialised behind the header.
    ///
    /// # Safety
    /// `self` outlives the node.
    pub(crate) unsafe fn allocate(&self, bytes: usize, kind: Kind) -> Result<NonNull<u8>, Error> {
        debug_assert!((size_of::<NodeHeader>()..=MAX_NODE_BYTES).contains(&bytes));
        let (pointer, part) = self.heap.allocate(bytes).ok_or(Error::OutOfMemory { bytes })?;
        if !child::fits(pointer.as_ptr()) {
            // SAFETY: the block came from the line above.
            unsafe { self.heap.free(pointer, bytes, part) };
            return Err(Error::OutOfMemory { bytes });
        }
        let header = NodeHeader {
            memory: self,
            asked: bytes as u32,
            kind,
            part,
        };
        let held = header.held();
        // SAFETY: the allocation is at least a header long and aligned to 16.
        unsafe { pointer.cast::<NodeHeader>().write(header) };
        let cells = self.cells();
        add(&cells.live[kind as usize], held);
        add(&cells.nodes[kind as usize], 1);
        Ok(pointer)
    }

    /// Frees a node that no other thread can reach.
    ///
    /// # Safety
    /// `node` came from [`Memory::allocate`], was not retired, and is not used again.
    pub(crate) unsafe fn free(node: NonNull<u8>) {
        // SAFETY: a node begins with its header, and its memory outlives it.
        unsafe {
            let header = node.cast::<NodeHeader>().as_ref();
            let cells = (*header.memory).cells();
            add(&cells.live[header.kind()], -header.held());
            add(&cells.nodes[header.kind()], -1);
            let (memory, asked, part) = (&*header.memory, header.asked(), header.part);
            memory.heap.free(node, asked, part);
        }
    }

    /// Takes a node that was unlinked. It is handed to the collector with others.
    ///
    /// # Safety
    /// `node` came from [`Memory::allocate`], threads that enter from now on cannot reach it, and it is retired once.
    pub(crate) unsafe fn retire(node: NonNull<u8>, guard: &LocalGuard<'_>) {
        // SAFETY: as above; nobody frees the node before it is handed on. The memory outlives its nodes.
        unsafe {
            let memory = memory_of(node);
            let held = count_retired(node, memory.cells());
            memory.wait(node, reclaim, held, guard);
        }
    }

    /// The same for a node and another one that it leads to, which count as one. `reclaim_both` is called with the first, and calls
    /// [`reclaim`] for each.
    ///
    /// # Safety
    /// As [`Memory::retire`], for both.
    pub(crate) unsafe fn retire_both(
        node: NonNull<u8>,
        other: NonNull<u8>,
        reclaim_both: Reclaim,
        guard: &LocalGuard<'_>,
    ) {
        // SAFETY: as above.
        unsafe {
            let memory = memory_of(node);
            let cells = memory.cells();
            let held = count_retired(node, cells) + count_retired(other, cells);
            memory.wait(node, reclaim_both, held, guard);
        }
    }

    /// Puts a node that was retired, and holds so many bytes, with those that wait, and hands on what waits when it is much.
    ///
    /// # Safety
    /// As [`Memory::retire`]; `reclaim` frees what was retired.
    unsafe fn wait(&self, node: NonNull<u8>, reclaim: Reclaim, held: i64, guard: &LocalGuard<'_>) {
        let mut waiting = self.cells().waiting.lock();
        // SAFETY: as the caller promises.
        let waits = unsafe { waiting.add(node, reclaim, held) };
        let is_much = self.hand_on_at.is_reached_by(&waiting);
        drop(waiting);
        if !waits {
            // SAFETY: as the caller promises.
            unsafe { guard.defer_retire(node.as_ptr(), reclaim) };
        }
        if is_much {
            self.hand_on_all(guard);
            self.hand_on_at.follow(self.live_bytes());
        }
    }

    /// Hands what all threads have retired to the collector, which frees it as soon as no reader is in its way.
    pub(crate) fn hand_on_all(&self, guard: &LocalGuard<'_>) {
        for cells in &self.cells {
            let waiting = std::mem::take(&mut *cells.waiting.lock());
            waiting.hand_on(guard);
        }
        guard.flush();
    }

    /// Frees what was retired and not handed on.
    ///
    /// # Safety
    /// No thread is at work on the tree any more.
    pub(crate) unsafe fn reclaim_waiting(&self, collector: &Collector) {
        for cells in &self.cells {
            let waiting = std::mem::take(&mut *cells.waiting.lock());
            // SAFETY: as the caller promises nobody reads what waits.
            unsafe { waiting.reclaim(collector) };
        }
    }

    /// Whether a node of so many bytes is from a part of the heap, and not from the system.
    pub(crate) fn can_be_moved(bytes: usize) -> bool {
        heap::can_be_moved(bytes)
    }

    /// Until the result is dropped, the calling thread's nodes come from a part of the heap that leaves are moved to. For a thread
    /// that replaces all leaves, from the first to the last: what is left of the old ones' room is then in one piece.
    pub(crate) fn tidy_part(&self) -> OwnPart {
        let used = self.heap.tidy_part();
        OwnPart {
            used,
            allocated_elsewhere: self.heap.allocated_but_from(used),
            own: heap::allocate_from(used),
        }
    }

    /// Whether the holes between nodes have become worth the work of moving leaves together, by a quick estimate.
    pub(crate) fn is_untidy(&self) -> bool {
        self.heap.is_untidy()
    }

    /// The same, slow and exact.
    pub(crate) fn can_be_tidied(&self) -> bool {
        self.heap.can_be_tidied()
    }

    /// Whether nodes are replaced faster than it pays to move them together.
    pub(crate) fn is_rewritten(&self) -> bool {
        self.heap.is_rewritten()
    }

    /// Gives pages that no node uses back to the system, those of `part` excepted, which is being filled.
    pub(crate) fn return_free_but_of(&self, part: &OwnPart) {
        self.heap.return_pages_but_of(part.used);
    }

    /// Gives pages that no node uses back to the system. `moved_all` says whether every node was moved to `part`, those excepted that
    /// have come since.
    pub(crate) fn return_free(&self, part: &OwnPart, moved_all: bool) {
        let alone = self.heap.allocated_but_from(part.used) == part.allocated_elsewhere;
        self.heap.return_pages(moved_all && alone);
        self.heap.moved_to(part.used);
    }

    /// Puts what is resident on huge pages where that takes no more memory.
    pub(crate) fn make_huge_pages(&self) {
        self.heap.make_huge_pages();
    }

    /// Bytes of the nodes that are in use.
    pub(crate) fn live_bytes(&self) -> i64 {
        let live = self.cells.iter().flat_map(|cells| &cells.live);
        live.fold(0, |sum, cell| sum.wrapping_add(cell.load(Ordering::Relaxed)))
    }

    /// How many nodes of a kind are in use, and the bytes they hold: what [`Memory::held`] says, without asking the heap.
    pub(crate) fn live_of(&self, kind: Kind) -> (i64, i64) {
        let of_kind = |cell: &[AtomicI64; KINDS]| cell[kind as usize].load(Ordering::Relaxed);
        let both = self
            .cells
            .iter()
            .map(|cells| (of_kind(&cells.nodes), of_kind(&cells.live)));
        both.fold((0, 0), |(nodes, bytes), (more_nodes, more_bytes)| {
            (nodes + more_nodes, bytes + more_bytes)
        })
    }

    pub(crate) fn held(&self) -> Held {
        let mut live = [0i64; KINDS];
        let mut nodes = [0i64; KINDS];
        let mut retired = 0i64;
        for cells in &self.cells {
            for kind in 0..KINDS {
                live[kind] += cells.live[kind].load(Ordering::Relaxed);
                nodes[kind] += cells.nodes[kind].load(Ordering::Relaxed);
            }
            retired += cells.retired.load(Ordering::Relaxed);
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

/// Gives the thread its own part back when dropped.
pub(crate) struct OwnPart {
    used: u8,
    /// Bytes that were ever allocated from other parts before this one was taken.
    allocated_elsewhere: u64,
    own: u8,
}

impl OwnPart {
    /// Whether a node is from this part.
    ///
    /// # Safety
    /// `node` came from [`Memory::allocate`] and is not freed.
    pub(crate) unsafe fn has(&self, node: NonNull<u8>) -> bool {
        // SAFETY: as the caller promises.
        unsafe { node.cast::<NodeHeader>().as_ref() }.part == self.used
    }
}

impl Drop for OwnPart {
    fn drop(&mut self) {
        heap::allocate_from(self.own);
    }
}

/// The memory that a node is from.
///
/// # Safety
/// `node` came from [`Memory::allocate`] and is not freed; the result is not used once its memory is gone.
unsafe fn memory_of<'m>(node: NonNull<u8>) -> &'m Memory {
    // SAFETY: as above; the memory outlives its nodes.
    unsafe { &*node.cast::<NodeHeader>().as_ref().memory }
}

/// Counts a node as retired. Returns the bytes it holds.
///
/// # Safety
/// `node` came from [`Memory::allocate`] and is not freed.
unsafe fn count_retired(node: NonNull<u8>, cells: &Cells) -> i64 {
    // SAFETY: as above.
    let header = unsafe { node.cast::<NodeHeader>().as_ref() };
    let held = header.held();
    add(&cells.live[header.kind()], -held);
    add(&cells.nodes[header.kind()], -1);
    add(&cells.retired, held);
    held
}

/// # Safety
/// Called once for a node that was retired, when no thread can reach it any more.
pub(crate) unsafe fn reclaim(node: *mut u8, _collector: &Collector) {
    // SAFETY: no thread can reach the node any more; its header is intact and its memory outlives the collector.
    unsafe {
        let header = &*node.cast::<NodeHeader>();
        let (memory, asked, part) = (&*header.memory, header.asked(), header.part);
        add(&memory.cells().retired, -header.held());
        memory.heap.free(NonNull::new_unchecked(node), asked, part);
    }
}

/// The program's own allocator in place of the heap, for tools that follow every allocation.
#[cfg(not(all(feature = "node-heap", unix, not(miri))))]
mod heap {
    use std::alloc::Layout;
    use std::cell::Cell;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU8, Ordering};

    /// Parts are names here, for the tools to see what is moved from one to another.
    #[derive(Default)]
    pub(super) struct Heap {
        tidied: AtomicU8,
    }

    thread_local! {
        static PART: Cell<u8> = const { Cell::new(0) };
    }

    fn layout(bytes: usize) -> Option<Layout> {
        Layout::from_size_align(bytes, 16).ok()
    }

    pub(super) fn allocate_from(part: u8) -> u8 {
        PART.try_with(|own| own.replace(part)).unwrap_or_default()
    }

    /// For a copy to be checked.
    pub(super) fn can_be_moved(_bytes: usize) -> bool {
        true
    }

    /// The program's allocator is unknown here: glibc's rule (an eight-byte chunk header, 16-byte steps) stands for it.
    pub(super) fn held_bytes(asked: usize) -> usize {
        (asked + 8).next_multiple_of(16)
    }

    impl Heap {
        pub(super) fn allocate(&self, bytes: usize) -> Option<(NonNull<u8>, u8)> {
            // SAFETY: a node is never empty.
            let block = NonNull::new(unsafe { std::alloc::alloc(layout(bytes)?) })?;
            Some((block, PART.try_with(Cell::get).unwrap_or_default()))
        }

        /// # Safety
        /// `block` came from `allocate(asked)` and is not used again.
        pub(super) unsafe fn free(&self, block: NonNull<u8>, asked: usize, _part: u8) {
            if let Some(layout) = layout(asked) {
                // SAFETY: as the caller promises; the layout is the one it was allocated with.
                unsafe { std::alloc::dealloc(block.as_ptr(), layout) }
            }
        }

        pub(super) fn return_pages_but_of(&self, _part: u8) {}

        pub(super) fn return_pages(&self, _tidied: bool) {}

        pub(super) fn allocated_but_from(&self, _part: u8) -> u64 {
            0
        }

        pub(super) fn make_huge_pages(&self) {}

        pub(super) fn tidy_part(&self) -> u8 {
            1 + self.tidied.fetch_add(1, Ordering::Relaxed) % 2
        }

        pub(super) fn is_untidy(&self) -> bool {
            false
        }

        pub(super) fn is_rewritten(&self) -> bool {
            false
        }

        pub(super) fn moved_to(&self, _part: u8) {}

        pub(super) fn can_be_tidied(&self) -> bool {
            false
        }

        /// Unknown here.
        pub(super) fn free_bytes(&self) -> u64 {
            0
        }
    }
}
