//! Dictionaries are trained from a file's own blocks, kept in the file, and used to read it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::support::{compressions, leafpress, noise, options, ticker};
use rocksdb::DB;

/// What `run` returns when the tickers that it counts are `expected`, of a few runs: tests that do not look at tickers
/// may have databases open at the same time, which count too.
fn undisturbed<const N: usize, R>(expected: [u64; N], mut run: impl FnMut() -> ([u64; N], R)) -> R {
    let mut counted = Vec::new();
    for _ in 0..5 {
        let (counts, result) = run();
        if counts == expected {
            return result;
        }
        counted.push(counts);
    }
    panic!("{counted:?} were counted, and never {expected:?}");
}

/// Tickers are the process's, so one test at a time looks at them.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a record whose fields repeat over the whole file and seldom within a block.
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

/// Fills a file of its own with records that `of` makes.
fn flush(db: &DB, file: u64, of: impl Fn(u64) -> Vec<u8>) {
    for i in 0..20_000 {
        db.put(crate::support::key(file * 20_000 + i), of(i)).unwrap();
    }
    db.flush().unwrap();
}

const SMALL_BLOCKS: &str = "disable_auto_compactions=true;block_based_table_factory={block_size=1024};";

#[test]
fn files_of_a_family_have_one_dictionary() {
    let _alone = alone();
    let names = [
        "leafpress.dictionary.trained",
        "leafpress.dictionary.reused.by.another.file",
        "leafpress.dictionary.prepared",
        "leafpress.dictionary.prepared.before",
    ];
    let run = |sharing: bool| {
        let before = names.map(ticker);
        let directory = tempfile::tempdir().unwrap();
        let with = options(&format!(
            "{SMALL_BLOCKS}compression_manager={{id=leafpress;codec=lz4;dictionary_bytes=8192;\
             dictionary_sharing={sharing}}}"
        ));
        let db = DB::open(&with, directory.path()).unwrap();
        for file in 0..3 {
            flush(&db, file, record);
        }
        for i in 0..60_000 {
            assert_eq!(db.get(crate::support::key(i)).unwrap().unwrap(), record(i % 20_000));
        }
        let all_have_one = compressions(&db)
            .iter()
            .all(|found| found.compressor.starts_with("leafpress lz4 dictionary="));
        assert!(all_have_one, "{:?}", compressions(&db));
        let after = names.map(ticker);
        (std::array::from_fn(|at| after[at] - before[at]), bytes(&db))
    };
    let shared = undisturbed([1, 2, 1, 2], || run(true));
    let own = undisturbed([3, 0], || {
        let ([trained, reused, ..], bytes): ([u64; 4], _) = run(false);
        ([trained, reused], bytes)
    });
    assert!(
        shared * 20 < own * 21,
        "{shared} bytes, {own} where every file has its own"
    );
}

#[test]
fn a_dictionary_that_files_have_outgrown_is_replaced() {
    let _alone = alone();
    let names = ["leafpress.dictionary.trained", "leafpress.dictionary.outgrown"];
    undisturbed([2, 1], || {
        let before = names.map(ticker);
        let directory = tempfile::tempdir().unwrap();
        let with = options(&format!(
            "{SMALL_BLOCKS}compression_manager={{id=leafpress;codec=zstd:3;dictionary_bytes=8192}}"
        ));
        let db = DB::open(&with, directory.path()).unwrap();
        // Other words, and digits as before.
        let other = |i| {
            let turned: Vec<u8> = record(i)
                .iter()
                .map(|b| if b.is_ascii_lowercase() { 219 - b } else { *b })
                .collect();
            [turned, noise(i, 20)].concat()
        };
        flush(&db, 0, record);
        flush(&db, 1, record);
        // Written with the old one, the last to be.
        flush(&db, 2, other);
        flush(&db, 3, other);
        let after = names.map(ticker);
        for i in 0..20_000 {
            assert_eq!(db.get(crate::support::key(i)).unwrap().unwrap(), record(i));
            assert_eq!(db.get(crate::support::key(40_000 + i)).unwrap().unwrap(), other(i));
            assert_eq!(db.get(crate::support::key(60_000 + i)).unwrap().unwrap(), other(i));
        }
        ([after[0] - before[0], after[1] - before[1]], ())
    });
}

#[test]
fn rocksdbs_verification_works_with_every_kind_of_dictionary() {
    const FILES: u64 = 3;
    let _alone = alone();
    let names = [
        "leafpress.dictionary.trained",
        "leafpress.dictionary.reused.by.another.file",
    ];
    let mut combinations = Vec::new();
    for codec in ["lz4", "zstd:3"] {
        for dictionary in [
            "",
            ";dictionary_bytes=8K;dictionary_sharing=true",
            ";dictionary_bytes=8K;dictionary_sharing=false",
        ] {
            for threads in [1, 3] {
                for verification in [
                    "verify_compression=false",
                    "verify_compression=true",
                    "verify_compression=true;enable_index_compression=false",
                    "verify_compression=true;prepopulate_block_cache=kFlushOnly",
                ] {
                    combinations.push((codec, dictionary, threads, verification));
                }
            }
        }
    }
    for (codec, dictionary, threads, verification) in combinations {
        let context = format!("{codec}{dictionary}, {threads} threads, {verification}");
        let before = names.map(ticker);
        let directory = tempfile::tempdir().unwrap();
        let with = options(&format!(
            "disable_auto_compactions=true;block_based_table_factory={{block_size=1024;{verification}}};\
             compression_manager={{id=leafpress;codec={codec}{dictionary};parallel_threads={threads}}}"
        ));
        let db = DB::open(&with, directory.path()).unwrap();
        let records = 3000;
        for file in 0..FILES {
            for i in 0..records {
                db.put(crate::support::key(file * records + i), record(i)).unwrap();
            }
            db.flush()
                .unwrap_or_else(|error| panic!("{context}: file {file}: {error}"));
        }
        let after = names.map(ticker);
        let expected = match dictionary.rsplit_once('=').map(|(_, sharing)| sharing) {
            Some("true") => [1, FILES - 1],
            Some(_) => [FILES, 0],
            None => [0, 0],
        };
        // The tickers are the process's: databases of other tests may count at the same time.
        let counted = [after[0] - before[0], after[1] - before[1]];
        assert!(
            counted[0] >= expected[0] && counted[1] >= expected[1],
            "{context}: {counted:?}"
        );
        db.compact_range(None::<&[u8]>, None::<&[u8]>);
        db.put("after", "the compaction")
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        for i in 0..FILES * records {
            let found = db.get(crate::support::key(i)).unwrap();
            assert_eq!(found.unwrap(), record(i % records), "{context}: record {i}");
        }
    }
}
