//! Marks: a byte for each record, in which a cache tracks which records are in use.
//!
//! Apart from the header they are the only mutable part of a published leaf. They are stored at the node's end;
//! compaction copies them. Concurrent updates by readers and the evictor may overwrite each other, since marks are
//! hints.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::tree::node::layout::{MARKED, READ};
use crate::tree::node::leaf::Leaf;

impl<'g> Leaf<'g> {
    /// Returns the marks, by slot; empty where the tree has no marks.
    #[inline]
    pub(crate) fn marks(&self) -> &'g [AtomicU8] {
        if !self.has(MARKED) {
            return &[];
        }
        let count = self.count();
        // SAFETY: a leaf with marks has one for each record, initialised, at the end of its allocation. They are only
        // accessed as atomics once the leaf is published.
        unsafe {
            let end = self.node().add(self.header().node.requested_bytes());
            std::slice::from_raw_parts(end.sub(count).cast().as_ptr(), count)
        }
    }

    /// Returns the mark of a record; 0 where there are no marks.
    pub(crate) fn mark(&self, slot: usize) -> u8 {
        self.marks().get(slot).map_or(0, |mark| mark.load(Ordering::Relaxed))
    }

    /// Sets the read bit of a record's mark. A bit that is set already is not stored again, so that its line stays
    /// shared between caches.
    #[inline(always)]
    pub(crate) fn mark_read(&self, slot: usize) {
        if let Some(mark) = self.marks().get(slot) {
            let now = mark.load(Ordering::Relaxed);
            if now & READ == 0 {
                mark.store(now | READ, Ordering::Relaxed);
            }
        }
    }

    /// Sets the mark of a record.
    pub(crate) fn set_mark(&self, slot: usize, value: u8) {
        if let Some(mark) = self.marks().get(slot) {
            mark.store(value, Ordering::Relaxed);
        }
    }
}
