//! Removal of a range of records.
//!
//! Leaves whose keys are all in the range are unlinked together, those of one inner node at a time, without decoding
//! them: their headers hold their counts. The range's first and last leaves are compacted without the records of the
//! range.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use bumpalo::Bump;

use leafpress_base::reclaim::guard::Guard;

use crate::tree::Tree;
use crate::tree::compact::landed::{landed_changes, owned_large};
use crate::tree::count::Ranged;
use crate::tree::error::TreeError;
use crate::tree::hash::hash;
use crate::tree::hot::HotRecords;
use crate::tree::in_range::{InRange, records_in};
use crate::tree::index::shard::{Shard, Splice};
use crate::tree::inner::TreeInner;
use crate::tree::key_range::KeyRange;
use crate::tree::node::decoder::{Decoder, Engines};
use crate::tree::node::inner::{InnerNode, Node};
use crate::tree::node::landing::{Change, LandedWrite, Landing};
use crate::tree::node::large::Large;
use crate::tree::node::layout::HASHED;
use crate::tree::node::leaf::Leaf;
use crate::tree::scan::{Bounds, is_empty, not_above, not_below};
use crate::tree::thread_state::{Count, Scratchpad};
use crate::tree::write::{Cut, Locked, WritePath};
use leafpress_base::mem::room::{TryGrow, copied, room_for};
use leafpress_codec::Scratch;

/// The result of [`Tree::remove_range`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovedRange {
    /// Number of records removed.
    pub records: u64,
    /// Bytes of their keys and values.
    pub key_and_value_bytes: u64,
    /// Whether the range was empty afterwards, at the moment at which each of its leaves was visited.
    pub is_done: bool,
}

/// A part of a range that [`Tree::remove_range_with`] has removed.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RemovedPart<'k> {
    /// Number of records removed.
    pub records: u64,
    /// Bytes of their keys and values.
    pub key_and_value_bytes: u64,
    /// The key below which the shard has no record of the range any more; `None` if it has none at all.
    pub up_to: Option<&'k [u8]>,
}

type OnPart<'p> = dyn FnMut(RemovedPart<'_>) -> Result<(), TreeError> + 'p;

/// Maximum number of leaves unlinked together where their keys have to be examined, under the structure lock.
const MAX_LOOKED_INTO: usize = 8;

/// The contents of unlinked leaves, and where the range of the last of them ended.
#[derive(Default)]
struct Unlinked {
    records: u64,
    key_and_value_bytes: u64,
    end: Option<Vec<u8>>,
}

impl Tree {
    /// Removes up to `limit` records whose keys are in `range`, and returns how many were removed and whether these
    /// were all.
    ///
    /// Leaves that lie entirely within the range are unlinked without being decoded, which takes some microseconds for
    /// thousands of records. Only the first and the last leaf of the range are compacted. The records' memory is free
    /// when this returns, unless a reader uses it; no tombstones are left behind. Records of a shard are removed in key
    /// order, one shard after the other.
    ///
    /// Atomic for the records of a leaf, not for the range: a record that is written meanwhile may or may not be
    /// removed.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// let removed = tree.remove_range("a".."c", 1000)?;
    /// assert_eq!((removed.records, removed.is_done), (2, true));
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`] or [`TreeError::Codec`]; records of leaves before the failed one are removed, and
    /// their number is not returned: see [`Tree::remove_range_with`].
    pub fn remove_range(&self, range: impl KeyRange, limit: usize) -> Result<RemovedRange, TreeError> {
        self.core.remove_range(&range.into_bounds()?, limit, &mut |_| Ok(()))
    }

    /// Removes all records whose keys are in `range`, as [`Tree::remove_range`] does, and calls `on_part` after each
    /// part that was removed: a leaf's records, or those of neighbouring leaves. So the caller knows what was removed
    /// if a later part fails. `on_part` must not use the tree; an error of it ends the removal.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// let mut removed = 0;
    /// tree.remove_range_with("a".."c", |part| {
    ///     removed += part.records;
    ///     Ok(())
    /// })?;
    /// assert_eq!(removed, 2);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::remove_range`], or the error of `on_part`.
    pub fn remove_range_with(
        &self,
        range: impl KeyRange,
        mut on_part: impl FnMut(RemovedPart<'_>) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        let bounds = range.into_bounds()?;
        self.core.remove_range(&bounds, usize::MAX, &mut on_part).map(|_| ())
    }
}

impl TreeInner {
    fn remove_range(&self, bounds: &Bounds, limit: usize, on_part: &mut OnPart<'_>) -> Result<RemovedRange, TreeError> {
        let mut removed = RemovedRange {
            is_done: true,
            ..RemovedRange::default()
        };
        if is_empty(&bounds.0, &bounds.1) {
            return Ok(removed);
        }
        let mut arena = Bump::new();
        for shard in &self.shards {
            self.remove_range_of(shard, bounds, limit, &mut arena, &mut removed, on_part)?;
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
        on_part: &mut OnPart<'_>,
    ) -> Result<(), TreeError> {
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
            let left = usize::try_from(removed.records).map_or(0, |records| limit.saturating_sub(records));
            let (path, leaf) = shard.path(&from, &guard)?;
            let here = Ranged::at(&path, leaf)?;
            if may_be_unlinked(&here, &path, bounds, left, &self.engines, &guard)?
                && let Some(unlinked) = work.unlink(&from, bounds, left, arena)?
            {
                removed.records += unlinked.records;
                removed.key_and_value_bytes += unlinked.key_and_value_bytes;
                on_part(RemovedPart {
                    records: unlinked.records,
                    key_and_value_bytes: unlinked.key_and_value_bytes,
                    up_to: unlinked.end.as_deref(),
                })?;
                match unlinked.end {
                    Some(end) if not_above(&bounds.1, &end) => from = end,
                    _ => return Ok(()),
                }
                continue;
            }
            let end = here.end;
            let locked = Locked::lock(leaf);
            // A leaf that is in the tree has its original range, or additionally that of a removed neighbour.
            if leaf.header().obsolete.load(Ordering::Relaxed) {
                continue;
            }
            let mut tools = self.take_tools(context, &guard)?;
            let taken = work.remove_records(&locked, &from, bounds, left, arena, &mut tools);
            drop(locked);
            self.return_tools(context, tools, &guard);
            match taken? {
                None => continue,
                Some(taken) => {
                    removed.records += taken.records;
                    removed.key_and_value_bytes += taken.key_and_value_bytes;
                    removed.is_done = taken.is_done;
                    on_part(RemovedPart {
                        records: taken.records,
                        key_and_value_bytes: taken.key_and_value_bytes,
                        up_to: end.as_deref(),
                    })?;
                }
            }
            match end {
                Some(end) if removed.is_done && not_above(&bounds.1, &end) => from = end,
                _ => return Ok(()),
            }
        }
    }
}

/// Returns whether it is worth taking the structure lock to check whether the leaf can be unlinked.
fn may_be_unlinked(
    here: &Ranged<'_>,
    path: &[(InnerNode<'_>, usize)],
    bounds: &Bounds,
    left: usize,
    engines: &Engines,
    guard: &Guard<'_>,
) -> Result<bool, TreeError> {
    let live = here.leaf.header().live.load(Ordering::Relaxed) as usize;
    let has_neighbours = path.last().is_some_and(|(parent, _)| parent.children() > 1);
    Ok(
        live <= left
            && has_neighbours
            && here.ends_within(&bounds.1)
            && begins_within(here, &bounds.0, engines, guard)?,
    )
}

/// Returns whether no record in the leaf is below the bound, judged by the start of its range or by its first key,
/// since the leaf may have taken over the range of removed leaves.
fn begins_within(
    here: &Ranged<'_>,
    low: &Bound<Vec<u8>>,
    engines: &Engines,
    guard: &Guard<'_>,
) -> Result<bool, TreeError> {
    let leaf = here.leaf;
    if here.begins_within(low) {
        return Ok(true);
    }
    if leaf.has(HASHED) || leaf.count() == 0 {
        return Ok(false);
    }
    let mut scratch = Scratch::default();
    let least = leaf.first_key(&leaf.sections(), 0, &mut Decoder::new(engines, &mut scratch))?;
    if !not_below(low, &least) {
        return Ok(false);
    }
    let mut landed = leaf.landing(guard).into_iter().flat_map(Landing::iter);
    Ok(landed.all(|entry| not_below(low, entry.key)))
}

/// Returns how many children of a path's last node may be removed: all, if the node can be removed with them.
fn most_of(path: &[(InnerNode<'_>, usize)]) -> usize {
    match path {
        [.., (above, _), (parent, _)] if above.children() > 1 => parent.children(),
        [.., (parent, _)] => parent.children() - 1,
        [] => 0,
    }
}

impl<'w> WritePath<'w> {
    /// Unlinks neighbouring leaves whose keys are all in the range, beginning with the one that holds `from`, as many
    /// as one inner node has of them and `left` records allow; `None` where the first one cannot be unlinked, or is
    /// latched by a writer.
    fn unlink(
        &self,
        from: &[u8],
        bounds: &Bounds,
        left: usize,
        arena: &mut Bump,
    ) -> Result<Option<Unlinked>, TreeError> {
        let structure = self.shard.lock_structure();
        let (path, leaf) = self.shard.path(from, self.guard)?;
        let mut here = Ranged::at(&path, leaf)?;
        let Some((&(parent, first), above)) = path.split_last() else {
            return Ok(None);
        };
        let last_end = Ranged::at(above, leaf)?.end;
        let most = most_of(&path).min(parent.children() - first);
        let mut unlinked = Unlinked::default();
        let mut leaves = room_for(most)?;
        let mut large = 0;
        while leaves.len() < most && here.ends_within(&bounds.1) {
            let Some(locked) = self.try_lock(here.leaf) else { break };
            if !begins_within(&here, &bounds.0, &self.core.engines, self.guard)? {
                break;
            }
            let header = here.leaf.header();
            let records = unlinked.records + u64::from(header.live.load(Ordering::Relaxed));
            if records > left as u64 {
                break;
            }
            // Checked under the latch: a reader that inserts a hot record holds it.
            if let Some(hot) = &self.core.hot
                && hot.has_table(self.guard)
            {
                if leaves.len() == MAX_LOOKED_INTO {
                    break;
                }
                self.forget_hot(hot, here.leaf, arena)?;
            }
            large += owned_large(here.leaf).count();
            leaves.push(locked);
            unlinked.records = records;
            unlinked.key_and_value_bytes += header.live_user_bytes.load(Ordering::Relaxed);
            let next = first + leaves.len();
            unlinked.end = std::mem::take(&mut here.end);
            let Some(start) = &unlinked.end else { break };
            if next >= parent.children() {
                break;
            }
            let Node::Leaf(leaf) = parent.load_child(next, self.guard) else {
                break;
            };
            here.leaf = leaf;
            here.start.clear();
            here.start.try_append(start)?;
            here.end = match next + 1 < parent.children() {
                true => Some(parent.separator(next)?),
                false => last_end.as_deref().map(copied).transpose()?,
            };
        }
        if leaves.is_empty() {
            return Ok(None);
        }
        let mut dead = room_for(large)?;
        let owned = leaves.iter().flat_map(|locked: &Locked<'_>| owned_large(locked.leaf));
        dead.extend(owned.map(Large::dead));
        let splice = Splice {
            from: first,
            to: first + leaves.len(),
            children: Vec::new(),
            separators: Vec::new(),
        };
        self.shard
            .splice(&path, splice, &self.core.memory, self.guard, &structure)?;
        drop(structure);
        for locked in &leaves {
            self.retire_leaf(locked.leaf);
        }
        self.retire_large(&dead);
        let gone = leaves.len();
        drop(leaves);
        self.context.add(Count::Removes, unlinked.records);
        self.context.add(Count::Erased, unlinked.records);
        self.context.add(Count::Merges, gone as u64);
        self.core.background.leaves_shrank(gone);
        (0..gone).for_each(|_| self.note_replaced());
        Ok(Some(unlinked))
    }

    /// Removes the records of a locked leaf from the hot ones.
    fn forget_hot(&self, hot: &HotRecords, leaf: Leaf<'w>, arena: &mut Bump) -> Result<(), TreeError> {
        arena.reset();
        let mut tools = self.core.take_tools(self.context, self.guard)?;
        let mut decoder = Decoder::new(&self.core.engines, &mut tools.scratch);
        let all = (Bound::Unbounded, Bound::Unbounded);
        let records = landed_changes(leaf, &[], &mut Vec::new())
            .map_err(TreeError::from)
            .and_then(|landed| records_in(leaf, &landed, &all, usize::MAX, arena, &mut decoder));
        self.core.return_tools(self.context, tools, self.guard);
        for record in records? {
            let _ = hot.remove(record.key, hash(record.key), self.guard);
        }
        Ok(())
    }

    /// Removes up to `left` of the leaf's records in the range; `None` where the leaf is no longer in the tree. `key`
    /// is any key of its range.
    fn remove_records(
        &self,
        locked: &Locked<'w>,
        key: &[u8],
        bounds: &Bounds,
        left: usize,
        arena: &Bump,
        tools: &mut Scratchpad,
    ) -> Result<Option<RemovedRange>, TreeError> {
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
            changes.push(LandedWrite::new(key, Change::Remove, None));
            taken.records += 1;
            taken.key_and_value_bytes += (key.len() + value_len) as u64;
        }
        if let Some(hot) = &self.core.hot {
            for record in going {
                let _ = hot.remove(record.key, hash(record.key), self.guard);
            }
        }
        // Uses the current settings, not those of writers: shorter frames would consume what the removal frees.
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
