//! What a device does, in a line.

use super::{Measurement, Operation, Report};
use crate::core::Bytes;
use crate::report::numbers::thousands;

/// The shortest wait for a block, and the most that was read a second.
pub(super) fn verdict(report: &Report) -> Option<String> {
    let reads = || report.measurements.iter().filter(|m| m.operation == Operation::Read);
    let alone = reads().min_by_key(|m| (m.queue_depth, m.block_bytes))?;
    let most = |of: fn(&Measurement) -> f64| reads().max_by(|one, other| of(one).total_cmp(&of(other)));
    let (by_count, by_bytes) = (most(|m| m.iops)?, most(|m| m.mb_per_s)?);
    let random_us = alone.random_latency.and_then(|latency| latency.p50_us);
    let (us, place) = match random_us {
        Some(us) => (us, " at a random place"),
        None => (alone.latency.p50_us.unwrap_or(alone.latency.mean_us), ""),
    };
    Some(format!(
        "A read of {}{place} takes {us:.0} us (median, {} in flight); at most {} reads ({}, {} in flight) or {:.0} MB a second.",
        Bytes(alone.block_bytes),
        alone.queue_depth,
        thousands(by_count.iops.round() as u64),
        Bytes(by_count.block_bytes),
        by_count.queue_depth,
        by_bytes.mb_per_s
    ))
}
