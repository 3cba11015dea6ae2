//! Copying a leaf's frames to another leaf.

use std::sync::atomic::Ordering;

use crate::tree::error::TreeError;
use crate::tree::node::layout::{LeafHeader, Sections};
use crate::tree::node::leaf::{Leaf, NewLeaf};
use leafpress_base::mem::node::Kind;
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_base::sync::{AtomicBool, AtomicPtr, AtomicU64, Latch};

impl<'g> Leaf<'g> {
    /// Returns a leaf with the same frames and large values and the given visible records, without a landing buffer,
    /// unlocked.
    ///
    /// # Safety
    /// `memory` outlives the copy, and only one of the two owns the large values from now on.
    pub(crate) unsafe fn copy_frames(
        &self,
        live_user_bytes: u64,
        live: u32,
        memory: &NodeHeap,
    ) -> Result<NewLeaf, TreeError> {
        let header = self.header();
        let marks = self.marks();
        // SAFETY: the caller guarantees that `memory` outlives the copy. Between its header and its marks a leaf never
        // changes, and the copy has the same size.
        unsafe {
            let node = memory.allocate(header.node.requested_bytes(), Kind::Leaf)?;
            let copy = node.cast::<LeafHeader>().as_ptr();
            (&raw mut (*copy).landing).write(AtomicPtr::new(std::ptr::null_mut()));
            (&raw mut (*copy).landed).write(AtomicU64::new(0));
            (&raw mut (*copy).live_user_bytes).write(live_user_bytes.into());
            (&raw mut (*copy).live).write(live.into());
            (&raw mut (*copy).lock).write(Latch::new());
            (&raw mut (*copy).obsolete).write(AtomicBool::new(false));
            (&raw mut (*copy).queued).write(AtomicBool::new(false));
            (&raw mut (*copy).dictionary).write(header.dictionary);
            (&raw mut (*copy).key_base).write(header.key_base);
            (&raw mut (*copy).inline_bytes).write(header.inline_bytes);
            (&raw mut (*copy).reads).write(header.reads.load(Ordering::Relaxed).into());
            (&raw mut (*copy).len_base).write(header.len_base);
            (&raw mut (*copy).data_at).write(header.data_at);
            (&raw mut (*copy).key_len).write(header.key_len);
            (&raw mut (*copy).shape).write(header.shape);
            let (from, to) = (
                self.node().add(size_of::<LeafHeader>()),
                node.add(size_of::<LeafHeader>()),
            );
            to.copy_from_nonoverlapping(
                from,
                header.node.requested_bytes() - size_of::<LeafHeader>() - marks.len(),
            );
            let end = node.add(header.node.requested_bytes() - marks.len());
            for (slot, mark) in marks.iter().enumerate() {
                end.add(slot).write(mark.load(Ordering::Relaxed));
            }
            Ok(NewLeaf::new(node))
        }
    }

    /// Overwrites a frame's block by `block`.
    ///
    /// # Safety
    /// The leaf is not published, and the frame's block has the same length.
    pub(crate) unsafe fn overwrite_block(&self, sections: &Sections, frame: usize, block: &[u8]) {
        let start = self.header().data_at as usize + self.u16_at(sections.offsets, frame);
        // SAFETY: the caller guarantees that the block has this length, and the leaf is not published, so nothing else
        // accesses it.
        unsafe {
            self.node()
                .add(start)
                .copy_from_nonoverlapping(std::ptr::NonNull::from(block).cast(), block.len())
        };
    }
}
