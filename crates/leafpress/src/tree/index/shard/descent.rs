//! The way from the root down to the leaf whose range holds a key.

use leafpress_base::reclaim::guard::Guard;

use crate::tree::index::shard::{Shard, untag};
use crate::tree::node::inner::Inner;
use crate::tree::node::leaf::Leaf;
use crate::tree::node::partition::ShardPartitioner;
use crate::tree::node::step::Step;
use leafpress_base::reclaim::load;

/// Where a search has got to.
#[derive(Clone, Copy)]
pub(crate) struct Descent<'g> {
    pub step: Step<'g>,
}

impl<'g> Descent<'g> {
    /// A way that leads nowhere.
    pub(crate) const END: Self = Self { step: Step::NOWHERE };

    /// Goes one step towards `key` and asks for the lines that the next one, or a read of the leaf, needs. False if at the leaf before.
    /// The guard is the one that the way was begun under.
    #[inline(always)]
    pub(crate) fn advance(&mut self, key: &[u8], partitioner: ShardPartitioner, guard: &'g Guard<'_>) -> bool {
        if !self.step.is_inner() {
            return false;
        }
        self.step = self.step.inner().step(key, partitioner, guard);
        if self.step.is_inner() {
            Inner::prefetch_step(&self.step);
        } else {
            Leaf::prefetch_step(&self.step);
        }
        true
    }
}

impl Shard {
    /// The leaf whose range holds `key`, and its parent.
    #[inline]
    pub(crate) fn descend<'g>(&self, key: &[u8], guard: &'g Guard<'_>) -> (Leaf<'g>, Option<Inner<'g>>) {
        let (step, parent) = self.path_to_leaf(key, guard);
        (step.leaf(), parent)
    }

    /// The step to the leaf whose range holds `key`, with what a read of it will need on its way from memory.
    #[inline(always)]
    pub(crate) fn descend_to_read<'g>(&self, key: &[u8], guard: &'g Guard<'_>) -> Step<'g> {
        if let Some(step) = self.interpolate_with_summary(key, guard) {
            return step;
        }
        let step = self.path_to_leaf(key, guard).0;
        Leaf::prefetch_step(&step);
        step
    }

    /// The step to the leaf whose range holds `key`, and the leaf's parent if the way led past it.
    #[inline]
    pub(crate) fn descend_to_write<'g>(&self, key: &[u8], guard: &'g Guard<'_>) -> (Step<'g>, Option<Inner<'g>>) {
        match self.interpolate(key, guard) {
            Some(step) => (step, None),
            None => self.path_to_leaf(key, guard),
        }
    }

    /// The step to the leaf whose range holds `key`, and the leaf's parent.
    #[inline]
    fn path_to_leaf<'g>(&self, key: &[u8], guard: &'g Guard<'_>) -> (Step<'g>, Option<Inner<'g>>) {
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
            Inner::prefetch_step(&step);
        }
    }

    /// A descent for a read: at the leaf, if the interpolation index leads there, with what the read will need on its way from memory, else at the root.
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

    /// A descent, still at the root.
    #[inline(always)]
    fn descent<'g>(&self, guard: &'g Guard<'_>) -> Descent<'g> {
        let (root, is_leaf) = untag(load(&self.root, guard));
        // SAFETY: the guard protects the root, whose tag says what it is.
        let step = unsafe {
            if is_leaf {
                Step::to_leaf(root, 0, None, 0)
            } else {
                Step::to_inner(root, 0, None)
            }
        };
        Descent { step }
    }
}
