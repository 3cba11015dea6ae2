//! What one thread keeps for a tree's memory: its share of the sums, its note of the epoch, and what it has retired.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::sync::plain::Mutex;

use crate::mem::node::{KINDS, NodeHeader};
use crate::reclaim::epoch::Slot;
use crate::reclaim::garbage::GarbageBag;

/// One thread's share of the sums, on cache lines of its own: threads' shares lie side by side, and fetching each other's lines would
/// cost them more than all else they do. Only that thread writes, so a load and a store are an addition.
#[derive(Default)]
#[repr(align(128))]
pub struct LocalHandle {
    pub(super) live: [AtomicI64; KINDS],
    pub(super) nodes: [AtomicI64; KINDS],
    pub(super) retired: AtomicI64,
    /// What the thread has retired and not flushed.
    waiting: Mutex<GarbageBag>,
    pub slot: Slot,
}

impl LocalHandle {
    /// Counts nodes of a kind, which hold so many bytes more or less.
    pub(super) fn count(&self, kind: usize, nodes: i64, live: i64, retired: i64) {
        add(&self.live[kind], live);
        add(&self.nodes[kind], nodes);
        add(&self.retired, retired);
    }

    /// The same where several threads do so at once.
    pub(super) fn count_shared(&self, kind: usize, nodes: i64, live: i64, retired: i64) {
        self.live[kind].fetch_add(live, Ordering::Relaxed);
        self.nodes[kind].fetch_add(nodes, Ordering::Relaxed);
        self.retired.fetch_add(retired, Ordering::Relaxed);
    }

    /// Takes a node that was unlinked, and has what waits flushed when the thread's operation is over, if it holds `flush_bytes` or more.
    ///
    /// # Safety
    /// As of [`NodeHeap::retire`](crate::reclaim::node_heap::NodeHeap::retire), under a guard of the thread that this is of.
    pub(super) unsafe fn retire(&self, node: NonNull<u8>, flush_bytes: i64) {
        // SAFETY: a node begins with its header.
        let header = unsafe { node.cast::<NodeHeader>().as_ref() };
        let held = header.held();
        self.count(header.kind(), -1, -held, held);
        let mut waiting = self.waiting.lock();
        // SAFETY: as the caller promises.
        unsafe { waiting.push(node, held) };
        if waiting.is_much(flush_bytes) {
            self.slot.at_leave();
        }
    }

    /// Takes out what the thread has retired and not flushed.
    pub(super) fn take_retired(&self) -> GarbageBag {
        std::mem::take(&mut *self.waiting.lock())
    }
}

fn add(cell: &AtomicI64, amount: i64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}
