//! Each option does what it says, and is written back in its usual spelling.

use crate::support::leafpress;
use leafpress_rocksdb::CompressionOptions;

/// Returns the manager's options as RocksDB keeps them: those of the `OPTIONS` file of a database that is opened with
/// them.
fn kept(manager: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    drop(rocksdb::DB::open(&leafpress(manager), directory.path()).unwrap());
    crate::support::manager_in_options_file(directory.path())
}

#[test]
fn options_are_kept_in_their_usual_spelling() {
    for (options_text, expected) in [
        ("codec=zstd:3", "{id=leafpress;codec=zstd:3;}"),
        (
            "codec=lz4:fast=4;verify=1",
            "{id=leafpress;verify=true;codec=lz4:fast=4;}",
        ),
        (
            "codec=lz4;dictionary_bytes=16K",
            "{id=leafpress;codec=lz4;dictionary_bytes=16384;}",
        ),
        (
            "dictionary_bytes=64KiB;dictionary_sample_bytes=2MB",
            "{id=leafpress;dictionary_bytes=65536;dictionary_sample_bytes=2000000;}",
        ),
        (
            "level_codec=0:lz4, 6:zstd:6;parallel_threads=2",
            "{id=leafpress;level_codec=0:lz4,6:zstd:6;parallel_threads=2;}",
        ),
        (
            "dictionary_sample_bytes=1M;honor_no_compression=true",
            "{id=leafpress;dictionary_sample_bytes=1048576;honor_no_compression=true;}",
        ),
        ("execution_path=sw;level=6", "{id=leafpress;codec=deflate:6;}"),
    ] {
        assert_eq!(sorted(&kept(options_text)), sorted(expected), "{options_text}");
    }
}

#[test]
fn intels_options_come_to_a_codec() {
    for (options_text, expected) in [
        ("execution_path=auto", "qpl:auto:dynamic"),
        ("codec=qpl;compression_mode=fixed", "qpl:auto:fixed"),
        ("codec=qpl:auto:dynamic;compression_mode=fixed", "qpl:auto:fixed"),
        ("compression_mode=dynamic;level=32767", "qpl:auto:dynamic"),
        ("level=9", "deflate:9"),
    ] {
        assert_eq!(
            kept(options_text),
            format!("{{id=leafpress;codec={expected};}}"),
            "{options_text}"
        );
    }
    if crate::support::has_qpl() {
        assert_eq!(
            kept("execution_path=sw;compression_mode=fixed"),
            "{id=leafpress;codec=qpl:software:fixed;}"
        );
    }
}

#[test]
fn the_name_alone_is_enough() {
    let directory = tempfile::tempdir().unwrap();
    let options = crate::support::options("compression_manager=leafpress");
    let db = rocksdb::DB::open(&options, directory.path()).unwrap();
    crate::support::fill(&db, 0..2000);
    let found = crate::support::compressions(&db);
    assert_eq!(
        (found[0].types.as_str(), found[0].compressor.as_str()),
        ("C2", "leafpress zstd:3")
    );
}

#[test]
fn files_stay_raw_where_honored_rocksdb_options_require_it() {
    for (honor, types) in [("false", "C1"), ("true", "")] {
        let directory = tempfile::tempdir().unwrap();
        let options = crate::support::options(&format!(
            "compression=kNoCompression;compression_manager={{id=leafpress;codec=lz4;honor_no_compression={honor}}}"
        ));
        let db = rocksdb::DB::open(&options, directory.path()).unwrap();
        crate::support::fill(&db, 0..2000);
        assert_eq!(crate::support::compressions(&db)[0].types, types);
    }
}

/// RocksDB fails a file that is both aligned and compressed, and the database stops.
#[test]
fn aligned_files_are_written_without_compression() {
    for codec in ["zstd:3;dictionary_bytes=4K", "lz4;honor_no_compression=true", "none"] {
        let directory = tempfile::tempdir().unwrap();
        let options = crate::support::options(&format!(
            "compression=kNoCompression;block_based_table_factory={{block_align=true}};\
             compression_manager={{id=leafpress;codec={codec}}}"
        ));
        let db = rocksdb::DB::open(&options, directory.path()).unwrap();
        crate::support::fill(&db, 0..2000);
        db.compact_range(None::<&[u8]>, None::<&[u8]>);
        crate::support::fill(&db, 2000..4000);
        crate::support::check(&db, 0..4000);
        assert!(
            crate::support::compressions(&db)
                .iter()
                .all(|file| file.types.is_empty()),
            "{codec}"
        );
    }
}

#[test]
fn options_of_a_database_in_use_are_checked() {
    let directory = tempfile::tempdir().unwrap();
    let db = crate::support::open(directory.path(), "codec=zstd:3;dictionary_bytes=16K");
    for (bad, reason) in [
        ("{id=leafpress;kodec=lz4}", "unknown option \"kodec\""),
        ("{id=leafpress;codec=zst}", "unknown codec \"zst\""),
        ("{codec=lz4;level=3}", "codec=lz4 cannot be combined with level"),
        ("{dictionary_bytes=2G}", "dictionary_bytes=2G: allowed are"),
    ] {
        let message = db
            .set_options(&[("compression_manager", bad)])
            .unwrap_err()
            .into_string();
        assert!(
            message.contains("leafpress: ") && message.contains(reason),
            "{bad}: {message}"
        );
    }
    assert_eq!(
        sorted(&crate::support::manager_in_options_file(directory.path())),
        sorted("{id=leafpress;codec=zstd:3;dictionary_bytes=16384;}")
    );
    // Options that are not named stay unchanged.
    db.set_options(&[("compression_manager", "{codec=lz4}")]).unwrap();
    assert_eq!(
        sorted(&crate::support::manager_in_options_file(directory.path())),
        sorted("{id=leafpress;codec=lz4;dictionary_bytes=16384;}")
    );
}

#[test]
fn parallel_threads_compress() {
    let directory = tempfile::tempdir().unwrap();
    let db = crate::support::open(directory.path(), "codec=zstd:3;parallel_threads=4;verify=true");
    crate::support::fill(&db, 0..20_000);
    crate::support::check(&db, 0..20_000);
}

#[test]
fn text_and_options_are_the_same_thing() {
    let options: CompressionOptions = "{id=leafpress;codec=qpl;execution_path=auto;verify=0}".parse().unwrap();
    assert_eq!(
        options.to_string(),
        "{id=leafpress;codec=qpl:auto:dynamic;verify=false}"
    );
    assert_eq!(options.to_string().parse::<CompressionOptions>().unwrap(), options);
    for bad in ["codec", "codec=zstd:99", "level=3;codec=lz4"] {
        bad.parse::<CompressionOptions>().unwrap_err();
    }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut parts: Vec<_> = text
        .trim_matches(['{', '}'])
        .split(';')
        .filter(|part| !part.is_empty())
        .collect();
    parts.sort_unstable();
    parts
}
