//! Garbage: nodes that were unlinked from the tree and are not freed yet.

use std::ptr::NonNull;

use crate::mem::node::NodeHeader;

/// Number of retired nodes of one thread at which they are flushed, whatever their size. It is small under model
/// checkers, whose runs are short.
const FLUSH_NODES: usize = if cfg!(any(shuttle, miri)) { 2 } else { 256 };

/// Bytes of retired nodes of one thread at which they are flushed. With less, the shared cache lines move between cores
/// more often: half of it slowed two writers down by 3%. With more, freed memory has left the nearer caches, and more
/// garbage is held.
pub(super) const FLUSH_BYTES: i64 = 256 << 10;

/// A list of retired nodes, linked through their headers, so that adding one needs no memory.
#[derive(Default)]
pub struct GarbageBag {
    ends: Option<(NonNull<NodeHeader>, NonNull<NodeHeader>)>,
    nodes: usize,
    bytes: i64,
}

// SAFETY: the nodes are unlinked and owned by this list alone; any thread may free them.
unsafe impl Send for GarbageBag {}

impl GarbageBag {
    /// Adds a node that holds `held` bytes.
    ///
    /// # Safety
    /// The node is unlinked and in no other list.
    pub unsafe fn push(&mut self, node: NonNull<u8>, held: i64) {
        let node = node.cast::<NodeHeader>();
        // SAFETY: the list owns its nodes (the caller guarantees that for the new one), and nothing else accesses their
        // links.
        unsafe {
            node.as_ref().link(None);
            if let Some((_, last)) = self.ends {
                last.as_ref().link(Some(node));
            }
        }
        self.ends = Some((self.ends.map_or(node, |(first, _)| first), node));
        self.nodes += 1;
        self.bytes += held;
    }

    /// Moves all nodes of another list to the end of this one.
    pub fn append(&mut self, other: GarbageBag) {
        let Some((other_first, other_last)) = other.ends else {
            return;
        };
        if let Some((_, last)) = self.ends {
            // SAFETY: the list owns its last node, and nothing else accesses its link.
            unsafe { last.as_ref() }.link(Some(other_first));
        }
        self.ends = Some((self.ends.map_or(other_first, |(first, _)| first), other_last));
        self.nodes += other.nodes;
        self.bytes += other.bytes;
    }

    /// Returns whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// Returns whether the nodes should be flushed.
    pub fn is_much(&self, flush_bytes: i64) -> bool {
        self.bytes >= flush_bytes || self.nodes >= FLUSH_NODES
    }

    /// Returns the nodes; each may be freed before the next one is requested.
    pub fn into_nodes(self) -> impl Iterator<Item = NonNull<u8>> {
        let mut next = self.ends.map(|(first, _)| first);
        std::iter::from_fn(move || {
            let node = next?;
            // SAFETY: the list owned the node, and it has not been returned yet.
            next = unsafe { node.as_ref() }.next();
            Some(node.cast())
        })
    }
}

/// The flushed garbage of all threads: nodes that wait for readers to leave, and nodes that wait for the next epoch.
#[derive(Default)]
pub struct FlushedGarbage {
    waiting: GarbageBag,
    /// The epoch that began after all waiting nodes were unlinked.
    since: u64,
    fresh: GarbageBag,
}

impl FlushedGarbage {
    /// Returns the bytes of all waiting nodes.
    pub fn bytes(&self) -> i64 {
        self.waiting.bytes + self.fresh.bytes
    }

    /// Adds nodes that a thread has flushed; they wait for the next epoch.
    pub fn add(&mut self, retired: GarbageBag) {
        self.fresh.append(retired);
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.fresh.is_empty()
    }

    /// Returns the epoch that the waiting nodes wait for, if there are any.
    pub fn waits_for(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.since)
    }

    /// Takes out the nodes that no thread reads any more. `begin` begins an epoch, and `is_quiescent` returns whether
    /// no thread may read nodes that were unlinked before the given epoch.
    pub fn take_free(&mut self, begin: impl Fn() -> u64, is_quiescent: impl Fn(u64) -> bool) -> GarbageBag {
        let mut free = GarbageBag::default();
        while !self.is_empty() {
            if self.waiting.is_empty() {
                self.waiting = std::mem::take(&mut self.fresh);
                self.since = begin();
            }
            if !is_quiescent(self.since) {
                break;
            }
            free.append(std::mem::take(&mut self.waiting));
        }
        free
    }
}
