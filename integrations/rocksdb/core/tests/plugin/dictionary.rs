//! Dictionaries are trained from a file's own blocks, kept in the file, and used to read it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::support::{compressions, leafpress, noise, options, ticker};
use rocksdb::DB;

/// Tickers are the process's, so one test at a time looks at them.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A record whose fields repeat over the whole file and seldom within a block.
fn record(i: u64) -> Vec<u8> {
    let words = [
        "{\"customer\":",
        "\"shipment address\":",
        "\"quantity ordered\":",
        "\"warehouse\":",
        "\"unit price in cents\":",
        "\"delivered on\":",
        "\"carrier\":",
        "\"comment\":",
        "\"invoice\":",
        "\"returned\":",
    ];
    let mut out = String::new();
    for (at, word) in words.iter().enumerate() {
        if !(i + at as u64).is_multiple_of(3) {
            out += word;
            out += &format!("{},", i.wrapping_mul(0x9E37_79B9 + at as u64) % 100_000);
        }
    }
    out.into_bytes()
}

fn fill(db: &DB) {
    for i in 0..20_000 {
        db.put(crate::support::key(i), record(i)).unwrap();
    }
    db.flush().unwrap();
}

fn check(db: &DB) {
    for i in 0..20_000 {
        assert_eq!(
            db.get(crate::support::key(i)).unwrap().unwrap(),
            record(i),
            "record {i}"
        );
    }
}

fn bytes(db: &DB) -> usize {
    db.live_files().unwrap().iter().map(|file| file.size).sum()
}

#[test]
fn a_dictionary_is_trained_and_read_with() {
    let _alone = alone();
    for codec in ["lz4", "zstd:3", "zstd:-3", "zstd:9"] {
        let plain =
            {
                let directory = tempfile::tempdir().unwrap();
                let db = DB::open(&options(&format!(
                "compression_manager={{id=leafpress;codec={codec}}};block_based_table_factory={{block_size=1024}}"
            )), directory.path())
            .unwrap();
                fill(&db);
                bytes(&db)
            };
        let directory = tempfile::tempdir().unwrap();
        let with = options(&format!(
            "compression_manager={{id=leafpress;codec={codec};dictionary_bytes=8192;verify=true}};\
             block_based_table_factory={{block_size=1024}}"
        ));
        let (trained, prepared) = (
            ticker("leafpress.dictionary.trained"),
            ticker("leafpress.dictionary.prepared"),
        );
        {
            let db = DB::open(&with, directory.path()).unwrap();
            fill(&db);
            let found = compressions(&db);
            assert!(
                found[0]
                    .compressor
                    .starts_with(&format!("leafpress {codec} dictionary=")),
                "{found:?}"
            );
            assert!(bytes(&db) * 10 < plain * 9, "{codec}: {} of {plain} bytes", bytes(&db));
        }
        assert_eq!(ticker("leafpress.dictionary.trained"), trained + 1);
        let db = DB::open(&with, directory.path()).unwrap();
        check(&db);
        // Prepared once for a file, not once for a block.
        let prepared = ticker("leafpress.dictionary.prepared") - prepared;
        assert!(prepared <= 3, "{prepared} dictionaries were prepared");
    }
    assert_eq!(ticker("leafpress.verify.mismatches"), 0);
}

#[test]
fn rocksdbs_own_dictionary_options_are_heard() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let db = DB::open(
        &options(
            "compression_opts={max_dict_bytes=4096;zstd_max_train_bytes=204800};\
             compression_manager={id=leafpress;codec=zstd:3};block_based_table_factory={block_size=1024}",
        ),
        directory.path(),
    )
    .unwrap();
    fill(&db);
    let compressor = compressions(&db)[0].compressor.clone();
    let dictionary: usize = compressor
        .strip_prefix("leafpress zstd:3 dictionary=")
        .unwrap()
        .parse()
        .unwrap();
    assert!((256..=4096).contains(&dictionary), "{compressor}");
    check(&db);
}

#[test]
fn no_dictionary_is_kept_where_it_saves_nothing() {
    let _alone = alone();
    let declined = ticker("leafpress.dictionary.declined");
    for records in [3, 5000] {
        let directory = tempfile::tempdir().unwrap();
        let db = DB::open(&leafpress("codec=zstd:3;dictionary_bytes=16K"), directory.path()).unwrap();
        for i in 0..records {
            db.put(crate::support::key(i), noise(i, 300)).unwrap();
        }
        db.flush().unwrap();
        assert_eq!(compressions(&db)[0].compressor, "leafpress zstd:3");
        assert_eq!(db.get(crate::support::key(1)).unwrap().unwrap(), noise(1, 300));
    }
    assert_eq!(ticker("leafpress.dictionary.declined"), declined + 2);
}

#[test]
fn codecs_without_dictionaries_do_without() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let db = DB::open(&leafpress("codec=deflate:1;dictionary_bytes=16K"), directory.path()).unwrap();
    fill(&db);
    assert_eq!(compressions(&db)[0].compressor, "leafpress deflate:1");
    check(&db);
}
