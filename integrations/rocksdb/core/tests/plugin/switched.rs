//! An existing database is turned over to Leafpress, and back, while it is open.

use rocksdb::{BottommostLevelCompaction, Cache, CompactOptions, DB, Env, Options};

use crate::support::{check, compressions, fill, manager_in_options_file, options};

#[test]
fn a_database_of_an_old_format_is_turned_over_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(
        &DB::open(
            &options("compression=kLZ4Compression;block_based_table_factory={format_version=5}"),
            path,
        )
        .unwrap(),
        0..3000,
    );
    let mut everything = CompactOptions::default();
    everything.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
    for (manager, types) in [("{id=leafpress;codec=zstd:3}", "C2"), ("nullptr", "")] {
        let cache = Cache::new_lru_cache(1 << 20);
        let (options, families) = Options::load_latest(path, Env::new().unwrap(), false, cache).unwrap();
        let db = DB::open_cf_descriptors(&options, path, families).unwrap();
        db.set_options(&[
            ("block_based_table_factory", "{format_version=7;}"),
            ("compression_manager", manager),
        ])
        .unwrap();
        db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &everything);
        assert!(
            compressions(&db).iter().all(|file| file.types == types),
            "{:?}",
            compressions(&db)
        );
        check(&db, 0..3000);
        drop(db);
        assert_eq!(
            manager_in_options_file(path).starts_with("{id=leafpress"),
            !types.is_empty()
        );
    }
}
