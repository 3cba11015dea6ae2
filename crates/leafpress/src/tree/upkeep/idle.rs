//! Whether writers have calmed down, so that what landed is worth compacting.
//!
//! A leaf that is written to keeps a landing buffer, uncompressed and mostly half empty, until the buffer is full. While writes go on,
//! that is what makes them cheap. When they end, the buffers stay: memory for nothing, and a read whose key landed waits for one line of
//! memory more than others. So the background thread looks now and then, and compacts all leaves with a buffer once few writes came between
//! two looks: few beside the buffers there are, so that a tree that is written to slowly takes many looks to have as many again.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::tree::inner::TreeInner;
use crate::tree::thread_state::Count;
use crate::tree::upkeep::defragment::Sweep;
use leafpress_base::mem::node::Kind;

/// From one look to the next.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Landing buffers are worth a pass over all leaves when they hold one part in so many of what all nodes hold.
const HELD_FOR_LANDINGS: i64 = 64;
/// Writers are calm when no more of them came between two looks than one for so many landing buffers.
const LANDINGS_FOR_WRITE: u64 = 8;

/// What a look found.
pub(crate) enum Found {
    /// Too few landing buffers to care.
    Few,
    /// Writers at work.
    Writers,
    /// Landing buffers that nobody is filling.
    Left,
}

/// The next look, and what the last one saw.
#[derive(Default)]
pub(crate) struct IdleDetector {
    next: Option<Instant>,
    writes: u64,
}

impl IdleDetector {
    /// Time until the next look, which is planned if it was not.
    pub(crate) fn until_next(&mut self, core: &TreeInner) -> Duration {
        let next = match self.next {
            Some(next) => next,
            None => self.plan(core),
        };
        next.saturating_duration_since(Instant::now())
    }

    pub(crate) fn look(&mut self, core: &TreeInner) -> Found {
        let before = self.writes;
        let landings = core.landings_worth_a_pass();
        if landings == 0 {
            self.next = None;
            return Found::Few;
        }
        self.plan(core);
        if self.writes.saturating_sub(before) > landings / LANDINGS_FOR_WRITE {
            Found::Writers
        } else {
            Found::Left
        }
    }

    fn plan(&mut self, core: &TreeInner) -> Instant {
        self.writes = core.contexts.sum(Count::Puts) + core.contexts.sum(Count::Removes);
        let next = Instant::now() + LOOK_EVERY;
        self.next = Some(next);
        next
    }
}

impl TreeInner {
    /// How many landing buffers there are, or leaves that writers have left in short frames; none if they hold too little.
    fn landings_worth_a_pass(&self) -> u64 {
        let (landings, bytes) = self.memory.live_of(Kind::Landing);
        let landings = if bytes * HELD_FOR_LANDINGS < self.memory.live_bytes() {
            0
        } else {
            landings.max(0).cast_unsigned()
        };
        let (leaves, _) = self.memory.live_of(Kind::Leaf);
        let short = (self.background.short_frames.load(Ordering::Relaxed) as u64).min(leaves.max(0).cast_unsigned());
        if short * HELD_FOR_LANDINGS.cast_unsigned() < leaves.max(0).cast_unsigned() {
            return landings;
        }
        landings.max(short)
    }

    /// Compacts what landed, if it is worth a pass. What cannot be compacted stays as it is.
    pub(crate) fn compact_landed(&self) {
        // Another pass may be about to do it.
        drop(self.background.sweeping.lock());
        if self.landings_worth_a_pass() > 0 {
            let _ = self.sweep(Sweep::Landed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tree;

    #[test]
    fn writers_at_work_are_told_from_those_that_have_gone() {
        let tree = Tree::builder().leaf_bytes(1024).build().unwrap();
        let core = &*tree.core;
        // The tree's own thread must not compact what is looked at.
        let sweeping = core.background.sweeping.lock();
        let key = |n: u64| (n * 7919 % 2000).to_be_bytes();
        let put = |n: u64| tree.insert(&key(n), &[7; 40]).unwrap();
        let mut idle = IdleDetector::default();
        assert!(matches!(idle.look(core), Found::Few), "an empty tree");
        (0..2000).for_each(|n| assert!(put(n)));
        idle.plan(core);
        let landings = core.landings_worth_a_pass();
        assert!(landings >= 16, "{landings} landing buffers");
        assert!(matches!(idle.look(core), Found::Left));
        (0..landings / LANDINGS_FOR_WRITE / 2).for_each(|n| assert!(!put(n)));
        assert!(matches!(idle.look(core), Found::Left), "a few writes");
        (0..landings).for_each(|n| assert!(!put(n)));
        assert!(matches!(idle.look(core), Found::Writers));
        assert!(matches!(idle.look(core), Found::Left), "none since");
        drop(sweeping);
        tree.settle().unwrap();
        assert!(matches!(idle.look(core), Found::Few), "compacted");
    }
}
