//! Marks: a byte for each record, for a cache that wants to know which are in use.
//!
//! They are all of a leaf that changes once it is published, but for its header. They stand at the node's end; compaction carries them on.
//! Readers and whoever looks at the marks may overwrite each other's: it is a hint.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::tree::node::layout::{MARKED, READ};
use crate::tree::node::leaf::Leaf;

impl<'g> Leaf<'g> {
    /// The marks, by slot; none where the tree has no marks.
    #[inline]
    pub(crate) fn marks(&self) -> &'g [AtomicU8] {
        if !self.has(MARKED) {
            return &[];
        }
        let count = self.count();
        // SAFETY: a leaf with marks has one for each record, initialised, at the end of the room that was asked for. They are only ever
        // reached as atomics once the leaf is published.
        unsafe {
            let end = self.node().add(self.header().node.asked());
            std::slice::from_raw_parts(end.sub(count).cast().as_ptr(), count)
        }
    }

    /// The mark of a record; 0 where there are none.
    pub(crate) fn mark(&self, slot: usize) -> u8 {
        self.marks().get(slot).map_or(0, |mark| mark.load(Ordering::Relaxed))
    }

    /// Notes that a record was read. What is noted already is not written again, so that its line stays in all caches.
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
