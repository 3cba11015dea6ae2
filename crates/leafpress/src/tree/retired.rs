//! Nodes that threads have retired, on their way to the collector.
//!
//! Handing them to the collector is a memory barrier in every thread of the process, an interrupt each, which on a virtual machine takes as
//! long as some ten puts. So they wait until they are many, and whoever hands on hands on what all threads have: one barrier serves them
//! all.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};

use seize::{Collector, Guard, LocalGuard};

/// Retired nodes of one thread that are handed on whatever they hold, a leaf and its landing buffer being one.
const HANDED_ON_NODES: usize = 256;

/// What the retired nodes of one thread hold when they are handed on: an eighth of what all nodes in use hold, but within these.
const HANDED_ON_BYTES: std::ops::RangeInclusive<i64> = 512 << 10..=2 << 20;

/// See [`HANDED_ON_BYTES`].
const LIVE_FOR_HANDED_ON: i64 = 8;

/// A batch of the collector's, which is longer than what some threads have waiting, so that it does not begin on its own.
pub(crate) const COLLECTOR_BATCH: usize = 4 * HANDED_ON_NODES;

/// Frees a node that no thread can reach any more.
pub(crate) type Reclaim = unsafe fn(*mut u8, &Collector);

/// Nodes that one thread has retired and that the collector does not know of yet. They stand here and not in the collector's own batches,
/// which nobody but their thread can hand on: any thread can take these.
#[derive(Default)]
pub(crate) struct Waiting {
    nodes: Vec<(NonNull<u8>, Reclaim)>,
    bytes: i64,
}

// SAFETY: the nodes are unlinked and owned by this list alone; any thread may hand them on.
unsafe impl Send for Waiting {}

impl Waiting {
    /// Adds a node that holds so many bytes; false when there is no memory for that.
    ///
    /// # Safety
    /// The node is unlinked, in no other list, and `reclaim` frees it.
    pub(crate) unsafe fn add(&mut self, node: NonNull<u8>, reclaim: Reclaim, held: i64) -> bool {
        if self.nodes.len() == self.nodes.capacity() && self.nodes.try_reserve_exact(HANDED_ON_NODES).is_err() {
            return false;
        }
        self.nodes.push((node, reclaim));
        self.bytes += held;
        true
    }

    /// Gives the nodes to the collector.
    pub(crate) fn hand_on(self, guard: &LocalGuard<'_>) {
        for (node, reclaim) in self.nodes {
            // SAFETY: whoever put it here vouched for it, and it is in this list alone.
            unsafe { guard.defer_retire(node.as_ptr(), reclaim) };
        }
    }

    /// Frees the nodes.
    ///
    /// # Safety
    /// Nobody reads them.
    pub(crate) unsafe fn reclaim(self, collector: &Collector) {
        for (node, reclaim) in self.nodes {
            // SAFETY: a node that waits is in no other list, and as the caller promises nobody reads it.
            unsafe { reclaim(node.as_ptr(), collector) };
        }
    }
}

/// Bytes of one thread's retired nodes at which they are handed on.
pub(crate) struct HandOnAt(AtomicI64);

impl Default for HandOnAt {
    fn default() -> Self {
        Self(AtomicI64::new(*HANDED_ON_BYTES.start()))
    }
}

impl HandOnAt {
    pub(crate) fn is_reached_by(&self, waiting: &Waiting) -> bool {
        waiting.bytes >= self.0.load(Ordering::Relaxed) || waiting.nodes.len() >= HANDED_ON_NODES
    }

    /// Follows what the nodes in use hold.
    pub(crate) fn follow(&self, live_bytes: i64) {
        let bytes = (live_bytes / LIVE_FOR_HANDED_ON).clamp(*HANDED_ON_BYTES.start(), *HANDED_ON_BYTES.end());
        if bytes != self.0.load(Ordering::Relaxed) {
            self.0.store(bytes, Ordering::Relaxed);
        }
    }
}
