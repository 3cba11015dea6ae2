//! `leafpress-rocksdb cache`: compares RocksDB with other caches, from the command line to the files.

mod common;

use std::path::Path;

use common::{Table, assert_page, bad_input, stderr, success};
use tempfile::TempDir;

/// Small, and over in a moment.
const SMALL: [&str; 10] = [
    "cache",
    "-m",
    "8M",
    "--disk",
    "32M",
    "--warmup",
    "20000",
    "--operations",
    "20000",
    "--out",
];

/// Returns the summary of a run, and what it printed; every hit was right.
fn compared(out: &Path, more: &[&str]) -> (Table, String) {
    let mut arguments = SMALL.to_vec();
    arguments.push(out.to_str().unwrap());
    arguments.extend(more);
    let text = success(&arguments);
    let table = Table::read(&out.join("summary.tsv"));
    for row in 0..table.rows.len() {
        for column in ["stale", "wrong", "expired"] {
            assert_eq!(table.get(row, column), "0", "{text}");
        }
        assert_eq!(table.get(row, "operations"), "20000", "{text}");
    }
    // The database is gone, whatever it was.
    let left = std::fs::read_dir(out).unwrap().flatten();
    assert!(left.map(|entry| entry.file_name()).all(|name| name != "cache.disk.d"));
    (table, text)
}

#[test]
fn rocksdb_and_leafpress_are_compared_in_the_same_memory() {
    let directory = TempDir::new().unwrap();
    let out = directory.path().join("out");
    let more = [
        "--engines",
        "leafpress,rocksdb",
        "--working-set",
        "24M",
        "--writes",
        "20",
    ];
    let more = [&more[..], &["--data", "synthetic:0.5", "--cut", "fixed:1024"]].concat();
    let (table, text) = compared(&out, &more);
    assert_eq!((table.get(0, "cache"), table.get(1, "cache")), ("leafpress", "rocksdb"));
    assert!(text.contains("\nleafpress ") && text.contains("\nrocksdb "), "{text}");
    assert!(
        table.number(1, "hit_pct") > 20.0 && table.number(1, "disk_hit_pct") >= 0.0,
        "{text}"
    );
    assert!(
        table.number(1, "capacity_bytes") > 0.0 && table.number(1, "peak_of_memory") < 2.0,
        "{text}"
    );
    assert_eq!(
        table.get(1, "records"),
        "NA",
        "RocksDB does not report what is in memory"
    );
    assert_page(&out, &["rocksdb", "leafpress-rocksdb cache"]);
}

#[test]
fn values_expire_and_are_removed() {
    let directory = TempDir::new().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../crates/leafpress-lab/src/cache/workload/cachebench/small/config.json");
    let cachebench = ["--cachebench", file.to_str().unwrap(), "--scale", "0.02"];
    let more = [&["--engines", "rocksdb+leafpress", "--ttl", "1"][..], &cachebench].concat();
    let (table, text) = compared(&directory.path().join("out"), &more);
    assert!(
        table.number(0, "removes") > 500.0 && table.number(0, "writes") > 500.0,
        "{text}"
    );
}

#[test]
fn mistakes_are_named() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("cache");
    std::fs::create_dir(directory.path().join("cache.d")).unwrap();
    let path = path.to_str().unwrap();
    for (arguments, words) in [
        (&["cache"][..], &["--disk", "rocksdb", "1G"][..]),
        (&["cache", "--engines", "leafpress,rocksdb"], &["--disk", "rocksdb"]),
        (
            &["cache", "--engines", "rocksdb:lz4"],
            &["--engines", "rocksdb:lz4", "rocksdb+lz4"],
        ),
        (
            &["cache", "--engines", "rocksdb+rle", "--disk", "1G"],
            &["--engines", "rocksdb+rle"],
        ),
        (
            &["cache", "--engines", "rocksdb,rocksdb", "--disk", "1G"],
            &["--engines", "twice"],
        ),
        (&["cache", "--engines", "rocksdb", "--disk", "1M"], &["--disk", "4M"]),
        (
            &["cache", "--disk", "1G", "--disk-path", path],
            &["--disk-path", "cache.d", "remove"],
        ),
        (
            &["cache", "--disk", "1G", "--disk-path", "/dev/null"],
            &["--disk-path", "device", "rocksdb"],
        ),
        (&["cache", "--engines", "moka", "--disk", "1G"], &["--disk", "tier"]),
        (&["cache", "--disk", "1G", "--memory", "1"], &["--memory"]),
        (
            &["cache", "--disk", "1G", "--disk-path", "/no/such/directory/cache"],
            &["--disk-path", "/no/such/directory"],
        ),
    ] {
        bad_input(arguments, words);
    }
}

#[test]
fn a_database_that_cannot_be_opened_is_a_failure_with_its_reason() {
    let directory = TempDir::new().unwrap();
    let out = directory.path().join("out");
    let mut arguments = SMALL.to_vec();
    arguments.extend([out.to_str().unwrap(), "--engines", "rocksdb", "--working-set", "1M"]);
    // A directory that is there, and in which nobody can make another.
    arguments.extend(["--disk-path", "/proc/leafpress"]);
    let output = common::run(&arguments);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("open: /proc/leafpress"), "{}", stderr(&output));
}
