//! Taking a range of records out of the tree, a leaf at a time.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use bumpalo::Bump;

use crate::mem::room::{TryGrow, collected, copied, room_for};
use crate::tree::Tree;
use crate::tree::compact::builder::keep;
use crate::tree::compact::landed::landed_changes;
use crate::tree::core::Core;
use crate::tree::error::Error;
use crate::tree::hash::hash;
use crate::tree::index::shard::Shard;
use crate::tree::key_range::KeyRange;
use crate::tree::local::{Count, Tools};
use crate::tree::node::decoder::Decoder;
use crate::tree::node::landing::{Change, Entry};
use crate::tree::node::layout::{FINGERPRINTS, HASHED, SINGLE, Sections};
use crate::tree::node::leaf::Leaf;
use crate::tree::scan::{Bounds, is_empty, not_above, not_below};
use crate::tree::write::{Cut, Locked, WritePath};

/// What [`Tree::remove_range`] took out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovedRange {
    /// Records.
    pub records: u64,
    /// Bytes of their keys and values.
    pub key_and_value_bytes: u64,
    /// Whether the range had no more, at the moment at which each of its leaves was looked at.
    pub is_done: bool,
}

/// A record that is in the range.
struct InRange<'r> {
    key: &'r [u8],
    value_len: usize,
}

impl Tree {
    /// Removes up to `limit` records whose keys are in `range`, and says how many went and whether that was all.
    ///
    /// Each leaf is compacted once, and what its records held is free when this returns, unless a reader is in the way: for many records
    /// it takes a small part of the time of as many [`Tree::remove`]s, and also for one it leaves no mark of the removal behind. Records of a
    /// shard go in key order, one shard after the other.
    ///
    /// Atomic for the records of a leaf, not for the range: a record that is written meanwhile may or may not go.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] or [`Error::Codec`]; records of leaves before the one that failed are gone, and what they were is not said.
    pub fn remove_range(&self, range: impl KeyRange, limit: usize) -> Result<RemovedRange, Error> {
        self.core.remove_range(&range.into_bounds()?, limit)
    }
}

impl Core {
    fn remove_range(&self, bounds: &Bounds, limit: usize) -> Result<RemovedRange, Error> {
        let mut removed = RemovedRange {
            is_done: true,
            ..RemovedRange::default()
        };
        if is_empty(&bounds.0, &bounds.1) {
            return Ok(removed);
        }
        let mut arena = Bump::new();
        for shard in &self.shards {
            self.remove_range_of(shard, bounds, limit, &mut arena, &mut removed)?;
            if !removed.is_done {
                break;
            }
        }
        Ok(removed)
    }

    fn remove_range_of(
        &self,
        shard: &Shard,
        bounds: &Bounds,
        limit: usize,
        arena: &mut Bump,
        removed: &mut RemovedRange,
    ) -> Result<(), Error> {
        let mut from: Vec<u8> = match &bounds.0 {
            Bound::Included(key) | Bound::Excluded(key) => copied(key)?,
            Bound::Unbounded => Vec::new(),
        };
        loop {
            arena.reset();
            let context = self.contexts.get()?;
            let guard = self.memory.enter()?;
            let work = WritePath {
                core: self,
                shard,
                context,
                guard: &guard,
            };
            let (leaf, end) = shard.descend_up(&from, &guard)?;
            let locked = Locked::lock(leaf);
            // In the tree it has the range that it had, or that of a neighbour that has gone as well.
            if leaf.header().obsolete.load(Ordering::Relaxed) {
                continue;
            }
            let mut tools = self.take_tools(context, &guard)?;
            let left = usize::try_from(removed.records).map_or(0, |records| limit.saturating_sub(records));
            let taken = work.remove_records(&locked, &from, bounds, left, arena, &mut tools);
            drop(locked);
            context.return_tools(tools, &guard);
            match taken? {
                None => continue,
                Some(taken) => {
                    removed.records += taken.records;
                    removed.key_and_value_bytes += taken.key_and_value_bytes;
                    removed.is_done = taken.is_done;
                }
            }
            match end {
                Some(end) if removed.is_done && not_above(&bounds.1, &end) => from = end,
                _ => return Ok(()),
            }
        }
    }
}

impl<'w> WritePath<'w> {
    /// Takes out up to `left` of the leaf's records in the range; nothing where the leaf is no longer in the tree. `key` is any key of
    /// its range.
    fn remove_records(
        &self,
        locked: &Locked<'w>,
        key: &[u8],
        bounds: &Bounds,
        left: usize,
        arena: &Bump,
        tools: &mut Tools,
    ) -> Result<Option<RemovedRange>, Error> {
        let leaf = locked.leaf;
        let mut decoder = Decoder::new(&self.core.engines, &mut tools.scratch);
        let records = records_in(leaf, bounds, left, arena, &mut decoder)?;
        let mut taken = RemovedRange {
            is_done: records.len() <= left,
            ..RemovedRange::default()
        };
        let going = &records[..left.min(records.len())];
        if going.is_empty() {
            return Ok(Some(taken));
        }
        let mut changes = room_for(going.len())?;
        for InRange { key, value_len } in going {
            changes.push(Entry::new(key, Change::Remove, None));
            taken.records += 1;
            taken.key_and_value_bytes += (key.len() + value_len) as u64;
        }
        if let Some(temperatures) = &self.core.temperatures {
            for record in going {
                temperatures.hot.remove(record.key, hash(record.key), self.guard);
            }
        }
        // Not as a writer would: shorter frames would take what the records leave.
        let cut = Cut::Changed(self.core.settings.now());
        let temperature = leaf.temperature();
        if !self.compact_frames_locked(locked, None, key, &changes, cut, temperature, tools)? {
            return Ok(None);
        }
        self.context.add(Count::Removes, taken.records);
        self.context.add(Count::Erased, taken.records);
        Ok(Some(taken))
    }
}

/// What a reader finds in a leaf of a range, in key order: all of it, or one more than `most`. The caller holds the leaf's lock.
fn records_in<'r>(
    leaf: Leaf<'_>,
    bounds: &Bounds,
    most: usize,
    arena: &'r Bump,
    decoder: &mut Decoder<'_>,
) -> Result<Vec<InRange<'r>>, Error> {
    let sections = leaf.sections();
    let in_bounds = |key: &[u8]| not_below(&bounds.0, key) && not_above(&bounds.1, key);
    let landed = landed_changes(leaf, &[], &mut Vec::new())?;
    let mut landed = landed.iter().filter(|entry| in_bounds(entry.key)).peekable();
    let mut records = Vec::new();
    let push = |records: &mut Vec<InRange<'r>>, key: &[u8], value_len: Option<usize>| -> Result<(), Error> {
        if let Some(value_len) = value_len {
            records.try_push(InRange {
                key: keep(arena, key)?,
                value_len,
            })?;
        }
        Ok(())
    };
    let is_hashed = leaf.has(HASHED);
    let mut slots: Vec<(Vec<u8>, usize)> = Vec::new();
    let mut key_buffer = Vec::new();
    for frame in frames_of(leaf, &sections, bounds) {
        if !is_hashed && records.len() > most {
            return Ok(records);
        }
        slots.clear();
        keys_of(leaf, &sections, frame, decoder, &mut key_buffer, |slot, key| {
            if in_bounds(key) {
                slots.try_push((copied(key)?, leaf.value_len(&sections, slot)))?;
            }
            Ok(())
        })?;
        for (key, value_len) in &slots {
            // In a hashed leaf keys come in no order.
            if !is_hashed {
                while let Some(entry) = landed.next_if(|entry| entry.key < key.as_slice()) {
                    push(&mut records, entry.key, entry.change.value_len())?;
                }
                if let Some(entry) = landed.next_if(|entry| entry.key == key.as_slice()) {
                    push(&mut records, entry.key, entry.change.value_len())?;
                    continue;
                }
            }
            push(&mut records, key, Some(*value_len))?;
        }
    }
    if !is_hashed {
        for entry in landed {
            push(&mut records, entry.key, entry.change.value_len())?;
        }
        return Ok(records);
    }
    let landed: Vec<&Entry<'_>> = collected(landed)?;
    records.retain(|record| landed.binary_search_by(|entry| entry.key.cmp(record.key)).is_err());
    for entry in landed {
        push(&mut records, entry.key, entry.change.value_len())?;
    }
    records.sort_unstable_by(|a, b| a.key.cmp(b.key));
    Ok(records)
}

/// The frames that may have keys of a range.
fn frames_of(leaf: Leaf<'_>, sections: &Sections, (start, end): &Bounds) -> std::ops::Range<usize> {
    let frames = leaf.frames();
    if leaf.has(HASHED) || leaf.count() == 0 {
        return 0..frames;
    }
    let first = match start {
        Bound::Included(key) | Bound::Excluded(key) => leaf.frame_for(sections, key),
        Bound::Unbounded => 0,
    };
    let last = match end {
        Bound::Included(key) | Bound::Excluded(key) => leaf.frame_for(sections, key),
        Bound::Unbounded => frames - 1,
    };
    first..last + 1
}

/// Calls `visit` with the slots of a frame and their keys, whose values are decoded only where that cannot be helped.
pub(super) fn keys_of(
    leaf: Leaf<'_>,
    sections: &Sections,
    frame: usize,
    decoder: &mut Decoder<'_>,
    key: &mut Vec<u8>,
    mut visit: impl FnMut(usize, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let slots = leaf.slots(sections, frame);
    if leaf.has(FINGERPRINTS) && !leaf.has(SINGLE) {
        return leaf.visit_frame(sections, frame, decoder, key, |slot, key, _| visit(slot, key));
    }
    // Keys of one-record frames, and packed ones, stand outside of them.
    if leaf.has(FINGERPRINTS) {
        return visit(slots.start, &leaf.first_key(sections, frame)?);
    }
    for slot in slots {
        key.clear();
        leaf.packed_key(sections, slot, key)?;
        visit(slot, key)?;
    }
    Ok(())
}
