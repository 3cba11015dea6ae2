//! Compiles the C++ shim against RocksDB's headers.

use std::env;
use std::path::PathBuf;

/// The C++ files, one per RocksDB interface that we implement.
const SOURCES: &[&str] = &[
    "shim/register.cc",
    "shim/check_options.cc",
    "shim/compression_blocks.cc",
    "shim/compression_manager.cc",
    "shim/block_cache.cc",
    "shim/secondary_cache.cc",
];

fn main() {
    println!("cargo::rerun-if-changed=shim");
    println!("cargo::rerun-if-env-changed=ROCKSDB_INCLUDE_DIR");
    // For the test that compiles a program against the same RocksDB.
    println!("cargo::rustc-env=LEAFPRESS_ROCKSDB_INCLUDE_DIR={}", headers().display());
    println!("cargo::rerun-if-env-changed=ROCKSDB_LIB_DIR");
    let library = env::var("ROCKSDB_LIB_DIR").or_else(|_| env::var("DEP_ROCKSDB_OUT_DIR"));
    println!(
        "cargo::rustc-env=LEAFPRESS_ROCKSDB_LIB_DIR={}",
        library.unwrap_or_default()
    );
    println!(
        "cargo::rustc-env=LEAFPRESS_ROCKSDB_BUILD_DIR={}",
        env::var("DEP_ROCKSDB_OUT_DIR").unwrap_or_default()
    );
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++20")
        .include(headers())
        .warnings(true)
        .flag_if_supported("-Wno-unused-parameter")
        // RocksDB is built with and without run-time type information; only code without it links with both.
        .flag("-fno-rtti")
        .files(SOURCES)
        .compile("leafpress_rocksdb_shim");
    test_driver();
}

/// Compiles the driver with which the tests use RocksDB's caches; it is not part of the library.
fn test_driver() {
    const SOURCE: &str = "tests/driver/secondary_cache_driver.cc";
    println!("cargo::rerun-if-changed={SOURCE}");
    let (Some(_), Ok(out)) = (env::var_os("CARGO_FEATURE_BUNDLED"), env::var("OUT_DIR")) else {
        return;
    };
    cc::Build::new()
        .cpp(true)
        .std("c++20")
        .include(headers())
        .flag("-fno-rtti")
        .flag_if_supported("-Wno-unused-parameter")
        .cargo_metadata(false)
        .file(SOURCE)
        .compile("leafpress_rocksdb_test_driver");
    println!("cargo::rustc-link-arg-tests={out}/libleafpress_rocksdb_test_driver.a");
}

/// Returns the directory of RocksDB's headers: of the linked RocksDB, or the one that the user names.
fn headers() -> PathBuf {
    if let Some(directory) = env::var_os("DEP_ROCKSDB_CARGO_MANIFEST_DIR") {
        return PathBuf::from(directory).join("rocksdb/include");
    }
    match env::var_os("ROCKSDB_INCLUDE_DIR") {
        Some(directory) => PathBuf::from(directory),
        None => PathBuf::from("/usr/include"),
    }
}
