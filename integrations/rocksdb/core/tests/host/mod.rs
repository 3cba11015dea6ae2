//! C++ programs that bring their own RocksDB and load the shared library at run time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Where RocksDB's library is, where librocksdb-sys was built, and RocksDB's headers (the build script passes them on).
const ROCKSDB_LIB_DIR: &str = env!("LEAFPRESS_ROCKSDB_LIB_DIR");
const ROCKSDB_BUILD_DIR: &str = env!("LEAFPRESS_ROCKSDB_BUILD_DIR");
const ROCKSDB_INCLUDE_DIR: &str = env!("LEAFPRESS_ROCKSDB_INCLUDE_DIR");

pub fn run(command: &mut Command) -> Output {
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

/// Returns the library without a RocksDB of its own.
pub fn library() -> &'static Path {
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

/// RocksDB's archive, as librocksdb-sys compiles it; none where it is a shared library that was compiled elsewhere.
fn rocksdb_archive() -> Option<PathBuf> {
    let archive = Path::new(ROCKSDB_LIB_DIR).join("librocksdb.a");
    archive.exists().then_some(archive)
}

/// Returns whether RocksDB is a shared library, whose symbols every program exports.
#[allow(dead_code, reason = "each test uses a part")]
pub fn rocksdb_is_shared() -> bool {
    rocksdb_archive().is_none()
}

/// Returns the archive of a dependency of RocksDB, which lies in a build directory next to that of librocksdb-sys.
fn archive(package: &str, name: &str) -> PathBuf {
    let build = Path::new(ROCKSDB_BUILD_DIR).parent().unwrap().parent().unwrap();
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

/// Returns a program of this directory, with its symbols to be seen by what it loads, or not. It is compiled once: a
/// test must not replace a program that another runs.
pub fn compile(source: &str, exports: bool) -> PathBuf {
    static COMPILED: Mutex<BTreeMap<(String, bool), PathBuf>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    compiled
        .entry((source.to_owned(), exports))
        .or_insert_with(|| compile_now(source, exports))
        .clone()
}

fn compile_now(source: &str, exports: bool) -> PathBuf {
    let stem = source.split('.').next().unwrap();
    let name = if exports {
        stem.to_owned()
    } else {
        format!("{stem}_without_exports")
    };
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut compiler = Command::new("g++");
    compiler
        .args(["-std=c++20", "-O1", "-o"])
        .arg(&program)
        .arg(manifest().join("tests/host").join(source))
        .arg("-I")
        .arg(ROCKSDB_INCLUDE_DIR)
        .arg("-I")
        .arg(manifest().join("include"))
        .arg("-Wno-unused-parameter");
    match rocksdb_archive() {
        Some(rocksdb) => {
            compiler
                .arg("-Wl,--whole-archive")
                .arg(rocksdb)
                .arg("-Wl,--no-whole-archive")
                .arg(archive("lz4-sys-", "liblz4.a"))
                .arg(archive("zstd-sys-", "libzstd.a"));
        }
        None => {
            compiler
                .arg(format!("-L{ROCKSDB_LIB_DIR}"))
                .arg(format!("-Wl,-rpath,{ROCKSDB_LIB_DIR}"))
                .arg("-lrocksdb");
        }
    }
    compiler.args(["-lpthread", "-ldl"]);
    if exports {
        compiler.arg("-rdynamic");
    }
    run(&mut compiler);
    program
}
