//! `leafpress eval`: the files it leaves, and that its figures agree with each other.

use std::collections::HashMap;
use std::path::Path;
use std::process::Output;

use crate::common::{leafpress, stderr, stdout};
use tempfile::TempDir;

/// The columns of the evaluation's document, in its order, and our own after them.
const COLUMNS: &str = "run workload threads landing_bytes bg_compaction bg_threads bg_watermark bg_codec codec engine \
    qpl_mode qpl_job_cache zlib_stream_cache qps mismatches ratio saved_pct read_p50_us read_p99_us read_p999_us \
    write_p50_us write_p99_us write_p999_us compressed_bytes total_bytes wall_sec user_sec sys_sec cpu_pct cpu_cores \
    qps_per_cpu_core max_rss_kb voluntary_cs involuntary_cs bg_passes bg_compactions bg_trylock_misses bg_skipped \
    bg_errors fg_landing_full fg_sync_compactions fg_sync_compaction_errors fg_split_fallbacks bg_enqueue_attempts \
    bg_enqueued bg_enqueue_duplicates bg_queue_full bg_queue_pops qpl_compress_calls qpl_decompress_calls qpl_tls_jobs \
    qpl_pool_jobs qpl_errors zlib_compress_calls zlib_decompress_calls zlib_stream_reuses zlib_stream_inits \
    zlib_errors log cpu_log user_bytes bytes_held rss_growth_bytes frames_decoded_per_read bytes_decoded_per_read \
    dictionary_bytes read_max_us write_max_us host reads_per_call key_shape copied_per_byte_put \
    compressed_per_byte_put loaded_bytes_held loaded_rss_growth_bytes rss_growth_unknown chosen_codec";

/// Short enough for a test on a slow machine.
const SHORT: [&str; 6] = ["--keys", "2000", "--seconds", "0.1", "--threads", "1"];

struct Evaluation {
    out: TempDir,
    output: Output,
}

impl Evaluation {
    fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let out = TempDir::new().expect("a temporary directory");
        let output = leafpress()
            .arg("eval")
            .args(SHORT)
            .args(arguments)
            .arg("--out")
            .arg(out.path())
            .envs(variables.iter().copied())
            .output()
            .expect("leafpress starts");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        Self { out, output }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.out.path().join(name)
    }

    fn rows(&self) -> Vec<HashMap<String, String>> {
        rows(&self.path("summary.tsv"))
    }
}

fn rows(path: &Path) -> Vec<HashMap<String, String>> {
    let text = std::fs::read_to_string(path).expect("summary.tsv");
    assert!(text.ends_with('\n'), "the last row is whole");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split('\t').collect();
    assert_eq!(header, COLUMNS.split_whitespace().collect::<Vec<_>>());
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!(fields.len(), header.len(), "{line}");
            header
                .iter()
                .map(|name| (*name).to_owned())
                .zip(fields.iter().map(|field| (*field).to_owned()))
                .collect()
        })
        .collect()
}

/// A column's number; `None` for NA.
#[track_caller]
fn number(row: &HashMap<String, String>, column: &str) -> Option<f64> {
    let text = &row[column];
    (text != "NA").then(|| text.parse().unwrap_or_else(|_| panic!("{column} is {text:?}")))
}

/// `slack` is what the rounding of the printed figures can amount to.
#[track_caller]
fn assert_close(what: &str, left: f64, right: f64, slack: f64) {
    assert!(
        (left - right).abs() <= slack,
        "{what}: {left} and {right} differ by more than {slack}"
    );
}

#[test]
fn lists_sweep_and_figures_add_up() {
    let evaluation = Evaluation::run(
        &[
            "--codecs",
            "none,lz4",
            "--workloads",
            "read_only write_only,read_write_5_5",
            "--landing-bytes",
            "256,512",
        ],
        &[],
    );
    let rows = evaluation.rows();
    assert_eq!(rows.len(), 2 * 3 * 2);
    for row in &rows {
        let n = |column: &str| number(row, column).unwrap_or_else(|| panic!("{column} is NA in {row:?}"));
        assert_eq!(row["run"], "software_fixed");
        assert_eq!(row["mismatches"], "0");
        assert_eq!(row["threads"], "1");
        assert!(n("qps") > 0.0 && n("wall_sec") >= 0.1, "{row:?}");
        assert_eq!(row["compressed_bytes"], row["bytes_held"]);
        assert_eq!(row["total_bytes"], row["user_bytes"]);
        assert_eq!(n("user_bytes"), 2000.0 * (8.0 + 128.0), "every key is there");
        assert_close("ratio", n("ratio"), n("user_bytes") / n("bytes_held"), 0.001);
        let saved_pct = 100.0 * (1.0 - n("bytes_held") / n("user_bytes"));
        assert_close("saved_pct", n("saved_pct"), saved_pct, 0.01);
        // Seconds and cores are printed with three digits.
        let cores = (n("user_sec") + n("sys_sec")) / n("wall_sec");
        assert_close(
            "cpu_cores",
            n("cpu_cores"),
            cores,
            (0.002 + 0.001 * cores) / n("wall_sec"),
        );
        assert_close("cpu_pct", n("cpu_pct"), 100.0 * n("cpu_cores"), 0.2);
        let per_core = n("qps_per_cpu_core");
        assert_close(
            "qps_per_cpu_core",
            per_core * n("cpu_cores"),
            n("qps"),
            0.001 * per_core + 0.001 * n("qps"),
        );
        for column in ["bg_threads", "bg_passes", "bg_enqueued", "bg_queue_pops"] {
            assert_eq!(
                row[column], "NA",
                "{column} has no meaning without background compaction"
            );
        }
        let reads = row["workload"] != "write_only";
        let writes = row["workload"] != "read_only";
        for (kind, done) in [("read", reads), ("write", writes)] {
            let latencies: Vec<_> = ["p50", "p99", "p999", "max"]
                .iter()
                .map(|p| number(row, &format!("{kind}_{p}_us")))
                .collect();
            assert!(
                latencies.iter().all(|latency| latency.is_some() == done),
                "{kind}: {row:?}"
            );
            assert!(latencies.is_sorted(), "{latencies:?}");
        }
        for column in [
            "qpl_mode",
            "qpl_job_cache",
            "zlib_stream_cache",
            "qpl_compress_calls",
            "zlib_compress_calls",
        ] {
            assert_eq!(row[column], "NA", "{column} has no meaning for {}", row["codec"]);
        }
        for column in ["log", "cpu_log"] {
            let path = Path::new(&row[column]);
            assert!(
                path.exists() || evaluation.path(&row[column]).exists(),
                "{column} {}",
                row[column]
            );
        }
        for column in ["max_rss_kb", "voluntary_cs", "involuntary_cs"] {
            assert!(n(column) >= 0.0);
        }
    }
}

#[test]
fn the_table_and_the_files_are_there() {
    let evaluation = Evaluation::run(&["--codecs", "none,lz4", "--workloads", "read_only"], &[]);
    let table = stdout(&evaluation.output);
    for word in ["none", "lz4", "summary.tsv", "report.html"] {
        assert!(table.contains(word), "no {word} in {table}");
    }
    let html = std::fs::read_to_string(evaluation.path("report.html")).expect("report.html");
    assert!(html.contains("<svg"), "the charts are in the file");
    for address in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!html.contains(address), "readable without a network: {address}");
    }
    let json = std::fs::read(evaluation.path("results.json")).expect("results.json");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert!(json.to_string().contains("leafpress eval"), "the command line is in it");
}

/// Huge pages, and what the run itself needs, some megabytes a thread, are neither counted as the tree's nor taken off
/// it.
#[test]
fn few_records_are_resident_with_what_is_held() {
    for keys in ["2000", "20000"] {
        let evaluation = Evaluation::run(
            &[
                "--codecs",
                "none,lz4",
                "--workloads",
                "read_only,write_only",
                "--keys",
                keys,
            ],
            &[],
        );
        let rows = evaluation.rows();
        assert_eq!(rows.len(), 4);
        for row in rows {
            let Some(resident) = number(&row, "loaded_rss_growth_bytes") else {
                assert!(row["rss_growth_unknown"].contains("too small to separate"), "{row:?}");
                assert!(
                    stdout(&evaluation.output).contains("too small to separate"),
                    "the text says so too"
                );
                continue;
            };
            let held = number(&row, "loaded_bytes_held").expect("the tree tells");
            let mebibyte = f64::from(1 << 20);
            assert!((resident - held).abs() < held / 10.0 + mebibyte, "{row:?}");
            // What was written to is not what was weighed.
            if row["workload"] == "write_only" {
                assert_eq!(row["rss_growth_bytes"], "NA");
                assert!(row["rss_growth_unknown"].contains("changed since"), "{row:?}");
            }
        }
        assert!(
            stdout(&evaluation.output).contains("resident/"),
            "{}",
            stdout(&evaluation.output)
        );
    }
}

#[test]
fn a_pipe_gets_no_progress_bar() {
    let evaluation = Evaluation::run(&["--codecs", "lz4", "--workloads", "read_only"], &[]);
    for text in [stdout(&evaluation.output), stderr(&evaluation.output)] {
        assert!(!text.contains(['\r', '\u{1b}']), "{text:?}");
    }
}

#[test]
fn variables_of_the_evaluation_set_the_run() {
    let evaluation = Evaluation::run(
        &["--workloads", "write_only"],
        &[
            ("SOFTWARE_CODECS", "lz4"),
            ("LANDING_LIST", "256 1024"),
            ("RUN_BG_SWEEP", "1"),
            ("BTREE_BG_THREADS", "2"),
            ("BTREE_BG_LANDING_HIGH_WATERMARK_PCT", "50"),
            ("BTREE_VALUE_BYTES", "100"),
            ("BTREE_MEASURE_LATENCY", "0"),
            ("COLLECT_CPU", "0"),
            ("THREADS_LIST", "7"),
        ],
    );
    let rows = evaluation.rows();
    assert_eq!(rows.len(), 4, "two landing sizes, background off and on");
    for row in &rows {
        assert_eq!(row["threads"], "1", "the flag wins over THREADS_LIST");
        assert_eq!(row["codec"], "lz4");
        assert_eq!(row["user_bytes"], (2000 * 108).to_string());
        for column in [
            "write_p99_us",
            "write_max_us",
            "user_sec",
            "cpu_pct",
            "max_rss_kb",
            "cpu_log",
        ] {
            assert_eq!(row[column], "NA", "{column} was not to be measured");
        }
    }
    for row in &rows {
        let n = |column: &str| number(row, column);
        let offers = [n("bg_enqueued"), n("bg_enqueue_duplicates"), n("bg_queue_full")];
        let sum = offers.iter().copied().sum::<Option<f64>>();
        assert_eq!(n("bg_enqueue_attempts"), sum, "every offer has one outcome: {row:?}");
        assert_eq!(sum.is_some(), row["bg_compaction"] == "1");
    }
    let on: Vec<_> = rows.iter().filter(|row| row["bg_compaction"] == "1").collect();
    assert_eq!(on.len(), 2);
    assert!(
        on.iter()
            .all(|row| row["bg_threads"] == "2" && row["bg_watermark"] == "50"),
        "{on:?}"
    );
}

#[test]
fn other_cuts_laws_and_workloads_run_clean() {
    for arguments in [
        &["--cut", "lines", "--data", "licences", "--workloads", "scan,crud"][..],
        &[
            "--distribution",
            "zipfian",
            "--key-order",
            "random",
            "--workloads",
            "read_write_8_2",
            "--reads-per-call",
            "5",
        ],
        &[
            "--distribution",
            "latest",
            "--layout",
            "hashed:8",
            "--workloads",
            "read_write_5_5",
        ],
        &[
            "--raw",
            "--data",
            "unicode",
            "--shards",
            "4",
            "--shard-by",
            "range",
            "--workloads",
            "crud",
        ],
        &[
            "--data",
            "synthetic:0.5",
            "--dictionary",
            "off",
            "--frame-bytes",
            "1",
            "--workloads",
            "read_write_2_8",
        ],
    ] {
        let evaluation = Evaluation::run(&[arguments, &["--codecs", "zstd:1"]].concat(), &[]);
        for row in evaluation.rows() {
            assert_eq!(row["mismatches"], "0", "{arguments:?}");
        }
    }
}

#[test]
fn the_default_directory_is_named_after_the_time() {
    let directory = TempDir::new().expect("a temporary directory");
    let output = leafpress()
        .arg("eval")
        .args(SHORT)
        .args([
            "--codecs",
            "none",
            "--workloads",
            "read_only",
            "--data",
            "synthetic:0.5",
        ])
        .current_dir(directory.path())
        .output()
        .expect("leafpress starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let made: Vec<_> = std::fs::read_dir(directory.path().join("leafpress-results/eval"))
        .expect("the directory")
        .flatten()
        .map(|entry| entry.file_name().into_string().expect("UTF-8"))
        .collect();
    let [name] = made.as_slice() else { panic!("{made:?}") };
    assert!(
        name.len() == "20260418T021637Z".len() && name.ends_with('Z') && name.contains('T'),
        "{name}"
    );
    assert_eq!(
        rows(
            &directory
                .path()
                .join(format!("leafpress-results/eval/{name}/summary.tsv"))
        )
        .len(),
        1
    );
}

/// The shim of the library's own tests, compiled under the name of the real one.
#[test]
fn a_zlib_accel_run_preloads_the_shim() {
    let shim = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libzlib_accel.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../leafpress-codec/tests/codec/zlib_shim.c");
    let compiled = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&shim, &source])
        .arg("-ldl")
        .status()
        .expect("a C compiler");
    assert!(compiled.success());
    let evaluation = Evaluation::run(
        &[
            "--codecs",
            "zlib:1",
            "--workloads",
            "read_only",
            "--zlib-accel-so",
            shim.to_str().expect("UTF-8"),
        ],
        &[],
    );
    let rows = evaluation.rows();
    let engines: Vec<_> = rows
        .iter()
        .map(|row| (row["run"].as_str(), row["engine"].as_str()))
        .collect();
    assert_eq!(
        engines,
        [("software_fixed", "zlib_system"), ("zlib_accel", "zlib_accel_preload")]
    );
    for row in &rows {
        assert!(number(row, "zlib_decompress_calls") > Some(0.0), "{row:?}");
        assert_eq!(row["zlib_errors"], "0");
        assert_eq!(row["zlib_stream_cache"], "thread");
    }
}

/// Of data that is longer than a run can use, evenly spread pieces are taken, and that is said.
#[test]
fn long_data_is_sampled() {
    let directory = TempDir::new().expect("a temporary directory");
    let data = directory.path().join("long");
    let file = std::fs::File::create(&data).expect("a file");
    file.set_len(520 << 20).expect("it has room");
    let data = data.to_str().expect("a name");
    let found = Evaluation::run(&["--data", data, "--codecs", "none", "--workloads", "read_only"], &[]);
    let text = stdout(&found.output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("a sample of") && text.contains("evenly spread over 520M"),
        "{text}"
    );
    let page = std::fs::read_to_string(found.path("report.html")).expect("a page");
    assert!(page.contains("evenly spread over 520M"));
}

/// The head of a file is not representative: the same bytes in another order have equal figures.
#[test]
fn values_come_from_the_whole_file() {
    let directory = TempDir::new().expect("a temporary directory");
    let (zeros, mut random) = (vec![0_u8; 256 << 10], Vec::new());
    let mut state = 1_u64;
    while random.len() < 1792 << 10 {
        // Knuth's MMIX.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        random.extend_from_slice(&(state >> 32).to_le_bytes()[..4]);
    }
    let held = |name: &str, parts: [&[u8]; 2]| {
        let path = directory.path().join(name);
        std::fs::write(&path, parts.concat()).expect("written");
        let data = path.to_str().expect("UTF-8");
        let evaluation = Evaluation::run(&["--data", data, "--codecs", "lz4", "--workloads", "read_only"], &[]);
        let text = stdout(&evaluation.output)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(text.contains("a sample of 250K, evenly spread over 2M"), "{text}");
        assert!(!text.contains("each is stored"), "{text}");
        let row = &evaluation.rows()[0];
        let figure = |name: &str| row[name].parse::<f64>().expect("a number");
        figure("bytes_held") / figure("user_bytes")
    };
    let first = held("zeros-first", [&zeros, &random]);
    let last = held("zeros-last", [&random, &zeros]);
    assert!(
        (first / last - 1.0).abs() < 0.05,
        "{first} with the zeros first, {last} with them last"
    );
    assert!(first > 0.8, "an eighth of the data is zeros: {first}");
}

/// Values that are repeated compress better than the data does.
#[test]
fn reports_repeated_values() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("few");
    std::fs::write(&path, [7; 12_800]).expect("written");
    let data = path.to_str().expect("UTF-8");
    let evaluation = Evaluation::run(&["--data", data, "--codecs", "lz4", "--workloads", "read_only"], &[]);
    let sentence = "The data has 100 values for 2000 keys, so each is stored 20.0 times.";
    let text = stdout(&evaluation.output)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(text.contains(sentence), "{text}");
    let page = std::fs::read_to_string(evaluation.path("report.html")).expect("a page");
    assert!(page.contains(sentence), "{page}");
}
