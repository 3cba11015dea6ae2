//! Counting the records of a range of keys by the leaves' own counts.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use bumpalo::Bump;

use crate::tree::Tree;
use crate::tree::error::TreeError;
use crate::tree::in_range::records_in;
use crate::tree::index::shard::Shard;
use crate::tree::inner::TreeInner;
use crate::tree::key_range::KeyRange;
use crate::tree::node::decoder::Decoder;
use crate::tree::node::inner::InnerNode;
use crate::tree::node::landing::newest_by_key;
use crate::tree::node::leaf::Leaf;
use crate::tree::scan::{Bounds, copied_bound, is_empty, not_above};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::reclaim::guard::Guard;

impl Tree {
    /// Returns the number of records whose keys are in `range`.
    ///
    /// Visits each leaf in the range and adds its record count. Only in the range's first and last leaf, in each shard,
    /// are keys compared, and these are decoded only where they are stored in frames. Under concurrent writes each
    /// leaf's count is correct at the moment of its visit.
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::TreeError> {
    /// let tree = leafpress::Tree::from_sorted((0..100_u8).map(|n| ([n], "value")))?;
    /// assert_eq!(tree.count([10]..[20])?, 10);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`TreeError::Codec`] when a frame with keys cannot be decoded, [`TreeError::OutOfMemory`].
    pub fn count(&self, range: impl KeyRange) -> Result<u64, TreeError> {
        self.core.count(&range.into_bounds()?)
    }
}

/// A leaf with its range of keys, the start inclusive, the end exclusive.
pub(super) struct Ranged<'g> {
    pub leaf: Leaf<'g>,
    pub start: Vec<u8>,
    pub end: Option<Vec<u8>>,
}

impl<'g> Ranged<'g> {
    /// Returns the leaf that a path leads to, with its range.
    pub(super) fn at(path: &[(InnerNode<'_>, usize)], leaf: Leaf<'g>) -> Result<Self, OutOfMemory> {
        let start = path.iter().rev().find(|(_, index)| *index > 0);
        let end = path.iter().rev().find(|(inner, index)| index + 1 < inner.children());
        Ok(Self {
            leaf,
            start: start.map_or(Ok(Vec::new()), |(inner, index)| inner.separator(index - 1))?,
            end: end.map(|(inner, index)| inner.separator(*index)).transpose()?,
        })
    }

    /// Returns whether the leaf's whole range is in the bounds.
    fn is_within(&self, (low, high): &Bounds) -> bool {
        self.begins_within(low) && self.ends_within(high)
    }

    /// Returns whether no key of the leaf's range is below the bound.
    pub(super) fn begins_within(&self, low: &Bound<Vec<u8>>) -> bool {
        match low {
            Bound::Included(low) => *low <= self.start,
            Bound::Excluded(low) => *low < self.start,
            Bound::Unbounded => true,
        }
    }

    /// Returns whether no key of the leaf's range is above the bound.
    pub(super) fn ends_within(&self, high: &Bound<Vec<u8>>) -> bool {
        match (high, &self.end) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(high) | Bound::Excluded(high), Some(end)) => end <= high,
            (_, None) => false,
        }
    }
}

impl TreeInner {
    fn count(&self, (low, high): &Bounds) -> Result<u64, TreeError> {
        let mut count = 0;
        if is_empty(low, high) {
            return Ok(count);
        }
        let mut arena = Bump::new();
        for shard in &self.shards {
            // The rest of the range to be counted: leaves may be merged between two visits, and no record may count
            // twice.
            let mut bounds = (copied_bound(low)?, copied_bound(high)?);
            loop {
                arena.reset();
                let guard = self.memory.enter()?;
                let ranged = shard.ranged(&bounds.0, &guard)?;
                count += self.count_in(&ranged, &bounds, &arena, &guard)?;
                match ranged.end {
                    Some(end) if not_above(&bounds.1, &end) => bounds.0 = Bound::Included(end),
                    _ => break,
                }
            }
        }
        Ok(count)
    }

    fn count_in(
        &self,
        ranged: &Ranged<'_>,
        bounds: &Bounds,
        arena: &Bump,
        guard: &Guard<'_>,
    ) -> Result<u64, TreeError> {
        let leaf = ranged.leaf;
        if ranged.is_within(bounds) {
            return Ok(u64::from(leaf.header().live.load(Ordering::Relaxed)));
        }
        let mut landed = match leaf.landing(guard) {
            Some(landing) => landing.read_all()?,
            None => Vec::new(),
        };
        newest_by_key(&mut landed, |_| {});
        let context = self.contexts.get()?;
        let mut tools = self.take_tools(context, guard)?;
        let mut decoder = Decoder::new(&self.engines, &mut tools.scratch);
        let records = records_in(leaf, &landed, bounds, usize::MAX, arena, &mut decoder).map(|records| records.len());
        self.return_tools(context, tools, guard);
        Ok(records? as u64)
    }
}

impl Shard {
    /// Returns the leaf in which a range begins.
    fn ranged<'g>(&self, low: &Bound<Vec<u8>>, guard: &'g Guard<'_>) -> Result<Ranged<'g>, OutOfMemory> {
        let from: &[u8] = match low {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => &[],
        };
        let (path, leaf) = self.path(from, guard)?;
        Ranged::at(&path, leaf)
    }
}
