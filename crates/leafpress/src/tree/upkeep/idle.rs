//! Detection of idle writers, after which compacting landing buffers pays off.
//!
//! A leaf that is written to keeps a landing buffer, uncompressed and on average half empty, until the buffer is full.
//! While writes continue, the buffers make them cheap. When writes end, the buffers waste memory, and a read whose key
//! is in one waits for an additional cache miss. So the upkeep checks periodically, and compacts all leaves with a
//! buffer once few writes happened between two checks: few compared to the number of buffers, so that in a tree with
//! slow writes it takes many checks until the same number of buffers exists again.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::tree::inner::TreeInner;
use crate::tree::thread_state::Count;
use crate::tree::upkeep::defragment::PassKind;
use leafpress_base::mem::node::Kind;

/// Interval of the checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Landing buffers are worth a pass over all leaves when they hold at least `1 / HELD_FOR_LANDINGS` of all nodes'
/// bytes.
const HELD_FOR_LANDINGS: i64 = 64;
/// Writers count as idle when there was at most one write per this number of landing buffers between two checks.
const LANDINGS_FOR_WRITE: u64 = 8;

/// The result of a check.
pub(crate) enum IdleCheck {
    /// Too few landing buffers for a pass.
    Few,
    /// Active writers.
    Writers,
    /// Landing buffers that no writer is filling.
    Left,
}

/// The time of the next check, and the state at the last one.
#[derive(Default)]
pub(crate) struct IdleDetector {
    next: Option<Instant>,
    writes: u64,
}

impl IdleDetector {
    /// Returns the time of the next check, which is scheduled if necessary.
    pub(crate) fn next(&mut self, core: &TreeInner) -> Instant {
        self.next.unwrap_or_else(|| self.plan(core))
    }

    pub(crate) fn look(&mut self, core: &TreeInner) -> IdleCheck {
        let before = self.writes;
        let landings = core.landings_worth_a_pass();
        if landings == 0 {
            self.next = None;
            return IdleCheck::Few;
        }
        self.plan(core);
        if self.writes.saturating_sub(before) > landings / LANDINGS_FOR_WRITE {
            IdleCheck::Writers
        } else {
            IdleCheck::Left
        }
    }

    fn plan(&mut self, core: &TreeInner) -> Instant {
        self.writes = core.contexts.sum(Count::Puts) + core.contexts.sum(Count::Removes);
        let next = Instant::now() + CHECK_INTERVAL;
        self.next = Some(next);
        next
    }
}

impl TreeInner {
    /// Returns the number of landing buffers, or of leaves that writers have left with short frames; 0 if they hold too
    /// little.
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

    /// Compacts landing buffers, if they are worth a pass. Leaves that cannot be compacted stay unchanged.
    pub(crate) fn compact_landed(&self) {
        // Waits for a running pass, which may do it.
        drop(self.background.sweeping.lock());
        if self.landings_worth_a_pass() > 0 {
            let _ = self.sweep(PassKind::Landed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tree;

    #[test]
    fn active_writers_are_distinguished_from_ended_ones() {
        let tree = Tree::builder().leaf_bytes(1024).build().unwrap();
        let core = &*tree.core;
        // Keeps the tree's own upkeep from compacting the leaves under test.
        let sweeping = core.background.sweeping.lock();
        let key = |n: u64| (n * 7919 % 2000).to_be_bytes();
        let put = |n: u64| tree.insert(&key(n), &[7; 40]).unwrap();
        let mut idle = IdleDetector::default();
        assert!(matches!(idle.look(core), IdleCheck::Few), "an empty tree");
        (0..2000).for_each(|n| assert!(put(n)));
        idle.plan(core);
        let landings = core.landings_worth_a_pass();
        assert!(landings >= 16, "{landings} landing buffers");
        assert!(matches!(idle.look(core), IdleCheck::Left));
        (0..landings / LANDINGS_FOR_WRITE / 2).for_each(|n| assert!(!put(n)));
        assert!(matches!(idle.look(core), IdleCheck::Left), "a few writes");
        (0..landings).for_each(|n| assert!(!put(n)));
        assert!(matches!(idle.look(core), IdleCheck::Writers));
        assert!(matches!(idle.look(core), IdleCheck::Left), "none since");
        drop(sweeping);
        tree.settle().unwrap();
        assert!(matches!(idle.look(core), IdleCheck::Few), "compacted");
    }
}
