//! Verdict on a device, in a line.

use super::{Measurement, Operation, Report};
use crate::core::Bytes;
use crate::report::numbers::thousands;

/// The shortest wait for a block, and the most that was read a second.
pub(super) fn verdict(report: &Report) -> Option<String> {
    let of = |operation| report.measurements.iter().filter(move |m| m.operation == operation);
    let operation = of(Operation::Read).chain(of(Operation::Write)).next()?.operation;
    let alone = of(operation).min_by_key(|m| (m.queue_depth, m.block_bytes))?;
    let most =
        |figure: fn(&Measurement) -> f64| of(operation).max_by(|one, other| figure(one).total_cmp(&figure(other)));
    let (by_count, by_bytes) = (most(|m| m.iops)?, most(|m| m.mb_per_s)?);
    let random_us = alone.random_latency.and_then(|latency| latency.p50_us);
    let (us, place) = match random_us {
        Some(us) => (us, " at a random offset"),
        None => (alone.latency.p50_us.unwrap_or(alone.latency.mean_us), ""),
    };
    Some(format!(
        "A {operation} of {}{place} takes {us:.0} us (median, {} in flight); at most {} {operation}s/s ({}, {} in \
         flight) or {:.0} MB/s.",
        Bytes(alone.block_bytes),
        alone.queue_depth,
        thousands(by_count.iops.round() as u64),
        Bytes(by_count.block_bytes),
        by_count.queue_depth,
        by_bytes.mb_per_s
    ))
}
