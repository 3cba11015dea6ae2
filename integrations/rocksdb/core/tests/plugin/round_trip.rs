//! What is written through each codec is read back, from files, by a database that was closed and opened again.

use crate::support::{compressions, noise, open, text, ticker};

/// Codecs that can run everywhere; `zlib` if there is one.
const CODECS: [&str; 8] = [
    "none",
    "lz4",
    "lz4:fast=8",
    "lz4:hc=9",
    "zstd:1",
    "zstd:3",
    "deflate:1",
    "deflate:6",
];

#[test]
fn every_codec_round_trips() {
    for codec in CODECS {
        let directory = tempfile::tempdir().unwrap();
        let manager = format!("codec={codec};verify=true");
        let records = |i: u64| {
            let value = match i % 5 {
                0 => Vec::new(),
                1 => noise(i, 300),
                2 => vec![7; 5000],
                _ => text(i, 400),
            };
            (format!("key{i:06}"), value)
        };
        {
            let db = open(directory.path(), &manager);
            for (key, value) in (0..4000).map(records) {
                db.put(key, value).unwrap();
            }
            db.flush().unwrap();
        }
        let db = open(directory.path(), &manager);
        for (key, value) in (0..4000).map(records) {
            assert_eq!(db.get(key).unwrap().unwrap(), value, "{codec}");
        }
        let types = match codec.split(':').next().unwrap() {
            "none" => "",
            "lz4" => "C1",
            "zstd" => "C2",
            _ => "C4",
        };
        assert_eq!(compressions(&db)[0].types, types, "{codec}");
    }
    assert_eq!(ticker("leafpress.verify.mismatches"), 0);
}
