//! Options that cannot be are refused with a message that says what can be.

use crate::support::error;

#[test]
fn each_bad_option_is_named_with_what_is_allowed() {
    for (manager, expected) in [
        (
            "codec=zst:3",
            "unknown codec \"zst:3\"; the codecs are none, lz4, lz4:fast=",
        ),
        ("codec=zstd:23", "unknown codec \"zstd:23\""),
        ("codec=zstd", "unknown codec \"zstd\""),
        ("codec=lz4:fast=0", "unknown codec"),
        (
            "level_codec=zstd:3",
            "level_codec: \"zstd:3\" does not begin with a level; allowed are level:codec pairs",
        ),
        ("level_codec=0:lz4,6", "\"6\" has no codec"),
        ("level_codec=6:lz4,0:zstd:3", "\"0:zstd:3\" does not ascend"),
        ("level_codec=99:lz4", "is for no level that can be"),
        ("level_codec=0:lz5", "unknown codec \"lz5\""),
        ("execution_path=gpu", "execution_path=gpu: allowed are auto, hw and sw"),
        (
            "compression_mode=best",
            "compression_mode=best: allowed are dynamic and fixed",
        ),
        ("level=13", "level=13: allowed are 0 (the default) to 12"),
        ("level=-1", "level=-1: allowed are 0 (the default) to 12"),
        ("verify=maybe", "verify=maybe: allowed are true and false"),
        (
            "parallel_threads=many",
            "parallel_threads=many: allowed are 0 (as compression_opts says) to 256",
        ),
        ("parallel_threads=257", "parallel_threads=257: allowed are 0"),
        (
            "dictionary_bytes=100",
            "dictionary_bytes=100: allowed are 0 (no dictionary) and 256 to 1048576",
        ),
        ("dictionary_bytes=2M", "dictionary_bytes=2M: allowed are"),
        (
            "dictionary_sample_bytes=5",
            "dictionary_sample_bytes=5: allowed are 0 (50 times dictionary_bytes) and 2048 to",
        ),
        (
            "honor_no_compression=2",
            "honor_no_compression=2: allowed are true and false",
        ),
        (
            "codec=zstd:3;level=6",
            "codec=zstd:3 cannot be combined with level: the codec's name already says how it compresses",
        ),
        (
            "codec=lz4;execution_path=sw;compression_mode=fixed",
            "codec=lz4 cannot be combined with execution_path and compression_mode: the codec's name",
        ),
        (
            "execution_path=hw;level=9",
            "level=9 cannot be combined with execution_path=hw",
        ),
        ("parallel_threads=1K", "parallel_threads=1K: allowed are 0"),
        (
            "dictionary_bytes=1.5K",
            "dictionary_bytes=1.5K: allowed are 0 (no dictionary) and 256",
        ),
    ] {
        let message = error(&format!("compression_manager={{id=leafpress;{manager}}}"));
        assert!(message.starts_with("Invalid argument: "), "{manager}: {message}");
        assert!(
            message.contains("leafpress: ") && message.contains(expected),
            "{manager}: {message}"
        );
    }
}

#[test]
fn an_option_that_does_not_exist_is_refused() {
    let message = error("compression_manager={id=leafpress;kodec=lz4}");
    assert!(
        message.contains("leafpress: unknown option \"kodec\"; the options are codec, level_codec, "),
        "{message}"
    );
}

/// RocksDB's C interface drops what it does not know in silence, so there is a check that does not.
#[test]
fn a_manager_that_does_not_exist_is_refused_by_the_check() {
    let text = "compression_manager={id=leafpres;codec=lz4}";
    let message = leafpress_rocksdb::check_options(text).unwrap_err().to_string();
    assert!(
        message.contains("Could not load CompressionManager") && message.contains("leafpres"),
        "{message}"
    );
    leafpress_rocksdb::check_options("compression_manager={id=leafpress;codec=lz4}").unwrap();
}

#[test]
fn a_file_format_without_managers_is_refused() {
    let options = crate::support::options(
        "compression_manager={id=leafpress;codec=lz4};block_based_table_factory={format_version=6}",
    );
    let directory = tempfile::tempdir().unwrap();
    let message = rocksdb::DB::open(&options, directory.path()).unwrap_err().into_string();
    assert!(message.contains("format_version < 7"), "{message}");
}

#[test]
fn a_device_that_is_not_there_is_named() {
    if std::path::Path::new("/dev/iax").exists() {
        println!("skipped: there is an IAA device");
        return;
    }
    let message = error("compression_manager={id=leafpress;codec=qpl;execution_path=hw}");
    assert!(
        message.contains("codec qpl:hardware:dynamic is not available: "),
        "{message}"
    );
}
