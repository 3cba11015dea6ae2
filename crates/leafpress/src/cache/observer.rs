//! Name of a cache in metrics and traces, and timing of a sample of its reads.
//!
//! Without the feature `metrics` nothing is timed, and this module compiles to nothing.

use std::sync::Arc;

use super::counters::Outcome;
#[cfg(feature = "metrics")]
use super::metrics::timings::{Moment, Timings};

/// Name of an unnamed cache.
const NO_NAME: &str = "default";

/// Stub: nothing is timed.
#[cfg(not(feature = "metrics"))]
pub(super) struct Moment;

/// Shared by the cache and its disk tier.
pub(super) struct Observer {
    pub name: Arc<str>,
    #[cfg(feature = "metrics")]
    pub timings: Timings,
}

impl Default for Observer {
    fn default() -> Self {
        Self::new(NO_NAME)
    }
}

impl Observer {
    pub(super) fn new(name: &str) -> Self {
        let name: Arc<str> = Arc::from(name);
        Self {
            #[cfg(feature = "metrics")]
            timings: Timings::new(&name),
            name,
        }
    }
}

#[cfg(not(feature = "metrics"))]
impl Observer {
    #[inline]
    pub(super) fn begin_get() -> Moment {
        Moment
    }

    #[inline]
    pub(super) fn end_get(&self, _began: Moment, _outcome: Outcome) {}

    pub(super) fn begin_disk_read() -> Moment {
        Moment
    }

    pub(super) fn end_disk_read(&self, _began: Moment) {}
}

#[cfg(feature = "metrics")]
impl Observer {
    /// Begins a read: one in [`SAMPLED`](super::metrics::timings::SAMPLED) of a thread's is timed.
    #[inline]
    pub(super) fn begin_get() -> Moment {
        Moment::sampled()
    }

    #[inline]
    pub(super) fn end_get(&self, began: Moment, outcome: Outcome) {
        began.end(|seconds| self.timings.note_get(seconds, outcome));
    }

    /// Begins a read of the device. All are timed: they take far longer.
    pub(super) fn begin_disk_read() -> Moment {
        Moment::now()
    }

    pub(super) fn end_disk_read(&self, began: Moment) {
        began.end(|seconds| self.timings.note_disk_read(seconds));
    }
}
