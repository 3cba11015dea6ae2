//! Curves as tables.

use super::super::Options;
use super::curves::{Curve, HitCurves};
use crate::core::{Bytes, about};
use crate::report::numbers::{percent, thousands};
use crate::report::table::Part;
use crate::report::tsv::{self, Cell, number, word};

/// Hit ratios for which memory is reported.
const TARGETS: [f64; 9] = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99];

/// Column headings of the table of sizes, and of that of hit ratios.
pub(super) const BY_SIZE: [&str; 5] = [
    "memory",
    "LRU hits %\nuncompressed",
    "\ncompressed",
    "S3-FIFO %\nuncompressed",
    "\ncompressed",
];
pub(super) const BY_HITS: [&str; 7] = [
    "hits %",
    "LRU: memory\nuncompressed",
    "\ncompressed",
    "\nratio",
    "S3-FIFO: memory\nuncompressed",
    "\ncompressed",
    "\nratio",
];

/// The tables that use [`BY_HITS`].
pub(super) const PARTS: [Part<'_>; 2] = [("", &[1, 2, 3]), ("S3-FIFO", &[4, 5, 6])];

/// How the curves were computed, and the memory of a record.
pub(super) fn notes(curves: &HitCurves) -> [String; 2] {
    let warmup = match curves.warmup_requests {
        0 => String::new(),
        requests => format!(" after {} of warm-up", thousands(requests)),
    };
    let held = &curves.held;
    let left = match held.evicted {
        0 => String::new(),
        _ => ", full".into(),
    };
    let user_bytes = held.user_bytes as f64 / held.records.max(1) as f64;
    [
        format!(
            "hit ratio by memory: {} requests{warmup}; LRU by SHARDS on {} keys ({}% of those requested), S3-FIFO by \
             miniature simulation on {}% of all keys",
            thousands(curves.requests),
            thousands(curves.sampled_keys),
            share(curves.rate),
            share(curves.miniature_rate),
        ),
        format!(
            "uncompressed record: key, value and {} bytes of overhead; compressed: {:.1} bytes for {user_bytes:.1} of \
             key and value (factor {:.3}), measured with {} records in {} of {}{left}",
            curves.entry_bytes,
            held.per_record(),
            held.per_byte(),
            thousands(held.records),
            held.engine,
            Bytes(held.memory_bytes),
        ),
    ]
}

/// Percent of a rate, which may be small.
fn share(rate: f64) -> String {
    percent(rate, if rate >= 0.1 { 0 } else { 2 })
}

/// A row for each doubling.
pub(super) fn by_size(curves: &HitCurves, options: &Options) -> Vec<Vec<String>> {
    let is_whole = |bytes: u64| {
        let doublings = (bytes as f64 / options.memory_bytes as f64).log2();
        (doublings - doublings.round()).abs() < 0.01
    };
    let points = curves.points.iter().filter(|point| is_whole(point.memory_bytes));
    let rows = points.map(|point| {
        let hits = Curve::ALL.map(|curve| percent(point.hits.of(curve), 1));
        std::iter::once(about(point.memory_bytes as f64)).chain(hits).collect()
    });
    rows.collect()
}

/// A row for each hit ratio that some size has.
pub(super) fn by_hits(curves: &HitCurves) -> Vec<Vec<String>> {
    let cell = |memory: Option<f64>| memory.map_or_else(|| "-".into(), about);
    let rows = TARGETS.into_iter().filter_map(|target| {
        let memory = |curve| curves.memory_for(curve, target);
        if Curve::ALL.iter().all(|curve| memory(*curve).is_none()) {
            return None;
        }
        let cells = Curve::POLICIES.iter().flat_map(|(_, plain, compressed)| {
            let (plain, compressed) = (memory(*plain), memory(*compressed));
            let times = plain.zip(compressed).map(|(plain, compressed)| plain / compressed);
            let times = times.map_or_else(|| "-".into(), |times| format!("{times:.2}"));
            [cell(plain), cell(compressed), times]
        });
        Some(std::iter::once(percent(target, 0)).chain(cells).collect())
    });
    rows.collect()
}

/// The saving by compression at the given memory, for each policy.
pub(in super::super) fn sentences(curves: &HitCurves, options: &Options) -> Vec<String> {
    let memory = options.memory_bytes as f64;
    let sentences = Curve::POLICIES.iter().map(|(policy, plain, compressed)| {
        let (with, without) = (curves.hit_ratio(*compressed, memory), curves.hit_ratio(*plain, memory));
        let now = format!(
            "{policy} at {}: {}% hits compressed, {}% uncompressed",
            about(memory),
            percent(with, 1),
            percent(without, 1)
        );
        match (curves.memory_for(*plain, with), curves.memory_for(*compressed, with)) {
            (Some(plain), Some(compressed)) => format!(
                "{now}. To reach {}%: {} compressed, {} uncompressed.",
                percent(with, 1),
                about(compressed),
                about(plain)
            ),
            _ => format!("{now}. No size here reaches that uncompressed."),
        }
    });
    sentences.collect()
}

/// `mrc.tsv`: a line for each size, with miss ratios from 0 to 1.
pub(in super::super) fn tsv(curves: &HitCurves) -> String {
    type Column = (&'static str, Option<Curve>);
    const COLUMNS: [Column; 5] = [
        ("memory_bytes", None),
        ("lru_miss_ratio", Some(Curve::Lru)),
        ("lru_compressed_miss_ratio", Some(Curve::LruCompressed)),
        ("s3_fifo_miss_ratio", Some(Curve::S3Fifo)),
        ("s3_fifo_compressed_miss_ratio", Some(Curve::S3FifoCompressed)),
    ];
    tsv::columns(COLUMNS, &curves.points, |curve, point| -> Cell {
        match curve {
            None => word(point.memory_bytes),
            Some(curve) => number(1.0 - point.hits.of(*curve), 5),
        }
    })
}
