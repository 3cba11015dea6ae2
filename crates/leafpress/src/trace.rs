//! Spans and events for `tracing`: nothing where the feature is off. docs/metrics.md lists them.
//!
//! A subscriber is the program's own code, so none is told while a latch is held.

/// Opens a span that ends with the block it is opened in.
macro_rules! enter_span {
    ($name:literal $(, $($fields:tt)+)?) => {
        #[cfg(feature = "tracing")]
        let _span = ::tracing::debug_span!(target: "leafpress", $name $(, $($fields)+)?).entered();
    };
}

/// Something was done.
macro_rules! debug_event {
    ($($event:tt)+) => {
        #[cfg(feature = "tracing")]
        ::tracing::debug!(target: "leafpress", $($event)+);
    };
}

/// Something failed.
macro_rules! warn_event {
    ($($event:tt)+) => {
        #[cfg(feature = "tracing")]
        ::tracing::warn!(target: "leafpress", $($event)+);
    };
}

/// The same of what may fail very often: the first, second, fourth, eighth and so on are told of, by `$count`.
macro_rules! warn_event_by_count {
    ($count:expr, $($event:tt)+) => {{
        let count: u64 = $count;
        if cfg!(feature = "tracing") && count.is_power_of_two() {
            warn_event!(count, $($event)+);
        }
    }};
}
