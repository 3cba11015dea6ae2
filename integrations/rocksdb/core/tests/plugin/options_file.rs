//! The manager is kept in the `OPTIONS` file, loaded from there, and can be changed while the database is open.

use crate::support::{check, compressions, fill, leafpress, manager_in_options_file};
use rocksdb::{Cache, DB, Env, Options};

#[test]
fn a_database_is_opened_with_the_options_it_was_left_with() {
    let directory = tempfile::tempdir().unwrap();
    {
        let db = DB::open(&leafpress("codec=lz4;verify=true"), directory.path()).unwrap();
        fill(&db, 0..1000);
    }
    let cache = Cache::new_lru_cache(1 << 20);
    let (mut options, families) = Options::load_latest(directory.path(), Env::new().unwrap(), false, cache).unwrap();
    options.create_if_missing(false);
    let db = DB::open_cf_descriptors(&options, directory.path(), families).unwrap();
    check(&db, 0..1000);
    fill(&db, 1000..2000);
    let found = compressions(&db);
    assert!(
        found.len() == 2 && found.iter().all(|file| file.compressor == "leafpress lz4"),
        "{found:?}"
    );
    drop(db);
    assert_eq!(
        manager_in_options_file(directory.path()),
        "{id=leafpress;verify=true;codec=lz4;}"
    );
}

#[test]
fn the_codec_is_changed_while_the_database_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let db = DB::open(&leafpress("codec=lz4;verify=true"), directory.path()).unwrap();
    fill(&db, 0..1000);
    db.set_options(&[("compression_manager", "{id=leafpress;codec=zstd:6}")])
        .unwrap();
    fill(&db, 1000..2000);
    db.set_options(&[(
        "compression_manager",
        "{id=leafpress;execution_path=sw;level=7;codec=qpl}",
    )])
    .unwrap();
    fill(&db, 2000..3000);
    let mut found: Vec<_> = compressions(&db).into_iter().map(|file| file.compressor).collect();
    found.sort();
    assert_eq!(found, ["leafpress deflate:7", "leafpress lz4", "leafpress zstd:6"]);
    check(&db, 0..3000);
    // What is not named stays as it was.
    assert!(manager_in_options_file(directory.path()).contains("verify=true"));

    let message = db
        .set_options(&[("compression_manager", "{id=leafpress;codec=zstd:99}")])
        .unwrap_err();
    assert!(message.to_string().contains("the codecs are none, lz4"), "{message}");
    fill(&db, 3000..4000);
    assert!(
        compressions(&db)
            .iter()
            .filter(|file| file.compressor == "leafpress deflate:7")
            .count()
            == 2
    );
}

#[test]
fn rocksdbs_own_compression_and_ours_follow_each_other() {
    let directory = tempfile::tempdir().unwrap();
    fill(
        &DB::open(&crate::support::options("compression=kZSTD"), directory.path()).unwrap(),
        0..1000,
    );
    {
        let db = DB::open(&leafpress("codec=deflate:1"), directory.path()).unwrap();
        check(&db, 0..1000);
        fill(&db, 1000..2000);
    }
    // Registered, but not requested: RocksDB finds the reader by the schema's name in each file.
    let db = DB::open(
        &crate::support::options("compression=kLZ4Compression"),
        directory.path(),
    )
    .unwrap();
    check(&db, 0..2000);
    fill(&db, 2000..3000);
    let mut force = rocksdb::CompactOptions::default();
    force.set_bottommost_level_compaction(rocksdb::BottommostLevelCompaction::Force);
    db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &force);
    check(&db, 0..3000);
    assert!(compressions(&db).iter().all(|file| file.types.is_empty()));
}
