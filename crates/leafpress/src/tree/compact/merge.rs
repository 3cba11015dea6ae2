//! Compaction: a leaf and the changes in its landing buffer become one or several new leaves.
//!
//! Only frames touched by a change are decoded and recompressed; the others are copied unchanged. All frames are
//! recompressed when the leaf's dictionary is not the tree's newest, or when a key does not fit the leaf's form.

use crate::tree::compact::builder::{Form, LeafBuilder, Record, RecordValue, keep};
use crate::tree::compact::compress::{BuiltLeaves, Compression};
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::error::TreeError;
use crate::tree::node::decoder::{Decoder, Value, corrupt};
use crate::tree::node::hash_bits::sub_page;
use crate::tree::node::key_order::key_number;
use crate::tree::node::landing::{Change, LandedWrite};
use crate::tree::node::large::DeadLarge;
use crate::tree::node::layout::{FINGERPRINTS, HASHED, KEYED, MAX_RECORDS, READ, SINGLE, Sections};
use crate::tree::node::leaf::Leaf;
use leafpress_base::mem::room::{TryGrow, collected, copied, short_lived_room_for};
use leafpress_codec::Scratch;

/// Returns the leaf's form, borrowed from it.
fn form_of<'b>(leaf: &'b Leaf<'b>, sections: &Sections) -> Form<'b> {
    let prefix = leaf.prefix(sections);
    if leaf.has(FINGERPRINTS) {
        Form::Fingerprints {
            prefix,
            hashed: leaf.has(HASHED),
            keyed: leaf.has(KEYED),
        }
    } else {
        Form::Packed {
            key_len: leaf.header().key_len as usize,
            prefix,
        }
    }
}

/// Returns the record that a change inserts, replacing one with this mark.
fn put_by<'b>(entry: &LandedWrite<'b>, replaced: Option<u8>) -> Option<Record<'b>> {
    let value = match entry.change {
        Change::Put(value) => RecordValue::Inline(value),
        Change::PutLarge(large) => RecordValue::Large(large),
        Change::Compressed { block, raw_len } => RecordValue::Compressed { block, raw_len },
        Change::Remove => return None,
    };
    Some(Record {
        key: entry.key,
        value,
        mark: replaced.map_or(0, |mark| mark | READ),
    })
}

/// Subtracts the bytes of `records` from `inline_bytes`, saturating: wrongly decoded keys may sum to more.
fn less(inline_bytes: usize, records: &[Record<'_>]) -> usize {
    inline_bytes.saturating_sub(records.iter().map(Record::inline_bytes).sum())
}

/// One compaction.
pub(crate) struct Compaction<'c, 'p, 'b> {
    pub compression: Compression<'p, 'b>,
    pub scratch: &'c mut Scratch,
    /// Large values that the new leaves no longer hold: to be retired once those are published.
    pub dead: Vec<DeadLarge>,
    /// Returns whether the descent to a key leads to a leaf.
    pub leads_to: &'c dyn Fn(&[u8], &Leaf) -> bool,
}

impl<'b> Compaction<'_, '_, 'b> {
    /// Compresses `leaf` with `changes` (sorted, one per key). With `anew`, every frame is recompressed.
    pub(crate) fn run(
        &mut self,
        leaf: &'b Leaf<'b>,
        changes: &[LandedWrite<'b>],
        anew: bool,
    ) -> Result<BuiltLeaves, TreeError> {
        self.compression.begin();
        let sections = leaf.sections();
        let form = form_of(leaf, &sections);
        let dictionary = self.compression.dictionary.map_or(std::ptr::null(), std::ptr::from_ref);
        let refit = anew
            || leaf.count() == 0
            || !std::ptr::eq(dictionary, leaf.header().dictionary)
            || leaf.temperature() != self.compression.temperature
            || leaf.has(FINGERPRINTS) && leaf.has(KEYED) != self.compression.settings.keyed()
            || !changes.iter().all(|entry| form.fits(entry.key));
        if refit {
            return self.rebuild(leaf, &sections, changes);
        }
        match self.change(leaf, &sections, form, changes) {
            // Keys that were once decoded wrongly may have misled an insertion: the records are sorted anew.
            Err(TreeError::Codec(_)) if leaf.has(KEYED) => {
                self.dead.clear();
                self.compression.begin();
                self.rebuild(leaf, &sections, changes)
            }
            result => result,
        }
    }

    /// Compresses every record of the leaf with the changes applied.
    fn rebuild(
        &mut self,
        leaf: &'b Leaf<'b>,
        sections: &Sections,
        changes: &[LandedWrite<'b>],
    ) -> Result<BuiltLeaves, TreeError> {
        let records = self.merge_all(leaf, sections, changes)?;
        let split_hint = self.split_hint(leaf, sections, changes)?;
        self.compression.compress_all(records, split_hint)
    }

    /// Compresses the frames that the changes touch, and keeps the others.
    fn change(
        &mut self,
        leaf: &'b Leaf<'b>,
        sections: &Sections,
        form: Form<'b>,
        changes: &[LandedWrite<'b>],
    ) -> Result<BuiltLeaves, TreeError> {
        let single = leaf.has(SINGLE) && self.compression.settings.single();
        if single && let Some(leaf) = self.overwrite(leaf, sections, changes)? {
            return BuiltLeaves::one(|| Ok(leaf));
        }
        let split_hint = self.split_hint(leaf, sections, changes)?;
        let decompressed;
        // A frame of one record can use a compressed value directly.
        let changes = if self.compression.settings.single() && !leaf.has(HASHED) {
            changes
        } else {
            decompressed = self.decompress(leaf, changes)?;
            &decompressed
        };
        if leaf.has(HASHED) {
            return self.run_hashed(leaf, sections, form, changes);
        }
        let mut builder = if single {
            self.draft_single(leaf, sections, form, changes)?
        } else {
            self.draft_ordered(leaf, sections, form, changes, split_hint)?
        };
        let built = self.compression.finish(&mut builder, split_hint)?;
        // A wrongly decoded key that became a separator would misdirect searches for others.
        let in_range = |separator: &Vec<u8>| (self.leads_to)(separator, leaf);
        if leaf.has(KEYED) && !(built.separators.is_sorted() && built.separators.iter().all(in_range)) {
            return Err(corrupt("a key outside its leaf's range"));
        }
        Ok(built)
    }

    fn split_hint(
        &mut self,
        leaf: &Leaf,
        sections: &Sections,
        changes: &[LandedWrite<'b>],
    ) -> Result<SplitHint, TreeError> {
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
            return Ok(SplitHint::Within);
        };
        if leaf.count() == 0 {
            return Ok(SplitHint::AtEnd);
        }
        if leaf.has(HASHED) {
            return Ok(SplitHint::Within);
        }
        if !leaf.has(FINGERPRINTS) && form_of(leaf, sections).fits(first.key) && form_of(leaf, sections).fits(last.key)
        {
            let number = |slot| leaf.key_number(sections, slot);
            return Ok(match (key_number(first.key), key_number(last.key)) {
                (_, last) if last < number(0) => SplitHint::AtStart,
                (first, _) if first > number(leaf.count() - 1) => SplitHint::AtEnd,
                _ => SplitHint::Within,
            });
        }
        // In a keyed leaf each comparison decodes, and changes of keys that are there do not make it grow at an end.
        if leaf.has(KEYED) && changes.iter().all(|entry| entry.slot.is_some()) {
            return Ok(SplitHint::Within);
        }
        let mut decoder = Decoder::new(self.compression.engines, self.scratch);
        if last.key < leaf.first_key(sections, 0, &mut decoder)?.as_slice() {
            return Ok(SplitHint::AtStart);
        }
        // The last frame's keys may not be available without decoding: its first key is used instead.
        let after_end = first.key > leaf.first_key(sections, leaf.frames() - 1, &mut decoder)?.as_slice()
            && changes.iter().all(|entry| !matches!(entry.change, Change::Remove));
        Ok(if after_end { SplitHint::AtEnd } else { SplitHint::Within })
    }

    /// Returns `changes` with compressed values decoded, for frames that hold more than one record.
    fn decompress(
        &mut self,
        leaf: &'b Leaf<'b>,
        changes: &[LandedWrite<'b>],
    ) -> Result<Vec<LandedWrite<'b>>, TreeError> {
        let mut decompressed = copied(changes)?;
        for entry in &mut decompressed {
            if let Change::Compressed { block, raw_len } = entry.change {
                let mut decoder = Decoder::new(self.compression.engines, self.scratch);
                let value = leaf.landed_value(entry.key, block, raw_len, &mut decoder)?;
                entry.change = Change::Put(keep(self.compression.arena, value)?);
            }
        }
        Ok(decompressed)
    }

    /// Returns every record of the leaf with the changes applied, in key order.
    pub(crate) fn merge_all(
        &mut self,
        leaf: &'b Leaf<'b>,
        sections: &Sections,
        changes: &[LandedWrite<'b>],
    ) -> Result<Vec<Record<'b>>, TreeError> {
        let mut records: Vec<Record<'b>> = short_lived_room_for(leaf.count() + changes.len())?;
        for frame in 0..leaf.frames() {
            self.read_frame(leaf, sections, frame, &mut records)?;
        }
        if leaf.has(HASHED) {
            records.sort_unstable_by(|a, b| a.key.cmp(b.key));
        }
        if leaf.has(KEYED) {
            self.order(leaf, &mut records)?;
        }
        let changes = self.decompress(leaf, changes)?;
        let mut merged = short_lived_room_for(records.len() + changes.len())?;
        self.merge(&records, &changes, &mut merged)?;
        Ok(merged)
    }

    /// Sorts the records of a keyed leaf, which are in order unless keys were decoded wrongly before, and checks that
    /// they are within the leaf's range.
    fn order(&mut self, leaf: &Leaf, records: &mut Vec<Record<'b>>) -> Result<(), TreeError> {
        if !records.is_sorted_by(|a, b| a.key < b.key) {
            records.sort_by(|a, b| a.key.cmp(b.key));
            // A key that was not found when it was written is there twice.
            let mut last: Option<Record<'b>> = None;
            for record in records.iter() {
                if let Some(Record {
                    key,
                    value: RecordValue::Large(large),
                    ..
                }) = last
                    && key == record.key
                {
                    self.dead.try_push(large.dead())?;
                }
                last = Some(*record);
            }
            records.reverse();
            records.dedup_by_key(|record| record.key);
            records.reverse();
        }
        let ends = [records.first(), records.last()];
        if ends.iter().flatten().all(|record| (self.leads_to)(record.key, leaf)) {
            Ok(())
        } else {
            Err(corrupt("a key outside its leaf's range"))
        }
    }

    fn read_frame(
        &mut self,
        leaf: &'b Leaf<'b>,
        sections: &Sections,
        frame: usize,
        records: &mut Vec<Record<'b>>,
    ) -> Result<(), TreeError> {
        let arena = self.compression.arena;
        let mut decoder = Decoder::new(self.compression.engines, self.scratch);
        let mut key = Vec::new();
        let from = records.len();
        leaf.visit_frame(sections, frame, &mut decoder, &mut key, |slot, key, value| {
            let value = match value {
                Value::Inline(value) => RecordValue::Inline(keep(arena, value)?),
                Value::Large(large) => RecordValue::Large(large),
            };
            records.try_push(Record {
                key: keep(arena, key)?,
                value,
                mark: leaf.mark(slot),
            })?;
            Ok(())
        })?;
        self.check_range(leaf, frame, &records[from..])
    }

    /// Checks that keys decoded from `frame` belong to the leaf, where the leaf's own directory does not imply it: a
    /// wrong one that became a separator would misdirect searches for others.
    fn check_range(&self, leaf: &Leaf, frame: usize, records: &[Record<'b>]) -> Result<(), TreeError> {
        let unsure = match records {
            [first, .., last] if leaf.has(HASHED) => [Some(first), Some(last)],
            [only] if leaf.has(HASHED) => [Some(only), None],
            // The first key is the frame's separator.
            [_, .., last] if leaf.has(FINGERPRINTS) && frame + 1 == leaf.frames() => [Some(last), None],
            _ => return Ok(()),
        };
        if unsure.iter().flatten().all(|record| (self.leads_to)(record.key, leaf)) {
            Ok(())
        } else {
            Err(corrupt("a key outside its leaf's range"))
        }
    }

    /// Appends `records` (in key order) with `changes` applied to `merged`. Large values that are replaced or removed
    /// are dead.
    fn merge(
        &mut self,
        records: &[Record<'b>],
        changes: &[LandedWrite<'b>],
        merged: &mut Vec<Record<'b>>,
    ) -> Result<(), TreeError> {
        merged.try_grow(records.len() + changes.len())?;
        let mut changes = changes.iter().peekable();
        for record in records {
            while let Some(entry) = changes.next_if(|entry| entry.key < record.key) {
                merged.extend(put_by(entry, None));
            }
            match changes.next_if(|entry| entry.key == record.key) {
                Some(entry) => {
                    if let RecordValue::Large(large) = record.value {
                        self.dead.try_push(large.dead())?;
                    }
                    merged.extend(put_by(entry, Some(record.mark)));
                }
                None => merged.push(*record),
            }
        }
        merged.extend(changes.filter_map(|entry| put_by(entry, None)));
        Ok(())
    }

    /// Merges frames of one record each: a replaced record is never decoded.
    fn draft_single(
        &mut self,
        leaf: &'b Leaf<'b>,
        sections: &Sections,
        form: Form<'b>,
        changes: &[LandedWrite<'b>],
    ) -> Result<LeafBuilder<'b>, TreeError> {
        let mut builder = LeafBuilder::with_room(form, changes.len())?;
        let mut kept = 0;
        let mut gone_bytes = 0;
        let mut same_keys = true;
        for entry in changes {
            let (at, found) = self.slot_of(leaf, sections, entry)?;
            // Wrongly decoded keys of a keyed leaf need not ascend.
            if at < kept {
                return Err(corrupt("a frame's keys"));
            }
            builder.keep(*leaf, kept, at)?;
            kept = at;
            same_keys &= found && !matches!(entry.change, Change::Remove);
            if found {
                gone_bytes += entry.key.len() + leaf.lens(sections).get(at) as usize;
                if let Some(large) = leaf.large(sections, at) {
                    self.dead.try_push(large.dead())?;
                }
                kept += 1;
            }
            if let Some(record) = put_by(entry, found.then(|| leaf.mark(at))) {
                let from = builder.records.len();
                builder.records.push(record);
                self.compression.compress_frame(&mut builder, from, from + 1)?;
            }
        }
        builder.keep(*leaf, kept, leaf.count())?;
        builder.same_keys = same_keys.then_some(*leaf);
        builder.inline_bytes += leaf.header().inline_bytes as usize - gone_bytes;
        Ok(builder)
    }

    /// Returns the slot of the entry's key in a leaf of one-record frames and true, or the slot before which it belongs
    /// and false.
    pub(crate) fn slot_of(
        &mut self,
        leaf: &Leaf,
        sections: &Sections,
        entry: &LandedWrite<'_>,
    ) -> Result<(usize, bool), TreeError> {
        if let Some(slot) = entry.slot {
            return Ok((usize::from(slot), true));
        }
        let key = entry.key;
        if !leaf.has(FINGERPRINTS) {
            return Ok(match leaf.search_packed(sections, key) {
                Ok(slot) => (slot, true),
                Err(slot) => (slot, false),
            });
        }
        let mut decoder = Decoder::new(self.compression.engines, self.scratch);
        let slot = leaf.frame_for(sections, key, &mut decoder)?;
        let order = if leaf.has(KEYED) {
            leaf.first_key(sections, slot, &mut decoder)?.as_slice().cmp(key)
        } else {
            leaf.separator(sections, slot).cmp(&key[leaf.prefix(sections).len()..])
        };
        Ok(match order {
            std::cmp::Ordering::Equal => (slot, true),
            std::cmp::Ordering::Less => (slot + 1, false),
            std::cmp::Ordering::Greater => (slot, false),
        })
    }

    /// Merges frames of several records: those touched by changes are decoded, merged and cut again.
    fn draft_ordered(
        &mut self,
        leaf: &'b Leaf<'b>,
        sections: &Sections,
        form: Form<'b>,
        changes: &[LandedWrite<'b>],
        split_hint: SplitHint,
    ) -> Result<LeafBuilder<'b>, TreeError> {
        let mut builder = LeafBuilder::with_room(form, changes.len())?;
        let mut inline_bytes = leaf.header().inline_bytes as usize;
        let small = self.compression.settings.frame_bytes / 2;
        // Separators depend on where frames are cut; packed keys do not.
        let mut same_keys = !leaf.has(FINGERPRINTS);
        // Frames ascend since the changes' keys do.
        let mut frames: Vec<usize> = short_lived_room_for(changes.len())?;
        for entry in changes {
            let mut decoder = Decoder::new(self.compression.engines, self.scratch);
            frames.push(match entry.slot {
                Some(slot) => leaf.frame_of(sections, usize::from(slot)),
                None => leaf.frame_for(sections, entry.key, &mut decoder)?,
            });
        }
        let (mut at, mut next) = (0, 0);
        let mut records = Vec::new();
        while let Some(&frame) = frames.get(next) {
            builder.keep(*leaf, at, frame)?;
            at = frame;
            let from = builder.records.len();
            // A frame that shrank absorbs its neighbour, so that frames do not become ever smaller.
            loop {
                let first = next;
                next += frames[first..].partition_point(|&frame| frame <= at);
                let here = &changes[first..next];
                records.clear();
                self.read_frame(leaf, sections, at, &mut records)?;
                inline_bytes = less(inline_bytes, &records);
                let before = builder.records.len();
                self.merge(&records, here, &mut builder.records)?;
                let is_as_long = builder.records.len() - before == records.len();
                same_keys &= is_as_long && here.iter().all(|entry| !matches!(entry.change, Change::Remove));
                at += 1;
                let run: usize = builder.records[from..]
                    .iter()
                    .map(|record| builder.form.raw_bytes(record))
                    .sum();
                if at >= leaf.frames() || run >= small || leaf.raw_len(sections, at) + run > small * 2 {
                    break;
                }
            }
            self.compression.compress_tail(&mut builder, from, split_hint)?;
        }
        builder.keep(*leaf, at, leaf.frames())?;
        builder.same_keys = same_keys.then_some(*leaf);
        builder.inline_bytes += inline_bytes;
        Ok(builder)
    }

    /// Merges sub-pages: those that changes hash to are decoded, merged and recompressed.
    fn run_hashed(
        &mut self,
        leaf: &'b Leaf<'b>,
        sections: &Sections,
        form: Form<'b>,
        changes: &[LandedWrite<'b>],
    ) -> Result<BuiltLeaves, TreeError> {
        let pages = leaf.frames();
        let mut builder = LeafBuilder::with_room(form, changes.len())?;
        let mut inline_bytes = leaf.header().inline_bytes as usize;
        for page in 0..pages {
            let is_here = |entry: &LandedWrite<'b>| sub_page(crate::tree::hash::hash(entry.key), pages) == page;
            let here: Vec<LandedWrite<'b>> = collected(changes.iter().copied().filter(is_here))?;
            if here.is_empty() {
                builder.keep(*leaf, page, page + 1)?;
                continue;
            }
            let (mut records, mut merged) = (Vec::new(), Vec::new());
            self.read_frame(leaf, sections, page, &mut records)?;
            inline_bytes = less(inline_bytes, &records);
            self.merge(&records, &here, &mut merged)?;
            self.compression.compress_sub_page(&mut builder, merged.into_iter())?;
        }
        builder.inline_bytes += inline_bytes;
        let records: usize = builder.parts.iter().map(|part| part.slots().len()).sum();
        if builder.inline_bytes <= self.compression.settings.leaf_bytes && records <= MAX_RECORDS {
            let write = || self.compression.write(&builder, &builder.parts, builder.inline_bytes);
            return BuiltLeaves::one(write);
        }
        // Sub-pages are not in key order: a split takes every record out.
        self.dead.clear();
        let records = self.merge_all(leaf, sections, changes)?;
        self.compression.begin();
        self.compression.compress_all(records, SplitHint::Within)
    }
}
