//! Failures on request, for tests. A module without the feature `testing` has none.

#[cfg(any(test, feature = "testing"))]
pub use on_request::{fail, point};

/// What fails.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// The reading of a record in a walk over a map, or of a string.
    Read,
    /// A change of a record, or of the records of a part of a range.
    Write,
}

/// Returns an error if this step is to fail.
#[cfg(not(any(test, feature = "testing")))]
#[inline]
#[allow(clippy::unnecessary_wraps, reason = "it fails on request, in tests")]
pub const fn point(_: Step) -> Result<(), leafpress::TreeError> {
    Ok(())
}

#[cfg(any(test, feature = "testing"))]
mod on_request {
    use std::cell::Cell;

    use leafpress::TreeError;

    use super::Step;

    thread_local! {
        /// The number of steps until one fails, that one included; 0 if none is to fail.
        static READS: Cell<u64> = const { Cell::new(0) };
        static WRITES: Cell<u64> = const { Cell::new(0) };
    }

    fn left(step: Step) -> &'static std::thread::LocalKey<Cell<u64>> {
        match step {
            Step::Read => &READS,
            Step::Write => &WRITES,
        }
    }

    /// Has the step fail that comes after `count - 1` others of its kind on this thread; none if `count` is 0.
    pub fn fail(step: Step, count: u64) {
        left(step).set(count);
    }

    /// Returns an error if this step is to fail.
    pub fn point(step: Step) -> Result<(), TreeError> {
        let count = left(step).get();
        left(step).set(count.saturating_sub(1));
        match count {
            1 => Err(TreeError::OutOfMemory { bytes: 0 }),
            _ => Ok(()),
        }
    }
}
