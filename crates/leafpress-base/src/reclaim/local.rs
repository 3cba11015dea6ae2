//! Per-thread state of a tree's memory: its share of the counters, its epoch slot, and its retired nodes.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::sync::plain::Mutex;

use crate::mem::node::{KINDS, NodeHeader};
use crate::reclaim::epoch::Slot;
use crate::reclaim::garbage::GarbageBag;

/// One thread's state, on cache lines of its own: false sharing between neighbouring threads would dominate the cost of
/// an operation. Only that thread writes the counters, so an addition is a load and a store.
#[derive(Default)]
#[repr(align(128))]
pub struct LocalHandle {
    pub(super) live: [AtomicI64; KINDS],
    pub(super) nodes: [AtomicI64; KINDS],
    pub(super) retired: AtomicI64,
    /// Nodes that the thread has retired and not flushed.
    waiting: Mutex<GarbageBag>,
    /// The epoch in which the thread's current operation began.
    pub slot: Slot,
}

impl LocalHandle {
    /// Adds to the counters of a kind: nodes, live bytes and retired bytes.
    pub(super) fn count(&self, kind: usize, nodes: i64, live: i64, retired: i64) {
        add(&self.live[kind], live);
        add(&self.nodes[kind], nodes);
        add(&self.retired, retired);
    }

    /// Like [`LocalHandle::count`], where several threads do so concurrently.
    pub(super) fn count_shared(&self, kind: usize, nodes: i64, live: i64, retired: i64) {
        self.live[kind].fetch_add(live, Ordering::Relaxed);
        self.nodes[kind].fetch_add(nodes, Ordering::Relaxed);
        self.retired.fetch_add(retired, Ordering::Relaxed);
    }

    /// Retires a node that was unlinked. If the waiting nodes hold `flush_bytes` or more, they are flushed at the end
    /// of the thread's operation.
    ///
    /// # Safety
    /// As [`NodeHeap::retire`](crate::reclaim::node_heap::NodeHeap::retire), under a guard of the thread that owns this
    /// handle.
    pub(super) unsafe fn retire(&self, node: NonNull<u8>, flush_bytes: i64) {
        // SAFETY: a node begins with its header, and the caller guarantees that it is not freed yet.
        let header = unsafe { node.cast::<NodeHeader>().as_ref() };
        let held = header.held();
        self.count(header.kind(), -1, -held, held);
        let mut waiting = self.waiting.lock();
        // SAFETY: the caller guarantees that the node is unlinked and retired once, so it is in no other list.
        unsafe { waiting.push(node, held) };
        if waiting.is_much(flush_bytes) {
            self.slot.at_leave();
        }
    }

    /// Takes the nodes that the thread has retired and not flushed.
    pub(super) fn take_retired(&self) -> GarbageBag {
        std::mem::take(&mut *self.waiting.lock())
    }
}

fn add(cell: &AtomicI64, amount: i64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}
