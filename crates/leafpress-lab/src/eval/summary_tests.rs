use std::collections::HashMap;

use super::*;
use crate::eval::matrix::RunSpec;
use crate::eval::result::{Memory, RunResult};
use crate::eval::{EvalConfig, LandingBytes};
use crate::report::NOT_APPLICABLE;

const GOLDEN_HEADER: &str = "run workload threads landing_bytes bg_compaction bg_threads bg_watermark bg_codec codec \
    engine qpl_mode qpl_job_cache zlib_stream_cache qps mismatches ratio saved_pct read_p50_us read_p99_us \
    read_p999_us write_p50_us write_p99_us write_p999_us compressed_bytes total_bytes wall_sec user_sec sys_sec \
    cpu_pct cpu_cores qps_per_cpu_core max_rss_kb voluntary_cs involuntary_cs bg_passes bg_compactions \
    bg_trylock_misses bg_skipped bg_errors fg_landing_full fg_sync_compactions fg_sync_compaction_errors \
    fg_split_fallbacks bg_enqueue_attempts bg_enqueued bg_enqueue_duplicates bg_queue_full bg_queue_pops \
    qpl_compress_calls qpl_decompress_calls qpl_tls_jobs qpl_pool_jobs qpl_errors zlib_compress_calls \
    zlib_decompress_calls zlib_stream_reuses zlib_stream_inits zlib_errors log cpu_log user_bytes bytes_held \
    rss_growth_bytes frames_decoded_per_read bytes_decoded_per_read dictionary_bytes read_max_us write_max_us host \
    reads_per_call key_shape copied_per_byte_put compressed_per_byte_put loaded_bytes_held loaded_rss_growth_bytes \
    rss_growth_unknown chosen_codec";

fn row(codec: &str, workload: Workload) -> Row {
    Row {
        spec: RunSpec {
            run: "software_fixed".into(),
            codec: codec.into(),
            workload,
            threads: 2,
            landing_bytes: LandingBytes::Fixed(512),
            background: false,
            check_one_in: 1,
            base: EvalConfig::default(),
        },
        result: RunResult {
            engine: "cpu".into(),
            wall_seconds: 2.0,
            reads: 3_000_000,
            read_latency: Some(Latency {
                p50_ns: 400,
                p99_ns: 1500,
                p999_ns: 9000,
                max_ns: 123_456,
                ..Latency::default()
            }),
            resources: Some(Resources {
                user_seconds: 2.5,
                system_seconds: 0.5,
                max_rss_kib: Some(4096),
                voluntary_switches: 7,
                involuntary_switches: 9,
            }),
            ended: Memory {
                records: 1000,
                user_bytes: 136_000,
                bytes_held: 34_000,
                dictionary_bytes: 2048,
                rss_growth_bytes: Some(36_864),
                ..Memory::default()
            },
            counters: Counters {
                gets: 4,
                get_frames_decoded: 3,
                compress_calls: 11,
                thread_jobs: 2,
                ..Counters::default()
            },
            ..RunResult::default()
        },
        log: "out/a\tb.log".into(),
        cpu_log: Some("out/a.cpu.log".into()),
    }
}

fn cells(row: &Row) -> HashMap<&'static str, String> {
    let line = line(row, "A CPU, 2 cores").unwrap();
    let values: Vec<_> = line.trim_end().split('\t').map(String::from).collect();
    assert_eq!(values.len(), COLUMNS.len());
    COLUMNS.iter().map(|(name, _)| *name).zip(values).collect()
}

#[test]
fn the_header_is_the_documents_and_then_ours() {
    assert_eq!(
        header(),
        GOLDEN_HEADER.split_whitespace().collect::<Vec<_>>().join("\t") + "\n"
    );
}

#[test]
fn figures_are_derived_from_what_was_measured() {
    let cells = cells(&row("lz4", Workload::ReadOnly));
    for (column, expected) in [
        ("qps", "1500000.0"),
        ("ratio", "4.0000"),
        ("saved_pct", "75.00"),
        ("compressed_bytes", "34000"),
        ("total_bytes", "136000"),
        ("read_p99_us", "1.500"),
        ("read_max_us", "123.456"),
        ("cpu_pct", "150.0"),
        ("cpu_cores", "1.500"),
        ("qps_per_cpu_core", "1000000.0"),
        ("frames_decoded_per_read", "0.7500"),
        ("log", "out/a b.log"),
        ("host", "A CPU, 2 cores"),
    ] {
        assert_eq!(cells[column], expected, "{column}");
    }
}

#[test]
fn what_has_no_meaning_is_na_and_never_zero() {
    let lz4 = cells(&row("lz4", Workload::ReadOnly));
    for column in [
        "write_p50_us",
        "write_max_us",
        "qpl_mode",
        "qpl_compress_calls",
        "zlib_errors",
        "bg_passes",
        "bg_threads",
    ] {
        assert_eq!(lz4[column], NOT_APPLICABLE, "{column}");
    }
    assert_eq!(lz4["fg_landing_full"], "0", "this one has a meaning");
    let mut bare = row("lz4", Workload::ReadOnly);
    bare.result.resources = None;
    bare.result.counters = Counters::default();
    bare.result.ended = Memory::default();
    bare.cpu_log = None;
    let bare = cells(&bare);
    for column in [
        "user_sec",
        "cpu_cores",
        "qps_per_cpu_core",
        "max_rss_kb",
        "ratio",
        "saved_pct",
        "frames_decoded_per_read",
        "cpu_log",
    ] {
        assert_eq!(bare[column], NOT_APPLICABLE, "{column}");
    }
}

#[test]
fn background_columns_mean_something_when_it_is_on() {
    let mut row = row("lz4", Workload::ReadOnly);
    row.spec.background = true;
    let cells = cells(&row);
    for (column, expected) in [
        ("bg_threads", "1"),
        ("bg_watermark", "75"),
        ("bg_codec", "all"),
        ("bg_passes", "0"),
    ] {
        assert_eq!(cells[column], expected, "{column}");
    }
}

#[test]
fn scans_are_the_reads_of_the_scan_workload() {
    let mut row = row("lz4", Workload::Scan);
    row.result.scan_latency = Some(Latency {
        p99_ns: 77_000,
        ..Latency::default()
    });
    assert_eq!(cells(&row)["read_p99_us"], "77.000");
}

#[test]
fn lines_are_on_disk_once_appended() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("summary.tsv");
    let mut summary = Summary::create(&path, "A CPU".into()).unwrap();
    for lines in 1..=3 {
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), lines);
        summary.append(&row("none", Workload::ReadOnly)).unwrap();
    }
    assert!(Summary::create(&directory.path().join("no/summary.tsv"), String::new()).is_err());
}
