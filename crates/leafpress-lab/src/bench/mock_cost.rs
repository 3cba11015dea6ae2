//! Lets a test control the time to make a key or a value, on a clock that is otherwise stopped.

use std::cell::RefCell;
use std::sync::Arc;

use quanta::Mock;

thread_local! {
    /// This thread's clock, and the nanoseconds by which each making advances it.
    static COST: RefCell<Option<(Arc<Mock>, u64)>> = const { RefCell::new(None) };
}

/// From now on this thread makes nothing in less than `nanoseconds` of `clock`.
pub(super) fn making_takes(clock: Arc<Mock>, nanoseconds: u64) {
    COST.with_borrow_mut(|cost| *cost = Some((clock, nanoseconds)));
}

/// A key or a value is made.
pub(super) fn make() {
    COST.with_borrow(|cost| {
        if let Some((clock, nanoseconds)) = cost {
            clock.increment(*nanoseconds);
        }
    });
}
