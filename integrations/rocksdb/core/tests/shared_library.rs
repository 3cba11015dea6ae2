//! The shared library in a C++ program that brings its own RocksDB: it is loaded at run time, uses the program's RocksDB, and
//! what one process writes another reads.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// RocksDB's archive as librocksdb-sys made it, and its headers (the build script passes both on).
const ROCKSDB_LIB_DIR: &str = env!("LEAFPRESS_ROCKSDB_LIB_DIR");
const ROCKSDB_INCLUDE_DIR: &str = env!("LEAFPRESS_ROCKSDB_INCLUDE_DIR");

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The library without a RocksDB of its own.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        run(Command::new(env!("CARGO"))
            .current_dir(manifest().parent().unwrap())
            .args([
                "rustc",
                "--release",
                "-p",
                "leafpress-rocksdb",
                "--lib",
                "--no-default-features",
            ])
            .args(["--crate-type", "cdylib", "--target-dir"])
            .arg(target)
            .env("ROCKSDB_INCLUDE_DIR", ROCKSDB_INCLUDE_DIR));
        let made = target.join("release/libleafpress_rocksdb.so");
        assert!(made.exists(), "{} is missing", made.display());
        made
    })
}

/// The archive of a dependency of RocksDB, which lies beside its own in the build directory.
fn archive(package: &str, name: &str) -> PathBuf {
    let build = Path::new(ROCKSDB_LIB_DIR).parent().unwrap().parent().unwrap();
    let made = std::fs::read_dir(build).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = made
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(package))
        .map(|path| path.join("out").join(name))
        .filter(|path| path.exists())
        .collect();
    found.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
    found
        .pop()
        .unwrap_or_else(|| panic!("no {name} in {}", build.display()))
}

/// The C++ program, with its symbols to be seen by what it loads, or not.
fn host(exports: bool) -> PathBuf {
    let name = if exports { "host" } else { "host_without_exports" };
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut compiler = Command::new("g++");
    compiler
        .args(["-std=c++20", "-O1", "-o"])
        .arg(&program)
        .arg(manifest().join("tests/host/host.cpp"))
        .arg("-I")
        .arg(ROCKSDB_INCLUDE_DIR)
        .arg("-I")
        .arg(manifest().join("include"))
        .arg("-Wl,--whole-archive")
        .arg(Path::new(ROCKSDB_LIB_DIR).join("librocksdb.a"))
        .arg("-Wl,--no-whole-archive")
        .arg(archive("lz4-sys-", "liblz4.a"))
        .arg(archive("zstd-sys-", "libzstd.a"))
        .args(["-lpthread", "-ldl"]);
    if exports {
        compiler.arg("-rdynamic");
    }
    run(&mut compiler);
    program
}

#[test]
fn a_program_in_cpp_loads_it() {
    let directory = tempfile::tempdir().unwrap();
    let program = host(true);
    for codec in ["zstd:3;dictionary_bytes=4096;verify=true", "lz4", "deflate:1"] {
        let database = directory.path().join(codec.split(':').next().unwrap());
        let options = format!("compression_manager={{id=leafpress;codec={codec}}}");
        let wrote = run(Command::new(&program)
            .arg("write")
            .arg(library())
            .arg(&database)
            .arg(options));
        let said = String::from_utf8(wrote.stdout).unwrap();
        // The counts are of the library that was loaded, so it is the program's RocksDB that called it.
        let blocks = said
            .lines()
            .find_map(|line| line.strip_prefix("leafpress.compress.blocks COUNT : "));
        assert!(blocks.unwrap().parse::<u64>().unwrap() > 10, "{said}");
        let read = run(Command::new(&program).arg("read").arg(library()).arg(&database));
        assert!(String::from_utf8(read.stdout).unwrap().ends_with("host read: good\n"));

        let without = Command::new(&program)
            .arg("read")
            .arg("-")
            .arg(&database)
            .output()
            .unwrap();
        let said = String::from_utf8(without.stderr).unwrap();
        assert_eq!(
            said,
            "Not implemented: Could not load CompressionManager: leafpress_rocksdb_v1\n"
        );
    }
    let undefined = run(Command::new("nm").args(["-D", "--undefined-only"]).arg(library()));
    assert!(
        String::from_utf8(undefined.stdout)
            .unwrap()
            .contains("rocksdb13ObjectLibrary7DefaultEv")
    );
}

#[test]
fn a_program_that_hides_its_rocksdb_is_told_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(host(false))
        .arg("read")
        .arg(library())
        .arg(directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.starts_with("dlopen: ") && said.contains("undefined symbol: _Z") && said.contains("rocksdb"),
        "{said}"
    );
}
