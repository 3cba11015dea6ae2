//! `leafpress bench` as a user runs it.

use crate::common::{assert_bad_input, leafpress, run, stderr, stdout, succeeded};
use tempfile::TempDir;

/// A small run that must end well.
#[track_caller]
pub(crate) fn bench(arguments: &[&str]) -> String {
    let output = leafpress()
        .args(["bench", "-n", "1001", "-p", "3001"])
        .args(arguments)
        .output()
        .expect("leafpress starts");
    succeeded(&output)
}

/// The number behind a label.
#[track_caller]
pub(crate) fn figure(text: &str, label: &str) -> f64 {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(label));
    let word = line.and_then(|rest| rest.split_whitespace().next());
    word.and_then(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("no figure behind `{label}` in\n{text}"))
}

/// The fork's options are in the report, and 2 is its free clock.
#[test]
fn the_forks_options_are_reported() {
    let text = bench(&["btreemap", "-c", "1", "-x", "2", "-g", "1"]);
    for line in [
        "\tConcurrency Control Protocol: 1\n",
        "\tClock type: 2\n",
        "\tGarbage Collector: 1\n",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
    assert!(!bench(&["btreemap"]).contains("Clock type"));
}

#[test]
fn reports_an_index_without_a_load() {
    for (arguments, is_reported) in [
        (["--skip_load", "-r", "1"].as_slice(), true),
        (&["--skip_load", "-r", "0", "-i", "1"], false),
        (&["-r", "1"], false),
    ] {
        let output = leafpress()
            .args(["bench", "btreemap", "-n", "100", "-p", "100"])
            .args(arguments)
            .output()
            .expect("leafpress starts");
        assert!(output.status.success(), "{}", stderr(&output));
        let reported = stderr(&output).contains("the index btreemap is empty");
        assert_eq!(reported, is_reported, "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn the_report_has_pibenchs_parts_in_pibenchs_order() {
    let text = bench(&[
        "leafpress:lz4",
        "-t",
        "2",
        "-r",
        "0.6",
        "-i",
        "0.2",
        "-u",
        "0.1",
        "-d",
        "0.05",
        "-s",
        "0.05",
        "--latency_sampling",
        "1",
    ]);
    let mut at = 0;
    for part in [
        "Environment:\n\tTime: ",
        "\tCPU: ",
        "\tCPU Cache: ",
        "\tKernel: ",
        "Benchmark Options:\n\tTarget: leafpress:lz4\n\t# Records: 1001\n",
        "\t# Threads: 2\n\t# Operations: 3001\n",
        "\tOperations ratio:\n\t\tRead: 0.6\n\t\tInsert: 0.2\n",
        "Loading started.\n",
        "Loading finished in ",
        "Load verified; benchmark started.\n",
        "\tRun time: ",
        "Results:\n\tOperations: 3001\n\tThroughput:\n",
        "\t- Completed: ",
        "\t- Succeeded: ",
        "\tBreakdown:\n\t- Insert completed: ",
        "\t- Scan succeeded: ",
        "PCM Metrics:\n\tL3 misses: ",
        "\tNVM Writes (bytes): ",
        "Samples:\n\t",
        "Latencies (3001 operations observed):\n\tmin: ",
        "\t50%: ",
        "\t99.999%: ",
        "\tmax: ",
        "Operation latencies (ns):\n\tRead: ",
    ] {
        let found = text[at..]
            .find(part)
            .unwrap_or_else(|| panic!("no `{part}` after byte {at} of\n{text}"));
        at += found + part.len();
    }
    assert!(figure(&text, "- Insert completed:") > 0.0);
    assert_eq!(
        figure(&text, "- Insert completed:"),
        figure(&text, "- Insert succeeded:")
    );
}

#[test]
fn each_builtin_runs() {
    for input in [
        "leafpress",
        "leafpress:none",
        "leafpress:zstd:1",
        "btreemap",
        "skiplist",
        "treeindex",
        "masstree",
        "hashmap",
        "dummy",
    ] {
        let text = bench(&[input, "--pcm=false", "-f", "p/", "-k", "9", "-v", "33"]);
        assert_eq!(
            figure(&text, "- Read completed:"),
            figure(&text, "- Read succeeded:"),
            "{input}"
        );
        assert!(!text.contains("PCM Metrics"), "{input}");
    }
}

#[test]
fn time_mode_and_open_loop() {
    let text = bench(&[
        "btreemap",
        "-m",
        "time",
        "--seconds",
        "0.3",
        "--rate",
        "2000",
        "--latency_sampling",
        "1",
        "--warmup",
        "0.05",
    ]);
    assert!(text.contains("\tDuration (s): 0.3\n"), "{text}");
    // No more than intended; a busy machine may manage less.
    assert!(figure(&text, "Operations:") <= 700.0, "{text}");
    assert!(
        text.contains("Intended: 2000 ops/s") && text.contains("Service times"),
        "{text}"
    );
}

/// However short the run: starting and ending its threads takes CPU time too, and time.
///
/// In its own process, since the system counts other threads only at its ticks: a test on another thread
/// would add up to 10 ms of CPU time to a run of one.
#[test]
fn no_more_cores_are_busy_than_there_are() {
    let cores = std::thread::available_parallelism().unwrap().get() as f64;
    for _ in 0..20 {
        let text = bench(&["btreemap", "-t", "2", "-n", "100", "-p", "2"]);
        let busy = figure(&text, "Cores busy:");
        assert!(busy <= cores * 1.1, "{busy} of {cores}");
    }
}

#[test]
fn a_skipped_load_finds_nothing() {
    for flag in ["--skip_load", "--skip-load=true"] {
        let text = bench(&["skiplist", flag]);
        assert!(text.contains("Load skipped.\n") && !text.contains("Loading"), "{text}");
        assert_eq!(figure(&text, "- Read succeeded:"), 0.0);
    }
}

#[test]
fn files_hold_what_was_measured() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let (json, html) = (path("out.json"), path("out.html"));
    let text = bench(&[
        "masstree",
        "--repeat",
        "3",
        "--latency_sampling",
        "0.5",
        "--json",
        &json,
        "--html",
        &html,
    ]);
    assert!(text.contains("Repetitions (ops/s"), "{text}");
    let document: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).expect("written")).expect("JSON");
    assert_eq!(document["format"], 1);
    let outcomes = document["lines"][0]["report"]["outcomes"]
        .as_array()
        .expect("repetitions");
    assert_eq!(outcomes.len(), 3);
    assert_eq!(outcomes[0]["counts"][0]["completed"], 3001);
    assert!(
        document["command_line"]
            .as_str()
            .expect("words")
            .starts_with("leafpress bench -n 1001")
    );
    let page = std::fs::read_to_string(&html).expect("written");
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg") && page.contains("masstree"));
    assert_eq!(
        std::fs::read_dir(directory.path()).expect("a directory").count(),
        2,
        "nothing else is left"
    );
}

/// Requested files are written even if the report is not read to its end (`| head`).
#[test]
fn files_are_written_though_the_reader_has_gone() {
    let directory = TempDir::new().expect("a temporary directory");
    let mut child = leafpress()
        .args(["bench", "dummy", "-n", "10", "-p", "10", "--json", "out.json"])
        .current_dir(&directory)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("leafpress starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert!(directory.path().join("out.json").exists());
}

#[test]
fn a_comparison_is_one_table() {
    let directory = TempDir::new().expect("a temporary directory");
    let html = directory.path().join("compare.html");
    let text = bench(&[
        "--compare",
        "leafpress:none",
        "leafpress:lz4",
        "leafpress:zstd:1",
        "btreemap",
        "skiplist",
        "masstree",
        "--ycsb",
        "A,C,E",
        "-t",
        "2",
        "--latency_sampling",
        "1",
        "--html",
        html.to_str().expect("UTF-8"),
    ]);
    // A line for each index, in each of the tables, and verdicts on two trees.
    for workload in ["YCSB A", "YCSB C", "YCSB E"] {
        let heading = format!("\n{workload}\n");
        let sections = text.split(&heading).skip(1);
        let rows: usize = sections
            .map(|section| section.lines().take_while(|line| line.starts_with("  ")).count())
            .sum();
        assert!(rows > 0 && rows.is_multiple_of(6), "{workload}: {text}");
        let verdicts = text
            .lines()
            .filter(|line| line.starts_with(&format!("{workload}: leafpress:")))
            .count();
        assert_eq!(verdicts, 2, "{workload}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(
        text.contains("p99.9") && !text.contains("failed:") && !text.contains("WRONG"),
        "{text}"
    );
    let page = std::fs::read_to_string(html).expect("written");
    assert!(page.contains("YCSB E") && page.contains("leafpress:zstd:1"));
}

/// Huge pages, what a training has freed, and the benchmark's own threads would be more than so few records.
#[test]
fn few_records_are_resident_with_what_is_held() {
    for (input, records) in [
        ("leafpress:none", "20000"),
        ("leafpress:lz4", "20000"),
        ("leafpress:lz4", "200000"),
        ("btreemap", "20000"),
    ] {
        let output = run(&["bench", input, "-n", records, "-p", "1000"]);
        let text = succeeded(&output);
        let records: f64 = records.parse().expect("a number");
        let grown = figure(&text, "Resident growth:") * records;
        if input == "btreemap" {
            // Its nodes are half full at least.
            assert!(grown > 16.0 * records && grown < 48.0 * records, "{text}");
            continue;
        }
        let held = figure(&text, "Held by its own accounting:") * records;
        let mebibyte = f64::from(1 << 20);
        assert!((grown - held).abs() < held / 10.0 + mebibyte, "{input}: {text}");
    }
}

/// On a terminal one index is a table, as several are; in a pipe it is what PiBench writes.
#[test]
fn people_get_a_table_and_scripts_pibenchs_lines() {
    let arguments = ["leafpress:lz4", "-n", "1000", "-p", "1000", "--latency_sampling", "1"];
    let table =
        |text: &str| text.starts_with("leafpress:lz4: ") && text.contains("held") && !text.contains("Environment:");
    let piped = bench(&arguments);
    assert!(
        piped.starts_with("Environment:") && !piped.contains("B/record"),
        "{piped}"
    );
    let requested = bench(&[&arguments[..], &["--report", "table"]].concat());
    assert!(table(&requested), "{requested}");
    let repeated = bench(&[&arguments[..], &["--report", "table", "--repeat", "2"]].concat());
    assert!(table(&repeated) && repeated.contains("range"), "{repeated}");
    let pibench = bench(&[&arguments[..], &["--report", "pibench", "--repeat", "2"]].concat());
    assert!(pibench.starts_with("Environment:"), "{pibench}");
    let output = run(&["bench", "--compare", "btreemap", "leafpress", "--report", "pibench"]);
    assert_bad_input(&output, &["--report: ", "one index"]);
    // A pseudo-terminal.
    let command = format!("{} bench {}", env!("CARGO_BIN_EXE_leafpress"), arguments.join(" "));
    let Ok(output) = std::process::Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env("COLUMNS", "60")
        .stdin(std::process::Stdio::null())
        .output()
    else {
        println!("skipped: there is no `script`, which makes a terminal");
        return;
    };
    let text = stdout(&output).replace('\r', "\n");
    assert!(text.contains("held") && !text.contains("Environment:"), "{text}");
}

/// A missing figure is explained.
#[test]
fn reports_growth_that_is_too_small() {
    let text = bench(&["btreemap", "-n", "10"]);
    assert!(text.contains("Resident growth: unknown, growth of"), "{text}");
    let text = bench(&["--compare", "btreemap", "dummy", "-n", "10"]);
    assert!(
        text.contains("btreemap in 100% read: no resident memory: growth of"),
        "{text}"
    );
}

#[test]
fn values_of_a_corpus_are_read() {
    let directory = TempDir::new().expect("a temporary directory");
    let corpus = directory.path().join("corpus.txt");
    std::fs::write(&corpus, "all work and no play makes a dull tree\n".repeat(100)).expect("written");
    let source = format!("corpus:{}", corpus.display());
    bench(&["leafpress:zstd:1", "-v", "40", "--value_source", &source]);
    bench(&["leafpress:zstd:1", "-v", "40", "--value_source", "compressible:0.5"]);
    let output = run(&["bench", "leafpress", "-v", "5000", "--value_source", &source]);
    assert_bad_input(&output, &["--value_source", "corpus.txt", "5000"]);
    assert_bad_input(
        &run(&["bench", "leafpress", "--value_source", "corpus:/no/such/file"]),
        &["--value_source", "/no/such/file"],
    );
}
