//! The bound of what a cache holds.
//!
//! What the process has for the cache is more than the nodes of its tree: holes between them, pages of the heap that are resident and not
//! used, dictionaries, what threads keep, the sketch. That is asked of the system, which takes time, and so is not done at every write. In
//! between, nodes alone are counted: they may grow by the room that was left when all was last measured. Nodes that take the place of others
//! may still lie on fresh pages, so what is held can grow by all that is written: a writer does not go on when much was written since, and
//! waits for whoever measures.

use std::sync::atomic::{AtomicU64, Ordering};

use leafpress_base::sync::Mutex;

/// All is measured again after writes of one part in so many of the budget...
const PART_MEASURED: u64 = 64;
/// ...but at least these bytes.
const MIN_MEASURED_BYTES: u64 = 256 << 10;
/// After so many times as many a writer waits for another thread that measures.
const OVERDUE_FACTOR: u64 = 2;
/// Free pages go back to the system when less than one part in so many of the budget is left: what one measurement does not see until the
/// next...
const PART_KEPT_FREE: u64 = 64;
/// ...and nodes are left so many bytes then that one part in so many is free. To find free pages takes longer than to measure, and the next
/// nodes touch some of them again: what is held goes up from the one bound to the other before it is done again.
const PART_MADE_FREE: u64 = 24;
/// Nodes may always hold one part in so many of the budget, lest a cache that others' memory is counted for keeps nothing.
const PART_LEAST: u64 = 8;

/// What was measured.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    /// Everything the cache holds.
    pub held_bytes: u64,
    /// Of that, the tree's nodes.
    pub node_bytes: u64,
}

/// Whether all is to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Not yet.
    Later,
    /// Now, unless another thread is at it.
    Now,
    /// Before anything else is written, by this thread or another.
    Over,
    /// By this thread, whoever else did.
    Always,
}

/// The bound, and what follows from it for now.
pub(super) struct Budget {
    memory_bytes: AtomicU64,
    /// What nodes may hold.
    node_limit_bytes: AtomicU64,
    /// Bytes written since all was measured.
    written_bytes: AtomicU64,
    /// The most that was ever measured.
    peak_bytes: AtomicU64,
    measuring: Mutex<()>,
}

impl Budget {
    pub(super) fn new(memory_bytes: u64) -> Self {
        Self {
            memory_bytes: AtomicU64::new(memory_bytes),
            node_limit_bytes: AtomicU64::new(memory_bytes / 2),
            written_bytes: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
            measuring: Mutex::new(()),
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn set_memory_bytes(&self, bytes: u64) {
        self.memory_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn node_limit_bytes(&self) -> u64 {
        self.node_limit_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    /// Notes a write; whether all is to be measured now.
    pub(super) fn note_written(&self, bytes: u64) -> Due {
        self.due(self.written_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes)
    }

    fn due(&self, written: u64) -> Due {
        let due = (self.memory_bytes() / PART_MEASURED).max(MIN_MEASURED_BYTES);
        if written < due {
            Due::Later
        } else if written < due * OVERDUE_FACTOR {
            Due::Now
        } else {
            Due::Over
        }
    }

    /// Whether something was written since all was measured.
    pub(super) fn is_written(&self) -> bool {
        self.written_bytes.load(Ordering::Relaxed) > 0
    }

    /// Measures when it is due, by `measure`, and sets what nodes may hold; where too much is held, has `trim` give memory back and
    /// measures once more.
    pub(super) fn measure(&self, due: Due, measure: impl Fn() -> Measured, trim: impl FnOnce()) {
        let guard = match due {
            Due::Later => None,
            Due::Now => self.measuring.try_lock(),
            Due::Over | Due::Always => Some(self.measuring.lock()),
        };
        let Some(_guard) = guard else { return };
        if due == Due::Over && self.due(self.written_bytes.load(Ordering::Relaxed)) != Due::Over {
            // It was done while this thread waited.
            return;
        }
        self.written_bytes.store(0, Ordering::Relaxed);
        let memory = self.memory_bytes();
        let (most, wanted) = (memory - memory / PART_KEPT_FREE, memory - memory / PART_MADE_FREE);
        let mut measured = measure();
        self.peak_bytes.fetch_max(measured.held_bytes, Ordering::Relaxed);
        let is_too_much = measured.held_bytes > most;
        if is_too_much {
            trim();
            measured = measure();
        }
        let within = |bound: u64| (measured.node_bytes + bound).saturating_sub(measured.held_bytes);
        let limit = if is_too_much || measured.held_bytes <= wanted {
            within(wanted)
        } else {
            // Between the bounds: what nodes were allowed stays.
            self.node_limit_bytes().min(within(most))
        };
        self.node_limit_bytes
            .store(limit.max(memory / PART_LEAST), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_may_grow_by_the_room_that_is_left() {
        let budget = Budget::new(96 << 20);
        let measured = |held_mib: u64, node_mib: u64| {
            move || Measured {
                held_bytes: held_mib << 20,
                node_bytes: node_mib << 20,
            }
        };
        budget.measure(Due::Always, measured(60, 50), || panic!("nothing to trim"));
        assert_eq!(budget.node_limit_bytes(), 82 << 20);
        // What is held may go up between the bounds...
        budget.measure(Due::Always, measured(93, 81), || panic!("nothing to trim yet"));
        assert_eq!(budget.node_limit_bytes(), 82 << 20);
        budget.measure(Due::Always, measured(94, 81), || panic!("nothing to trim yet"));
        assert_eq!(budget.node_limit_bytes(), (81 << 20) + (512 << 10));
        // ...and is too much then: nodes have to give up what is above the lower one.
        budget.measure(Due::Always, measured(100, 80), || ());
        assert_eq!(budget.node_limit_bytes(), 72 << 20);
        budget.measure(Due::Always, measured(1024, 1), || ());
        assert_eq!(budget.node_limit_bytes(), 12 << 20);
        assert_eq!(budget.peak_bytes(), 1 << 30);
    }

    #[test]
    fn it_is_measured_every_so_many_bytes() {
        let budget = Budget::new(64 << 20);
        assert_eq!(budget.note_written(600 << 10), Due::Later);
        assert_eq!(budget.note_written(600 << 10), Due::Now);
        assert_eq!(budget.note_written(900 << 10), Due::Over);
        budget.measure(Due::Always, Measured::default, || ());
        assert_eq!(budget.note_written(600 << 10), Due::Later);
    }
}
