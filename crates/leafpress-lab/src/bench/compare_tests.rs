use super::*;
use crate::bench::text::tests::report;
use crate::bench::{ScanErrors, Ycsb, document};
use crate::report::testing::has_verdict;

fn comparison() -> Comparison {
    let mut lines = Vec::new();
    for workload in [Ycsb::A, Ycsb::E] {
        for (input, milliseconds) in [("leafpress:lz4", [500.0, 400.0]), ("btreemap", [1000.0, 1000.0])] {
            let mut report = report(input, &milliseconds);
            report.options.set_ycsb(workload);
            lines.push(Line {
                options: report.options.clone(),
                report: Some(report),
                failures: Vec::new(),
            });
        }
    }
    lines[3].report = None;
    lines[3].failures.push("killed by signal 11 (SIGSEGV)".into());
    Comparison {
        lines,
        cancelled: false,
    }
}

#[test]
fn the_table_has_a_row_for_each_run() {
    let comparison = comparison();
    let text = document(&comparison).text();
    // A row is in each of the tables that fit the page, below its workload.
    let row = |workload: &str, index: &str| {
        let mut of = "";
        let rows = text.lines().filter(|line| {
            of = line.strip_prefix("YCSB ").unwrap_or(of);
            of == workload && line.trim_start().starts_with(index)
        });
        let rows = rows.collect::<Vec<_>>().join(" ");
        assert!(!rows.is_empty(), "no {index} of {workload} in\n{text}");
        rows
    };
    // A million operations in 500 ms, the lower of the middle two: 2 Mops/s, and the other repetition 2.5.
    let ours = row("A", "leafpress:lz4");
    assert!(
        ours.contains("2.000") && ours.contains("22.2%") && ours.contains("100%"),
        "{ours}"
    );
    let other = row("A", "btreemap");
    assert!(
        other.contains("1.000") && other.contains("50%") && other.contains("64"),
        "{other}"
    );
    let failed = row("E", "btreemap");
    assert!(failed.contains("- "), "{failed}");
    assert!(
        text.contains("failed: btreemap in YCSB E: killed by signal 11"),
        "{text}"
    );
}

#[test]
fn reports_wrong_scans_below_the_table() {
    let mut comparison = comparison();
    let outcomes = &mut comparison.lines[0].report.as_mut().unwrap().outcomes;
    for outcome in outcomes {
        outcome.scan_errors = ScanErrors {
            scans: 3,
            example: Some("a scan of".into()),
            ..ScanErrors::default()
        };
    }
    assert!(
        document(&comparison)
            .text()
            .contains("WRONG SCANS: leafpress:lz4 in YCSB A: 3; a scan of")
    );
}

#[test]
fn the_page_stands_alone_and_shows_everything() {
    let page = document(&comparison()).page("leafpress bench --compare <x>").unwrap();
    for part in [
        "<!doctype html>",
        "YCSB A",
        "leafpress:lz4",
        "Throughput over time",
        "Resident memory after the load",
        "Latency, all operations",
        "leafpress bench --compare &lt;x&gt;",
        "SIGSEGV",
        "ZIPFIAN(0.990000)",
    ] {
        assert!(page.contains(part), "no {part}");
    }
    for foreign in ["http://", "https://", "<script", "src="] {
        let found = page.replace("http://www.w3.org/2000/svg", "").contains(foreign);
        assert!(!found, "{foreign}");
    }
    let mut one = comparison();
    one.lines.truncate(1);
    let page = document(&one).page("leafpress bench leafpress").unwrap();
    assert!(page.contains("Latency by operation") && page.contains("Benchmark Options:"));
    // A single index is described in words, without a bar.
    assert!(has_verdict(&page) && !page.contains("class=\"bars\""), "{page}");
    assert!(one.verdicts()[0].contains(" Mops/s, "), "{:?}", one.verdicts());
}

#[test]
fn describes_mixes_in_words() {
    let report = report("dummy", &[1.0]);
    assert_eq!(
        report.options.workload(),
        "50% read, 10% insert, 30% update, 5% remove, 5% scan"
    );
}
