use super::*;
use crate::core::latency::Latency;
use crate::eval::matrix::RunSpec;
use crate::eval::result::{Memory, Resources, RunResult};
use crate::eval::{EvalConfig, LandingBytes, Workload};
use crate::harness::timeline::Moment;
use crate::report::testing::{charts, has_verdict, kept};
use std::path::Path;

fn row(codec: &str, workload: Workload, mops: f64, held: u64) -> Row {
    let latency = |base: u64| Latency {
        samples: 1_000_000,
        mean_ns: base as f64,
        min_ns: base / 2,
        p50_ns: base,
        p90_ns: base * 2,
        p99_ns: base * 3,
        p999_ns: base * 9,
        p9999_ns: base * 40,
        p99999_ns: base * 90,
        max_ns: base * 900,
    };
    let ops = (mops * 5e6) as u64;
    let [read, write, scan] = workload.shares().map(u64::from);
    RunResult {
        engine: "cpu".into(),
        wall_seconds: 5.0,
        reads: ops * read / 100,
        writes: ops * write / 100,
        scans: ops * scan / 100,
        read_latency: (read > 0).then(|| latency((1000.0 / mops) as u64)),
        write_latency: (write > 0).then(|| latency((2500.0 / mops) as u64)),
        resources: Some(Resources {
            user_seconds: 9.5,
            system_seconds: 0.4,
            ..Resources::default()
        }),
        ended: Memory {
            user_bytes: 6_800_000,
            bytes_held: held,
            ..Memory::default()
        },
        ..RunResult::default()
    }
    .into_row(codec, workload)
}

impl RunResult {
    fn into_row(self, codec: &str, workload: Workload) -> Row {
        let spec = RunSpec {
            run: "software_fixed".into(),
            codec: codec.into(),
            workload,
            threads: 2,
            landing_bytes: LandingBytes::Fixed(512),
            background: false,
            check_one_in: 1,
            base: EvalConfig::default(),
        };
        Row {
            spec,
            result: self,
            log: "logs/a.log".into(),
            cpu_log: None,
        }
    }
}

fn outcome(directory: &Path) -> EvalOutcome {
    let codecs = [
        ("none", 5.2, 7_900_000),
        ("lz4", 4.1, 2_900_000),
        ("zstd:1", 2.2, 1_450_000),
        ("zstd:3", 2.1, 1_430_000),
        ("deflate:1", 1.2, 1_640_000),
        ("zlib:1", 0.5, 1_650_000),
        ("qpl:software:fixed", 0.4, 1_900_000),
    ];
    let mut rows = Vec::new();
    let mixes = Workload::ALL
        .into_iter()
        .filter(|workload| *workload != Workload::HotSet);
    for (at, workload) in mixes.enumerate() {
        for (codec, mops, held) in codecs {
            let mops = if workload == Workload::Scan {
                mops / 40.0
            } else {
                mops / (1.0 + at as f64 / 6.0)
            };
            rows.push(row(codec, workload, mops, held + 90_000 * at as u64));
        }
    }
    EvalOutcome {
        rows,
        failures: Vec::new(),
        data: "50000 dense keys of 8 bytes, values of 128 bytes from a&b".into(),
        cautions: Vec::new(),
        table: String::new(),
        summary_path: directory.join("summary.tsv"),
        json_path: directory.join("results.json"),
        html_path: directory.join("report.html"),
        mismatches: 0,
        cancelled: false,
    }
}

fn finished(edit: impl FnOnce(&mut EvalOutcome)) -> (EvalOutcome, String) {
    let directory = tempfile::tempdir().unwrap();
    let mut outcome = outcome(directory.path());
    edit(&mut outcome);
    let config = EvalConfig {
        command_line: Some("leafpress eval --data a<b".into()),
        ..EvalConfig::default()
    };
    finish(&config, "A CPU, 2 cores", &mut outcome).unwrap();
    let html = std::fs::read_to_string(&outcome.html_path).unwrap();
    (outcome, kept(html))
}

#[test]
fn the_table_marks_the_best_and_is_narrow() {
    let (outcome, _) = finished(|_| {});
    let table = &outcome.table;
    let widest = table.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 120, "{widest} columns:\n{table}");
    for best in ["5.20*", "0.21-0.29*"] {
        assert!(table.contains(best), "{best}:\n{table}");
    }
    assert_eq!(table.matches("4.10").count(), 1);
    assert!(!table.contains("4.10*"), "only the best is marked:\n{table}");
}

/// A sentence must not mix the memory of one workload with the speed of another.
#[test]
fn a_verdict_is_of_one_workload_and_names_the_worst() {
    let run = |codec, workload, mops: f64, cores: f64, held| {
        let mut row = row(codec, workload, mops, held);
        row.result.resources = Some(Resources {
            user_seconds: cores * row.result.wall_seconds,
            ..Resources::default()
        });
        row
    };
    let (outcome, _) = finished(|outcome| {
        outcome.rows = vec![
            run("none", Workload::ReadOnly, 2.0, 1.0, 1_000_000),
            run("none", Workload::WriteOnly, 1.0, 1.0, 1_890_000),
            run("lz4", Workload::ReadOnly, 4.0, 4.0, 560_000),
            run("lz4", Workload::WriteOnly, 0.25, 0.5, 860_000),
        ];
    });
    let words = outcome.table.split_whitespace().collect::<Vec<_>>().join(" ");
    let part = "lz4 vs none, read_only: 44% less memory held, 2.0 times the operations per second, 50% fewer per core.";
    assert!(words.contains(part), "{words}");
    // By the clock 75% fewer; per core they are as bad: the first of equals is the main one.
    let (outcome, _) = finished(|outcome| {
        outcome.rows = vec![
            run("none", Workload::ReadOnly, 2.0, 1.0, 1_000_000),
            run("none", Workload::WriteOnly, 1.0, 1.0, 1_890_000),
            run("lz4", Workload::ReadOnly, 2.0, 1.0, 560_000),
            run("lz4", Workload::WriteOnly, 0.25, 1.0, 860_000),
        ];
    });
    let words = outcome.table.split_whitespace().collect::<Vec<_>>().join(" ");
    let part = "the same per core. Worst, write_only: 54% less memory held, 75% fewer operations per second, 75% fewer \
                per core.";
    assert!(words.contains(part), "{words}");
}

#[test]
fn the_page_has_every_chart_and_escapes_its_input() {
    let (_, html) = finished(|_| {});
    assert_eq!(charts(&html), 5, "throughput, two trade-offs, two latencies");
    assert!(html.contains("--data a&lt;b") && !html.contains("a<b"));
    assert!(has_verdict(&html), "{html}");
    assert!(html.contains("0 mismatches") && html.contains("A CPU, 2 cores"));
}

#[test]
fn what_went_wrong_is_on_the_page_and_under_the_table() {
    let (outcome, html) = finished(|outcome| {
        outcome.mismatches = 3;
        outcome.rows[0].result.mismatches = 3;
        outcome.rows[0].result.mismatch_examples = vec!["read: key 5 is missing".into()];
        outcome.cancelled = true;
        let spec = outcome.rows[0].spec.clone();
        outcome.failures.push(Failure {
            spec,
            reason: "killed by <signal>".into(),
            log: "x.log".into(),
        });
    });
    for words in [
        "3 mismatches",
        "cancelled: 49 finished rows",
        "killed by &lt;signal&gt;",
    ] {
        assert!(html.contains(words), "{words}");
    }
    for words in [
        "MISMATCHES",
        "key 5 is missing",
        "failed: ",
        "cancelled: 49 finished rows",
    ] {
        assert!(outcome.table.contains(words), "{words}: {}", outcome.table);
    }
}

#[test]
fn reports_and_draws_a_move_of_the_hot_keys() {
    let (outcome, html) = finished(|outcome| {
        let mut moved = row("lz4", Workload::HotSet, 1.0, 2_900_000);
        moved.spec.base.shift_at = 1_000;
        moved.result.timeline = (1..=40)
            .map(|at| Moment {
                operations: 100 * at,
                mean_ns: if (11..20).contains(&at) { 4_000.0 } else { 1_000.0 },
                bytes_held: 2_900_000,
            })
            .collect();
        let mut never = moved.clone();
        never.spec.codec = "zstd:1".into();
        never.result.timeline.truncate(5);
        outcome.rows = vec![moved, never];
    });
    assert_eq!(
        charts(&html),
        5,
        "throughput, a trade-off, a latency, and two over operations"
    );
    let widest = outcome.table.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 120, "{widest} columns:\n{}", outcome.table);
    let words = outcome.table.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "hotset: lz4: mean read 1.00 us before the hot set moved, at most 4.00 after, 1.00 at the end; back within a \
         tenth after 1,000 operations",
        "hotset: zstd:1: the run ended before its hot set moved",
    ] {
        assert!(words.contains(part), "{part}:\n{words}");
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn an_evaluation_without_a_row_still_leaves_its_files() {
    let (outcome, html) = finished(|outcome| outcome.rows.clear());
    assert!(!html.contains("<svg") && outcome.table.is_empty());
    let (_, html) = finished(|outcome| outcome.rows.truncate(1));
    assert!(
        has_verdict(&html) && charts(&html) == 1,
        "one codec in one workload is a row: its latency alone is drawn"
    );
}
