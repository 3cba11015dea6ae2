//! The shared library in a C++ program that brings its own RocksDB: it is loaded at run time, uses the program's RocksDB, and
//! what one process writes another reads.
#![cfg(target_os = "linux")]

mod host;

use std::process::Command;

use host::{compile, library, run};

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
    let output = Command::new(compile("host.cpp", false))
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
