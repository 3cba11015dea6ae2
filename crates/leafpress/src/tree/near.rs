//! Positions of keys in a range, and the search for a key from a position on, without a scan of what is before.
//!
//! A position is the part of the range's leaves that are before a key's leaf. Inner nodes give the number of leaves, so
//! that both directions cost a visit of the inner nodes above the range's leaves and of the leaves that are searched.

use bumpalo::Bump;

use crate::tree::Tree;
use crate::tree::error::TreeError;
use crate::tree::inner::TreeInner;
use crate::tree::key_range::KeyRange;
use crate::tree::node::inner::Node;
use crate::tree::sample::{Leaves, key_of};
use crate::tree::scan::{Bounds, is_empty};
use leafpress_base::mem::room::copied;
use leafpress_base::reclaim::guard::Guard;

impl Tree {
    /// Returns the approximate position of `key` in `range`, from 0.0, at its start, to 1.0; the key need not be
    /// present.
    ///
    /// It is the part of the range's leaves that are before the key's leaf, so that it changes with the leaves: use it
    /// with [`Tree::find_near`], which tolerates that.
    ///
    /// ```
    /// let tree = leafpress::Tree::from_sorted((0..20_000_u32).map(|n| (n.to_be_bytes(), "value")))?;
    /// let position = tree.position_of(.., 15_000_u32.to_be_bytes())?;
    /// assert!((0.7..0.8).contains(&position));
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`].
    pub fn position_of(&self, range: impl KeyRange, key: impl AsRef<[u8]>) -> Result<f64, TreeError> {
        self.core.position_of(&range.into_bounds()?, key.as_ref())
    }

    /// Returns a key of `range` for which `is_sought` returns true, of those near `position`; [`None`] if the nearest
    /// `limit` keys, or somewhat more, have none.
    ///
    /// The leaf at the position is searched first, then its neighbours on both sides, and so on. Values are not read.
    ///
    /// ```
    /// let tree = leafpress::Tree::from_sorted((0..20_000_u32).map(|n| (n.to_be_bytes(), "value")))?;
    /// let key = 15_000_u32.to_be_bytes();
    /// let position = tree.position_of(.., key)?;
    /// let found = tree.find_near(.., position, 1000, |near| near == key)?;
    /// assert_eq!(found.as_deref(), Some(&key[..]));
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::count`].
    pub fn find_near(
        &self,
        range: impl KeyRange,
        position: f64,
        limit: usize,
        is_sought: impl FnMut(&[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>, TreeError> {
        self.core.find_near(&range.into_bounds()?, position, limit, is_sought)
    }
}

/// Returns the number of leaves below a node that may have keys from `start` to `end`.
fn leaves_below(node: Node<'_>, start: Option<&[u8]>, end: Option<&[u8]>, guard: &Guard<'_>) -> usize {
    let Node::Inner(inner) = node else {
        return 1;
    };
    let first = start.map_or(0, |key| inner.search(key));
    let last = end.map_or(inner.children() - 1, |key| inner.search(key));
    if inner.header().level == 1 {
        return (last + 1).saturating_sub(first);
    }
    let below = |index| {
        let (start, end) = (start.filter(|_| index == first), end.filter(|_| index == last));
        leaves_below(inner.load_child(index, guard), start, end, guard)
    };
    (first..=last).map(below).sum()
}

impl TreeInner {
    fn position_of(&self, (start, end): &Bounds, key: &[u8]) -> Result<f64, TreeError> {
        let guard = self.memory.enter()?;
        let (start, end) = (key_of(start), key_of(end));
        let own = self.shard_index(key);
        let (mut before, mut total) = (0, 0);
        for (index, shard) in self.shards.iter().enumerate() {
            let leaves = leaves_below(shard.root(&guard), start, end, &guard);
            if index == own {
                let upto_key = leaves_below(shard.root(&guard), start, Some(key), &guard);
                before = total + upto_key.saturating_sub(1).min(leaves);
            }
            total += leaves;
        }
        Ok(before as f64 / total.max(1) as f64)
    }

    fn find_near(
        &self,
        bounds: &Bounds,
        position: f64,
        limit: usize,
        mut is_sought: impl FnMut(&[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>, TreeError> {
        if is_empty(&bounds.0, &bounds.1) {
            return Ok(None);
        }
        let guard = self.memory.enter()?;
        let leaves = Leaves::of(self, bounds, &guard)?;
        let Some(last) = leaves.len().checked_sub(1) else {
            return Ok(None);
        };
        // The conversion saturates, also for a number that is not a position.
        let middle = ((position * leaves.len() as f64).round() as usize).min(last);
        let mut arena = Bump::new();
        let mut searched = 0;
        for distance in 0..=last {
            let above = Some(middle + distance).filter(|index| *index <= last);
            let below = middle.checked_sub(distance).filter(|_| distance > 0);
            for index in [above, below].into_iter().flatten() {
                let Some(leaf) = leaves.leaf(index, &guard) else {
                    continue;
                };
                arena.reset();
                let records = self.records_of_range(leaf, bounds, &arena, &guard)?;
                searched += records.len() + 1;
                if let Some(record) = records.iter().find(|record| is_sought(record.key)) {
                    return Ok(Some(copied(record.key)?));
                }
            }
            if searched >= limit {
                break;
            }
        }
        Ok(None)
    }
}
