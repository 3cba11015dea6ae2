//! Metrics published through the `metrics` facade: docs/metrics.md has the table.
//!
//! The cache keeps per-thread counters anyway and publishes their values, so no operation pays for it. Only a sample of
//! the reads is timed. Recorders are looked up at each publishing, since a program may install its own after it has
//! built its cache.

mod disk;
mod memory;

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};

use super::inner::CacheInner;
use super::observer::Outcome;

/// One in this number of a thread's reads is timed.
pub(super) const SAMPLED: u32 = 256;
/// Interval at which upkeep publishes...
const EVERY: Duration = Duration::from_secs(1);
/// ...with a minimum pause of this multiple of the last publishing's duration, which grows with the memory.
const REST: u32 = 50;

const METADATA: Metadata<'static> = Metadata::new("leafpress", Level::INFO, Some(module_path!()));

const GET_SECONDS: &str = "leafpress_cache_get_duration_seconds";
const DISK_READ_SECONDS: &str = "leafpress_cache_disk_read_duration_seconds";

thread_local! {
    /// Number of the thread's reads, over all caches.
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// Start time of a timed operation.
pub(super) struct Moment(Option<Instant>);

impl Moment {
    /// Returns the current time for a sample of the thread's calls.
    #[inline]
    pub(super) fn sampled() -> Self {
        let reads = READS.get().wrapping_add(1);
        READS.set(reads);
        if reads.is_multiple_of(SAMPLED) {
            Self::now()
        } else {
            Self(None)
        }
    }

    #[cold]
    pub(super) fn now() -> Self {
        Self(Some(Instant::now()))
    }

    #[inline]
    pub(super) fn end(self, note: impl FnOnce(f64)) {
        if let Some(began) = self.0 {
            note(began.elapsed().as_secs_f64());
        }
    }
}

/// Handles of the histograms, made once.
pub(super) struct Timings {
    memory: Key,
    disk: Key,
    miss: Key,
    disk_read: Key,
}

impl Timings {
    pub(super) fn new(cache: &Arc<str>) -> Self {
        let get = |outcome| key(cache, GET_SECONDS, Some(("outcome", outcome)));
        Self {
            memory: get("memory"),
            disk: get("disk"),
            miss: get("miss"),
            disk_read: key(cache, DISK_READ_SECONDS, None),
        }
    }

    #[cold]
    pub(super) fn note_get(&self, seconds: f64, outcome: Outcome) {
        note(
            match outcome {
                Outcome::Memory => &self.memory,
                Outcome::Disk => &self.disk,
                Outcome::Miss => &self.miss,
            },
            seconds,
        );
    }

    pub(super) fn note_disk_read(&self, seconds: f64) {
        note(&self.disk_read, seconds);
    }
}

fn note(key: &Key, seconds: f64) {
    metrics::with_recorder(|recorder| recorder.register_histogram(key, &METADATA).record(seconds));
}

fn key(cache: &Arc<str>, name: &'static str, label: Option<(&'static str, &'static str)>) -> Key {
    let mut labels = vec![Label::new("cache", SharedString::from_shared(Arc::clone(cache)))];
    labels.extend(label.map(|(key, value)| Label::from_static_parts(key, value)));
    Key::from_parts(name, labels)
}

/// Time of the next publishing by upkeep.
pub(super) struct Schedule(Instant);

impl Default for Schedule {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Schedule {
    /// Publishes if it is due.
    pub(super) fn keep(&mut self, core: &CacheInner) {
        let began = Instant::now();
        if began >= self.0 {
            core.publish();
            let now = Instant::now();
            self.0 = now + EVERY.max((now - began) * REST);
        }
    }
}

impl CacheInner {
    /// Publishes everything except the durations of reads, which are published when they are measured.
    pub(super) fn publish(&self) {
        let stats = self.stats();
        metrics::with_recorder(|recorder| {
            describe_timings(recorder);
            let to = To {
                recorder,
                cache: &self.observer.name,
            };
            to.publish_memory(&stats);
            if let Some(disk) = &stats.disk {
                to.publish_disk(disk, stats.promoted);
            }
        });
    }
}

fn describe_timings(recorder: &dyn Recorder) {
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

/// Recorder and labels of the published cache.
struct To<'t> {
    recorder: &'t dyn Recorder,
    cache: &'t Arc<str>,
}

type LabelOf = (&'static str, &'static str);

impl To<'_> {
    fn counter(&self, name: &'static str, unit: Unit, help: &'static str, value: u64) {
        self.counters(name, unit, help, &[(None, value)]);
    }

    /// Publishes counters with an additional label.
    fn counters(&self, name: &'static str, unit: Unit, help: &'static str, values: &[(Option<LabelOf>, u64)]) {
        self.recorder
            .describe_counter(KeyName::from_const_str(name), Some(unit), help.into());
        for (label, value) in values {
            let key = key(self.cache, name, *label);
            self.recorder.register_counter(&key, &METADATA).absolute(*value);
        }
    }

    fn gauge(&self, name: &'static str, unit: Unit, help: &'static str, value: f64) {
        self.recorder
            .describe_gauge(KeyName::from_const_str(name), Some(unit), help.into());
        let key = key(self.cache, name, None);
        self.recorder.register_gauge(&key, &METADATA).set(value);
    }
}
