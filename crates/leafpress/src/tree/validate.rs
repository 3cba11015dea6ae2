//! Validation of every structural invariant, for tests and fuzzing.

use std::sync::atomic::Ordering;

use crate::tree::error::TreeError;
use crate::tree::index::shard::Shard;
use crate::tree::inner::TreeInner;
use crate::tree::node::decoder::Decoder;
use crate::tree::node::hash_bits::{fingerprint, sub_page};
use crate::tree::node::key_order::common_prefix;
use crate::tree::node::landing::{Change, LandedWrite, newest_by_key};
use crate::tree::node::layout::{FINGERPRINTS, HASHED, MAX_RECORDS, SINGLE, Temperature};
use crate::tree::node::leaf::Leaf;
use leafpress_base::reclaim::guard::Guard;
use leafpress_codec::Scratch;

fn invalid<T>(what: &str) -> Result<T, TreeError> {
    Err(TreeError::Invalid(format!("leaf: {what}")))
}

impl TreeInner {
    /// Checks every shard; no other thread may write meanwhile.
    pub(crate) fn validate(&self) -> Result<(), TreeError> {
        // Keeps the upkeep from compacting landing buffers after the writes, which would replace leaves.
        let _no_pass = self.background.sweeping.lock();
        let guard = self.memory.enter()?;
        let mut records = 0;
        for (index, shard) in self.shards.iter().enumerate() {
            let mut previous: Option<Vec<u8>> = None;
            shard.validate(&guard, |leaf, start, end| {
                let keys = self.validate_leaf(leaf)?;
                for key in &keys {
                    if start.is_some_and(|start| key.as_slice() < start) || end.is_some_and(|end| key.as_slice() >= end)
                    {
                        return invalid("a key is outside the leaf's range");
                    }
                    if previous.as_ref().is_some_and(|previous| previous >= key) {
                        return invalid("keys do not ascend");
                    }
                    if !std::ptr::eq(self.shard(key), &raw const self.shards[index]) {
                        return invalid("a key is in another shard's tree");
                    }
                    self.validate_way(shard, key, leaf, &guard)?;
                    previous = Some(key.clone());
                }
                records += keys.len();
                Ok(())
            })?;
        }
        if records != self.len() {
            return Err(TreeError::Invalid(format!(
                "{records} records are in the tree, {} were counted",
                self.len()
            )));
        }
        Ok(())
    }

    fn validate_way(&self, shard: &Shard, key: &[u8], leaf: Leaf, guard: &Guard<'_>) -> Result<(), TreeError> {
        if shard.descend(key, guard).0 != leaf {
            return invalid("the descent to a key does not lead to its leaf");
        }
        if shard.interpolate(key, guard).is_some_and(|step| step.leaf() != leaf) {
            return invalid("the interpolation index does not lead from a key to its leaf");
        }
        Ok(())
    }

    /// Checks one leaf and returns the keys that a reader sees in it.
    fn validate_leaf(&self, leaf: Leaf) -> Result<Vec<Vec<u8>>, TreeError> {
        let header = leaf.header();
        if header.obsolete.load(Ordering::Relaxed) {
            return invalid("an obsolete leaf is in the tree");
        }
        if header.lock.try_lock().is_none() {
            return invalid("a leaf is locked at rest");
        }
        let is_known = match (&self.temperatures, leaf.temperature()) {
            (Some(temperatures), Temperature::Cold) => temperatures.cold_dictionaries.holds(header.dictionary),
            (None, Temperature::Cold) => return invalid("the tree has no leaves of its temperature"),
            (_, Temperature::Warm) => self.dictionaries.holds(header.dictionary),
        };
        if !is_known {
            return invalid("its dictionary is not the tree's");
        }
        let sections = leaf.sections();
        let mut records: Vec<(Vec<u8>, usize)> = Vec::new();
        let mut inline_bytes = 0;
        let mut scratch = Scratch::default();
        let mut slots = 0;
        let hashed = leaf.has(HASHED);
        if leaf.count() > MAX_RECORDS {
            return invalid("too many records");
        }
        for frame in 0..leaf.frames() {
            let mut decoder = Decoder::new(&self.engines, &mut scratch);
            let mut key_buffer = Vec::new();
            let range = leaf.slots(&sections, frame);
            if range.start != slots || (range.is_empty() && !hashed) {
                return invalid("slots of a frame");
            }
            slots = range.end;
            if leaf.has(SINGLE) && range.len() != 1 {
                return invalid("a frame of several records in a leaf of single ones");
            }
            leaf.visit_frame(&sections, frame, &mut decoder, &mut key_buffer, |slot, key, _| {
                if hashed && sub_page(crate::tree::hash::hash(key), leaf.frames()) != frame {
                    return invalid("a key is in another's sub-page");
                }
                if leaf.has(FINGERPRINTS)
                    && leaf.fingerprints(&sections)[slot] != fingerprint(crate::tree::hash::hash(key))
                {
                    return invalid("a fingerprint is not its key's");
                }
                if !hashed
                    && range.start == slot
                    && leaf.first_key(
                        &sections,
                        frame,
                        &mut Decoder::new(&self.engines, &mut Scratch::default()),
                    )? != key
                {
                    return invalid("a frame's first key");
                }
                inline_bytes += key.len() + leaf.lens(&sections).get(slot) as usize;
                records.push((key.to_vec(), leaf.value_len(&sections, slot)));
                Ok(())
            })?;
        }
        if slots != leaf.count() {
            return invalid("number of records");
        }
        if inline_bytes != header.inline_bytes as usize {
            return invalid("user bytes in the frames");
        }
        if hashed {
            records.sort_unstable();
        } else if !records.is_sorted_by(|a, b| a.0 < b.0) {
            return invalid("keys do not ascend");
        }
        if let (Some(first), Some(last)) = (records.first(), records.last())
            && common_prefix(&first.0, &last.0) < header.shape.prefix_len as usize
        {
            return invalid("prefix");
        }
        self.validate_lookups(leaf, &records)?;
        let records = self.with_landed(leaf, records)?;
        let bytes: u64 = records.iter().map(|(key, len)| (key.len() + len) as u64).sum();
        if records.len() != header.live.load(Ordering::Relaxed) as usize {
            return invalid("live records");
        }
        if bytes != header.live_user_bytes.load(Ordering::Relaxed) {
            return invalid("live user bytes");
        }
        Ok(records.into_iter().map(|(key, _)| key).collect())
    }

    fn validate_lookups(&self, leaf: Leaf, records: &[(Vec<u8>, usize)]) -> Result<(), TreeError> {
        let sections = leaf.sections();
        let mut scratch = Scratch::default();
        for (key, len) in records {
            let mut decoder = Decoder::new(&self.engines, &mut scratch);
            let place = leaf.locate(&sections, key, crate::tree::hash::hash(key), None, &mut decoder)?;
            if place.map(|place| leaf.value_len(&sections, place.slot)) != Some(*len) {
                return invalid("a lookup misses its record");
            }
        }
        Ok(())
    }

    /// Returns `records` (in key order) with the changes in the leaf's landing buffer.
    fn with_landed(&self, leaf: Leaf, records: Vec<(Vec<u8>, usize)>) -> Result<Vec<(Vec<u8>, usize)>, TreeError> {
        let Some(landing) = leaf.landing_locked() else {
            return Ok(records);
        };
        if landing.used() > landing.capacity() {
            return invalid("a landing buffer is over its capacity");
        }
        let mut entries = landing.read_all()?;
        let sections = leaf.sections();
        let is_at_its_slot = |entry: &LandedWrite<'_>| match entry.slot.map(usize::from) {
            None => true,
            Some(slot) if slot >= leaf.count() => false,
            Some(_) if leaf.has(HASHED) => true,
            Some(slot) if leaf.has(FINGERPRINTS) => leaf
                .frame_for(
                    &sections,
                    entry.key,
                    &mut Decoder::new(&self.engines, &mut Scratch::default()),
                )
                .is_ok_and(|frame| frame == leaf.frame_of(&sections, slot)),
            Some(slot) => {
                let mut key = Vec::new();
                leaf.packed_key(&sections, slot, &mut key).is_ok() && key == entry.key
            }
        };
        if !entries.iter().all(is_at_its_slot) {
            return invalid("the slot of an entry in a landing buffer is not its key's");
        }
        newest_by_key(&mut entries, |_| {});
        let mut merged: std::collections::BTreeMap<Vec<u8>, usize> = records.into_iter().collect();
        for entry in entries {
            match entry.change {
                Change::Remove => merged.remove(entry.key),
                change => merged.insert(entry.key.to_vec(), change.value_len().unwrap_or_default()),
            };
        }
        Ok(merged.into_iter().collect())
    }
}
