use super::*;
use crate::bench::{Counts, CpuTime, Hardware, Latencies, Ratios, Reading, Sample, ScanErrors, WindowLatency, Ycsb};
use crate::report::testing::assert_golden;

pub(in crate::bench) fn environment() -> Environment {
    Environment {
        time: "Tue Nov  5 14:05:25 2019".into(),
        cpus: 96,
        cpu_model: "Intel(R) Xeon(R) Platinum 8260L CPU @ 2.40GHz".into(),
        cpu_cache: "36608 KB".into(),
        kernel: "Linux 5.3.4-3-default".into(),
    }
}

pub(in crate::bench) fn latency(base: u64) -> Latency {
    Latency {
        samples: 99_935,
        mean_ns: base as f64 * 1.5,
        min_ns: base / 2,
        p50_ns: base,
        p90_ns: base * 2,
        p99_ns: base * 3,
        p999_ns: base * 4,
        p9999_ns: base * 5,
        p99999_ns: base * 6,
        max_ns: base * 7,
    }
}

pub(in crate::bench) fn outcome(run_milliseconds: f64) -> Outcome {
    let counts = |completed, succeeded| Counts { completed, succeeded };
    Outcome {
        index: "an index".into(),
        load: Some(Load {
            records: 10_000_000,
            in_bulk: false,
            milliseconds: 13_894.3,
            verify_milliseconds: Some(1.0),
            wrong_values: 0,
            resident: Resident::Growth(640_000_000),
            held_bytes: Some(320_000_000),
        }),
        run_milliseconds,
        counts: [
            counts(500_000, 500_000),
            counts(100_000, 99_000),
            counts(300_000, 300_000),
            counts(50_000, 40_000),
            counts(50_000, 50_000),
            counts(0, 0),
        ],
        scanned_records: 5_000_000,
        scan_errors: ScanErrors::default(),
        hardware: Some(Hardware {
            l3_misses: Reading::Count(465_456_489),
            dram_read_bytes: Reading::Count(372_072_000),
            dram_write_bytes: Reading::NotAvailable("no uncore counters".into()),
            nvm_read_bytes: Reading::NotAvailable("this machine has no persistent memory".into()),
            nvm_write_bytes: Reading::NotAvailable("this machine has no persistent memory".into()),
            instructions: Reading::Count(7_000_000_000),
            cycles: Reading::Count(3_500_000_000),
        }),
        samples: vec![
            Sample {
                end_ms: 100.0,
                length_ms: 100.0,
                operations: 600_000,
            },
            Sample {
                end_ms: 450.0,
                length_ms: 350.0,
                operations: 400_000,
            },
        ],
        latencies: Some(Latencies {
            all: Some(latency(1949)),
            by_operation: vec![(Operation::Read, latency(1000)), (Operation::Scan, latency(20_000))],
            service: None,
            windows: vec![WindowLatency {
                start_ms: 0,
                samples: 99_935,
                p50_ns: 1949,
                p99_ns: 5847,
                max_ns: 13_643,
            }],
        }),
        cpu: CpuTime {
            wall_seconds: run_milliseconds / 1000.0,
            user_seconds: 0.4,
            system_seconds: 0.05,
            voluntary_switches: 3,
            involuntary_switches: 4,
            other_cores: None,
        },
        held_bytes: None,
    }
}

pub(in crate::bench) fn report(input: &str, run_milliseconds: &[f64]) -> Report {
    let mut options = Options::new(input.parse().unwrap());
    options.records = 10_000_000;
    options.ratios = Ratios {
        read: 0.5,
        insert: 0.1,
        update: 0.3,
        remove: 0.05,
        scan: 0.05,
        ..Ratios::NONE
    };
    (options.law, options.latency_sampling, options.sampling_ms) = (Law::SelfSimilar, 0.1, 100);
    Report {
        options,
        environment: environment(),
        sampled: None,
        repeated_values: None,
        outcomes: run_milliseconds.iter().map(|ms| outcome(*ms)).collect(),
    }
}

/// The layout is PiBench's, to the byte. Scripts read it: change nothing here without knowing that they still can.
#[test]
fn the_layout_is_pibenchs() {
    let report = report("./fptree.so", &[450.647]);
    assert_golden("bench/golden/report.txt", &whole(&report));
}

#[test]
fn the_layout_without_load_hardware_and_latency() {
    let mut report = report("btreemap", &[1000.0]);
    report.options.mode = Mode::Time;
    report.options.set_ycsb(Ycsb::F);
    report.options.latency_sampling = 0.0;
    let outcome = &mut report.outcomes[0];
    (outcome.load, outcome.hardware, outcome.latencies) = (None, None, None);
    outcome.counts[Operation::ReadModifyWrite as usize] = Counts {
        completed: 7,
        succeeded: 6,
    };
    outcome.counts[Operation::Scan as usize] = Counts::default();
    assert_golden("bench/golden/bare.txt", &whole(&report));
}

#[test]
fn reports_an_open_loop_and_repetitions() {
    let mut report = report("masstree", &[1000.0, 500.0, 2000.0]);
    report.options.rate = Some(1_200_000.0);
    for outcome in &mut report.outcomes {
        outcome.hardware = None;
        outcome.latencies.as_mut().unwrap().service = Some(latency(500));
        outcome.scan_errors = ScanErrors {
            scans: 2,
            not_ascending: 2,
            ..ScanErrors::default()
        };
        outcome.load.as_mut().unwrap().wrong_values = 5;
    }
    assert_golden("bench/golden/open_loop.txt", &whole(&report));
}

/// No latency was sampled: the line is present, without figures.
#[test]
fn reports_that_there_are_no_samples() {
    let mut report = report("masstree", &[1000.0]);
    report.outcomes[0].latencies = Some(Latencies::default());
    let text = whole(&report);
    assert!(
        text.contains("\nLatencies (0 operations observed):\nScan check:"),
        "{text}"
    );
}

/// Every phrase that scripts parse in PiBench's output occurs exactly once.
#[test]
fn labels_of_pibench_are_not_repeated() {
    let text = whole(&report("masstree", &[1000.0]));
    for label in [
        "\tRun time: ",
        "Results:",
        "\tOperations: ",
        "- Completed: ",
        "- Succeeded: ",
        "- Read completed: ",
        "Samples:\n",
        "Latencies (",
        "\t50%: ",
        "\t99%: ",
        "\tmin: ",
        "\tmax: ",
        "\tL3 misses: ",
        "Loading finished in ",
    ] {
        assert_eq!(text.matches(label).count(), 1, "{label}");
    }
}

#[test]
fn numbers_are_written_as_cpp_streams_write_them() {
    for (number, text) in [
        (0.0, "0"),
        (1.0, "1"),
        (0.5, "0.5"),
        (0.1 + 0.2, "0.3"),
        (13_894.3, "13894.3"),
        (123_456.0, "123456"),
        (1_234_567.0, "1.23457e+06"),
        (999_999.6, "1e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1.0 / 3.0, "0.333333"),
        (99.999_999, "100"),
        (100_000.0, "100000"),
    ] {
        assert_eq!(general(number), text, "{number}");
    }
}
