//! `leafpress model` as a user runs it.

use std::collections::HashMap;

use crate::common::{assert_bad_input, run, succeeded, write};
use tempfile::TempDir;

/// A run that must end well.
#[track_caller]
fn model(arguments: &[&str]) -> String {
    let output = run(&[&["model"], arguments].concat());
    succeeded(&output)
}

/// The lines of `--tsv` as maps from column to cell.
fn rows(arguments: &[&str]) -> Vec<HashMap<String, String>> {
    let text = model(&[arguments, &["--tsv"]].concat());
    let mut lines = text.lines();
    let names: Vec<_> = lines.next().expect("a header").split('\t').collect();
    let row = |line: &str| {
        let cells = line.split('\t').map(str::to_owned);
        names.iter().map(|name| (*name).to_owned()).zip(cells).collect()
    };
    lines.map(row).collect()
}

#[track_caller]
fn figure(row: &HashMap<String, String>, column: &str) -> f64 {
    row.get(column)
        .and_then(|cell| cell.parse().ok())
        .unwrap_or_else(|| panic!("no figure {column} in {row:?}"))
}

#[test]
fn the_report_states_which_codecs_pay_and_from_where_on() {
    let text = model(&[]);
    let mut at = 0;
    for part in [
        "200G of data in pages of 8K, 15G of memory (7.50%)",
        "Access hotset:20:80 · device 462.86 us per read",
        "Corrected formulas · replacement clock",
        "Without compression: ",
        "lz4: ratio 2.13, 2 us to compress a page, 1 us to decode one",
        "lz4 pays from ",
        "zstd: ratio 2.97",
        "zstd pays from ",
        "zstd is faster than lz4",
    ] {
        let found = text[at..]
            .find(part)
            .unwrap_or_else(|| panic!("no `{part}` in\n{text}"));
        at += found;
    }
}

#[test]
fn published_figures_come_out_of_the_command_line() {
    let rows = rows(&[
        "--as-published",
        "--data",
        "500GiB",
        "--access",
        "uniform",
        "--shares",
        "0,100",
    ]);
    let us: Vec<_> = rows.iter().map(|row| row["us_per_page"].as_str()).collect();
    // 112 us x 0.97, then as in figure 12b at C = 100%.
    assert_eq!(us, ["108.640000", "105.034900", "114.460000", "108.466300"]);
    assert_eq!(figure(&rows[0], "raw_us_per_page"), 106.7);
}

#[test]
fn sizes_have_the_same_meaning_in_every_unit() {
    let hits = |data: &str, memory: &str| {
        let rows = rows(&[
            "--as-published",
            "--data",
            data,
            "--memory",
            memory,
            "--access",
            "uniform",
            "--shares",
            "0",
        ]);
        (rows[0]["data_bytes"].clone(), rows[0]["hit_pct"].clone())
    };
    assert_eq!(hits("200GiB", "15GiB"), ("214748364800".into(), "7.5000".into()));
    assert_eq!(hits("200GB", "15GB"), ("200000000000".into(), "7.5000".into()));
    assert_eq!(hits("200G", "15G"), hits("200GiB", "15GiB"));
    assert_eq!(hits("200GB", "15GiB").1, "8.0531");
}

#[test]
fn the_reproduction_of_the_thesis_succeeds_and_lists_wrong_statements() {
    let text = model(&["--reproduce-thesis"]);
    for part in [
        "94.587 us",
        "80.569%",
        "84.6%",
        "102.971 us",
        "text disagrees",
        "figure 12d: lz4 pays from",
        " 0 differ.",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(!text.contains("DIFFERS"), "{text}");
    assert!(model(&["--reproduce-white-paper"]).contains("no one share of compute gives both 9% and 15%"));
}

#[test]
fn costs_follow_from_prices() {
    let text = model(&[
        "--as-published",
        "--tco",
        "--total-cost",
        "1000000",
        "--compute-share-pct",
        "20",
        "--cores-saved-pct",
        "67",
    ]);
    assert!(
        text.contains("compute is 20.0% of the total cost of ownership over 4 years"),
        "{text}"
    );
    assert!(text.contains("134000.00"), "20% of 67% of a million: {text}");
}

#[test]
fn files_are_what_is_printed() {
    let directory = TempDir::new().expect("a temporary directory");
    let out = directory.path().join("a/b");
    let out = out.to_str().expect("UTF-8");
    let text = model(&["--out", out, "--tco"]);
    assert!(text.contains("report.html"));
    let read = |name: &str| std::fs::read_to_string(format!("{out}/{name}")).expect(name);
    assert_eq!(read("summary.tsv"), model(&["--tsv"]));
    let json: serde_json::Value = serde_json::from_str(&read("results.json")).expect("JSON");
    assert_eq!(json["format"], 1);
    assert_eq!(json["codecs"][1]["codec"]["name"], "zstd");
    assert_eq!(json["options"]["access"], "hotset:20:80");
    assert_eq!(json["savings"].as_array().map(Vec::len), Some(2));
    assert_eq!(read("report.html").matches("<svg class=\"wide\"").count(), 4);
    let printed: serde_json::Value = serde_json::from_str(&model(&["--json"])).expect("JSON");
    assert_eq!(printed["codecs"], json["codecs"]);
}

#[test]
fn a_trace_is_read_as_text_and_as_bytes() {
    let directory = TempDir::new().expect("a temporary directory");
    let pages: Vec<u64> = (0..20_000).map(|access| access % 1000).collect();
    let text: String = pages.iter().map(|page| format!("{page}\n")).collect();
    write(directory.path(), "pages.txt", &text);
    let bytes: Vec<u8> = pages.iter().flat_map(|page| page.to_le_bytes()).collect();
    std::fs::write(directory.path().join("pages.bin"), bytes).expect("written");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let trace = |name: &str| format!("trace:{}", path(name));
    // A loop over 1000 pages of 8 KiB: nothing is hit raw in 4 MiB, nearly all with a third of the bytes.
    let of = |arguments: &[&str]| {
        let common = ["--memory", "4MiB", "--shares", "0,100", "--overhead", "none"];
        let rows = rows(&[&common, arguments].concat());
        (figure(&rows[2], "hit_pct"), figure(&rows[3], "hit_pct"))
    };
    assert_eq!(of(&["--distribution", &trace("pages.txt")]), (0.0, 95.0));
    assert_eq!(
        of(&["--distribution", &trace("pages.bin"), "--trace-format", "u64le"]),
        (0.0, 95.0)
    );
    assert_eq!(
        of(&["--distribution", &trace("pages.txt"), "--replacement", "ideal"]).1,
        100.0
    );
    let report = model(&["--distribution", &trace("pages.txt"), "--memory", "4MiB"]);
    assert!(
        report.contains("20,000 accesses to 1,000 pages of 8K; 5.00% are first accesses"),
        "{report}"
    );
    write(directory.path(), "junk.txt", &format!("{text}oops\n"));
    assert_bad_input(
        &run(&["model", "--distribution", &trace("junk.txt"), "--memory", "4MiB"]),
        &["line 20001", "oops", "--skip-junk"],
    );
    assert!(
        model(&["--distribution", &trace("junk.txt"), "--memory", "4MiB", "--skip-junk"]).contains("1 lines skipped")
    );
}

#[test]
fn mistakes_are_one_line_and_exit_status_2() {
    let cases: [(&[&str], &[&str]); 22] = [
        (&["--data", "-1"], &["--data", "invalid size"]),
        (&["--memory", "-5GB"], &["--memory", "invalid size"]),
        (&["--data", "0"], &["--data", "a page"]),
        (&["--data", "15 GB"], &["--data", "invalid size"]),
        (&["--data-bytes", "99999999T"], &["--data-bytes", "is too large"]),
        (&["--memory", "1K"], &["--memory"]),
        (&["--page-bytes", "0"], &["--page-bytes"]),
        (&["--codec", "lz4"], &["--codec", "NAME=RATIO"]),
        (&["--codec", "lz4=0.5,1,1"], &["--codec", "ratio"]),
        (&["--codec", "a=2,1,1", "--codec", "a=3,1,1"], &["--codec", "twice"]),
        (&["--device-us", "-5"], &["--device-us"]),
        (&["--device-us", "nan"], &["--device-us"]),
        (&["--distribution", "pareto"], &["--distribution", "zipfian"]),
        (&["--access", "20,180"], &["--distribution"]),
        (&["--shares", "0,200"], &["--shares"]),
        (&["--replacement", "fifo"], &["--replacement", "clock, lru or ideal"]),
        (&["--as-published", "--replacement", "lru"], &["--replacement"]),
        (
            &["--distribution", "trace:/nowhere/trace"],
            &["--distribution trace:/nowhere/trace"],
        ),
        (
            &["--distribution", "trace:/nowhere/trace", "--data-bytes", "1G"],
            &["--data-bytes", "trace"],
        ),
        (
            &["--distribution", "trace:/nowhere/trace", "--replacement", "clock"],
            &["--replacement", "lru"],
        ),
        (&["--tco", "--cores", "5"], &["--cores", "--core-cost"]),
        (&["--total-cost", "5"], &["--tco"]),
    ];
    for (arguments, words) in cases {
        assert_bad_input(&run(&[&["model"], arguments].concat()), words);
    }
}

#[test]
fn reports_a_directory_that_cannot_be_created() {
    let directory = TempDir::new().expect("a temporary directory");
    write(directory.path(), "file", "");
    let out = directory.path().join("file/out");
    assert_bad_input(&run(&["model", "--out", out.to_str().expect("UTF-8")]), &["--out"]);
}
