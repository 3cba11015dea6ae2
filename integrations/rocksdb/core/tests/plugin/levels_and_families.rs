//! Levels and column families each have their codec, as the files' own properties say.

use crate::support::{check, compressions, fill, leafpress};
use rocksdb::{ColumnFamilyDescriptor, DB};

#[test]
fn level_codec_sets_the_codec_of_each_level() {
    let directory = tempfile::tempdir().unwrap();
    let options = crate::support::options(
        "disable_auto_compactions=true;num_levels=7;\
         compression_manager={id=leafpress;codec=zstd:9;level_codec=0:lz4,3:deflate:1,6:zstd:6}",
    );
    let db = DB::open(&options, directory.path()).unwrap();
    fill(&db, 0..2000);
    let mut to_bottom = rocksdb::CompactOptions::default();
    to_bottom.set_change_level(true);
    for (target, compressor) in [
        (6, "leafpress zstd:6"),
        (4, "leafpress deflate:1"),
        (1, "leafpress lz4"),
    ] {
        // The bottommost files are written for the level they are moved to.
        to_bottom.set_target_level(target);
        to_bottom.set_bottommost_level_compaction(rocksdb::BottommostLevelCompaction::Force);
        fill(&db, 0..2000);
        db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &to_bottom);
        let found = compressions(&db);
        assert!(
            found.iter().any(|file| file.level == target),
            "wanted level {target} ({compressor}): {found:?}"
        );
        check(&db, 0..2000);
    }
}

#[test]
fn flushed_files_and_the_last_level_differ() {
    let directory = tempfile::tempdir().unwrap();
    let db = DB::open(
        &crate::support::options(
            "disable_auto_compactions=true;compression_manager={id=leafpress;level_codec=0:lz4,6:zstd:6}",
        ),
        directory.path(),
    )
    .unwrap();
    fill(&db, 0..2000);
    assert_eq!(compressions(&db)[0].compressor, "leafpress lz4");
    let mut force = rocksdb::CompactOptions::default();
    force.set_bottommost_level_compaction(rocksdb::BottommostLevelCompaction::Force);
    db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &force);
    let found = compressions(&db);
    assert_eq!(
        (found[0].level, found[0].compressor.as_str(), found[0].types.as_str()),
        (6, "leafpress zstd:6", "C2")
    );
    check(&db, 0..2000);
}

#[test]
fn column_families_have_codecs_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let codecs = ["lz4", "zstd:3", "deflate:4", "none"];
    let families = || {
        let own = codecs.map(|codec| ColumnFamilyDescriptor::new(codec, leafpress(&format!("codec={codec}"))));
        let default = ColumnFamilyDescriptor::new("default", leafpress("codec=zstd:1"));
        own.into_iter().chain([default]).collect::<Vec<_>>()
    };
    let mut options = leafpress("codec=zstd:1");
    options.create_missing_column_families(true);
    {
        let db = DB::open_cf_descriptors(&options, directory.path(), families()).unwrap();
        for codec in codecs {
            let family = db.cf_handle(codec).unwrap();
            for i in 0..1000 {
                db.put_cf(family, crate::support::key(i), crate::support::value(i))
                    .unwrap();
            }
            db.flush_cf(family).unwrap();
        }
        fill(&db, 0..1000);
        for file in compressions(&db) {
            let expected = match file.column_family.as_str() {
                "default" => "leafpress zstd:1".to_owned(),
                "none" => String::new(),
                codec => format!("leafpress {codec}"),
            };
            assert_eq!(file.compressor, expected, "{file:?}");
        }
    }
    let db = DB::open_cf_descriptors(&options, directory.path(), families()).unwrap();
    for codec in codecs {
        let family = db.cf_handle(codec).unwrap();
        for i in 0..1000 {
            assert_eq!(
                db.get_cf(family, crate::support::key(i)).unwrap().unwrap(),
                crate::support::value(i)
            );
        }
    }
}
