//! Shared test fixtures of the comparison: a workload, and synthetic figures.

use super::outcome::{ConfiguredCapacity, Fill, Line, Measured, Mismatches, Outcome, RateFigures, Sample};
use super::workload::Workload;
use super::{EngineSpec, Options, PaperObjects, Work};
use crate::core::corpus::Source;
use crate::core::latency::Latency;

/// This many of the paper's objects, with the default distribution.
pub(super) fn paper_workload(keys: u64) -> Workload {
    let options = Options {
        working_set_bytes: Some(80 * keys),
        ..Options::new(Work::Paper(PaperObjects::default()))
    };
    Workload::load(&options).unwrap()
}

fn latency(ns: u64) -> Option<Latency> {
    Some(Latency {
        samples: 1000,
        p50_ns: ns,
        p90_ns: 2 * ns,
        p99_ns: 3 * ns,
        p999_ns: 20 * ns,
        p9999_ns: 100 * ns,
        max_ns: 1000 * ns,
        ..Latency::default()
    })
}

fn line(engine: &str, hits: u64, capacity_bytes: u64) -> Line {
    let sample = |at: u32| Sample {
        at_seconds: f64::from(at) / 2.0,
        length_seconds: 0.5,
        measured: at > 2,
        hits: hits / 10,
        misses: (1_000_000 - hits) / 10,
        growth_bytes: u64::from(at) << 24,
    };
    Line {
        engine: engine.parse().unwrap(),
        capacity: Some(ConfiguredCapacity {
            bytes: capacity_bytes,
            fills: vec![Fill {
                capacity_bytes,
                growth_bytes: 65 << 20,
                holds_all: false,
            }],
            runs: Vec::new(),
        }),
        measured: Some(Measured {
            warmup_seconds: 1.0,
            warmup_operations: 500_000,
            seconds: 2.0,
            hits,
            misses: 1_000_000 - hits,
            hit_latency: latency(600),
            miss_latency: latency(2100),
            read_latency: latency(900),
            records: Some(hits),
            bytes_held: engine.starts_with("leafpress").then_some(60 << 20),
            peak_growth_bytes: 66 << 20,
            growth_bytes: 65 << 20,
            cpu_seconds: 3.5,
            samples: (1..=4).map(sample).collect(),
            ..Measured::default()
        }),
        failure: None,
    }
}

/// Two caches at a rate that one of them does not keep up with, of a CacheBench file.
pub(super) fn at_a_rate() -> Outcome {
    let mut outcome = outcome();
    outcome.lines.truncate(2);
    outcome.options = Options {
        engines: outcome.options.engines[..2].to_vec(),
        rate: Some(500_000.0),
        ..Options::new(Work::CacheBench {
            path: "small/config.json".into(),
            scale: 0.5,
            data: Source::Synthetic(0.5),
            records: None,
        })
    };
    outcome.unused_fields = vec!["pop.json: oneHits".into(), "cache_config.poolSizes".into()];
    for (line, backlog) in outcome.lines.iter_mut().zip([20, 400_000]) {
        if let Some(measured) = &mut line.measured {
            (measured.removes, measured.remove_latency) = (100, latency(300));
            measured.rate = Some(RateFigures {
                asked: 500_000.0,
                backlog,
                wait_latency: latency(100 * backlog),
            });
        }
    }
    outcome
}

/// Four caches: one each of ours, another, one with mismatches, and one that failed.
pub(crate) fn outcome() -> Outcome {
    let mut wrong = line("moka", 160_000, 20 << 20);
    if let Some(measured) = &mut wrong.measured {
        measured.mismatches = Mismatches {
            stale: 2,
            wrong: 1,
            expired: 0,
            examples: vec!["key 7: version 3 when 4 was current".into()],
        };
        // As many operations as the others.
        measured.misses -= 100;
        (measured.writes, measured.write_latency) = (100, latency(900));
    }
    let failed = Line {
        capacity: None,
        measured: None,
        failure: Some("run failed: killed by signal 9 (SIGKILL)".into()),
        ..line("foyer", 0, 0)
    };
    let engines = ["leafpress", "quick_cache+zstd:3", "moka", "foyer"];
    Outcome {
        options: Options {
            engines: engines.map(|engine| engine.parse::<EngineSpec>().unwrap()).to_vec(),
            ..Options::new(Work::Paper(PaperObjects::default()))
        },
        work: vec![
            "keys of 16 bytes, values of 64 bytes".into(),
            "6,710,886 keys, 512M of keys and values, 8.0 times the memory; hotset:20:80".into(),
        ],
        unused_fields: Vec::new(),
        repeated_values: None,
        keys: 6_710_886,
        record_bytes: 80.0,
        host: "A CPU, 2 cores".into(),
        lines: vec![
            line("leafpress", 550_000, 64 << 20),
            line("quick_cache+zstd:3", 260_000, 30 << 20),
            wrong,
            failed,
        ],
        mrc: None,
        cancelled: false,
    }
}
