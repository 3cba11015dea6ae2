//! The shared library in a C++ program that brings its own RocksDB: it is loaded at run time, uses the program's
//! RocksDB, and what one process writes another reads.
#![cfg(target_os = "linux")]

mod host;

use std::path::Path;
use std::process::Command;

use host::{compile, library, rocksdb_is_shared, run};

#[test]
fn a_program_in_cpp_loads_it() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile("host.cpp", true);
    for codec in ["zstd:3;dictionary_bytes=4096;verify=true", "lz4", "deflate:1"] {
        let database = directory.path().join(codec.split(':').next().unwrap());
        let options = format!("compression_manager={{id=leafpress;codec={codec}}}");
        let wrote = run(Command::new(&program)
            .arg("write")
            .arg(library())
            .arg(&database)
            .arg(options));
        let printed = String::from_utf8(wrote.stdout).unwrap();
        // The counts are of the library that was loaded, so it is the program's RocksDB that called it.
        let blocks = printed
            .lines()
            .find_map(|line| line.strip_prefix("leafpress.compress.blocks COUNT : "));
        assert!(blocks.unwrap().parse::<u64>().unwrap() > 10, "{printed}");
        let read = run(Command::new(&program).arg("read").arg(library()).arg(&database));
        assert!(String::from_utf8(read.stdout).unwrap().ends_with("host read: good\n"));

        let without = Command::new(&program)
            .arg("read")
            .arg("-")
            .arg(&database)
            .output()
            .unwrap();
        let printed = String::from_utf8(without.stderr).unwrap();
        assert_eq!(
            printed,
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
fn a_program_that_hides_its_rocksdb_learns_what_is_missing() {
    if rocksdb_is_shared() {
        println!("skipped: RocksDB is a shared library here, which hides nothing");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(compile("host.cpp", false))
        .arg("read")
        .arg(library())
        .arg(directory.path())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        printed.starts_with("dlopen: ") && printed.contains("undefined symbol: _Z") && printed.contains("rocksdb"),
        "{printed}"
    );
}

/// As RocksDB's ldb and sst_dump, which know nothing of Leafpress.
#[test]
fn a_program_that_knows_nothing_of_it_reads_and_repairs_with_the_library_preloaded() {
    let program = compile("host.cpp", true);
    let host = |preload: bool, mode: &str, database: &Path| {
        let mut command = Command::new(&program);
        if preload {
            command.env("LD_PRELOAD", library());
        }
        let output = command.args([mode, "-"]).arg(database).output().unwrap();
        let printed = output.stdout.is_empty().then_some(output.stderr.clone());
        String::from_utf8(printed.unwrap_or(output.stdout)).unwrap()
    };
    let unknown = "Not implemented: Could not load CompressionManager: leafpress_rocksdb_v1\n";
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("database");
    run(Command::new(&program)
        .arg("write")
        .arg(library())
        .arg(&database)
        .arg("compression_manager={id=leafpress;codec=zstd:3;dictionary_bytes=4096}"));

    assert_eq!(host(false, "read", &database), unknown);
    assert_eq!(host(true, "read", &database), "host read: good\n");
    assert_eq!(host(true, "repair", &database), "host repair: good\n");
    assert_eq!(host(true, "read", &database), "host read: good\n");

    // RocksDB counts what it cannot read as lost, and says that all is well. The files are whole, and can be brought
    // back.
    assert_eq!(host(false, "repair", &database), "host repair: good\n");
    assert_eq!(host(true, "read", &database), "NotFound: \n");
    let lost = std::fs::read_dir(database.join("lost"))
        .unwrap()
        .map(|file| file.unwrap());
    let tables: Vec<_> = lost
        .filter(|file| file.path().extension().is_some_and(|kind| kind == "sst"))
        .collect();
    assert!(!tables.is_empty());
    for table in tables {
        std::fs::rename(table.path(), database.join(table.file_name())).unwrap();
    }
    assert_eq!(host(true, "repair", &database), "host repair: good\n");
    assert_eq!(host(true, "read", &database), "host read: good\n");
}

#[test]
fn a_preloaded_library_reports_another_rocksdb_version() {
    if !rocksdb_is_shared() {
        println!("skipped: a program's own RocksDB comes before what is preloaded");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let other = directory.path().join("libother.so");
    run(Command::new("g++")
        .args(["-x", "c++", "-shared", "-fPIC", "-o"])
        .arg(&other)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/host/other_version.cpp")));
    let preload = format!("{}:{}", other.display(), library().display());
    let output = Command::new(compile("host.cpp", true))
        .env("LD_PRELOAD", preload)
        .args(["write", "-"])
        .arg(directory.path().join("database"))
        .arg("compression_manager={id=leafpress;codec=lz4}")
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(
        printed.starts_with("leafpress: built for RocksDB ")
            && printed.contains(", and this program runs RocksDB 9.99; build"),
        "{printed}"
    );
    assert!(
        printed.contains("Could not load CompressionManager: leafpress\n"),
        "{printed}"
    );
}
