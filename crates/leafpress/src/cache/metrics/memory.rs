//! Metrics of every cache.

use metrics::Unit;

use super::To;
use crate::cache::advice::Advice;
use crate::cache::stats::CacheStats;

impl To<'_> {
    pub(super) fn publish_memory(&self, stats: &CacheStats) {
        self.publish_counts(stats);
        self.publish_held(stats);
    }

    pub(super) fn publish_advice(&self, advice: &Advice) {
        let times = |label, times: f64| {
            let memory_bytes = advice.memory_bytes as f64 * times;
            (Some(("memory", label)), advice.hit_ratio(memory_bytes as u64))
        };
        self.gauges(
            "leafpress_cache_estimated_hit_ratio",
            Unit::Count,
            "Estimated share of reads that this multiple of the memory answers",
            &[times("0.5", 0.5), times("1", 1.0), times("2", 2.0), times("4", 4.0)],
        );
    }

    fn publish_counts(&self, stats: &CacheStats) {
        let tier = |tier| Some(("tier", tier));
        let cause = |cause| Some(("cause", cause));
        let in_memory = stats.hits.saturating_sub(stats.disk_hits);
        let disk_damaged = stats.disk.as_ref().map(|disk| (tier("disk"), disk.damaged));
        let damaged: Vec<_> = [(tier("memory"), stats.damaged)]
            .into_iter()
            .chain(disk_damaged)
            .collect();
        let hits = [(tier("memory"), in_memory), (tier("disk"), stats.disk_hits)];
        let hits = &hits[..1 + usize::from(stats.disk.is_some())];
        self.counters(
            "leafpress_cache_hits_total",
            Unit::Count,
            "Reads that found their key, by tier",
            hits,
        );
        self.counter(
            "leafpress_cache_misses_total",
            Unit::Count,
            "Reads that did not find their key",
            stats.misses,
        );
        self.counter(
            "leafpress_cache_stale_total",
            Unit::Count,
            "Misses answered with an expired value, while it was being loaded or because the load failed",
            stats.stale,
        );
        self.counter(
            "leafpress_cache_known_absent_total",
            Unit::Count,
            "Misses answered by a remembered absence of the key",
            stats.known_absent,
        );
        self.counter(
            "leafpress_cache_inserts_total",
            Unit::Count,
            "Insertions",
            stats.inserts,
        );
        self.counter(
            "leafpress_cache_inserted_bytes_total",
            Unit::Bytes,
            "Bytes of inserted keys and values",
            stats.inserted_bytes,
        );
        self.counter(
            "leafpress_cache_removes_total",
            Unit::Count,
            "Calls to remove a key",
            stats.removes,
        );
        self.counters(
            "leafpress_cache_evictions_total",
            Unit::Count,
            "Records that left memory or were not kept, by cause",
            &[
                (cause("capacity"), stats.evicted),
                (cause("expired"), stats.expired),
                (cause("too_large"), stats.too_large),
            ],
        );
        self.counter(
            "leafpress_cache_eviction_errors_total",
            Unit::Count,
            "Leaves from which nothing could be evicted",
            stats.eviction_errors,
        );
        self.counters(
            "leafpress_cache_damaged_total",
            Unit::Count,
            "Damaged records and pages, by tier; they count as misses",
            &damaged,
        );
        self.counter(
            "leafpress_cache_background_panics_total",
            Unit::Count,
            "Panics of background work",
            stats.background_panics,
        );
    }

    fn publish_held(&self, stats: &CacheStats) {
        let gauge = |name, unit, help, value: u64| self.gauge(name, unit, help, value as f64);
        gauge(
            "leafpress_cache_memory_bytes",
            Unit::Bytes,
            "Memory budget",
            stats.memory_bytes,
        );
        gauge(
            "leafpress_cache_held_bytes",
            Unit::Bytes,
            "Memory held, all included",
            stats.bytes_held,
        );
        gauge(
            "leafpress_cache_peak_bytes",
            Unit::Bytes,
            "Highest measured memory held",
            stats.peak_bytes,
        );
        gauge(
            "leafpress_cache_eviction_bytes",
            Unit::Bytes,
            "Memory of the eviction policy",
            stats.eviction_bytes,
        );
        gauge(
            "leafpress_cache_records",
            Unit::Count,
            "Records in memory",
            stats.records,
        );
        gauge(
            "leafpress_cache_user_bytes",
            Unit::Bytes,
            "Bytes of keys and values in memory",
            stats.user_bytes,
        );
        self.gauge(
            "leafpress_cache_compression_ratio",
            Unit::Count,
            "Bytes of keys and values per byte held",
            stats.user_bytes as f64 / stats.bytes_held.max(1) as f64,
        );
        gauge(
            "leafpress_cache_background_threads_ended",
            Unit::Count,
            "Background threads that ended after repeated panics",
            stats.background_threads_ended,
        );
    }
}
