//! Small runs of every cache, in this process: the child's side of the comparison.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use leafpress::CacheError;

use super::driver::{self, Growth};
use super::engines::{Engine, Standing};
use super::job::{Prepared, Task};
use super::*;
use crate::core::corpus::Source;
use crate::core::keys::Distribution;

fn run(engine: &str, options: &Options) -> Measured {
    let task = Task {
        options: options.clone(),
        engine: engine.parse().unwrap(),
        capacity_bytes: options.memory_bytes,
    };
    measure(&task, &AtomicBool::new(false), &mut |_, _| {}).unwrap()
}

fn options() -> Options {
    Options {
        memory_bytes: 4 << 20,
        working_set_bytes: Some(1 << 20),
        warmup_operations: Some(20_000),
        length: Some(Length::Operations(20_000)),
        ..Options::new(Work::Paper(PaperObjects::default()))
    }
}

fn engines() -> Vec<&'static str> {
    let mut engines = vec![
        "leafpress",
        "leafpress:lz4",
        "quick_cache",
        "quick_cache+lz4",
        "moka",
        "moka+zstd:3",
    ];
    if cfg!(feature = "foyer") {
        engines.push("foyer");
    }
    engines
}

#[test]
fn every_cache_answers_right() {
    for engine in engines() {
        let measured = run(engine, &options());
        assert_eq!(measured.mismatches, Mismatches::default(), "{engine}");
        assert_eq!((measured.operations(), measured.writes), (20_000, 0), "{engine}");
        assert!(measured.hits > 10_000, "{engine}: all of it fits: {measured:?}");
        assert!(
            measured.records > Some(1000) && measured.hit_latency.is_some(),
            "{engine}: {measured:?}"
        );
        assert_eq!(measured.warmup_operations, 20_000, "{engine}");
        assert!(measured.samples.iter().any(|sample| sample.measured), "{engine}");
    }
}

#[test]
fn overwrites_are_seen_by_readers() {
    for engine in engines() {
        let options = Options {
            write_pct: 30.0,
            threads: 4,
            working_set_bytes: Some(80 * 200),
            distribution: Some(Distribution::Zipfian { theta: 0.9 }),
            ..options()
        };
        let measured = run(engine, &options);
        assert_eq!(measured.mismatches, Mismatches::default(), "{engine}");
        assert!(
            measured.writes > 4000 && measured.write_latency.is_some(),
            "{engine}: {measured:?}"
        );
    }
}

/// A cache's defect.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// It keeps the first version of a key for ever.
    KeepsFirst,
    /// As above, and a bit of it is wrong.
    FlipsBit,
    /// It ignores removals.
    KeepsRemoved,
    /// Its disk is full, and it goes on without it.
    LosesDisk,
}

/// A cache that lies.
struct Broken {
    records: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    fault: Fault,
}

impl Engine for Broken {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, CacheError> {
        let records = self.records.lock().unwrap();
        let Some(found) = records.get(key) else {
            return Ok(false);
        };
        value.clone_from(found);
        if self.fault == Fault::FlipsBit {
            value[40] ^= 1;
        }
        Ok(true)
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), CacheError> {
        let mut records = self.records.lock().unwrap();
        let kept = records.entry(key.into()).or_insert_with(|| value.into());
        if self.fault == Fault::KeepsRemoved {
            value.clone_into(kept);
        }
        Ok(())
    }

    fn remove(&self, _: &[u8]) -> Result<(), CacheError> {
        Ok(())
    }

    fn standing(&self) -> Standing {
        Standing {
            disk_error: (self.fault == Fault::LosesDisk).then(|| "no space left".to_owned()),
            ..Standing::default()
        }
    }
}

/// Its figures would be those of a cache without a disk.
#[test]
fn a_failing_disk_fails_the_measurement() {
    let options = options();
    let broken = Broken {
        records: Mutex::default(),
        fault: Fault::LosesDisk,
    };
    let prepared = Prepared::new(&options).unwrap();
    let shared = prepared.shared(&options, &broken);
    let scratch = Prepared::scratch(&options, &prepared.workload).unwrap();
    let never = AtomicBool::new(false);
    let measured = driver::measure(&shared, scratch, Growth::from_here(), &never, &mut |_, _| {});
    assert_eq!(measured.unwrap_err().to_string(), "no space left");
}

#[test]
fn a_cache_that_lies_is_caught() {
    for fault in [Fault::KeepsFirst, Fault::FlipsBit] {
        let options = Options {
            write_pct: 10.0,
            working_set_bytes: Some(80 * 2000),
            ..options()
        };
        let mismatches = lie(&options, fault);
        let flips = fault == Fault::FlipsBit;
        assert_eq!(
            (mismatches.stale > 0, mismatches.wrong > 0),
            (!flips, flips),
            "{mismatches:?}"
        );
        assert_eq!(mismatches.examples.len(), 3);
    }
}

fn lie(options: &Options, fault: Fault) -> Mismatches {
    let broken = Broken {
        records: Mutex::default(),
        fault,
    };
    drive(options, &broken, &AtomicBool::new(false)).mismatches
}

fn drive(options: &Options, engine: &dyn Engine, cancel: &AtomicBool) -> Measured {
    let prepared = Prepared::new(options).unwrap();
    let shared = prepared.shared(options, engine);
    let scratch = Prepared::scratch(options, &prepared.workload).unwrap();
    driver::measure(&shared, scratch, Growth::from_here(), cancel, &mut |_, _| {}).unwrap()
}

#[test]
fn all_keys_are_there_when_they_were_loaded() {
    for engine in engines() {
        let options = Options {
            load: true,
            warmup_operations: Some(0),
            distribution: Some(Distribution::Uniform),
            working_set_bytes: Some(500 << 10),
            ..options()
        };
        let measured = run(engine, &options);
        assert_eq!((measured.misses, measured.mismatches.total()), (0, 0), "{engine}");
        assert_eq!(measured.records, Some((500 << 10) / 80), "{engine}");
    }
}

#[test]
fn other_keys_become_hot_in_the_measured_time() {
    let options = Options {
        // The hot keys were requested in the warm-up, nearly all others never.
        distribution: Some(Distribution::HotSet {
            keys_pct: 1.0,
            operations_pct: 100.0,
        }),
        warmup_operations: Some(5000),
        threads: 1,
        // A miss is charged with more than a busy machine makes a hit take.
        backend_us: 100_000.0,
        shift_at: Some(10_000),
        ..options()
    };
    for engine in engines() {
        let measured = run(engine, &options);
        assert_eq!(measured.mismatches, Mismatches::default(), "{engine}");
        // Each of the 131 keys that are hot then is missed once; a few were not requested before either.
        assert!((120..150).contains(&measured.misses), "{engine}: {measured:?}");
        let moved = measured.moved(&options).unwrap();
        assert!(
            moved.worst_ns > 10.0 * moved.before_ns,
            "{engine}: misses take a tenth of a second: {moved:?}"
        );
        assert_eq!(
            measured.timeline.last().map(|moment| moment.operations > 15_000),
            Some(true)
        );
    }
    let still = Options {
        shift_at: None,
        ..options
    };
    assert!(run("leafpress", &still).misses < 20);
}

#[test]
fn records_that_live_for_a_while_are_right_too() {
    for engine in engines() {
        let options = Options {
            ttl_seconds: Some(1),
            length: Some(Length::Seconds(0.2)),
            ..options()
        };
        let measured = run(engine, &options);
        assert_eq!(measured.mismatches, Mismatches::default(), "{engine}");
    }
}

#[test]
fn a_trace_is_run_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tiny.csv");
    let lines: String = (0..3000)
        .map(|at| format!("{at},key{},{}\n", at % 100, 10 + at % 100))
        .collect();
    std::fs::write(&path, lines).unwrap();
    let options = Options {
        memory_bytes: 4 << 20,
        threads: 1,
        ..Options::new(Work::Trace {
            path,
            format: None,
            requests: None,
            data: Source::Synthetic(0.5),
            records: None,
        })
    };
    for engine in engines() {
        let measured = run(engine, &options);
        assert_eq!((measured.hits, measured.misses), (2900, 100), "{engine}");
        assert_eq!(
            (measured.warmup_operations, measured.mismatches.total()),
            (0, 0),
            "{engine}"
        );
        assert_eq!(measured.records, Some(100), "{engine}");
    }
}

/// A small workload of CacheBench, with every kind of operation.
fn cachebench() -> Options {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cache/workload/cachebench/small/config.json");
    Options {
        memory_bytes: 4 << 20,
        length: Some(Length::Operations(60_000)),
        ..Options::new(Work::CacheBench {
            path,
            scale: 0.02,
            data: Source::Synthetic(0.5),
            records: None,
        })
    }
}

#[test]
fn a_cachebench_file_is_run() {
    for engine in engines() {
        let measured = run(engine, &cachebench());
        assert_eq!(measured.mismatches, Mismatches::default(), "{engine}");
        assert_eq!(
            (measured.operations(), measured.warmup_operations),
            (60_000, 0),
            "{engine}"
        );
        // 70% of the operations read, a tenth of those keys that never come again; 6% remove, the rest writes.
        let near = |count: u64, share: f64| (count as f64 / 60_000.0 - share).abs() < 0.02;
        let reads = measured.hits + measured.misses;
        assert!(near(reads, 0.6 * 0.8 + 0.4 * 0.6), "{engine}: {measured:?}");
        assert!(
            near(measured.removes, 0.06) && near(measured.writes, 0.06 + 0.4 * 0.4),
            "{engine}: {measured:?}"
        );
        assert!(
            measured.hits as f64 > 0.5 * reads as f64,
            "{engine}: most of it fits: {measured:?}"
        );
        assert!(measured.remove_latency.is_some() && measured.rate.is_none(), "{engine}");
    }
}

#[test]
fn a_value_that_was_removed_and_is_found_is_stale() {
    let mismatches = lie(&cachebench(), Fault::KeepsRemoved);
    assert!(mismatches.stale > 100 && mismatches.wrong == 0, "{mismatches:?}");
}

#[test]
fn requests_come_at_a_rate_whether_the_cache_keeps_up_or_not() {
    let at = |rate, length| Options {
        rate: Some(rate),
        length: Some(length),
        ..options()
    };
    let measured = run("quick_cache", &at(10_000.0, Length::Operations(3000)));
    let figures = measured.rate.clone().unwrap();
    assert_eq!((measured.operations(), figures.asked), (3000, 10_000.0));
    // Poisson's 3,000 requests come in 0.3 s, give or take a tenth of that; a machine may be slow, and never quick.
    assert!(measured.seconds > 0.2, "{measured:?}");
    assert!(figures.wait_latency.is_some_and(|wait| wait.samples == 3000));
    // More than any cache can serve: the backlog is reported, and included in latencies.
    let measured = run("quick_cache", &at(1e8, Length::Seconds(0.3)));
    let figures = measured.rate.clone().unwrap();
    let came = measured.operations() + figures.backlog;
    assert!(came as f64 > 0.2 * 1e8, "{figures:?}");
    assert!(figures.backlog > 10 * measured.operations(), "{figures:?}");
    let hit = measured.hit_latency.clone().unwrap();
    assert!(hit.p50_ns > 20_000_000, "{hit:?}");
    let mut outcome = fixtures::outcome();
    outcome.lines[0].measured = Some(measured);
    let sentences = outcome.fell_behind();
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    assert!(
        sentences[0].starts_with("FELL BEHIND: leafpress: ") && sentences[0].contains("of 100,000,000"),
        "{sentences:?}"
    );
}

#[test]
fn a_read_that_misses_waits_for_the_backend() {
    let options = Options {
        backend_us: 500.0,
        warmup_operations: Some(0),
        ..options()
    };
    let measured = run("quick_cache", &options);
    let read = measured.read_latency.clone().unwrap();
    assert_eq!(read.samples, measured.hits + measured.misses);
    assert!(read.max_ns >= 500_000 && read.min_ns < 500_000, "{read:?}");
    let slow = measured.misses as f64 / read.samples as f64;
    assert!(read.mean_ns >= slow * 500_000.0 * 0.99, "{read:?}");
}

#[test]
fn a_fill_reports_the_growth() {
    let task = Task {
        options: options(),
        engine: "quick_cache".parse().unwrap(),
        capacity_bytes: 8 << 20,
    };
    let filled = fill(&task, &AtomicBool::new(false), &mut |_, _| {}).unwrap();
    assert!(filled.holds_all, "{filled:?}");
    let small = Task {
        capacity_bytes: 64 << 10,
        ..task
    };
    let filled = fill(&small, &AtomicBool::new(false), &mut |_, _| {}).unwrap();
    assert!(!filled.holds_all, "{filled:?}");
}

#[test]
fn a_cancelled_measurement_returns_an_error() {
    let task = Task {
        options: options(),
        engine: "leafpress".parse().unwrap(),
        capacity_bytes: 4 << 20,
    };
    let cancelled = measure(&task, &AtomicBool::new(true), &mut |_, _| {});
    assert!(matches!(cancelled, Err(crate::LabError::Cancelled)), "{cancelled:?}");
}

#[test]
fn figures_follow_from_what_was_counted() {
    let mut outcome = fixtures::outcome();
    assert_eq!(outcome.over_memory(), [""; 0]);
    outcome.lines[0].measured.as_mut().unwrap().peak_growth_bytes = 128 << 20;
    let sentences = outcome.over_memory();
    assert!(
        sentences.len() == 1 && sentences[0].contains("grew by 2.00 times 64M"),
        "{sentences:?}"
    );
    let measured = outcome.lines[0].measured.as_ref().unwrap();
    assert_eq!(measured.hit_ratio(), Some(0.55));
    assert_eq!(
        (measured.memory_hit_ratio(), measured.disk_hit_ratio()),
        (Some(0.55), None)
    );
    assert_eq!(measured.throughput(), 500_000.0);
    assert_eq!(outcome.fell_behind(), [""; 0]);
    // 450,000 misses of a millisecond each on two threads are 225 s.
    let charged = measured.charged_throughput(&outcome.options).unwrap();
    assert!((charged - 1e6 / 227.0).abs() < 0.1, "{charged}");
    let with_disk = Measured {
        disk: Some(DiskFigures {
            hits: 50_000,
            written_bytes: 300,
            evicted_bytes: 400,
        }),
        ..measured.clone()
    };
    assert_eq!(
        (with_disk.memory_hit_ratio(), with_disk.disk_hit_ratio()),
        (Some(0.5), Some(0.05))
    );
    assert_eq!(with_disk.written_per_evicted(), Some(0.75));
    assert_eq!(outcome.troubles().len(), 2, "{:?}", outcome.troubles());
}
