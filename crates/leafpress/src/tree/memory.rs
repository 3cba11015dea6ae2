//! Node memory: allocation with its slack known, and what is held of each kind.
//!
//! Every node (leaf, inner node, landing buffer, large value) is one allocation that begins with its [`NodeHeader`], so that a
//! node can be freed and accounted for by whichever thread reclaims it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};

use seize::{Collector, Guard, LocalGuard};
use thread_local::ThreadLocal;

use super::Error;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Leaf,
    Inner,
    Landing,
    Large,
}

const KINDS: usize = 4;

/// How every node begins.
#[repr(C)]
pub(crate) struct NodeHeader {
    memory: *const Memory,
    /// Bytes asked for.
    asked: u32,
    kind: Kind,
    /// The heap that the node is from.
    heap: u8,
}

impl NodeHeader {
    fn kind(&self) -> usize {
        self.kind as usize
    }

    fn asked(&self) -> usize {
        self.asked as usize
    }

    /// Bytes the node takes in its heap.
    fn held(&self) -> i64 {
        backend::held_bytes(self.asked()) as i64
    }
}

/// The largest node: a large value of 64 MiB, stored raw, and its header.
const MAX_NODE_BYTES: usize = (64 << 20) + 4096;

/// A retired node that holds this much does not wait for a batch to fill.
const FLUSH_BYTES: i64 = 64 << 10;

/// One thread's share of the sums; only that thread writes, so a load and a store are an addition.
#[derive(Default)]
struct Cells {
    live: [AtomicI64; KINDS],
    nodes: [AtomicI64; KINDS],
    retired: AtomicI64,
}

fn add(cell: &AtomicI64, amount: i64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

/// What a tree's nodes hold, by kind, summed over threads.
pub(crate) struct Memory {
    cells: ThreadLocal<Cells>,
}

/// Sums over all threads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Held {
    pub live: [u64; KINDS],
    pub nodes: [u64; KINDS],
    pub retired: u64,
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
    pub(crate) fn new() -> Self {
        Self {
            cells: ThreadLocal::new(),
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
        let (pointer, heap) = backend::allocate(bytes).ok_or(Error::OutOfMemory { bytes })?;
        let header = NodeHeader {
            memory: self,
            asked: bytes as u32,
            kind,
            heap,
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
            backend::free(node, header.asked(), header.heap);
        }
    }

    /// Hands a node that was unlinked to the collector.
    ///
    /// # Safety
    /// `node` came from [`Memory::allocate`], threads that enter from now on cannot reach it, and it is retired once.
    pub(crate) unsafe fn retire(node: NonNull<u8>, guard: &LocalGuard<'_>) {
        // SAFETY: as above; the guard keeps the node alive during this call.
        unsafe {
            let header = node.cast::<NodeHeader>().as_ref();
            let cells = (*header.memory).cells();
            add(&cells.live[header.kind()], -header.held());
            add(&cells.nodes[header.kind()], -1);
            let held = header.held();
            add(&cells.retired, held);
            guard.defer_retire(node.as_ptr(), reclaim);
            if held >= FLUSH_BYTES {
                guard.flush();
            }
        }
    }

    /// Until the result is dropped, the calling thread's nodes come from the heap of this one: for a thread that replaces nodes
    /// of others by the thousand, whose room would else be left as holes.
    ///
    /// # Safety
    /// `node` is live.
    pub(crate) unsafe fn follow(node: NonNull<u8>) -> OwnHeap {
        // SAFETY: a live node begins with its header.
        OwnHeap(backend::follow(unsafe { node.cast::<NodeHeader>().as_ref() }.heap))
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
        }
    }
}

/// Gives the thread its own heap back when dropped.
pub(crate) struct OwnHeap(u8);

impl Drop for OwnHeap {
    fn drop(&mut self) {
        backend::follow(self.0);
    }
}

/// # Safety
/// Called once by the collector for a node that [`Memory::retire`] handed to it.
unsafe fn reclaim(node: *mut u8, _collector: &Collector) {
    // SAFETY: no thread can reach the node any more; its header is intact and its memory outlives the collector.
    unsafe {
        let header = &*node.cast::<NodeHeader>();
        add(&(*header.memory).cells().retired, -header.held());
        let (asked, heap) = (header.asked(), header.heap);
        backend::free(NonNull::new_unchecked(node), asked, heap);
    }
}

/// A heap of the nodes' own (TLSF: Masmano, Ripoll, Crespo, Real, ECRTS 2004), shared by all trees of the process. Leaves have any
/// size, and the usual allocators' size classes, 25% apart, would waste a ninth of them; here a block is rounded up to 32 bytes,
/// and freed neighbours join.
#[cfg(all(feature = "node-heap", unix, not(miri)))]
mod backend {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Heaps that threads share out among them, so that a heap's lists and the blocks at hand stay in one core's cache. (Their lock
    /// is one, inside rlsf, and held for some tens of nanoseconds.)
    static HEAPS: [rlsf::GlobalTlsf; 8] = [const { rlsf::GlobalTlsf::new() }; 8];
    static THREADS: AtomicUsize = AtomicUsize::new(0);

    thread_local! {
        static HEAP: Cell<u8> = Cell::new((THREADS.fetch_add(1, Ordering::Relaxed) % HEAPS.len()) as u8);
    }

    /// Nodes from this size on, which only large values have, come from the system and go back to it.
    const SYSTEM_BYTES: usize = 128 << 10;
    /// Stands for the system among the heaps.
    const SYSTEM: u8 = u8::MAX;
    const PAGE_BYTES: usize = 4096;

    /// Bytes in front of a block in use, and the step of block sizes, in rlsf.
    const BLOCK_HEADER_BYTES: usize = 2 * size_of::<usize>();
    const BLOCK_STEP_BYTES: usize = 4 * size_of::<usize>();

    fn layout(bytes: usize) -> Option<Layout> {
        Layout::from_size_align(bytes, 16).ok()
    }

    /// A block and the heap it is from.
    pub(super) fn allocate(bytes: usize) -> Option<(NonNull<u8>, u8)> {
        let layout = layout(bytes)?;
        if bytes >= SYSTEM_BYTES {
            // SAFETY: a node is never empty.
            return NonNull::new(unsafe { System.alloc(layout) }).map(|block| (block, SYSTEM));
        }
        // A thread that is being torn down has lost its number.
        let heap = HEAP.try_with(Cell::get).unwrap_or_default();
        // SAFETY: a node is never empty.
        let block = unsafe { HEAPS[usize::from(heap)].alloc(layout) };
        NonNull::new(block).map(|block| (block, heap))
    }

    /// The calling thread allocates from this heap from now on. Returns the one it allocated from so far.
    pub(super) fn follow(heap: u8) -> u8 {
        HEAP.try_with(|own| own.replace(heap)).unwrap_or_default()
    }

    pub(super) fn held_bytes(asked: usize) -> usize {
        let block = asked + BLOCK_HEADER_BYTES;
        if asked >= SYSTEM_BYTES {
            block.next_multiple_of(PAGE_BYTES)
        } else {
            block.next_multiple_of(BLOCK_STEP_BYTES)
        }
    }

    /// # Safety
    /// `pointer` came from `allocate(asked)` with this heap, and is not used again.
    pub(super) unsafe fn free(pointer: NonNull<u8>, asked: usize, heap: u8) {
        if let Some(layout) = layout(asked) {
            // SAFETY: as the caller promises; the layout is the one it was allocated with.
            unsafe {
                match heap {
                    SYSTEM => System.dealloc(pointer.as_ptr(), layout),
                    heap => HEAPS[usize::from(heap)].dealloc(pointer.as_ptr(), layout),
                }
            }
        }
    }
}

/// The program's own allocator, for tools that follow every allocation.
#[cfg(not(all(feature = "node-heap", unix, not(miri))))]
mod backend {
    use std::alloc::Layout;
    use std::ptr::NonNull;

    fn layout(bytes: usize) -> Option<Layout> {
        Layout::from_size_align(bytes, 16).ok()
    }

    pub(super) fn allocate(bytes: usize) -> Option<(NonNull<u8>, u8)> {
        // SAFETY: a node is never empty.
        NonNull::new(unsafe { std::alloc::alloc(layout(bytes)?) }).map(|block| (block, 0))
    }

    pub(super) fn follow(_heap: u8) -> u8 {
        0
    }

    /// The program's allocator is unknown here: glibc's rule (an eight-byte chunk header, 16-byte steps) stands for it.
    pub(super) fn held_bytes(asked: usize) -> usize {
        (asked + 8).next_multiple_of(16)
    }

    /// # Safety
    /// `pointer` came from `allocate(asked)` and is not used again.
    pub(super) unsafe fn free(pointer: NonNull<u8>, asked: usize, _heap: u8) {
        if let Some(layout) = layout(asked) {
            // SAFETY: as the caller promises; the layout is the one it was allocated with.
            unsafe { std::alloc::dealloc(pointer.as_ptr(), layout) }
        }
    }
}
