//! The memory budget of a cache.
//!
//! The cache's memory is more than the nodes of its tree: holes between them, resident but unused pages of the heap,
//! dictionaries, per-thread state and the ghost queue. Measuring it asks the system, which takes time, so it is not
//! done at every write. Between measurements only nodes are counted: they may grow by the room that was left at the
//! last measurement. Nodes that replace others may still be placed on fresh pages, so the memory held can grow by all
//! that is written: a writer that finds a measurement overdue waits for the measuring thread.

use std::sync::atomic::{AtomicU64, Ordering};

use leafpress_base::sync::Mutex;

/// Memory is measured again after writes of this fraction (1/64) of the budget...
const MEASURE_DIVISOR: u64 = 64;
/// ...but at least these bytes.
const MIN_MEASURED_BYTES: u64 = 256 << 10;
/// At this multiple of the interval a writer waits for a measurement that is under way.
const OVERDUE_FACTOR: u64 = 2;
/// Hysteresis: free pages are returned to the system once the bytes held pass 63/64 of the budget, since one
/// measurement does not see what is written until the next...
const KEPT_FREE_DIVISOR: u64 = 64;
/// ...and the limit of the nodes is then set so that 23/24 of the budget is held. Finding free pages takes longer than
/// measuring, and the next nodes touch some of them again: held bytes rise from the lower watermark to the upper one
/// before it is done again.
const MADE_FREE_DIVISOR: u64 = 24;
/// Between the watermarks, free pages are returned once the bytes held besides nodes have grown by this fraction (1/64)
/// of the budget since that was last done: holes would take the room of records.
const HOLES_DIVISOR: u64 = 64;
/// The upkeep evicts once nodes are within this fraction (1/512) of the budget of their limit, until they are twice as
/// far below it...
const RESERVE_DIVISOR: u64 = 512;
/// ...but at least these bytes, lest it be woken for every leaf.
const MIN_RESERVE_BYTES: u64 = 16 << 10;
/// Nodes may always hold this fraction (1/8) of the budget, lest a cache that is charged for memory of others keeps
/// nothing.
const MIN_NODES_DIVISOR: u64 = 8;

/// Result of a measurement.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    /// All memory that the cache holds.
    pub held_bytes: u64,
    /// The part of it held by the tree's nodes.
    pub node_bytes: u64,
}

/// Whether a measurement is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Not due yet.
    Later,
    /// Due, unless another thread is measuring.
    Now,
    /// Overdue: nothing else is written before this or another thread has measured.
    Over,
    /// Measured by this thread in any case.
    Always,
}

/// The budget and the limits derived from it.
pub(super) struct Budget {
    memory_bytes: AtomicU64,
    /// Limit of the bytes of nodes.
    node_limit_bytes: AtomicU64,
    /// Bytes held besides nodes when free pages were last returned.
    left_bytes: AtomicU64,
    /// Bytes written since the last measurement.
    written_bytes: AtomicU64,
    /// Highest measured value.
    peak_bytes: AtomicU64,
    measuring: Mutex<()>,
}

impl Budget {
    pub(super) fn new(memory_bytes: u64) -> Self {
        Self {
            memory_bytes: AtomicU64::new(memory_bytes),
            node_limit_bytes: AtomicU64::new(memory_bytes / 2),
            left_bytes: AtomicU64::new(0),
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

    /// Returns the bytes of nodes above which the upkeep begins to evict.
    pub(super) fn upper_watermark_bytes(&self) -> u64 {
        self.node_limit_bytes().saturating_sub(self.reserve_bytes())
    }

    /// Returns the bytes of nodes at which the upkeep ends its eviction.
    pub(super) fn lower_watermark_bytes(&self) -> u64 {
        self.node_limit_bytes().saturating_sub(2 * self.reserve_bytes())
    }

    fn reserve_bytes(&self) -> u64 {
        (self.memory_bytes() / RESERVE_DIVISOR).max(MIN_RESERVE_BYTES)
    }

    pub(super) fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    /// Counts a write; returns whether a measurement is due.
    pub(super) fn note_written(&self, bytes: u64) -> Due {
        self.due(self.written_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes)
    }

    fn due(&self, written: u64) -> Due {
        let due = (self.memory_bytes() / MEASURE_DIVISOR).max(MIN_MEASURED_BYTES);
        if written < due {
            Due::Later
        } else if written < due * OVERDUE_FACTOR {
            Due::Now
        } else {
            Due::Over
        }
    }

    /// Returns true if something was written since the last measurement.
    pub(super) fn is_written(&self) -> bool {
        self.written_bytes.load(Ordering::Relaxed) > 0
    }

    /// Measures with `measure` if it is due, and sets the limit of the nodes. If too much is held, or holes have grown,
    /// calls `trim` to return memory to the system and measures once more.
    pub(super) fn measure(&self, due: Due, measure: impl Fn() -> Measured, trim: impl FnOnce()) {
        let guard = match due {
            Due::Later => None,
            Due::Now => self.measuring.try_lock(),
            Due::Over | Due::Always => Some(self.measuring.lock()),
        };
        let Some(_guard) = guard else { return };
        if due == Due::Over && self.due(self.written_bytes.load(Ordering::Relaxed)) != Due::Over {
            // Another thread measured while this one waited.
            return;
        }
        self.written_bytes.store(0, Ordering::Relaxed);
        let memory = self.memory_bytes();
        let (most, wanted) = (memory - memory / KEPT_FREE_DIVISOR, memory - memory / MADE_FREE_DIVISOR);
        let mut measured = measure();
        self.peak_bytes.fetch_max(measured.held_bytes, Ordering::Relaxed);
        let besides = |measured: Measured| measured.held_bytes.saturating_sub(measured.node_bytes);
        let has_holes = measured.held_bytes > wanted
            && besides(measured) > self.left_bytes.load(Ordering::Relaxed) + memory / HOLES_DIVISOR;
        let is_too_much = measured.held_bytes > most;
        if is_too_much || has_holes {
            trim();
            measured = measure();
            self.left_bytes.store(besides(measured), Ordering::Relaxed);
        }
        let within = |bound: u64| (measured.node_bytes + bound).saturating_sub(measured.held_bytes);
        let limit = if is_too_much || measured.held_bytes <= wanted {
            within(wanted)
        } else {
            // Between the watermarks the limit is not raised.
            self.node_limit_bytes().min(within(most))
        };
        self.node_limit_bytes
            .store(limit.max(memory / MIN_NODES_DIVISOR), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

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
        // Held bytes may rise between the watermarks, if it is not holes that grow...
        let trims = Cell::new(0);
        budget.measure(Due::Always, measured(93, 81), || trims.set(trims.get() + 1));
        assert_eq!((trims.get(), budget.node_limit_bytes()), (1, 82 << 20));
        budget.measure(Due::Always, measured(94, 81), || panic!("nothing to trim yet"));
        assert_eq!(budget.node_limit_bytes(), (81 << 20) + (512 << 10));
        // ...and exceed the upper one then: nodes have to give up what is above the lower one.
        budget.measure(Due::Always, measured(100, 80), || ());
        assert_eq!(budget.node_limit_bytes(), 72 << 20);
        budget.measure(Due::Always, measured(1024, 1), || ());
        assert_eq!(budget.node_limit_bytes(), 12 << 20);
        assert_eq!(budget.peak_bytes(), 1 << 30);
    }

    #[test]
    fn measures_once_per_number_of_written_bytes() {
        let budget = Budget::new(64 << 20);
        assert_eq!(budget.note_written(600 << 10), Due::Later);
        assert_eq!(budget.note_written(600 << 10), Due::Now);
        assert_eq!(budget.note_written(900 << 10), Due::Over);
        budget.measure(Due::Always, Measured::default, || ());
        assert_eq!(budget.note_written(600 << 10), Due::Later);
    }
}
