//! Merging small leaves with a neighbour, and removing empty ones.

use std::sync::atomic::Ordering;

use crate::tree::compact::compress::{BuiltLeaves, Compression};
use crate::tree::compact::landed::landed_changes;
use crate::tree::compact::merge::Compaction;
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::error::TreeError;
use crate::tree::index::shard::Splice;
use crate::tree::node::inner::Node;
use crate::tree::node::large::DeadLarge;
use crate::tree::node::leaf::Leaf;
use crate::tree::thread_state::{Count, Scratchpad};
use crate::tree::write::WritePath;
use leafpress_base::mem::room::{TryGrow, collected};

impl<'w> WritePath<'w> {
    pub(super) fn is_small(&self, leaf: Leaf<'_>) -> bool {
        (leaf.header().inline_bytes as usize) < self.core.settings.now().leaf_bytes / 4
    }

    /// Merges the small leaf that holds `key` with a neighbour, or removes it when it is empty. If that is not possible
    /// (the neighbour is locked, or the codec fails), the leaf stays small, which is not an error.
    pub(super) fn merge(&self, key: &[u8], tools: &mut Scratchpad) {
        let structure = self.shard.lock_structure();
        let Ok((path, leaf)) = self.shard.path(key, self.guard) else {
            return;
        };
        let Some(&(parent, index)) = path.last() else {
            return;
        };
        if parent.children() < 2 {
            return;
        }
        let Some(locked) = self.try_lock(leaf) else {
            return;
        };
        let memory = &self.core.memory;
        if leaf.count() == 0 && leaf.landing_locked().is_none() {
            let splice = Splice {
                from: index,
                to: index + 1,
                children: Vec::new(),
                separators: Vec::new(),
            };
            if self.shard.splice(&path, splice, memory, self.guard, &structure).is_ok() {
                self.retire_leaf(leaf);
                self.context.count(Count::Merges);
                self.core.background.leaves_shrank(1);
            }
            return;
        }
        let left = if index + 1 < parent.children() {
            index
        } else {
            index - 1
        };
        let neighbour = if left == index { index + 1 } else { left };
        let Node::Leaf(sibling) = parent.load_child(neighbour, self.guard) else {
            return;
        };
        let Some(sibling_locked) = self.try_lock(sibling) else {
            return;
        };
        let together = leaf.header().live_user_bytes.load(Ordering::Relaxed)
            + sibling.header().live_user_bytes.load(Ordering::Relaxed);
        if together > self.core.settings.now().leaf_bytes as u64 * 3 / 4 {
            return;
        }
        let (first, second) = if left == index {
            (leaf, sibling)
        } else {
            (sibling, leaf)
        };
        let mut dead = Vec::new();
        let joined = self.compress_joined(first, second, &mut dead, tools);
        tools.reset_arena();
        self.context.note_used(tools);
        let Ok(mut joined) = joined else {
            return;
        };
        let Ok(children) = collected(joined.leaves.iter().map(|leaf| leaf.leaf().as_ptr())) else {
            return;
        };
        let gone = 2usize.saturating_sub(children.len());
        let splice = Splice {
            from: left,
            to: left + 2,
            children,
            separators: std::mem::take(&mut joined.separators),
        };
        if self
            .shard
            .splice(&path, splice, memory, self.guard, &structure)
            .is_err()
        {
            return;
        }
        joined.publish();
        self.retire_leaf(leaf);
        self.retire_leaf(sibling);
        self.retire_large(&dead);
        self.context.count(Count::Merges);
        self.core.background.leaves_shrank(gone);
        drop((locked, sibling_locked));
    }

    fn compress_joined(
        &self,
        first: Leaf<'w>,
        second: Leaf<'w>,
        dead: &mut Vec<DeadLarge>,
        tools: &mut Scratchpad,
    ) -> Result<BuiltLeaves, TreeError> {
        let changes = [landed_changes(first, &[], dead)?, landed_changes(second, &[], dead)?];
        let Scratchpad {
            scratch,
            buffers,
            arena,
            ..
        } = tools;
        let mut compaction = Compaction {
            compression: Compression {
                settings: self.settings_for_writing(),
                ..self.core.compression(buffers, arena)
            },
            scratch,
            dead: Vec::new(),
            leads_to: &|key, leaf| self.shard.descend(key, self.guard).0 == *leaf,
        };
        compaction.compression.begin();
        let mut records = compaction.merge_all(&first, &first.sections(), &changes[0])?;
        records.try_append(&compaction.merge_all(&second, &second.sections(), &changes[1])?)?;
        let built = compaction.compression.compress_all(records, SplitHint::Within)?;
        dead.try_extend(compaction.dead)?;
        Ok(built)
    }
}
