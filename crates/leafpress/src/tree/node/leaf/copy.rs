//! A leaf's frames, copied to another leaf.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::tree::error::TreeError;
use crate::tree::node::layout::{HEADER_BYTES, Header, Sections};
use crate::tree::node::leaf::{Leaf, NewLeaf};
use leafpress_base::mem::node::Kind;
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_base::sync::{AtomicBool, AtomicPtr, AtomicU64, Latch};

impl<'g> Leaf<'g> {
    /// A leaf with the same frames and large values, of which a reader sees so much, without a landing buffer, unlocked.
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
        // SAFETY: the caller keeps `memory` alive. Between its header and its marks a leaf never changes, and as much room was asked for.
        unsafe {
            let node = memory.allocate(header.node.asked(), Kind::Leaf)?;
            let copy = node.cast::<Header>().as_ptr();
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
            let (from, to) = (self.node().add(size_of::<Header>()), node.add(size_of::<Header>()));
            to.copy_from_nonoverlapping(from, header.node.asked() - size_of::<Header>() - marks.len());
            let end = node.add(header.node.asked() - marks.len());
            for (slot, mark) in marks.iter().enumerate() {
                end.add(slot).write(mark.load(Ordering::Relaxed));
            }
            Ok(NewLeaf::new(node))
        }
    }

    /// Puts what `other` returns in the place of the address of each large value in the frames.
    ///
    /// # Safety
    /// Nobody else has seen the leaf, and `other` returns large values.
    pub(crate) unsafe fn exchange_larges(
        &self,
        mut other: impl FnMut(NonNull<u8>) -> Result<NonNull<u8>, TreeError>,
    ) -> Result<(), TreeError> {
        for index in 0..usize::from(self.header().shape.large) {
            // SAFETY: the addresses follow the header, and the caller is the only one at the leaf.
            unsafe {
                let address = self.node().add(HEADER_BYTES).cast::<NonNull<u8>>().add(index);
                address.write(other(address.read())?);
            }
        }
        Ok(())
    }

    /// Puts `block` in the place of a frame's.
    ///
    /// # Safety
    /// Nobody else has seen the leaf, and the frame's block is as long.
    pub(crate) unsafe fn overwrite_block(&self, sections: &Sections, frame: usize, block: &[u8]) {
        let start = self.header().data_at as usize + self.u16_at(sections.offsets, frame);
        // SAFETY: as the caller promises.
        unsafe {
            self.node()
                .add(start)
                .copy_from_nonoverlapping(std::ptr::NonNull::from(block).cast(), block.len())
        };
    }
}
