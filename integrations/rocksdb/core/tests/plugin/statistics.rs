//! The statistics are lines like those of RocksDB's own.

use crate::support::{check, fill, open, ticker};

#[test]
fn every_line_is_a_ticker() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path(), "codec=zstd:5");
    let before = ["compress.raw.bytes", "compress.stored.bytes", "decompress.blocks"]
        .map(|name| ticker(&format!("leafpress.{name}")));
    fill(&db, 0..1000);
    check(&db, 0..1000);
    let text = leafpress_rocksdb::statistics_text();
    for line in text.lines() {
        let parts: Vec<_> = line.split(' ').collect();
        assert!(
            parts.len() == 4 && parts[0].starts_with("leafpress.") && parts[1] == "COUNT" && parts[2] == ":",
            "{line}"
        );
        parts[3].parse::<u64>().unwrap();
    }
    let after = ["compress.raw.bytes", "compress.stored.bytes", "decompress.blocks"]
        .map(|name| ticker(&format!("leafpress.{name}")));
    assert!(after[0] - before[0] > 250_000, "{before:?} {after:?}");
    assert!(after[1] > before[1] && after[2] > before[2]);
    assert!(ticker("leafpress.engine.zstd:5.compress.calls") > 10);
}

#[test]
fn blocks_that_do_not_shrink_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path(), "codec=lz4");
    let before = ticker("leafpress.compress.rejected");
    for i in 0..1000 {
        db.put(crate::support::key(i), crate::support::noise(i, 300)).unwrap();
    }
    db.flush().unwrap();
    assert!(ticker("leafpress.compress.rejected") - before > 50);
}
