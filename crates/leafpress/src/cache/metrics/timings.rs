//! Durations of reads, as histograms.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};

use crate::cache::counters::Outcome;

/// One in this number of a thread's reads is timed.
pub(in crate::cache) const SAMPLED: u32 = 256;

pub(super) const METADATA: Metadata<'static> = Metadata::new("leafpress", Level::INFO, Some(module_path!()));

const GET_SECONDS: &str = "leafpress_cache_get_duration_seconds";
const DISK_READ_SECONDS: &str = "leafpress_cache_disk_read_duration_seconds";

thread_local! {
    /// Number of the thread's reads, over all caches.
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// Start time of a timed operation.
pub(in crate::cache) struct Moment(Option<Instant>);

impl Moment {
    /// Returns the current time for a sample of the thread's calls.
    #[inline]
    pub(in crate::cache) fn sampled() -> Self {
        let reads = READS.get().wrapping_add(1);
        READS.set(reads);
        if reads.is_multiple_of(SAMPLED) {
            Self::now()
        } else {
            Self(None)
        }
    }

    #[cold]
    pub(in crate::cache) fn now() -> Self {
        Self(Some(Instant::now()))
    }

    #[inline]
    pub(in crate::cache) fn end(self, note: impl FnOnce(f64)) {
        if let Some(began) = self.0 {
            note(began.elapsed().as_secs_f64());
        }
    }
}

/// Handles of the histograms, made once.
pub(in crate::cache) struct Timings {
    memory: Key,
    disk: Key,
    miss: Key,
    disk_read: Key,
}

impl Timings {
    pub(in crate::cache) fn new(cache: &Arc<str>) -> Self {
        let get = |outcome| key(cache, GET_SECONDS, Some(("outcome", outcome)));
        Self {
            memory: get("memory"),
            disk: get("disk"),
            miss: get("miss"),
            disk_read: key(cache, DISK_READ_SECONDS, None),
        }
    }

    #[cold]
    pub(in crate::cache) fn note_get(&self, seconds: f64, outcome: Outcome) {
        note(
            match outcome {
                Outcome::Memory => &self.memory,
                Outcome::Disk => &self.disk,
                Outcome::Miss => &self.miss,
            },
            seconds,
        );
    }

    pub(in crate::cache) fn note_disk_read(&self, seconds: f64) {
        note(&self.disk_read, seconds);
    }
}

fn note(key: &Key, seconds: f64) {
    metrics::with_recorder(|recorder| recorder.register_histogram(key, &METADATA).record(seconds));
}

pub(super) fn key(cache: &Arc<str>, name: &'static str, label: Option<(&'static str, &'static str)>) -> Key {
    let mut labels = vec![Label::new("cache", SharedString::from_shared(Arc::clone(cache)))];
    labels.extend(label.map(|(key, value)| Label::from_static_parts(key, value)));
    Key::from_parts(name, labels)
}

pub(super) fn describe_timings(recorder: &dyn Recorder) {
    let timings = [
        (
            GET_SECONDS,
            "Duration of a read, one in 256 of each thread's, by outcome",
        ),
        (DISK_READ_SECONDS, "Duration of a device read of a lookup"),
    ];
    for (name, help) in timings {
        recorder.describe_histogram(KeyName::from_const_str(name), Some(Unit::Seconds), help.into());
    }
}
