//! The comparison for programs, tab-separated.

use super::outcome::{Line, Measured, Outcome, Sample};
use crate::core::latency::Latency;
use crate::harness::timeline::Move;
use crate::report::tsv::{self, Cell, number, word};

/// A run that ended well.
struct Run<'r> {
    outcome: &'r Outcome,
    line: &'r Line,
    measured: &'r Measured,
}

fn us(latency: Option<&Latency>, ns: impl Fn(&Latency) -> u64) -> Cell {
    number(ns(latency?) as f64 / 1e3, 3)
}

/// Delay between the intended start and the start of requests.
fn wait(run: &Run<'_>, ns: impl Fn(&Latency) -> u64) -> Cell {
    us(run.measured.rate.as_ref()?.wait_latency.as_ref(), ns)
}

/// Mean times of reads around a move of the hot keys.
fn moved(run: &Run<'_>, ns: impl Fn(&Move) -> f64) -> Cell {
    number(ns(&run.measured.moved(&run.outcome.options)?) / 1e3, 3)
}

fn pct(ratio: Option<f64>) -> Cell {
    number(ratio? * 100.0, 3)
}

type Column = (&'static str, fn(&Run<'_>) -> Cell);

/// The columns of `summary.tsv`, in order. A cell that has no meaning is `None`.
const COLUMNS: [Column; 63] = [
    ("cache", |r| word(r.line.engine)),
    ("work", |r| word(r.outcome.work.first()?)),
    ("memory_bytes", |r| word(r.outcome.options.memory_bytes)),
    ("keys", |r| word(r.outcome.keys)),
    ("record_bytes", |r| number(r.outcome.record_bytes, 1)),
    ("distribution", |r| {
        (!r.outcome.options.is_of_a_file()).then(|| r.outcome.options.distribution().to_string())
    }),
    ("write_pct", |r| word(r.outcome.options.write_pct)),
    ("ttl_seconds", |r| word(r.outcome.options.ttl_seconds?)),
    ("threads", |r| word(r.outcome.options.threads)),
    ("seed", |r| word(r.outcome.options.seed)),
    ("warmup_seconds", |r| number(r.measured.warmup_seconds, 3)),
    ("warmup_operations", |r| word(r.measured.warmup_operations)),
    ("seconds", |r| number(r.measured.seconds, 3)),
    ("operations", |r| word(r.measured.operations())),
    ("hits", |r| word(r.measured.hits)),
    ("misses", |r| word(r.measured.misses)),
    ("writes", |r| word(r.measured.writes)),
    ("hit_pct", |r| pct(r.measured.hit_ratio())),
    ("memory_hit_pct", |r| pct(r.measured.memory_hit_ratio())),
    ("disk_hit_pct", |r| pct(r.measured.disk_hit_ratio())),
    ("written_per_evicted", |r| number(r.measured.written_per_evicted()?, 4)),
    ("ops", |r| number(r.measured.throughput(), 1)),
    ("backend_us", |r| word(r.outcome.options.backend_us)),
    ("charged_ops", |r| {
        number(r.measured.charged_throughput(&r.outcome.options)?, 1)
    }),
    ("hit_p50_us", |r| us(r.measured.hit_latency.as_ref(), |l| l.p50_ns)),
    ("hit_p99_us", |r| us(r.measured.hit_latency.as_ref(), |l| l.p99_ns)),
    ("hit_p999_us", |r| us(r.measured.hit_latency.as_ref(), |l| l.p999_ns)),
    ("hit_max_us", |r| us(r.measured.hit_latency.as_ref(), |l| l.max_ns)),
    ("miss_p50_us", |r| us(r.measured.miss_latency.as_ref(), |l| l.p50_ns)),
    ("miss_p99_us", |r| us(r.measured.miss_latency.as_ref(), |l| l.p99_ns)),
    ("miss_p999_us", |r| us(r.measured.miss_latency.as_ref(), |l| l.p999_ns)),
    ("miss_max_us", |r| us(r.measured.miss_latency.as_ref(), |l| l.max_ns)),
    ("read_p50_us", |r| us(r.measured.read_latency.as_ref(), |l| l.p50_ns)),
    ("read_p90_us", |r| us(r.measured.read_latency.as_ref(), |l| l.p90_ns)),
    ("read_p99_us", |r| us(r.measured.read_latency.as_ref(), |l| l.p99_ns)),
    ("write_p50_us", |r| us(r.measured.write_latency.as_ref(), |l| l.p50_ns)),
    ("write_p99_us", |r| us(r.measured.write_latency.as_ref(), |l| l.p99_ns)),
    ("write_p999_us", |r| {
        us(r.measured.write_latency.as_ref(), |l| l.p999_ns)
    }),
    ("removes", |r| word(r.measured.removes)),
    ("remove_p50_us", |r| {
        us(r.measured.remove_latency.as_ref(), |l| l.p50_ns)
    }),
    ("remove_p99_us", |r| {
        us(r.measured.remove_latency.as_ref(), |l| l.p99_ns)
    }),
    ("rate", |r| word(r.measured.rate.as_ref()?.asked)),
    ("backlog", |r| word(r.measured.rate.as_ref()?.backlog)),
    ("wait_p50_us", |r| wait(r, |l| l.p50_ns)),
    ("wait_p99_us", |r| wait(r, |l| l.p99_ns)),
    ("wait_p999_us", |r| wait(r, |l| l.p999_ns)),
    ("wait_max_us", |r| wait(r, |l| l.max_ns)),
    ("shift_at", |r| word(r.outcome.options.shift_at?)),
    ("shift_before_us", |r| moved(r, |m| m.before_ns)),
    ("shift_worst_us", |r| moved(r, |m| m.worst_ns)),
    ("shift_end_us", |r| moved(r, |m| m.end_ns)),
    ("shift_back_after", |r| {
        word(r.measured.moved(&r.outcome.options)?.back_after?)
    }),
    ("cpu_seconds", |r| number(r.measured.cpu_seconds, 3)),
    ("cpu_seconds_per_million", |r| {
        number(r.measured.cpu_seconds * 1e6 / r.measured.operations() as f64, 3)
    }),
    ("peak_growth_bytes", |r| word(r.measured.peak_growth_bytes)),
    ("peak_of_memory", |r| {
        number(r.measured.peak_over_memory(&r.outcome.options), 4)
    }),
    ("bytes_held", |r| word(r.measured.bytes_held?)),
    ("capacity_bytes", |r| word(r.line.capacity.as_ref()?.bytes)),
    ("records", |r| word(r.measured.records?)),
    ("stale", |r| word(r.measured.mismatches.stale)),
    ("wrong", |r| word(r.measured.mismatches.wrong)),
    ("expired", |r| word(r.measured.mismatches.expired)),
    ("chosen_codec", |r| word(r.measured.chosen_codec.as_ref()?)),
];

fn runs(outcome: &Outcome) -> impl Iterator<Item = Run<'_>> {
    outcome.lines.iter().filter_map(move |line| {
        Some(Run {
            outcome,
            line,
            measured: line.measured.as_ref()?,
        })
    })
}

/// `summary.tsv`: a line for each cache that ended well.
pub(crate) fn summary(outcome: &Outcome) -> String {
    tsv::columns(COLUMNS, runs(outcome), |of, run| of(run))
}

/// `over_time.tsv`: a line for each window of each.
pub(crate) fn over_time(outcome: &Outcome) -> String {
    type Window<'w> = (&'w Line, &'w Sample);
    type Column = (&'static str, fn(&Window<'_>) -> Cell);
    const COLUMNS: [Column; 7] = [
        ("cache", |(line, _)| word(line.engine)),
        ("at_seconds", |(_, sample)| number(sample.at_seconds, 3)),
        ("length_seconds", |(_, sample)| number(sample.length_seconds, 3)),
        ("measured", |(_, sample)| word(u8::from(sample.measured))),
        ("hits", |(_, sample)| word(sample.hits)),
        ("misses", |(_, sample)| word(sample.misses)),
        ("growth_bytes", |(_, sample)| word(sample.growth_bytes)),
    ];
    let windows = runs(outcome).flat_map(|run| run.measured.samples.iter().map(move |sample| (run.line, sample)));
    tsv::columns(COLUMNS, windows, |of, window| of(window))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;
    use crate::report::testing::assert_golden;

    #[test]
    fn tables_are_as_they_were() {
        let outcome = fixtures::outcome();
        assert_golden("cache/golden/summary.tsv", &summary(&outcome));
        assert_golden("cache/golden/over_time.tsv", &over_time(&outcome));
        assert_golden("cache/golden/at_a_rate.tsv", &summary(&fixtures::at_a_rate()));
    }
}
