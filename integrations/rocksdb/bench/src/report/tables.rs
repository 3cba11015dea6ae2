//! Benchmarks as a tab-separated table, for programs.

use leafpress_lab::core::latency::Latency;
use leafpress_lab::report::NOT_APPLICABLE;
use leafpress_lab::report::tsv;

use super::Row;

type Column = (&'static str, fn(&Row) -> String);

/// The columns, in order.
const COLUMNS: [Column; 37] = [
    ("workload", |r| r.run.workload.name().to_owned()),
    ("compression", |r| r.run.shape.compression.to_string()),
    ("block_bytes", |r| r.run.shape.block_bytes.to_string()),
    ("key_bytes", |r| r.run.shape.key_bytes.to_string()),
    ("value_bytes", |r| r.run.shape.value_bytes.to_string()),
    ("instances", |r| r.run.shape.instances.to_string()),
    ("threads_per_instance", |r| r.run.work.threads.to_string()),
    ("keys", |r| r.run.shape.keys().to_string()),
    ("raw_bytes", |r| r.run.shape.raw_bytes().to_string()),
    ("cache", |r| r.run.tuning.cache.to_string()),
    ("distribution", |r| r.run.work.distribution.to_string()),
    ("read_pct", |r| r.run.work.read_pct.to_string()),
    ("seconds", |r| decimals(r.outcome.seconds)),
    ("operations", |r| r.outcome.operations.to_string()),
    ("ops_per_second", |r| decimals(r.outcome.throughput())),
    ("reads", |r| r.outcome.reads.to_string()),
    ("found", |r| r.outcome.found.to_string()),
    ("writes", |r| r.outcome.writes.to_string()),
    ("scans", |r| r.outcome.scans.to_string()),
    ("scanned_records", |r| r.outcome.scanned.to_string()),
    ("read_p50_us", |r| us(r.outcome.read_latency.as_ref(), |l| l.p50_ns)),
    ("read_p99_us", |r| us(r.outcome.read_latency.as_ref(), |l| l.p99_ns)),
    ("read_p999_us", |r| us(r.outcome.read_latency.as_ref(), |l| l.p999_ns)),
    ("write_p50_us", |r| us(r.outcome.write_latency.as_ref(), |l| l.p50_ns)),
    ("write_p99_us", |r| us(r.outcome.write_latency.as_ref(), |l| l.p99_ns)),
    ("write_p999_us", |r| us(r.outcome.write_latency.as_ref(), |l| l.p999_ns)),
    ("scan_p99_us", |r| us(r.outcome.scan_latency.as_ref(), |l| l.p99_ns)),
    ("cpu_user_seconds", |r| decimals(r.outcome.user_seconds)),
    ("cpu_system_seconds", |r| decimals(r.outcome.system_seconds)),
    ("cores_used", |r| decimals(r.outcome.cores())),
    ("cpu_us_per_op", |r| decimals(r.outcome.cpu_us())),
    ("settle_seconds", |r| decimals(r.outcome.settle_seconds)),
    ("sst_bytes", |r| r.outcome.sst_bytes.to_string()),
    ("bytes_per_key", |r| decimals(r.outcome.bytes_per_key())),
    ("peak_resident_kib", |r| {
        r.outcome
            .peak_resident_kib
            .map_or_else(|| NOT_APPLICABLE.to_owned(), |kib| kib.to_string())
    }),
    ("mismatches", |r| r.outcome.mismatches.to_string()),
    ("seed", |r| r.run.shape.seed.to_string()),
];

/// A figure's cell.
pub(crate) fn number(figure: Option<f64>) -> tsv::Cell {
    figure.and_then(|figure| tsv::number(figure, 4))
}

fn decimals(figure: f64) -> String {
    format!("{figure:.4}")
}

fn us(latency: Option<&Latency>, of: fn(&Latency) -> u64) -> String {
    latency.map_or_else(
        || NOT_APPLICABLE.to_owned(),
        |latency| format!("{:.3}", of(latency) as f64 / 1e3),
    )
}

/// `summary.tsv`: a line for each benchmark.
pub fn summary<'r>(rows: impl IntoIterator<Item = &'r Row>) -> String {
    tsv::columns(COLUMNS, rows, |cell, row| cell(row))
}
