//! Maintenance of a shard's interpolation index.

use std::ops::Range;
use std::sync::atomic::Ordering;

use leafpress_base::reclaim::guard::Guard;

use crate::tree::error::TreeError;
use crate::tree::index::interpolation::{Bounds, InterpolationIndex, Leaves};
use crate::tree::index::shard::{NodeHeap, Shard, Splice};
use crate::tree::node::descent_step::DescentStep;
use crate::tree::node::inner::{InnerNode, Node};
use crate::tree::node::leaf::Leaf;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, collected, copied};
use leafpress_base::reclaim::load;
use leafpress_base::sync::MutexGuard;

/// Minimum number of inner nodes above leaves for a table: a single one stays in the nearest caches. Trees are small
/// under model checkers.
const MIN_PARENTS: usize = if cfg!(any(shuttle, miri)) { 1 } else { 2 };

impl Shard {
    #[inline(always)]
    fn interpolation(&self, guard: &Guard<'_>) -> Option<InterpolationIndex> {
        // SAFETY: the guard protects the table, which was loaded from the shard.
        unsafe { InterpolationIndex::from_ptr(load(&self.interpolation, guard)) }
    }

    /// Returns the step to the leaf whose range holds `key`, if the table has it.
    #[inline(always)]
    pub(crate) fn interpolate<'g>(&self, key: &[u8], guard: &'g Guard<'_>) -> Option<DescentStep<'g>> {
        self.interpolation(guard)?.find::<false>(key, self.partitioner, guard)
    }

    /// Like [`Shard::interpolate`], for a read that follows at once: prefetches what it needs of the leaf, if possible
    /// before the table's line arrives.
    #[inline(always)]
    pub(crate) fn interpolate_with_summary<'g>(&self, key: &[u8], guard: &'g Guard<'_>) -> Option<DescentStep<'g>> {
        self.interpolation(guard)?.find::<true>(key, self.partitioner, guard)
    }

    /// Prefetches the line that [`Shard::interpolate`] will read.
    #[inline(always)]
    pub(crate) fn prefetch_interpolation(&self, key: &[u8], guard: &Guard<'_>) {
        if let Some(table) = self.interpolation(guard) {
            table.prefetch(key);
        }
    }

    /// Calls `store` to put the new leaf into its parent, and makes the table lead to the new leaf. The caller holds
    /// the parent's lock, and `key` is in the leaf's range.
    pub(crate) fn exchange(&self, leaf: Leaf<'_>, key: &[u8], guard: &Guard<'_>, store: impl FnOnce() -> *mut u8) {
        // Checked under the lock: a table built later takes the child from the parent.
        let Some(table) = self.interpolation(guard) else {
            store();
            return;
        };
        let buckets = table.buckets_of(leaf.as_ptr(), key);
        table.store(buckets.clone(), std::ptr::null_mut());
        table.store(buckets, store());
    }

    /// Clears the buckets of the leaves whose ranges the change affects. The caller holds the lock of the path's last
    /// node.
    pub(crate) fn forget_replaced(
        &self,
        path: &[(InnerNode<'_>, usize)],
        change: &Splice,
        guard: &Guard<'_>,
    ) -> Result<(), OutOfMemory> {
        let Some((&(parent, _), above)) = path.split_last() else {
            return Ok(());
        };
        let mut gone = change.from..change.to;
        if change.children.is_empty() && !gone.is_empty() {
            // The neighbour that takes over the range.
            if gone.start > 0 {
                gone.start -= 1;
            } else {
                gone.end = (gone.end + 1).min(parent.children());
            }
        }
        self.forget_children(parent, above, gone, guard)
    }

    /// Clears the buckets of these children of a node above leaves, to which `above` is the path. The caller holds the
    /// node's lock.
    pub(crate) fn forget_children(
        &self,
        parent: InnerNode<'_>,
        above: &[(InnerNode<'_>, usize)],
        children: Range<usize>,
        guard: &Guard<'_>,
    ) -> Result<(), OutOfMemory> {
        let Some(table) = self.interpolation(guard) else {
            return Ok(());
        };
        for index in children {
            // The start of the leaf's range. A shard's first leaf is in no table.
            let below = match index.checked_sub(1) {
                Some(below) => Some((parent, below)),
                None => above
                    .iter()
                    .rev()
                    .find(|(_, index)| *index > 0)
                    .map(|&(inner, index)| (inner, index - 1)),
            };
            if let Some((inner, below)) = below {
                let buckets = table.buckets_of(parent.child_locked(index), &inner.separator(below)?);
                table.store(buckets, std::ptr::null_mut());
            }
        }
        Ok(())
    }

    /// Returns whether `is_right` holds for every leaf in the table.
    pub(crate) fn interpolation_leads_to(&self, guard: &Guard<'_>, is_right: impl Fn(*mut u8) -> bool) -> bool {
        self.interpolation(guard)
            .is_none_or(|table| table.leaves().all(is_right))
    }

    /// Replaces the table by another, or by none.
    pub(crate) fn put_interpolation(
        &self,
        table: Option<InterpolationIndex>,
        guard: &Guard<'_>,
        _structure: &MutexGuard<'_, ()>,
    ) {
        let new = table.map_or(std::ptr::null_mut(), |table| table.node().as_ptr());
        let old = self.interpolation.swap(new, Ordering::AcqRel);
        // SAFETY: the shard no longer leads to the old table.
        unsafe {
            if let Some(old) = InterpolationIndex::from_ptr(old) {
                NodeHeap::retire(old.node(), guard);
            }
        }
    }

    /// Rebuilds the table, where there are enough inner nodes. The shard is one of `shards`.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`]; the old table stays.
    pub(crate) fn renew_interpolation(
        &self,
        shards: usize,
        memory: &NodeHeap,
        guard: &Guard<'_>,
    ) -> Result<(), TreeError> {
        let structure = self.lock_structure();
        let mut parents = Vec::new();
        // The structure lock prevents changes of inner nodes.
        if let Node::Inner(root) = self.root(guard) {
            collect_parents(root, None, guard, &mut parents)?;
        }
        let made = match parents.as_slice() {
            few if few.len() < MIN_PARENTS => None,
            // SAFETY: the tree's memory outlives its nodes.
            parents => unsafe { InterpolationIndex::new(&bounds(parents)?, sample(parents, guard)?, shards, memory)? },
        };
        self.put_interpolation(made.as_ref().map(|(table, _)| *table), guard, &structure);
        if let Some((table, leaves)) = made {
            fill(table, &leaves, &parents);
        }
        Ok(())
    }
}

/// An inner node above leaves, with the separator before it.
struct Parent<'g> {
    inner: InnerNode<'g>,
    before: Option<Vec<u8>>,
}

/// Returns all inner nodes above leaves, in order. The caller holds the structure lock.
fn collect_parents<'g>(
    inner: InnerNode<'g>,
    mut before: Option<Vec<u8>>,
    guard: &'g Guard<'_>,
    parents: &mut Vec<Parent<'g>>,
) -> Result<(), OutOfMemory> {
    if inner.header().level == 1 {
        return parents.try_push(Parent { inner, before });
    }
    for index in 0..inner.children() {
        if let Node::Inner(child) = inner.load_child(index, guard) {
            collect_parents(child, before, guard, parents)?;
        }
        before = (index + 1 < inner.children())
            .then(|| inner.separator(index))
            .transpose()?;
    }
    Ok(())
}

/// Returns the separators between the parents' children.
fn bounds(parents: &[Parent<'_>]) -> Result<Bounds, OutOfMemory> {
    let separators = || {
        parents.iter().flat_map(|parent| {
            let within = (0..parent.inner.children() - 1).map(|index| parent.inner.separator(index));
            parent.before.iter().map(|before| copied(before)).chain(within)
        })
    };
    let first = separators().next().transpose()?.unwrap_or_default();
    let last = separators().next_back().transpose()?.unwrap_or_default();
    let mut bounds = Bounds::new(&first, &last)?;
    let mut separator = Vec::new();
    for parent in parents {
        if let Some(before) = &parent.before {
            bounds.push(before)?;
        }
        for index in 0..parent.inner.children() - 1 {
            parent.inner.separator_into(index, &mut separator)?;
            bounds.push(&separator)?;
        }
    }
    Ok(bounds)
}

/// Samples the parents' children for a table: reading every leaf's header would hold the structure lock for a cache
/// miss each.
fn sample(parents: &[Parent<'_>], guard: &Guard<'_>) -> Result<Leaves, OutOfMemory> {
    const ONE_IN: usize = 16;
    let children = parents.iter().flat_map(|parent| parent.inner.load_children(guard));
    let leaves = children.step_by(ONE_IN).filter_map(|child| match child {
        Node::Leaf(leaf) => Some(leaf),
        Node::Inner(_) => None,
    });
    let leaves: Vec<Leaf> = collected(leaves)?;
    let requested_bytes = leaves.iter().map(|leaf| leaf.header().node.requested_bytes());
    let one = leaves[leaves.len() / 2];
    Ok(Leaves {
        bytes: requested_bytes.sum::<usize>() * ONE_IN,
        near: one.as_ptr(),
        hint: one.hint(),
        records: one.count() as u16,
    })
}

/// Stores each bucket's leaf; the first one is the second child of all. The table is published already: a leaf that is
/// replaced from now on, under its parent's lock, is replaced in it.
fn fill(table: InterpolationIndex, leaves: &[u32], parents: &[Parent<'_>]) {
    let (mut bucket, mut first) = (0, 0);
    for Parent { inner, .. } in parents {
        let behind = first + inner.children();
        let latch = inner.latch_word().lock.lock();
        while let Some(&leaf) = leaves.get(bucket)
            && (leaf as usize) + 1 < behind
        {
            table.store(bucket..bucket + 1, inner.child_with_hint(leaf as usize + 1 - first));
            bucket += 1;
        }
        drop(latch);
        first = behind;
    }
}
