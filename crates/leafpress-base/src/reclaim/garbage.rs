//! Nodes that were unlinked from the tree, until they are freed.

use std::ptr::NonNull;

use crate::mem::node::NodeHeader;

/// Retired nodes of one thread that are flushed, whatever they hold. Tools that try orders of steps have few.
const FLUSH_NODES: usize = if cfg!(any(shuttle, miri)) { 2 } else { 256 };

/// What the retired nodes of one thread hold at most when they are flushed. With less the lines that all threads look at go to and fro between their cores:
/// half of it took two writers 3% longer. With more what is freed has left the nearer caches, and more is held.
pub(super) const FLUSH_BYTES: i64 = 256 << 10;

/// A list of retired nodes, linked through their headers: taking one in needs no memory.
#[derive(Default)]
pub struct GarbageBag {
    ends: Option<(NonNull<NodeHeader>, NonNull<NodeHeader>)>,
    nodes: usize,
    bytes: i64,
}

// SAFETY: the nodes are unlinked and owned by this list alone; any thread may hand them on.
unsafe impl Send for GarbageBag {}

impl GarbageBag {
    /// Adds a node that holds so many bytes.
    ///
    /// # Safety
    /// The node is unlinked and in no other list.
    pub unsafe fn push(&mut self, node: NonNull<u8>, held: i64) {
        let node = node.cast::<NodeHeader>();
        // SAFETY: the list owns its nodes, and nobody else looks at their links.
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

    pub fn append(&mut self, other: GarbageBag) {
        let Some((other_first, other_last)) = other.ends else {
            return;
        };
        if let Some((_, last)) = self.ends {
            // SAFETY: as in `push`.
            unsafe { last.as_ref() }.link(Some(other_first));
        }
        self.ends = Some((self.ends.map_or(other_first, |(first, _)| first), other_last));
        self.nodes += other.nodes;
        self.bytes += other.bytes;
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// Whether it is time to hand them on.
    pub fn is_much(&self, flush_bytes: i64) -> bool {
        self.bytes >= flush_bytes || self.nodes >= FLUSH_NODES
    }

    /// The nodes, each of which may be freed before the next one is asked for.
    pub fn into_nodes(self) -> impl Iterator<Item = NonNull<u8>> {
        let mut next = self.ends.map(|(first, _)| first);
        std::iter::from_fn(move || {
            let node = next?;
            // SAFETY: the list owned the node, and it has not been handed out yet.
            next = unsafe { node.as_ref() }.next();
            Some(node.cast())
        })
    }
}

/// What threads have flushed: nodes that wait for readers to leave, and nodes whose turn to wait has yet to come.
#[derive(Default)]
pub struct FlushedGarbage {
    waiting: GarbageBag,
    /// The epoch that began after all that waits was unlinked.
    since: u64,
    fresh: GarbageBag,
}

impl FlushedGarbage {
    /// What all that waits holds.
    pub fn bytes(&self) -> i64 {
        self.waiting.bytes + self.fresh.bytes
    }

    pub fn add(&mut self, retired: GarbageBag) {
        self.fresh.append(retired);
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.fresh.is_empty()
    }

    /// The epoch that what waits waits for, if something does.
    pub fn waits_for(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.since)
    }

    /// Takes out what nobody reads any more. `begin` begins an epoch, and `is_quiescent` says whether no thread is in the way of what was unlinked before it.
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
