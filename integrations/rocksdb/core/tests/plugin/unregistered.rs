//! What a process meets that did not register, or registers late.

use rocksdb::{Cache, DB, Env, Options};

use crate::support::{self, check, fill, leafpress};

const PATH: &str = "LEAFPRESS_TEST_PATH";

#[test]
fn a_process_that_did_not_register_gets_an_error_that_names_the_schema() {
    let directory = tempfile::tempdir().unwrap();
    fill(&DB::open(&leafpress("codec=lz4"), directory.path()).unwrap(), 0..1000);
    let printed = support::child("unregistered::child", &[(PATH, directory.path().to_str().unwrap())]);
    assert!(
        printed.contains("Could not load CompressionManager: leafpress_rocksdb_v1"),
        "{printed}"
    );
    assert!(printed.contains("late registration reads everything"), "{printed}");
    // What it was left by the other process is as it was.
    check(&DB::open(&leafpress("codec=lz4"), directory.path()).unwrap(), 0..1000);
}

/// Not a test by itself: what the one above runs in a process of its own.
#[test]
#[ignore = "run by another test"]
fn child() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let message = match DB::open(&Options::default(), &path) {
        Ok(db) => db.get(support::key(1)).unwrap_err(),
        Err(error) => error,
    };
    println!("without registration: {message}");
    // RocksDB leaves a manager that it does not know out of the options in silence.
    let load = || Options::load_latest(&path, Env::new().unwrap(), false, Cache::new_lru_cache(1 << 20));
    if let Ok((options, families)) = load() {
        DB::open_cf_descriptors(&options, &path, families).unwrap_err();
    }
    leafpress_rocksdb::register();
    check(&DB::open(&Options::default(), &path).unwrap(), 0..1000);
    let (options, families) = load().unwrap();
    check(&DB::open_cf_descriptors(&options, &path, families).unwrap(), 0..1000);
    println!("late registration reads everything");
}
