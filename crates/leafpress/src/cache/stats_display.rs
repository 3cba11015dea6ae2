//! `Display` of the statistics.

use std::fmt;

use super::stats::CacheStats;

/// Bytes in MiB, with one decimal.
struct MiB(u64);

impl fmt::Display for MiB {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MiB", self.0 as f64 / f64::from(1 << 20))
    }
}

/// Returns a percentage of `whole`; 0 if it is 0.
fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Formats a short report: memory held, hits by tier, removals by cause, and the disk tier.
impl fmt::Display for CacheStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tree = &self.tree;
        let ratio = self.user_bytes as f64 / self.bytes_held.max(1) as f64;
        writeln!(
            f,
            "memory: {} of {} held, peak {}; {} records with {} of keys and values, {ratio:.2} bytes per byte held",
            MiB(self.bytes_held),
            MiB(self.memory_bytes),
            MiB(self.peak_bytes),
            self.records,
            MiB(self.user_bytes),
        )?;
        let reads = self.hits + self.misses;
        writeln!(
            f,
            "reads: {reads}, {:.1}% hits in memory and {:.1}% on disk",
            percent(self.hits.saturating_sub(self.disk_hits), reads),
            percent(self.disk_hits, reads),
        )?;
        writeln!(
            f,
            "left: {} evicted, {} expired, {} removed; {} values too long, {} damaged reads",
            self.evicted, self.expired, self.removes, self.too_large, self.damaged,
        )?;
        write!(
            f,
            "form: {}, {} leaves, {:.0}% of them cold, {} hot records",
            tree.engine_name,
            tree.leaves,
            percent(tree.cold_leaves, tree.leaves),
            tree.hot_records,
        )?;
        for reason in [&self.raw_share_reason, &tree.temperature_reason, &tree.limits_reason] {
            if !reason.is_empty() {
                write!(f, "; {reason}")?;
            }
        }
        if let Some(disk) = &self.disk {
            write!(
                f,
                "\ndisk: {} records in {}; {:.2} bytes of memory per record, write amplification {:.2}; {} records \
                 dropped",
                disk.records,
                MiB(disk.used_bytes),
                disk.index_bytes as f64 / disk.records.max(1) as f64,
                disk.write_amplification(),
                disk.dropped,
            )?;
            if disk.has_failed {
                write!(f, "; given up: {}", disk.last_error)?;
            }
        }
        Ok(())
    }
}
