//! Synthetic runs for tests of reports.

use leafpress::Codec;
use leafpress_pages::pool::RawShare;

use super::sweep::{Line, Sweep};
use super::{Checks, Counters, Cpu, Held, Options, Outcome, Report, Sample, Set, Work};
use crate::core::corpus::Source;
use crate::core::keys::Distribution;
use crate::core::latency::Latency;

pub(super) const LZ4: Codec = Codec::Lz4 { acceleration: 1 };
pub(super) const ZSTD: Codec = Codec::Zstd { level: 1 };

fn latency(p50_ns: u64) -> Latency {
    Latency {
        samples: 900_000,
        mean_ns: p50_ns as f64 * 1.5,
        min_ns: p50_ns / 4,
        p50_ns,
        p90_ns: p50_ns * 3,
        p99_ns: p50_ns * 9,
        p999_ns: p50_ns * 30,
        p9999_ns: p50_ns * 100,
        p99999_ns: p50_ns * 300,
        max_ns: p50_ns * 900,
    }
}

fn held(raw_percent: f64) -> Held {
    let (raw, compressed) = (
        (raw_percent * 640_000.0) as u64,
        ((100.0 - raw_percent) * 610_000.0) as u64,
    );
    Held {
        raw_pages: raw / 8192,
        compressed_pages: compressed / 3850,
        compressed_raw_bytes: compressed / 3850 * 8192,
        compressed_bytes: compressed / 3850 * 3850,
        bytes_held: raw + compressed + 700_000 + 90_000 + 16_384,
        raw_space_bytes: raw,
        compressed_space_bytes: compressed,
        table_bytes: 700_000,
        ghost_bytes: 90_000,
        pinned_copy_bytes: 16_384,
        raw_percent,
        store_read_ns: 112_400.0,
        compress_ns: 9_600.0,
        decompress_ns: 2_100.0,
        ratio: 2.12,
    }
}

pub(super) fn options(codec: Codec, share: RawShare) -> Options {
    let mut options = Options::new(Source::Path("/data/a<b.db".into()));
    options.codec = codec;
    options.share = share;
    options.budget_bytes = 64 << 20;
    options.device_latency_us = 110;
    options.workers = 2;
    options.seconds = 10.0;
    options.distribution = Distribution::HotSet {
        keys_pct: 20.0,
        operations_pct: 80.0,
    };
    options
}

/// A run that got faster the nearer its share was to 40% raw.
pub(super) fn report(codec: Codec, share: RawShare) -> Report {
    let raw_percent = match share {
        RawShare::Fixed { raw_percent } => f64::from(raw_percent),
        _ => 42.5,
    };
    let off = (raw_percent - 40.0).abs() / 100.0;
    let hits = (800_000.0 - 500_000.0 * off) as u64;
    let counters = Counters {
        raw_hits: (hits as f64 * raw_percent / 100.0) as u64,
        compressed_hits: hits - (hits as f64 * raw_percent / 100.0) as u64,
        misses: 1_000_000 - hits,
        compressions: 204_000,
        incompressible: 120,
        restorations: 31_000,
        raw_evictions: 500,
        compressed_evictions: 190_000,
        sweeps: 410,
        sweep_ns: 1_950_000_000,
        store_read_bytes: (1_000_000 - hits) * 8192,
        deciding_ns: 40_000_000,
        ..Counters::default()
    };
    let samples = (1..=24).map(|number| {
        let at = f64::from(number) * 0.5;
        let towards = 1.0 - (-at / 2.0).exp();
        let raw = if share == RawShare::Adaptive {
            100.0 + (raw_percent - 100.0) * towards
        } else {
            raw_percent
        };
        Sample {
            at_seconds: at,
            length_seconds: 0.5,
            measured: number > 4,
            acquisitions: 50_000,
            hits: (40_000.0 * towards) as u64,
            misses: 50_000 - (40_000.0 * towards) as u64,
            store_read_bytes: 81_920_000,
            held: held(raw),
            resident_bytes: Some((66_000_000.0 * towards) as i64),
        }
    });
    Report {
        options: options(codec, share),
        host: "A CPU, 2 cores".into(),
        outcome: Outcome {
            set: Set {
                pages: 65_536,
                bytes: 65_536 * 8192,
                least_page_bytes: 8192,
                most_page_bytes: 8192,
                place: "/data/a<b.db: pages of 8192 bytes".into(),
            },
            warmup_seconds: 2.0,
            full: true,
            seconds: 10.0 + 5.0 * off,
            interrupted: false,
            work: Work {
                acquisitions: 1_000_000,
                rounds: 200_000,
                checked: 15_700,
                ..Work::default()
            },
            counters,
            held: held(raw_percent),
            acquire: Some(latency(1_000 + (20_000.0 * off) as u64)),
            samples: samples.collect(),
            cpu: Cpu {
                user_seconds: 8.25,
                system_seconds: 3.5,
            },
            checks: Checks {
                checked: 18_000,
                ..Checks::default()
            },
            ..Outcome::default()
        },
    }
}

/// A run that updates and deletes, and found wrong bytes.
pub(super) fn wrong() -> Report {
    let mut report = report(ZSTD, RawShare::Fixed { raw_percent: 60 });
    (report.options.update_pct, report.options.delete_pct) = (10.0, 1.0);
    report.options.distribution = Distribution::Zipfian { theta: 0.99 };
    let outcome = &mut report.outcome;
    (outcome.full, outcome.interrupted) = (false, true);
    outcome.work.updates = 100_000;
    outcome.work.deletes = 4_000;
    outcome.work.creates = 3_900;
    outcome.work.rounds_cut = 1;
    outcome.counters.write_errors = 2;
    outcome.counters.store_write_bytes = 80_000_000;
    outcome.held.bytes_held += 20_000_000;
    (outcome.update, outcome.delete) = (Some(latency(3_000)), Some(latency(500)));
    outcome.checks = Checks {
        checked: 1_065_536,
        read_back: 65_536,
        wrong: 2,
        examples: vec!["page 7: 8192 bytes: bytes that no version of it had".into()],
    };
    report
}

/// Shares of two codecs, and one run that failed.
pub(super) fn sweep() -> Sweep {
    let line = |report: Report| Line {
        options: report.options.clone(),
        report: Some(report),
        failure: None,
    };
    let mut lines = Vec::new();
    for codec in [LZ4, ZSTD] {
        for raw_percent in [100, 70, 40, 10] {
            lines.push(line(report(codec, RawShare::Fixed { raw_percent })));
        }
        lines.push(line(report(codec, RawShare::Adaptive)));
    }
    // The second codec keeps more but is slower to decode.
    for line in &mut lines[5..] {
        if let Some(report) = &mut line.report {
            report.outcome.counters.raw_hits += 90_000;
            report.outcome.counters.misses -= 90_000;
            report.outcome.acquire = Some(latency(report.outcome.acquire.as_ref().map_or(0, |l| l.p50_ns) + 900));
        }
    }
    lines.push(Line {
        options: options(Codec::None, RawShare::Fixed { raw_percent: 100 }),
        report: None,
        failure: Some("run failed: killed by <signal> 9".into()),
    });
    Sweep {
        lines,
        cancelled: false,
    }
}
