//! Spans and events for `tracing`; they compile to nothing without the feature `tracing`. docs/metrics.md lists them.
//!
//! A subscriber runs code of the program, so no span or event is emitted while a latch is held.

/// Opens a span that ends with the enclosing block.
#[cfg(feature = "tracing")]
#[macro_export]
macro_rules! enter_span {
    ($name:literal $(, $($fields:tt)+)?) => {
        let _span = $crate::tracing::debug_span!(target: "leafpress", $name $(, $($fields)+)?).entered();
    };
}

/// Opens a span that ends with the enclosing block.
#[cfg(not(feature = "tracing"))]
#[macro_export]
macro_rules! enter_span {
    ($($span:tt)+) => {};
}

/// Emits an event about completed work.
#[cfg(feature = "tracing")]
#[macro_export]
macro_rules! debug_event {
    ($($event:tt)+) => {
        $crate::tracing::debug!(target: "leafpress", $($event)+);
    };
}

/// Emits an event about completed work.
#[cfg(not(feature = "tracing"))]
#[macro_export]
macro_rules! debug_event {
    ($($event:tt)+) => {};
}

/// Emits an event about a failure.
#[cfg(feature = "tracing")]
#[macro_export]
macro_rules! warn_event {
    ($($event:tt)+) => {
        $crate::tracing::warn!(target: "leafpress", $($event)+);
    };
}

/// Emits an event about a failure.
#[cfg(not(feature = "tracing"))]
#[macro_export]
macro_rules! warn_event {
    ($($event:tt)+) => {};
}

/// Emits an event about a failure that may be frequent: only when `$count` is a power of two.
#[macro_export]
macro_rules! warn_event_by_count {
    ($count:expr, $($event:tt)+) => {{
        let count: u64 = $count;
        if $crate::IS_TRACING && count.is_power_of_two() {
            $crate::warn_event!(count, $($event)+);
        }
    }};
}
