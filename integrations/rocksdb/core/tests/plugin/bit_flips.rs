//! Damaged files are reported, by RocksDB's checksums and without them by the decoders, and nothing crashes.

use std::path::{Path, PathBuf};

use rocksdb::{DB, ReadOptions};

use crate::support::{check, fill, key, options, ticker, value};

const RECORDS: u64 = 2000;

fn opened(path: &Path, manager: &str) -> DB {
    let options = options(&format!(
        "disable_auto_compactions=true;compression_manager={{id=leafpress;{manager}}};\
         block_based_table_factory={{block_size=4096;no_block_cache=true}}"
    ));
    DB::open(&options, path).unwrap()
}

/// Returns a database of one file, the file, and how many of its first bytes are data blocks.
fn written(path: &Path, manager: &str) -> (PathBuf, usize) {
    let db = opened(path, manager);
    fill(&db, 0..RECORDS);
    let properties = db
        .property_value("rocksdb.aggregated-table-properties")
        .unwrap()
        .unwrap();
    let data = properties.split("data block size=").nth(1).unwrap();
    let data = data.split(';').next().unwrap().parse().unwrap();
    let file = db.live_files().unwrap().remove(0);
    (path.join(file.name.trim_start_matches('/')), data)
}

/// Reads everything; returns the errors.
fn errors(db: &DB, verify_checksums: bool) -> Vec<String> {
    let mut read = ReadOptions::default();
    read.set_verify_checksums(verify_checksums);
    let mut found = Vec::new();
    for i in (0..RECORDS).step_by(3) {
        match db.get_opt(key(i), &read) {
            Ok(got) if verify_checksums => assert_eq!(got.unwrap(), value(i), "record {i}"),
            Ok(_) => {}
            Err(error) => found.push(error.into_string()),
        }
    }
    found
}

const MANAGERS: [&str; 5] = [
    "codec=lz4",
    "codec=zstd:3",
    "codec=deflate:1",
    "codec=lz4;dictionary_bytes=4096",
    "codec=zstd:3;dictionary_bytes=4096",
];

#[test]
fn checksums_find_every_flipped_bit() {
    for manager in MANAGERS {
        let directory = tempfile::tempdir().unwrap();
        let (file, data) = written(directory.path(), manager);
        let good = std::fs::read(&file).unwrap();
        for round in 0..12 {
            let mut bad = good.clone();
            // Every third read meets the block; a block holds some twelve records.
            let at = (round * 7919 * 131) % data;
            bad[at] ^= 1 << (round % 8);
            std::fs::write(&file, &bad).unwrap();
            let found = errors(&opened(directory.path(), manager), true);
            assert!(
                !found.is_empty() && found.iter().all(|error| error.starts_with("Corruption")),
                "{manager}: byte {at}: {found:?}"
            );
        }
        std::fs::write(&file, &good).unwrap();
        check(&opened(directory.path(), manager), 0..RECORDS);
    }
}

/// Without checksums the decoder is the first to see the damage. Where it cannot see it, as in a changed literal,
/// RocksDB reads a block that is wrong, and does not survive that every time, whichever codec wrote it; so what is
/// damaged here is what a decoder must find. Random damage is met by the decoders' own tests.
#[test]
fn decoders_report_damage_without_checksums() {
    let corrupt = ticker("leafpress.decompress.corrupt");
    for manager in MANAGERS {
        let directory = tempfile::tempdir().unwrap();
        let (file, _) = written(directory.path(), manager);
        let good = std::fs::read(&file).unwrap();
        // Behind the first block's size prefix of two bytes: lengths past its end, a reserved kind of block, or a table
        // that is not there.
        for len in [8, 16, 64, 256] {
            let mut bad = good.clone();
            bad[2..2 + len].fill(0xFF);
            std::fs::write(&file, &bad).unwrap();
            let db = opened(directory.path(), manager);
            let found = errors(&db, false);
            let codec = manager["codec=".len()..].split([':', ';']).next().unwrap();
            let named = format!("Corruption: leafpress: corrupt {codec} block: ");
            assert!(
                !found.is_empty() && found.iter().all(|error| error.starts_with(&named)),
                "{manager}: not {named:?}: {found:?}"
            );
            let mut read = ReadOptions::default();
            read.set_verify_checksums(false);
            assert_eq!(
                db.get_opt(key(RECORDS - 1), &read).unwrap().unwrap(),
                value(RECORDS - 1)
            );
        }
    }
    assert!(ticker("leafpress.decompress.corrupt") > corrupt);
}

/// A damaged size must not have RocksDB allocate what it says.
#[test]
fn a_size_that_cannot_be_is_corruption() {
    for manager in MANAGERS {
        let directory = tempfile::tempdir().unwrap();
        let (file, _) = written(directory.path(), manager);
        let mut bad = std::fs::read(&file).unwrap();
        // The first block's size prefix has two bytes for some 4 KiB. Five make 28 GiB.
        bad[..5].copy_from_slice(&[0xFF, 0xFF, 0xFF, 0xFF, 0x6F]);
        std::fs::write(&file, &bad).unwrap();
        let found = errors(&opened(directory.path(), manager), false);
        assert!(
            found
                .iter()
                .any(|error| error.contains("its size prefix says 30064771071 raw bytes")),
            "{manager}: {found:?}"
        );
    }
}
