//! The way from the root down to the leaf whose range holds a key.

use crate::reclaim::guard::Guard;

use crate::reclaim::load;
use crate::tree::index::shard::{Shard, untag};
use crate::tree::node::inner::Inner;
use crate::tree::node::leaf::Leaf;
use crate::tree::node::partition::ShardPartitioner;
use crate::tree::node::step::Step;

/// Where a search has got to.
#[derive(Clone, Copy)]
pub(crate) struct Descent {
    pub step: Step,
    at_leaf: bool,
}

impl Descent {
    /// A way that leads nowhere.
    pub(crate) const END: Self = Self {
        step: Step {
            child: std::ptr::null_mut(),
            hint: 0,
            share: None,
            records: 0,
        },
        at_leaf: true,
    };

    /// Goes one step towards `key` and asks for the lines that the next one, or a read of the leaf, needs. False if at the leaf before.
    /// The guard is the one that the way was begun under.
    #[inline(always)]
    pub(crate) fn advance(&mut self, key: &[u8], partitioner: ShardPartitioner, guard: &Guard<'_>) -> bool {
        if self.at_leaf {
            return false;
        }
        // SAFETY: the guard protects every node on the way, and the levels say what each is.
        let inner = unsafe { Inner::from_ptr(self.step.child) };
        self.step = inner.step(key, partitioner, guard);
        self.at_leaf = inner.header().level == 1;
        if self.at_leaf {
            Leaf::prefetch_step(&self.step);
        } else {
            Inner::prefetch_step(&self.step);
        }
        true
    }
}

impl Shard {
    /// The leaf whose range holds `key`, and its parent.
    #[inline]
    pub(crate) fn descend(&self, key: &[u8], guard: &Guard<'_>) -> (Leaf, Option<Inner>) {
        let (step, parent) = self.way_down(key, guard);
        // SAFETY: the guard protects the leaf.
        (unsafe { Leaf::from_ptr(step.child) }, parent)
    }

    /// The step to the leaf whose range holds `key`, with what a read of it will need on its way from memory.
    #[inline]
    pub(crate) fn descend_to_read(&self, key: &[u8], guard: &Guard<'_>) -> Step {
        if let Some(step) = self.interpolate_with_summary(key, guard) {
            return step;
        }
        let step = self.way_down(key, guard).0;
        Leaf::prefetch_step(&step);
        step
    }

    /// The step to the leaf whose range holds `key`, and the leaf's parent if the way led past it.
    #[inline]
    pub(crate) fn descend_to_write(&self, key: &[u8], guard: &Guard<'_>) -> (Step, Option<Inner>) {
        match self.interpolate(key, guard) {
            Some(step) => (step, None),
            None => self.way_down(key, guard),
        }
    }

    /// The step to the leaf whose range holds `key`, and the leaf's parent.
    #[inline]
    fn way_down(&self, key: &[u8], guard: &Guard<'_>) -> (Step, Option<Inner>) {
        let Descent { mut step, at_leaf } = self.descent(guard);
        if at_leaf {
            return (step, None);
        }
        loop {
            // SAFETY: the guard protects every node on the way, and the levels say what each is.
            let inner = unsafe { Inner::from_ptr(step.child) };
            step = inner.step(key, self.partitioner, guard);
            if inner.header().level == 1 {
                return (step, Some(inner));
            }
            Inner::prefetch_step(&step);
        }
    }

    /// A descent for a read: at the leaf, if a interpolated entry leads there, with what the read will need on its way from memory, else at the root.
    #[inline(always)]
    pub(crate) fn descent_to_read(&self, key: &[u8], guard: &Guard<'_>) -> Descent {
        match self.interpolate(key, guard) {
            Some(step) => {
                Leaf::prefetch_step(&step);
                Descent { step, at_leaf: true }
            }
            None => self.descent(guard),
        }
    }

    /// A descent, still at the root.
    #[inline(always)]
    fn descent(&self, guard: &Guard<'_>) -> Descent {
        let (child, at_leaf) = untag(load(&self.root, guard));
        let step = Step {
            child,
            hint: 0,
            share: None,
            records: 0,
        };
        Descent { step, at_leaf }
    }
}
