//! `matrix`, `frontier` and `caches`: what they run, print, write and refuse.

mod common;

use common::{Table, assert_page, bad_input, masked, success};
use tempfile::TempDir;

const TINY: [&str; 8] = [
    "--num",
    "2000",
    "--duration",
    "0.1",
    "--warmup",
    "0.02",
    "--rounds",
    "2",
];

fn studied(command: &str, more: &[&str]) -> (TempDir, String) {
    let directory = TempDir::new().unwrap();
    let out = directory.path().to_str().unwrap().to_owned();
    let mut arguments = vec![command, "--quiet", "--out", &out];
    arguments.extend(TINY);
    arguments.extend(more);
    let text = success(&arguments);
    (directory, text)
}

#[test]
fn a_matrix_has_every_scenario_and_the_papers_rows() {
    let (out, text) = studied(
        "matrix",
        &["--compression", "none,lz4,leafpress:zstd:1", "--threads", "2"],
    );
    let table = Table::read(&out.path().join("summary.tsv"));
    assert_eq!(
        table.rows.len(),
        8 * 3,
        "two blocks, two values, two accesses, three compressions"
    );
    for row in 0..table.rows.len() {
        assert_eq!(table.get(row, "pairs"), "2");
        assert_eq!(table.get(row, "mismatches"), "0");
        assert!(table.number(row, "throughput_change_pct").is_finite());
        assert!(table.number(row, "cpu_saved_at_baseline_throughput_pct") < 100.0);
        if table.get(row, "compression") == "none" {
            assert!(
                table.number(row, "size_change_pct") > 20.0,
                "zstd compresses the sample"
            );
        }
    }
    // A load of each compression and pairs of each with the baseline, and at least a rung of each.
    let runs = Table::read(&out.path().join("runs.tsv"));
    let of = |name: &str| {
        (0..runs.rows.len())
            .filter(|row| runs.get(*row, "workload") == name)
            .count()
    };
    assert_eq!(of("fillseq"), 4 * 4);
    assert!(of("readrandom") >= 4 * 3 * 2 * 4, "{}", of("readrandom"));
    for words in [
        "4K blocks, 32 B values, read-only",
        "16K blocks, 256 B values, 80:20",
        "Over all scenarios, least..most, against zstd",
        "Cost: compute is 20.8% of the total cost of ownership over 4 years",
        "of the cores and of the cost of compute saved",
    ] {
        assert!(text.contains(words), "no `{words}` in:\n{text}");
    }
    assert_page(
        out.path(),
        &[
            "figure 4",
            "figure 5",
            "figure 7",
            "16K blocks, 256 B values",
            "Total cost of ownership",
        ],
    );
    let left: Vec<_> = std::fs::read_dir(out.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left.len(), 4, "{left:?}");
}

#[test]
fn prices_are_taken() {
    let (_out, text) = studied(
        "matrix",
        &[
            "--compression=lz4",
            "--block_size=4K",
            "--value_size=32",
            "--tco",
            "--cores=100",
            "--core-cost=50",
            "--total-cost=20000",
        ],
    );
    // Wherever its lines end.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("compute is 25.0% of the total cost"), "{text}");
    assert!(text.contains("; cores ") && text.contains("; total cost "), "{text}");
}

#[test]
fn a_matrix_has_this_layout() {
    let (_out, text) = studied(
        "matrix",
        &["--compression=lz4", "--block_size=4K", "--value_size=32", "--no-ladder"],
    );
    for line in text.lines() {
        let most = if line.starts_with('─') { 60 } else { 80 };
        assert!(line.chars().count() <= most, "{line}");
    }
    let text = masked(&text);
    for table in [
        "
# blocks, # B values, read-only
---
compression Mops/s throughput data
% %
---
zstd #
lz4 #
---

Latency, and CPU of an operation
---
",
        "
Over all scenarios, least..most, against zstd
---
access throughput data size
% %
---
lz4
read-only #
#
---
",
    ] {
        assert!(text.contains(table), "{table}\nis not in\n{text}");
    }
}

#[test]
fn a_frontier_marks_what_nothing_beats() {
    let list = "none,lz4,zstd:1,dict=4K,leafpress:lz4,leafpress:zstd:1,leafpress:zstd:1,dict=4K";
    let (out, text) = studied(
        "frontier",
        &["--compression", list, "--value_size=100", "--block_size=4K"],
    );
    let table = Table::read(&out.path().join("summary.tsv"));
    assert_eq!(table.rows.len(), 2 * 6);
    assert!(
        text.contains("leafpress:zstd:1,dict=4K") && text.contains('◆'),
        "{text}"
    );
    assert_page(
        out.path(),
        &["the dashed line joins what nothing beats", "read-only", "80:20"],
    );
}

#[test]
fn caches_have_the_same_memory() {
    let (out, text) = studied(
        "caches",
        &[
            "--memory=1M",
            "--secondary_options",
            "codec=lz4",
            "--secondary_options",
            "codec=zstd:1",
        ],
    );
    let table = Table::read(&out.path().join("summary.tsv"));
    assert_eq!(table.rows.len(), 4);
    for row in 0..4 {
        let bytes = table.number(row, "block_cache_bytes") + table.number(row, "secondary_cache_bytes");
        assert_eq!(bytes, f64::from(1 << 20));
        assert_eq!(table.get(row, "rounds"), "2");
    }
    // A run that was held up may have read next to nothing.
    let has_hits = |row: &usize| table.number(*row, "hit_pct") > 0.0;
    assert!((0..4).any(|row| has_hits(&row)), "nothing is cached");
    assert_eq!(table.number(0, "over_first"), 1.0);
    assert!(
        text.contains("compressed-secondary:768K") && text.contains("leafpress-secondary:768K,codec=zstd:1"),
        "{text}"
    );
    assert_page(out.path(), &["Throughput", "Hits", "leafpress-secondary"]);
}

#[test]
fn bad_arguments_are_one_line() {
    for (arguments, words) in [
        (
            &["matrix", "--compression=lz4,lz4"][..],
            &["--compression", "twice"][..],
        ),
        (&["matrix", "--compression=brotli"], &["--compression", "brotli"]),
        (&["matrix", "--baseline=x"], &["--baseline", "x"]),
        (&["matrix", "--rounds=0"], &["--rounds"]),
        (&["matrix", "--duration=0"], &["--seconds"]),
        (&["matrix", "--access=writes"], &["--access", "read-only"]),
        (&["matrix", "--tco", "--compute-share-pct=0"], &["compute-share-pct"]),
        (&["matrix", "--value_size=0"], &["--value_size"]),
        (&["frontier", "--block_size=1"], &["--block_size"]),
        (&["frontier", "--dict=2G"], &["--dict"]),
        (&["caches", "--memory=1"], &["--memory"]),
        (&["caches", "--times=0"], &["--times"]),
        (&["caches", "--secondary_pct=100"], &["--secondary-pct"]),
        (&["caches", "--benchmark=fillseq"], &["--benchmark", "fillseq"]),
        (&["caches", "--cache=x"], &["--cache", "x"]),
        (&["caches", "--secondary_options=no_such_option=1"], &["no_such_option"]),
        (
            &["matrix", "--compression=leafpress:lz4,no_such_option=1"],
            &["no_such_option"],
        ),
        (&["frontier", "--value_src_data_file=/no/such"], &["--data", "/no/such"]),
        (&["caches", "--db=/proc/leafpress"], &["--db", "/proc/leafpress"]),
        (&["frontier", "--out=/proc/leafpress"], &["--out", "/proc/leafpress"]),
    ] {
        bad_input(arguments, words);
    }
}
