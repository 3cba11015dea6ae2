//! Compaction by overwriting, where the block of every changed value has the length of the one it replaces: the new
//! leaf is a copy of the old one with those blocks overwritten. All updates of uncompressed values of one length are of
//! this kind.

use crate::tree::compact::merge::Compaction;
use crate::tree::error::TreeError;
use crate::tree::node::landing::{Change, LandedWrite};
use crate::tree::node::layout::Sections;
use crate::tree::node::leaf::{Leaf, NewLeaf};
use leafpress_base::mem::room::TryGrow;

impl<'b> Compaction<'_, '_, 'b> {
    /// Returns the leaf, of one-record frames, with `changes` (sorted, one per key); `None` where a change does more
    /// than overwrite a block.
    pub(crate) fn overwrite(
        &mut self,
        leaf: &'b Leaf<'b>,
        sections: &Sections,
        changes: &[LandedWrite<'b>],
    ) -> Result<Option<NewLeaf>, TreeError> {
        let mut blocks = std::mem::take(&mut self.compression.buffers.overwritten);
        blocks.clear();
        blocks.try_grow(changes.len())?;
        for entry in changes {
            let Change::Compressed { block, raw_len } = entry.change else {
                break;
            };
            let (slot, found) = self.slot_of(leaf, sections, entry)?;
            let fits = found
                && leaf.block(sections, slot).len() == block.len()
                && leaf.lens(sections).get(slot) as usize == raw_len
                && leaf.large(sections, slot).is_none();
            if !fits {
                break;
            }
            blocks.push(slot as u16);
        }
        let copied = if blocks.len() == changes.len() {
            self.copy_with(leaf, sections, &blocks, changes).map(Some)
        } else {
            Ok(None)
        };
        self.compression.buffers.overwritten = blocks;
        copied
    }

    /// Copies the leaf with the blocks of the changes in these slots, which hold blocks of the same lengths.
    fn copy_with(
        &mut self,
        leaf: &Leaf,
        sections: &Sections,
        slots: &[u16],
        changes: &[LandedWrite<'b>],
    ) -> Result<NewLeaf, TreeError> {
        let large_bytes: u64 = leaf.larges(sections).map(|(_, large)| large.raw_len() as u64).sum();
        let live_user_bytes = u64::from(leaf.header().inline_bytes) + large_bytes;
        // SAFETY: the tree's memory outlives its nodes. The copy is not published yet, and has its blocks at the same
        // offsets as the leaf.
        unsafe {
            let copy = leaf.copy_frames(live_user_bytes, leaf.count() as u32, self.compression.memory)?;
            for (slot, entry) in slots.iter().zip(changes) {
                if let Change::Compressed { block, .. } = entry.change {
                    copy.leaf().overwrite_block(sections, usize::from(*slot), block);
                    copy.leaf().mark_read(usize::from(*slot));
                }
            }
            self.compression.buffers.copied_bytes += copy.leaf().header().node.requested_bytes() as u64;
            Ok(copy)
        }
    }
}
