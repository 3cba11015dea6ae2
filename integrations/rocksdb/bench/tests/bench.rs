//! `leafpress-rocksdb bench`: what it runs, prints, writes and refuses.

mod common;

use common::{Table, assert_page, bad_input, masked, run, stderr, success};
use tempfile::TempDir;

/// A run of a moment.
const TINY: [&str; 8] = [
    "--num",
    "3000",
    "--duration",
    "0.2",
    "--warmup",
    "0.05",
    "--threads",
    "2",
];

#[test]
fn all_benchmarks_run_and_are_in_the_files() {
    let directory = TempDir::new().unwrap();
    let (db, out) = (directory.path().join("db"), directory.path().join("out"));
    let benchmarks = "fillseq,readseq,readrandom,seekrandom,readrandomwriterandom,overwrite,\
                      ycsba,ycsbb,ycsbc,ycsbd,ycsbe,ycsbf,compact";
    let mut arguments = vec![
        "bench",
        "--benchmarks",
        benchmarks,
        "--instances",
        "2",
        "--seek_nexts=10",
        "--verify",
    ];
    arguments.extend(TINY);
    arguments.extend(["--db", db.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let text = success(&arguments);
    for benchmark in benchmarks.split(',') {
        assert!(text.contains(benchmark), "no {benchmark} in:\n{text}");
    }
    let table = Table::read(&out.join("summary.tsv"));
    assert_eq!(table.rows.len(), benchmarks.split(',').count());
    for row in 0..table.rows.len() {
        assert_eq!(table.get(row, "mismatches"), "0");
        assert!(
            table.number(row, "operations") > 0.0 && table.number(row, "sst_bytes") > 0.0,
            "row {row}"
        );
        assert_eq!(table.get(row, "instances"), "2");
    }
    let row = |name: &str| {
        (0..table.rows.len())
            .find(|row| table.get(*row, "workload") == name)
            .unwrap()
    };
    assert_eq!(table.get(row("fillseq"), "writes"), "6000");
    assert_eq!(table.get(row("readseq"), "operations"), "6000");
    for name in ["readrandom", "ycsbc"] {
        assert_eq!(table.get(row(name), "reads"), table.get(row(name), "found"), "{name}");
        assert_eq!(table.get(row(name), "writes"), "0", "{name}");
    }
    let mixed = row("readrandomwriterandom");
    let (reads, all) = (table.number(mixed, "reads"), table.number(mixed, "operations"));
    // Each thread reads 80 times and then writes 20 times; if there is little time it may have done no more than the
    // former.
    assert!(
        (reads - 0.8 * all).abs() <= 200.0,
        "{reads} of {all} operations are reads"
    );
    assert!(table.number(row("ycsbe"), "scanned_records") > table.number(row("ycsbe"), "scans"));
    assert!(table.number(row("seekrandom"), "scanned_records") > 5.0 * table.number(row("seekrandom"), "scans"));
    assert_page(
        &out,
        &["Throughput", "Tickers of readrandom", "leafpress-rocksdb bench"],
    );
    let json = std::fs::read_to_string(out.join("results.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), table.rows.len());
    assert_eq!(json["rows"][2]["run"]["workload"], "readrandom");
}

#[test]
fn random_fills_leave_keys_out() {
    let directory = TempDir::new().unwrap();
    let out = directory.path().to_str().unwrap();
    success(&[
        "bench",
        "--benchmarks=fillrandom,readrandom",
        "--num=5000",
        "--reads=5000",
        "--out",
        out,
    ]);
    let table = Table::read(&directory.path().join("summary.tsv"));
    assert_eq!(table.get(0, "writes"), "5000");
    // As many random puts as keys leave a part of 1/e out.
    let found = table.number(1, "found") / table.number(1, "reads");
    assert!((0.58..0.68).contains(&found), "{found} found of random keys");
    assert_eq!(table.get(1, "mismatches"), "0");
}

#[test]
fn the_layout_is_this() {
    let mut arguments = vec!["bench", "--quiet", "--statistics=false", "--compression", "lz4"];
    arguments.extend(TINY);
    let text = success(&arguments);
    for line in text.lines() {
        let most = if line.starts_with('─') { 60 } else { 80 };
        assert!(line.chars().count() <= most, "{line}");
    }
    let text = masked(&text);
    let table = &text[text.find("---\n").expect("a table")..];
    let golden = "\
---
benchmark Mops/s p99 CPU us SST
us per op
---
lz4
fillseq #
readrandom #
---

Other rates and times, what was found
---
";
    assert!(table.starts_with(golden), "{table}");
}

#[test]
fn leafpress_compressions_and_dictionaries_run() {
    let directory = TempDir::new().unwrap();
    for (number, compression) in [
        "leafpress:lz4",
        "leafpress:zstd:3,verify=true",
        "leafpress:deflate:1",
        "leafpress:zstd:1,dict=4K",
        "zstd,dict=4K",
    ]
    .iter()
    .enumerate()
    {
        let out = directory.path().join(number.to_string());
        let mut arguments = vec![
            "bench",
            "--compression",
            compression,
            "--verify",
            "--benchmarks=fillseq,readrandom,readrandomwriterandom",
        ];
        arguments.extend(TINY);
        arguments.extend(["--out", out.to_str().unwrap()]);
        success(&arguments);
        let table = Table::read(&out.join("summary.tsv"));
        assert!(
            table.number(0, "sst_bytes") < 0.8 * table.number(0, "raw_bytes"),
            "{compression} compresses the sample"
        );
    }
}

#[test]
fn both_spellings_and_db_benchs_flags_are_taken() {
    let mut arguments = vec![
        "bench",
        "--benchmarks=fillseq,readrandomwriterandom",
        "--key-size=16",
        "--value-size=100",
        "--block-size=4096",
        "--cache-size=1048576",
        "--compression_type=zstd",
        "--compression_level=1",
        "--readwritepercent=50",
        "--seed=7",
        "--bloom_bits=10",
        "--max_background_jobs=2",
        "--use_direct_reads=false",
        "--value_src_data_type=pure_random",
        "--compression_ratio=0.3",
        "--disable_wal=0",
        "--format_version=6",
    ];
    arguments.extend(TINY);
    let text = success(&arguments);
    assert!(
        text.contains("zstd:1") && text.contains("block cache 1M") && text.contains("(pure_random)"),
        "{text}"
    );
    let mut arguments = vec!["bench", "--cache_size=-1", "--reads=100", "--cache_type=lru_cache"];
    arguments.extend(TINY);
    assert!(success(&arguments).contains("block cache none"));
}

#[test]
fn bad_arguments_are_one_line() {
    for (arguments, words) in [
        (
            &["--benchmarks=readwhilewriting"][..],
            &["--benchmarks", "readwhilewriting", "readrandom"][..],
        ),
        (&["--benchmarks=readrandom"], &["fillseq", "--use_existing_db"]),
        (&["--benchmarks=", "--num=5"], &["--benchmarks"]),
        (
            &["--compression=snappy"],
            &["--compression", "snappy", "leafpress:CODEC"],
        ),
        (&["--compression=leafpress:brotli"], &["--compression", "brotli"]),
        (
            &["--compression=lz4", "--compression_level=3"],
            &["--compression_level"],
        ),
        (&["--value_size=0"], &["--value_size", "1 to"]),
        (&["--key_size=2", "--num=100000"], &["--num", "65536"]),
        (&["--block_size=10"], &["--block_size", "100"]),
        (&["--threads=0"], &["--threads"]),
        (&["--instances=0"], &["--instances"]),
        (&["--duration=-1"], &["--seconds"]),
        (&["--readwritepercent=101"], &["--readwritepercent"]),
        (&["--cache=1M+other:1M"], &["--cache", "leafpress-secondary"]),
        (&["--cache=1X"], &["--cache", "1X"]),
        (
            &["--value_src_data_type=file"],
            &["--value_src_data_type", "file_direct"],
        ),
        (&["--value_src_data_file=/no/such/file"], &["--data", "/no/such/file"]),
        (&["--data-size=0"], &["--data-bytes"]),
        (&["--distribution=pareto"], &["--distribution", "zipfian"]),
        (&["--sync"], &["--sync", "--disable_wal=false"]),
        (
            &["--compression=leafpress:lz4", "--format_version=6"],
            &["--format_version", "7"],
        ),
        (
            &["--use_existing_db", "--benchmarks=readrandom"],
            &["--use_existing_db", "--db"],
        ),
        (
            &["--use_existing_db", "--db=/tmp", "--benchmarks=fillseq"],
            &["--use_existing_db", "fillseq"],
        ),
        (&["--no_such_flag"], &["--no_such_flag", "leafpress-rocksdb --help"]),
        (&["--rocksdb_options=no_such_option=1", "--num=10"], &["no_such_option"]),
        (
            &["--compression=leafpress:lz4,no_such_option=1", "--num=10"],
            &["no_such_option"],
        ),
        (
            &["--cache=1M+leafpress-secondary:1M,no_such_option=1", "--num=10"],
            &["no_such_option"],
        ),
    ] {
        let mut all = vec!["bench"];
        all.extend(arguments);
        bad_input(&all, words);
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_reported() {
    for option in ["--db", "--out"] {
        bad_input(
            &["bench", "--num=10", option, "/proc/leafpress"],
            &[option, "/proc/leafpress", "name a writable directory"],
        );
    }
}

#[test]
fn a_full_disk_is_reported() {
    // A file system that is always full takes the place of the log.
    let directory = TempDir::new().unwrap();
    let db = directory.path().join("db");
    let output = run(&[
        "bench",
        "--db",
        db.to_str().unwrap(),
        "--num=100",
        "--duration=0.1",
        "--rocksdb_options=wal_dir=/dev/full",
        "--disable_wal=false",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(
        stderr(&output)
            .lines()
            .filter(|line| line.starts_with("error: "))
            .count(),
        1
    );
    assert!(stderr(&output).contains("/dev/full"), "{}", stderr(&output));
}

#[test]
fn an_existing_database_is_used_when_it_is_the_one() {
    let directory = TempDir::new().unwrap();
    let db = directory.path().join("db");
    let db = db.to_str().unwrap();
    let existing = |more: &'static [&'static str]| {
        let mut all = vec![
            "bench",
            "--use_existing_db",
            "--benchmarks=readrandom",
            "--quiet",
            "--db",
            db,
        ];
        all.extend(TINY);
        all.extend(more);
        all
    };
    bad_input(&existing(&[]), &[db, "there is no database", "fillseq"]);
    let mut fill = vec![
        "bench",
        "--benchmarks=fillseq",
        "--compression=leafpress:zstd:1",
        "--db",
        db,
    ];
    fill.extend(TINY);
    success(&fill);
    let text = success(&existing(&["--compression=leafpress:zstd:1", "--verify"]));
    assert!(text.contains("100.0%"), "{text}");
    bad_input(
        &existing(&["--compression=zstd"]),
        &[db, "--compression leafpress:zstd:1", "not zstd"],
    );
    bad_input(
        &existing(&["--compression=leafpress:zstd:1", "--value_size=32"]),
        &[db, "--value_size 256", "not 32"],
    );
    // Without our note RocksDB's options file identifies the database.
    std::fs::remove_file(std::path::Path::new(db).join("leafpress-rocksdb.json")).unwrap();
    bad_input(&existing(&["--compression=lz4"]), &[db, "leafpress", "--compression"]);
    success(&existing(&["--compression=leafpress:zstd:1"]));
}

#[test]
fn wrong_values_are_found() {
    let directory = TempDir::new().unwrap();
    let db = directory.path().join("db");
    let db = db.to_str().unwrap();
    let mut fill = vec!["bench", "--benchmarks=fillseq", "--compression=lz4", "--db", db];
    fill.extend(TINY);
    success(&fill);
    {
        let database = rocksdb::DB::open_default(db).unwrap();
        let mut key = [b'0'; 16];
        key[..8].copy_from_slice(&77_u64.to_be_bytes());
        database.put(key, [7; 256]).unwrap();
        key[..8].copy_from_slice(&78_u64.to_be_bytes());
        database.delete(key).unwrap();
    }
    let mut read = vec![
        "bench",
        "--use_existing_db",
        "--benchmarks=readrandom",
        "--compression=lz4",
        "--quiet",
        "--db",
        db,
    ];
    read.extend(["--num", "3000", "--reads=20000"]);
    let output = run(&read);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("did not return what their keys hold"),
        "{}",
        stderr(&output)
    );
    assert!(common::stdout(&output).contains("key 78 is missing"));
    read.extend(["--verify"]);
    let text = common::stdout(&run(&read));
    assert!(text.contains("WRONG ANSWERS"), "{text}");
}

#[test]
fn an_interrupt_keeps_what_has_finished() {
    use std::os::unix::process::CommandExt;
    let directory = TempDir::new().unwrap();
    let out = directory.path().join("out");
    let child = common::command()
        .args([
            "bench",
            "--benchmarks=fillseq,readrandom",
            "--num=2000",
            "--duration=600",
            "--out",
        ])
        .arg(&out)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        // A group of its own, as a shell gives a job: Ctrl-C goes to all of it.
        .process_group(0)
        .spawn()
        .unwrap();
    // The second process of a run is there when the first has finished.
    let children = || {
        let path = format!("/proc/{0}/task/{0}/children", child.id());
        std::fs::read_to_string(path)
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .next()
    };
    let mut first = None;
    for _ in 0..3000 {
        match (&first, children()) {
            (None, Some(id)) => first = Some(id),
            (Some(before), Some(id)) if *before != id => break,
            _ => {}
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let kill = std::process::Command::new("kill")
        .args(["-INT", "--", &format!("-{}", child.id())])
        .status()
        .unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("interrupted: 1 of 2 benchmarks had finished"),
        "{}",
        stderr(&output)
    );
    let table = Table::read(&out.join("summary.tsv"));
    assert_eq!((table.rows.len(), table.get(0, "workload")), (1, "fillseq"));
}
