//! How many records are in a range of keys, told by what leaves say of themselves.

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
use crate::tree::node::inner::Inner;
use crate::tree::node::landing::newest_by_key;
use crate::tree::node::leaf::Leaf;
use crate::tree::scan::{Bounds, copied_bound, is_empty, not_above};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::reclaim::guard::Guard;

impl Tree {
    /// The number of records whose keys are in `range`.
    ///
    /// Each leaf in the range is visited, and says how many records it has. Only of the range's first and last leaf, in each shard, are
    /// keys looked at, and these are decoded only where they are kept in frames. Under concurrent writes each leaf's number is right at
    /// the moment at which it is visited.
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
    /// The leaf that a path leads to.
    pub(super) fn at(path: &[(Inner<'_>, usize)], leaf: Leaf<'g>) -> Result<Self, OutOfMemory> {
        let start = path.iter().rev().find(|(_, index)| *index > 0);
        let end = path.iter().rev().find(|(inner, index)| index + 1 < inner.children());
        Ok(Self {
            leaf,
            start: start.map_or(Ok(Vec::new()), |(inner, index)| inner.separator(index - 1))?,
            end: end.map(|(inner, index)| inner.separator(*index)).transpose()?,
        })
    }

    /// Whether whatever may be in the leaf is in the bounds.
    fn is_within(&self, (low, high): &Bounds) -> bool {
        self.begins_within(low) && self.ends_within(high)
    }

    /// Whether nothing that may be in the leaf is below the bound.
    pub(super) fn begins_within(&self, low: &Bound<Vec<u8>>) -> bool {
        match low {
            Bound::Included(low) => *low <= self.start,
            Bound::Excluded(low) => *low < self.start,
            Bound::Unbounded => true,
        }
    }

    /// Whether nothing that may be in the leaf is above the bound.
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
            // What is still to be counted: leaves may be merged between two visits, and no record counts twice.
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
    /// The leaf in which a range begins.
    fn ranged<'g>(&self, low: &Bound<Vec<u8>>, guard: &'g Guard<'_>) -> Result<Ranged<'g>, OutOfMemory> {
        let from: &[u8] = match low {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => &[],
        };
        let (path, leaf) = self.path(from, guard)?;
        Ranged::at(&path, leaf)
    }
}
