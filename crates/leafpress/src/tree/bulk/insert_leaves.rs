//! Insertion of new leaves into the tree at the position of their records.
//!
//! The leaf whose range holds the first of the records is locked, and replaced by its own records before theirs, by the
//! new leaves, and by its own records after theirs. The new leaves were compressed before, so that the lock is held
//! only briefly.

use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::tree::bulk::batch::Batch;
use crate::tree::bulk::leaves::Built;
use crate::tree::compact::compress::BuiltLeaves;
use crate::tree::compact::landed::landed_changes;
use crate::tree::compact::merge::Compaction;
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::error::TreeError;
use crate::tree::index::shard::Splice;
use crate::tree::inner::{Condition, TreeInner};
use crate::tree::node::decoder::{Decoder, corrupt};
use crate::tree::node::key_order::separator;
use crate::tree::node::large::{DeadLarge, NewLarge};
use crate::tree::node::layout::{FINGERPRINTS, HASHED, KEYED};
use crate::tree::node::leaf::{Leaf, NewLeaf};
use crate::tree::thread_state::{Count, Scratchpad};
use crate::tree::write::{Locked, WritePath};
use leafpress_base::mem::room::{TryGrow, collected, copied};
use leafpress_codec::Scratch;

/// A buffer for large values that grew past this size is freed.
const MAX_KEPT_BLOCK_BYTES: usize = 1 << 20;

/// Records of a batch that are all in one leaf's range.
struct Run<'r> {
    range: Range<usize>,
    first: &'r [u8],
    last: &'r [u8],
}

/// The result of an attempt to put new leaves into the tree.
enum Placed {
    Done,
    /// They have an older dictionary, or span more than one leaf's range by now.
    Outdated,
    /// The tree has records between theirs.
    Mixed,
}

/// The parts of a leaf before and after inserted leaves, and the separators to those.
#[derive(Default)]
struct Remainder {
    before: BuiltLeaves,
    to_first: Option<Vec<u8>>,
    from_last: Option<Vec<u8>>,
    behind: BuiltLeaves,
    dead: Vec<DeadLarge>,
}

impl TreeInner {
    /// Puts a batch's records, which belong to one shard, into the tree, and returns how many of their keys are new. If
    /// those in one leaf's range have less than `least_bytes`, and the leaf is not empty, they are inserted one by one.
    ///
    /// # Errors
    /// As [`TreeInner::write`], for the first record that is not inserted; the records before it are.
    pub(super) fn place(&self, shard: usize, batch: &Batch, least_bytes: usize) -> Result<u64, TreeError> {
        let mut new = 0;
        let mut from = 0;
        while from < batch.len() {
            let (to, placed) = self.place_run(shard, batch, from, least_bytes)?;
            new += match placed {
                Some(placed) => placed,
                None => self.insert_each(batch, from..to)?,
            };
            from = to;
        }
        Ok(new)
    }

    /// Inserts records one by one, and returns how many of their keys are new.
    pub(super) fn insert_each(&self, batch: &Batch, range: Range<usize>) -> Result<u64, TreeError> {
        let mut new = 0;
        for (key, value) in batch.records(range) {
            let (present, _) = self.write(key, Some(value), Condition::Always)?;
            new += u64::from(!present);
        }
        Ok(new)
    }

    /// Puts those of the records from `from` on that are in the first one's leaf's range into leaves of their own.
    /// Returns where they end, and how many keys were new, or `None` if they are to be inserted one by one.
    fn place_run(
        &self,
        shard: usize,
        batch: &Batch,
        from: usize,
        least_bytes: usize,
    ) -> Result<(usize, Option<u64>), TreeError> {
        let context = self.contexts.get()?;
        loop {
            let guard = self.memory.enter()?;
            let work = WritePath {
                core: self,
                shard: &self.shards[shard],
                context,
                guard: &guard,
            };
            let (leaf, end) = work.shard.descend_up(batch.key(from), &guard)?;
            let to = end.map_or(batch.len(), |end| batch.first_from(from, &end));
            let is_empty = leaf.header().live.load(Ordering::Relaxed) == 0;
            if to == from || (!is_empty && batch.bytes_of(from..to) < least_bytes) {
                return Ok((to.max(from + 1), None));
            }
            let run = Run {
                range: from..to,
                first: batch.key(from),
                last: batch.key(to - 1),
            };
            if self.is_mixed(leaf, &run)? {
                return Ok((to, None));
            }
            let mut tools = self.take_tools(context, &guard)?;
            let placed = self
                .build_leaves(batch, run.range.clone(), context, &mut tools)
                .and_then(|built| work.place(&run, built, batch.bytes_of(from..to), &mut tools));
            tools.reset_arena();
            if tools.block.capacity() > MAX_KEPT_BLOCK_BYTES {
                tools.block = Vec::new();
            }
            context.note_used(&mut tools);
            self.return_tools(context, tools, &guard);
            match placed {
                Ok(Placed::Done) => return Ok((to, Some((to - from) as u64))),
                Ok(Placed::Outdated) => {}
                // Inserting them one by one determines which of them fails.
                Ok(Placed::Mixed) | Err(_) => return Ok((to, None)),
            }
        }
    }

    /// Returns whether some of the leaf's records are certainly between the run's: its frames begin there. Checked
    /// before the run is compressed.
    fn is_mixed(&self, leaf: Leaf<'_>, run: &Run<'_>) -> Result<bool, TreeError> {
        if leaf.count() == 0 || leaf.has(HASHED) {
            return Ok(false);
        }
        let (sections, mut scratch) = (leaf.sections(), Scratch::default());
        let mut decoder = Decoder::new(&self.engines, &mut scratch);
        let first = leaf.frame_for(&sections, run.first, &mut decoder)?;
        Ok(first < leaf.frame_for(&sections, run.last, &mut decoder)?)
    }
}

impl<'w> WritePath<'w> {
    fn place(
        &self,
        run: &Run<'_>,
        mut built: Built,
        put_bytes: usize,
        tools: &mut Scratchpad,
    ) -> Result<Placed, TreeError> {
        let (locked, mut remainder) = loop {
            let (leaf, _) = self.shard.descend(run.first, self.guard);
            let locked = Locked::lock(leaf);
            if leaf.header().obsolete.load(Ordering::Relaxed) {
                continue;
            }
            // Checked under the lock: a thread that makes another dictionary current takes the locks of all leaves
            // afterwards.
            if !built.has_current_dictionary(self.core) {
                return Ok(Placed::Outdated);
            }
            match self.part(leaf, run, tools)? {
                Some(remainder) => break (locked, remainder),
                None => return Ok(Placed::Mixed),
            }
        };
        let leaf = locked.leaf;
        let structure = self.shard.lock_structure();
        let (path, here) = self.shard.path(run.first, self.guard)?;
        let end = path.iter().rev().find(|(inner, index)| index + 1 < inner.children());
        let is_past_end = match end {
            Some((inner, index)) => inner.separator(*index)?.as_slice() <= run.last,
            None => false,
        };
        if here != leaf || is_past_end {
            return Ok(Placed::Outdated);
        }
        let at = path.last().map_or(0, |(_, index)| *index);
        let new = [&remainder.before.leaves, &built.leaves, &remainder.behind.leaves];
        let children = collected(new.into_iter().flatten().map(|leaf| leaf.leaf().as_ptr()))?;
        let pieces = children.len();
        let mut separators = std::mem::take(&mut remainder.before.separators);
        separators.try_extend(remainder.to_first.take())?;
        separators.try_extend(std::mem::take(&mut built.separators))?;
        separators.try_extend(remainder.from_last.take())?;
        separators.try_extend(std::mem::take(&mut remainder.behind.separators))?;
        let splice = Splice {
            from: at,
            to: at + 1,
            children,
            separators,
        };
        self.shard
            .splice(&path, splice, &self.core.memory, self.guard, &structure)?;
        remainder.before.publish();
        remainder.behind.publish();
        built.leaves.into_iter().for_each(NewLeaf::publish);
        built.larges.into_iter().for_each(NewLarge::publish);
        drop(structure);
        self.retire_leaf(leaf);
        self.retire_large(&remainder.dead);
        let records = run.range.len() as u64;
        for count in [Count::Puts, Count::Inserted, Count::BulkLoaded] {
            self.context.add(count, records);
        }
        self.context.add(Count::PutBytes, put_bytes as u64);
        drop(locked);
        self.note_replaced();
        self.core.background.leaves_grew(self.core, pieces - 1);
        Ok(Placed::Done)
    }

    /// Splits the leaf's records into those before the run and those after it; returns `None` where one is within. The
    /// caller holds the leaf's lock.
    fn part(&self, leaf: Leaf<'w>, run: &Run<'_>, tools: &mut Scratchpad) -> Result<Option<Remainder>, TreeError> {
        if leaf.landing_locked().is_some() {
            return self.part_records(leaf, run, tools);
        }
        let mut remainder = Remainder::default();
        if leaf.count() == 0 {
            return Ok(Some(remainder));
        }
        let (least, greatest) = self.ends_of(leaf, &mut tools.scratch)?;
        if greatest.as_slice() < run.first {
            remainder.to_first = Some(separator(&greatest, run.first)?);
            remainder.before.leaves.try_push(self.copy_of(leaf)?)?;
        } else if run.last < least.as_slice() {
            remainder.from_last = Some(separator(run.last, &least)?);
            remainder.behind.leaves.try_push(self.copy_of(leaf)?)?;
        } else {
            return self.part_records(leaf, run, tools);
        }
        Ok(Some(remainder))
    }

    /// Returns the least and greatest key of the leaf, which has records and an empty landing buffer.
    fn ends_of(&self, leaf: Leaf<'w>, scratch: &mut Scratch) -> Result<(Vec<u8>, Vec<u8>), TreeError> {
        let sections = leaf.sections();
        if !leaf.has(FINGERPRINTS) {
            let mut greatest = Vec::new();
            leaf.packed_key(&sections, leaf.count() - 1, &mut greatest)?;
            let mut decoder = Decoder::new(&self.core.engines, scratch);
            return Ok((leaf.first_key(&sections, 0, &mut decoder)?, greatest));
        }
        let hashed = leaf.has(HASHED);
        let frames = if hashed { 0 } else { leaf.frames() - 1 }..leaf.frames();
        let mut ends: Option<(Vec<u8>, Vec<u8>)> = None;
        let mut key = Vec::new();
        for frame in frames {
            let mut decoder = Decoder::new(&self.core.engines, scratch);
            leaf.visit_frame(&sections, frame, &mut decoder, &mut key, |_, key, _| {
                match &mut ends {
                    None => ends = Some((copied(key)?, copied(key)?)),
                    Some((least, _)) if key < least.as_slice() => *least = copied(key)?,
                    Some((_, greatest)) if key > greatest.as_slice() => *greatest = copied(key)?,
                    Some(_) => {}
                }
                Ok(())
            })?;
        }
        let (mut least, greatest) = ends.ok_or_else(|| corrupt("a leaf without records"))?;
        if !hashed {
            // The first key of a frame is its separator.
            let mut decoder = Decoder::new(&self.core.engines, scratch);
            least = leaf.first_key(&sections, 0, &mut decoder)?;
        }
        // A wrongly decoded key that became a separator would misdirect searches for others.
        let is_here = |key: &[u8]| self.shard.descend(key, self.guard).0 == leaf;
        if !is_here(&greatest) || ((hashed || leaf.has(KEYED)) && !is_here(&least)) {
            return Err(corrupt("a key outside its leaf's range"));
        }
        Ok((least, greatest))
    }

    /// Like [`WritePath::part`], but includes the landing buffer and recompresses every record.
    fn part_records(
        &self,
        leaf: Leaf<'w>,
        run: &Run<'_>,
        tools: &mut Scratchpad,
    ) -> Result<Option<Remainder>, TreeError> {
        let mut remainder = Remainder::default();
        let changes = landed_changes(leaf, &[], &mut remainder.dead)?;
        let Scratchpad {
            scratch,
            buffers,
            arena,
            ..
        } = tools;
        let mut compaction = Compaction {
            compression: self.core.compression(buffers, arena),
            scratch,
            dead: Vec::new(),
            leads_to: &|key, leaf| self.shard.descend(key, self.guard).0 == *leaf,
        };
        compaction.compression.begin();
        let records = compaction.merge_all(&leaf, &leaf.sections(), &changes)?;
        remainder.dead.try_extend(std::mem::take(&mut compaction.dead))?;
        let behind = records.partition_point(|record| record.key < run.first);
        if records.get(behind).is_some_and(|record| record.key <= run.last) {
            return Ok(None);
        }
        let (before, behind) = records.split_at(behind);
        let compression = &mut compaction.compression;
        if let Some(greatest) = before.last() {
            remainder.to_first = Some(separator(greatest.key, run.first)?);
            remainder.before = compression.compress_all(copied(before)?, SplitHint::Within)?;
        }
        if let Some(least) = behind.first() {
            remainder.from_last = Some(separator(run.last, least.key)?);
            compression.begin();
            remainder.behind = compression.compress_all(copied(behind)?, SplitHint::Within)?;
        }
        Ok(Some(remainder))
    }
}
