//! A batch's records, compressed into leaves that are not published yet.

use std::ops::Range;

use crate::tree::bulk::batch::Batch;
use crate::tree::compact::builder::{Record, RecordValue};
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::error::TreeError;
use crate::tree::inner::TreeInner;
use crate::tree::node::key_order::separator;
use crate::tree::node::large::NewLarge;
use crate::tree::node::leaf::NewLeaf;
use crate::tree::thread_state::{Scratchpad, ThreadState};
use leafpress_base::mem::room::{TryGrow, room_for};
use leafpress_codec::Dictionary;

/// Leaves of a run, the separators between them, and the large values that they point to. Unpublished leaves and values
/// are freed when dropped.
pub(super) struct Built {
    pub leaves: Vec<NewLeaf>,
    pub separators: Vec<Vec<u8>>,
    pub larges: Vec<NewLarge>,
    dictionary: *const Dictionary,
}

impl Built {
    /// Returns whether a leaf compressed now would use the same dictionary.
    pub(super) fn has_current_dictionary(&self, core: &TreeInner) -> bool {
        std::ptr::eq(self.dictionary, current_dictionary(core))
    }
}

fn current_dictionary(core: &TreeInner) -> *const Dictionary {
    core.dictionaries.current().map_or(std::ptr::null(), std::ptr::from_ref)
}

impl TreeInner {
    /// Compresses these records of a batch. The caller has a guard, which protects the dictionary.
    pub(super) fn build_leaves(
        &self,
        batch: &Batch,
        range: Range<usize>,
        context: &ThreadState,
        tools: &mut Scratchpad,
    ) -> Result<Built, TreeError> {
        let Scratchpad {
            buffers, arena, block, ..
        } = tools;
        let mut larges = Vec::new();
        for (_, value) in batch.records(range.clone()) {
            if value.len() > self.settings.inline_value_bytes() {
                larges.try_push(self.new_large(value, context, block)?)?;
            }
        }
        let mut built = Built {
            leaves: Vec::new(),
            separators: Vec::new(),
            larges: Vec::new(),
            dictionary: std::ptr::null(),
        };
        {
            let mut next_large = larges.iter();
            let mut compression = self.compression(buffers, arena);
            built.dictionary = compression.dictionary.map_or(std::ptr::null(), std::ptr::from_ref);
            for leaf in batch.leaves(range.clone(), &self.settings.now()) {
                if leaf.start > range.start {
                    built
                        .separators
                        .try_push(separator(batch.key(leaf.start - 1), batch.key(leaf.start))?)?;
                }
                let mut records = room_for(leaf.len())?;
                for (key, value) in batch.records(leaf) {
                    let value = if value.len() <= self.settings.inline_value_bytes() {
                        RecordValue::Inline(value)
                    } else {
                        // The list holds one entry for each such value.
                        let Some(large) = next_large.next() else { break };
                        RecordValue::Large(large.large())
                    };
                    records.push(Record { key, value, mark: 0 });
                }
                compression.begin();
                let new = compression.compress_all(records, SplitHint::Within)?;
                built.separators.try_extend(new.separators)?;
                built.leaves.try_extend(new.leaves)?;
            }
        }
        built.larges = larges;
        Ok(built)
    }
}
