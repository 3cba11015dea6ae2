//! Metrics of a cache with a disk tier.

use metrics::Unit;

use super::To;
use crate::cache::disk::DiskStats;

impl To<'_> {
    pub(super) fn publish_disk(&self, disk: &DiskStats, promoted: u64) {
        let counter = |name, help, value| self.counter(name, Unit::Count, help, value);
        let bytes = |name, help, value| self.counter(name, Unit::Bytes, help, value);
        counter(
            "leafpress_cache_promotions_total",
            "Records promoted from disk to memory",
            promoted,
        );
        counter("leafpress_cache_disk_lookups_total", "Lookups on disk", disk.lookups);
        counter(
            "leafpress_cache_disk_admissions_total",
            "Records spilled from memory to disk",
            disk.admitted,
        );
        bytes(
            "leafpress_cache_disk_admitted_bytes_total",
            "Their bytes",
            disk.admitted_bytes,
        );
        counter(
            "leafpress_cache_disk_clean_total",
            "Evicted records that were on disk already",
            disk.clean,
        );
        counter(
            "leafpress_cache_disk_drops_total",
            "Evicted records that were not admitted to disk",
            disk.dropped,
        );
        counter(
            "leafpress_cache_disk_tombstones_total",
            "Tombstones that replaced dropped records in memory",
            disk.tombstones,
        );
        bytes(
            "leafpress_cache_disk_written_bytes_total",
            "Bytes written",
            disk.written_bytes,
        );
        bytes(
            "leafpress_cache_disk_read_bytes_total",
            "Bytes read by lookups",
            disk.read_bytes(),
        );
        counter("leafpress_cache_disk_merges_total", "Merges of runs", disk.merges);
        counter(
            "leafpress_cache_disk_dropped_runs_total",
            "Runs dropped to make room, after an error, or by clearing",
            disk.runs_dropped,
        );
        counter(
            "leafpress_cache_disk_dropped_records_total",
            "Their records",
            disk.records_dropped,
        );
        counter(
            "leafpress_cache_disk_left_out_total",
            "Records that merges left out because the store was nearly full",
            disk.left_out,
        );
        let operation = |operation| Some(("operation", operation));
        self.counters(
            "leafpress_cache_disk_errors_total",
            Unit::Count,
            "Failed device reads, device writes, and writes of the log of runs",
            &[
                (operation("read"), disk.read_errors),
                (operation("write"), disk.write_errors),
                (operation("log"), disk.log_errors),
            ],
        );
        self.publish_disk_held(disk);
    }

    fn publish_disk_held(&self, disk: &DiskStats) {
        let count = |name, help, value: u64| self.gauge(name, Unit::Count, help, value as f64);
        let bytes = |name, help, value: u64| self.gauge(name, Unit::Bytes, help, value as f64);
        bytes(
            "leafpress_cache_disk_capacity_bytes",
            "Size of the disk tier",
            disk.capacity_bytes,
        );
        bytes(
            "leafpress_cache_disk_used_bytes",
            "Bytes in use on disk",
            disk.used_bytes,
        );
        bytes(
            "leafpress_cache_disk_index_bytes",
            "Memory of the index of the disk",
            disk.index_bytes,
        );
        count(
            "leafpress_cache_disk_records",
            "Records on disk, including replaced ones until they are merged",
            disk.records,
        );
        count("leafpress_cache_disk_runs", "Runs on disk", disk.runs);
        count(
            "leafpress_cache_disk_super_leaves",
            "Super-leaves, the key ranges of runs",
            disk.super_leaves,
        );
        bytes(
            "leafpress_cache_disk_waiting_bytes",
            "Memory of batches waiting to be written",
            disk.waiting_bytes,
        );
        count(
            "leafpress_cache_disk_waiting_batches",
            "Full batches waiting to be written, at most two",
            disk.waiting_batches,
        );
        count(
            "leafpress_cache_disk_stalled",
            "1 while evicted records are dropped because the device is stalled",
            disk.is_stalled.into(),
        );
        count(
            "leafpress_cache_disk_recoverable",
            "1 while the disk tier would be recovered after a crash",
            disk.is_recoverable.into(),
        );
        count(
            "leafpress_cache_disk_failed",
            "1 once the tier was given up after repeated write errors",
            disk.has_failed.into(),
        );
    }
}
