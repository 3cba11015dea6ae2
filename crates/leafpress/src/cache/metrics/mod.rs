//! Metrics published through the `metrics` facade: docs/metrics.md has the table.
//!
//! The cache keeps per-thread counters anyway and publishes their values, so no operation pays for it. Only a sample of
//! the reads is timed. Recorders are looked up at each publishing, since a program may install its own after it has
//! built its cache.

mod disk;
mod memory;
pub(super) mod timings;

use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::{KeyName, Recorder, Unit};

use self::timings::{METADATA, describe_timings, key};
use super::inner::CacheInner;

/// Interval at which upkeep publishes...
const EVERY: Duration = Duration::from_secs(1);
/// ...with a minimum pause of this multiple of the last publishing's duration, which grows with the memory.
const REST: u32 = 50;

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
            if let Some(advice) = self.advice_by(&stats) {
                to.publish_advice(&advice);
            }
            if let Some(disk) = &stats.disk {
                to.publish_disk(disk, stats.promoted);
            }
        });
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
        self.gauges(name, unit, help, &[(None, value)]);
    }

    /// Publishes gauges with an additional label.
    fn gauges(&self, name: &'static str, unit: Unit, help: &'static str, values: &[(Option<LabelOf>, f64)]) {
        self.recorder
            .describe_gauge(KeyName::from_const_str(name), Some(unit), help.into());
        for (label, value) in values {
            let key = key(self.cache, name, *label);
            self.recorder.register_gauge(&key, &METADATA).set(*value);
        }
    }
}
