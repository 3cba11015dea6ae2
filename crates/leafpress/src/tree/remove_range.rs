//! Taking a range of records out of the tree, a leaf at a time.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use bumpalo::Bump;

use crate::mem::room::{copied, room_for};
use crate::tree::Tree;
use crate::tree::compact::landed::landed_changes;
use crate::tree::core::Core;
use crate::tree::error::Error;
use crate::tree::hash::hash;
use crate::tree::in_range::{InRange, records_in};
use crate::tree::index::shard::Shard;
use crate::tree::key_range::KeyRange;
use crate::tree::local::{Count, Tools};
use crate::tree::node::decoder::Decoder;
use crate::tree::node::landing::{Change, Entry};
use crate::tree::scan::{Bounds, is_empty, not_above};
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

impl Tree {
    /// Removes up to `limit` records whose keys are in `range`, and says how many went and whether that was all.
    ///
    /// Each leaf is compacted once, and what its records held is free when this returns, unless a reader is in the way: for many records
    /// it takes a small part of the time of as many [`Tree::remove`]s, and also for one it leaves no mark of the removal behind. Records of a
    /// shard go in key order, one shard after the other.
    ///
    /// Atomic for the records of a leaf, not for the range: a record that is written meanwhile may or may not go.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// let removed = tree.remove_range("a".."c", 1000)?;
    /// assert_eq!((removed.records, removed.is_done), (2, true));
    /// # Ok::<(), leafpress::Error>(())
    /// ```
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
            self.return_tools(context, tools, &guard);
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
        let landed = landed_changes(leaf, &[], &mut Vec::new())?;
        let records = records_in(leaf, &landed, bounds, left, arena, &mut decoder)?;
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
