//! What cannot work is one clear line, exit code 2, and nothing on disk.

use crate::common::{assert_bad_input, assert_refused, leafpress};
use tempfile::TempDir;

/// Runs an evaluation that must be refused and leave no output directory.
#[track_caller]
fn refused(arguments: &[&str], variables: &[(&str, &str)], words: &[&str]) {
    let directory = TempDir::new().expect("a temporary directory");
    let mut command = leafpress();
    command
        .args(["eval", "--keys", "100", "--seconds", "0.1"])
        .args(arguments);
    command.envs(variables.iter().copied());
    assert_refused(&mut command, &directory.path().join("out"), words);
}

#[test]
fn data_that_is_not_there_or_empty() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    refused(
        &["--data", "/no/such/file"],
        &[],
        &["--data", "/no/such/file", "no such file"],
    );
    refused(&["--data", "nonesuch"], &[], &["--data", "nonesuch", "packages"]);
    refused(&["--data", &path("empty.txt", b"")], &[], &["empty.txt", "empty"]);
    refused(&["--data", &path("short.txt", b"short")], &[], &["short.txt"]);
    refused(
        &["--data", &path("broken.zip", b"PK\x03\x04 not a zip")],
        &[],
        &["broken.zip", "zip"],
    );
    refused(
        &["--data", &path("broken.gz", b"\x1f\x8b not a gzip")],
        &[],
        &["broken.gz", "gzip"],
    );
    let empty = directory.path().join("empty");
    std::fs::create_dir(&empty).expect("made");
    refused(&["--data", empty.to_str().expect("UTF-8")], &[], &["empty", "no files"]);
}

#[test]
fn records_past_the_limit() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("long.bin");
    // A length prefix of 64 MiB + 1, and one that promises more than there is.
    let mut bytes = ((64_u32 << 20) + 1).to_le_bytes().to_vec();
    bytes.resize(bytes.len() + (64 << 20) + 1, b'x');
    std::fs::write(&path, &bytes).expect("written");
    let data = path.to_str().expect("UTF-8");
    refused(
        &["--data", data, "--cut", "length-prefixed"],
        &[],
        &["long.bin", "67108864"],
    );
    std::fs::write(&path, &bytes[..1000]).expect("written");
    refused(&["--data", data, "--cut", "length-prefixed"], &[], &["long.bin"]);
    refused(&["--value-bytes", "67108865"], &[], &["--value-bytes", "67108864"]);
    refused(&["--cut", "fixed:0"], &[], &["--cut"]);
}

#[test]
fn unknown_words_list_the_known_ones() {
    refused(&["--codecs", "lz5"], &[], &["--codecs", "lz5", "zstd"]);
    refused(&["--codecs", "zstd:99"], &[], &["--codecs", "zstd:99"]);
    refused(
        &["--workloads", "read_some"],
        &[],
        &["--workloads", "read_some", "read_write_8_2"],
    );
    refused(&["--cut", "words"], &[], &["--cut", "words", "lines"]);
    refused(
        &["--distribution", "pareto"],
        &[],
        &["--distribution", "pareto", "zipfian"],
    );
    refused(&["--layout", "tree"], &[], &["--layout", "tree", "hashed"]);
    refused(
        &["--background-codec", "lzma"],
        &[],
        &["--background-codec", "lzma", "zstd"],
    );
    refused(&["--no-such-flag"], &[], &["--no-such-flag", "leafpress eval --help"]);
}

#[test]
fn numbers_out_of_range() {
    refused(&["--threads", "0"], &[], &["--threads", "0"]);
    refused(&["--threads", "1,100000"], &[], &["--threads", "100000"]);
    refused(&["--seconds", "0"], &[], &["--seconds", "0"]);
    refused(&["--seconds", "NaN"], &[], &["--seconds"]);
    refused(&["--seconds", "-1"], &[], &["--seconds: -1", "86400"]);
    refused(&["--keys", "-1"], &[], &["--keys", "-1"]);
    refused(&["--threads", "-1"], &[], &["--threads", "-1"]);
    refused(&["--keys", "0"], &[], &["--keys", "0"]);
    refused(&["--keys", "many"], &[], &["--keys", "many"]);
    refused(&["--value-bytes", "0"], &[], &["--value-bytes", "0"]);
    refused(&["--key-bytes", "2000"], &[], &["--key-bytes", "1024"]);
    refused(&["--reads-per-call", "0"], &[], &["--reads-per-call", "0"]);
    refused(&["--reads-per-call", "65"], &[], &["--reads-per-call", "64"]);
    refused(&["--shards", "0"], &[], &["--shards", "0"]);
    refused(
        &["--shards", "64", "--shard-by", "range", "--keys", "10"],
        &[],
        &["--shard-by", "10 keys"],
    );
    refused(
        &["--landing-compaction-pct", "0"],
        &[],
        &["--landing-compaction-pct", "100"],
    );
    refused(
        &["--landing-compaction-pct", "300"],
        &[],
        &["--landing-compaction-pct", "300", "100"],
    );
    refused(
        &["--landing-compaction-pct", "101"],
        &[],
        &["--landing-compaction-pct", "100"],
    );
    refused(
        &["--background", "on", "--background-threads", "0"],
        &[],
        &["--background-threads", "0"],
    );
    refused(&["--landing-bytes", "1000000"], &[], &["--landing-bytes"]);
    refused(&["--leaf-bytes", "1"], &[], &["--leaf-bytes"]);
    refused(&["--frame-bytes", "0"], &[], &["--frame-bytes"]);
    refused(&["--dictionary-bytes", "1"], &[], &["--dictionary-bytes"]);
}

#[test]
fn variables_are_blamed_by_name() {
    refused(&[], &[("THREADS_LIST", "0")], &["THREADS_LIST", "0"]);
    refused(&[], &[("THREADS_LIST", "two")], &["THREADS_LIST", "two"]);
    refused(
        &[],
        &[("BTREE_BG_LANDING_HIGH_WATERMARK_PCT", "101")],
        &["BTREE_BG_LANDING_HIGH_WATERMARK_PCT", "100"],
    );
    refused(&[], &[("SOFTWARE_CODECS", "lzma")], &["SOFTWARE_CODECS", "lzma"]);
    refused(&[], &[("BTREE_VALUE_BYTES", "0")], &["BTREE_VALUE_BYTES", "0"]);
    refused(&[], &[("RUN_IAA", "perhaps")], &["RUN_IAA", "perhaps"]);
    refused(&[], &[("RUN_ZLIB_ACCEL", "1")], &["ZLIB_ACCEL_SO"]);
}

#[test]
fn accelerators_that_are_not_there() {
    let directory = TempDir::new().expect("a temporary directory");
    let text = directory.path().join("libzlib_accel.so");
    std::fs::write(&text, "not a library").expect("written");
    refused(&["--zlib-accel"], &[], &["--zlib-accel-so"]);
    refused(
        &["--zlib-accel-so", "/no/such/libzlib_accel.so"],
        &[],
        &["--zlib-accel-so", "/no/such/libzlib_accel.so"],
    );
    refused(
        &["--zlib-accel-so", text.to_str().expect("UTF-8")],
        &[],
        &["--zlib-accel-so", "not a shared library"],
    );
    refused(
        &["--zlib-accel-so", "/no such/lib.so"],
        &[],
        &["--zlib-accel-so", "space"],
    );
    let absent = [("LEAFPRESS_QPL", "/no/such/libqpl.so")];
    refused(
        &["--codecs", "qpl:software:fixed"],
        &absent,
        &["qpl:software:fixed", "/no/such/libqpl.so"],
    );
    refused(&["--codecs", "none", "--iaa"], &absent, &["qpl:hardware:fixed"]);
}

/// The loader warns of a library that it cannot preload, and goes on without it; and it preloads any library.
#[test]
fn preloads_that_are_not_zlib_accel() {
    let directory = TempDir::new().expect("a temporary directory");
    let compile = |name: &str, source: &str, arguments: &[&str]| {
        let (from, to) = (directory.path().join("source.c"), directory.path().join(name));
        std::fs::write(&from, source).expect("written");
        let compiled = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&to, &from])
            .args(arguments)
            .arg(format!("-L{}", directory.path().display()))
            .status()
            .expect("a C compiler");
        assert!(compiled.success());
        to.to_str().expect("UTF-8").to_owned()
    };
    let other = compile("libother.so", "int leafpress_other(void) { return 1; }", &[]);
    refused(&["--zlib-accel-so", &other], &[], &["--zlib-accel-so", &other, "zlib"]);
    refused(
        &[],
        &[("RUN_ZLIB_ACCEL", "1"), ("ZLIB_ACCEL_SO", &other)],
        &["ZLIB_ACCEL_SO", &other],
    );
    let needing = compile(
        "libneeding.so",
        "int leafpress_other(void); int deflate(void *s, int f) { return leafpress_other() + (s == 0) + f; }",
        &["-lother"],
    );
    std::fs::remove_file(&other).expect("removed");
    refused(
        &["--zlib-accel-so", &needing],
        &[],
        &["--zlib-accel-so", &needing, "libother.so"],
    );
}

#[test]
fn output_directories_that_cannot_be_written() {
    let directory = TempDir::new().expect("a temporary directory");
    let file = directory.path().join("file");
    std::fs::write(&file, "").expect("written");
    let output = leafpress()
        .args(["eval", "--keys", "100", "--seconds", "0.1", "--out"])
        .arg(file.join("below"))
        .output()
        .expect("leafpress starts");
    assert_bad_input(&output, &["file/below", "--out"]);
}
