//! The descent from the root to the leaf whose range holds a key.

use leafpress_base::reclaim::guard::Guard;

use crate::tree::index::shard::{Shard, untag};
use crate::tree::node::descent_step::DescentStep;
use crate::tree::node::inner::InnerNode;
use crate::tree::node::leaf::Leaf;
use crate::tree::node::partition::ShardPartitioner;
use leafpress_base::reclaim::load;

/// The state of a search.
#[derive(Clone, Copy)]
pub(crate) struct Descent<'g> {
    pub step: DescentStep<'g>,
}

impl<'g> Descent<'g> {
    /// A finished search.
    pub(crate) const END: Self = Self {
        step: DescentStep::NOWHERE,
    };

    /// Goes one step towards `key`, and prefetches the lines that the next step, or a read of the leaf, needs. Returns
    /// false if it was at the leaf already. The guard is the one under which the descent began.
    #[inline(always)]
    pub(crate) fn advance(&mut self, key: &[u8], partitioner: ShardPartitioner, guard: &'g Guard<'_>) -> bool {
        if !self.step.is_inner() {
            return false;
        }
        self.step = self.step.inner().step(key, partitioner, guard);
        if self.step.is_inner() {
            InnerNode::prefetch_step(&self.step);
        } else {
            Leaf::prefetch_step(&self.step);
        }
        true
    }
}

impl Shard {
    /// Returns the leaf whose range holds `key`, and its parent.
    #[inline]
    pub(crate) fn descend<'g>(&self, key: &[u8], guard: &'g Guard<'_>) -> (Leaf<'g>, Option<InnerNode<'g>>) {
        let (step, parent) = self.path_to_leaf(key, guard);
        (step.leaf(), parent)
    }

    /// Returns the step to the leaf whose range holds `key`, and prefetches what a read of it needs.
    #[inline(always)]
    pub(crate) fn descend_to_read<'g>(&self, key: &[u8], guard: &'g Guard<'_>) -> DescentStep<'g> {
        if let Some(step) = self.interpolate_with_summary(key, guard) {
            return step;
        }
        let step = self.path_to_leaf(key, guard).0;
        Leaf::prefetch_step(&step);
        step
    }

    /// Returns the step to the leaf whose range holds `key`, and the leaf's parent if the search passed it.
    #[inline]
    pub(crate) fn descend_to_write<'g>(
        &self,
        key: &[u8],
        guard: &'g Guard<'_>,
    ) -> (DescentStep<'g>, Option<InnerNode<'g>>) {
        match self.interpolate(key, guard) {
            Some(step) => (step, None),
            None => self.path_to_leaf(key, guard),
        }
    }

    /// Returns the step to the leaf whose range holds `key`, and the leaf's parent.
    #[inline]
    fn path_to_leaf<'g>(&self, key: &[u8], guard: &'g Guard<'_>) -> (DescentStep<'g>, Option<InnerNode<'g>>) {
        let Descent { mut step } = self.descent(guard);
        if !step.is_inner() {
            return (step, None);
        }
        loop {
            let inner = step.inner();
            step = inner.step(key, self.partitioner, guard);
            if !step.is_inner() {
                return (step, Some(inner));
            }
            InnerNode::prefetch_step(&step);
        }
    }

    /// Begins a descent for a read: at the leaf, with its lines prefetched, if the interpolation index has it, else at
    /// the root.
    #[inline(always)]
    pub(crate) fn descent_to_read<'g>(&self, key: &[u8], guard: &'g Guard<'_>) -> Descent<'g> {
        match self.interpolate(key, guard) {
            Some(step) => {
                Leaf::prefetch_step(&step);
                Descent { step }
            }
            None => self.descent(guard),
        }
    }

    /// Begins a descent at the root.
    #[inline(always)]
    fn descent<'g>(&self, guard: &'g Guard<'_>) -> Descent<'g> {
        let (root, is_leaf) = untag(load(&self.root, guard));
        // SAFETY: the guard protects the root, whose tag distinguishes leaves from inner nodes.
        let step = unsafe {
            if is_leaf {
                DescentStep::to_leaf(root, 0, None, 0)
            } else {
                DescentStep::to_inner(root, 0, None)
            }
        };
        Descent { step }
    }
}
