//! An engine that writes wrong blocks, or fails, costs no data: `verify` finds the one, software takes the other over.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use rocksdb::DB;

use crate::support::{self, check, compressions, fill, ticker};

const PATH: &str = "LEAFPRESS_TEST_PATH";

/// Returns a library that is preloaded over zlib.
fn shim(directory: &Path) -> PathBuf {
    let library = directory.join("libfaulty.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugin/faulty_zlib.c");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .status()
        .unwrap();
    assert!(compiled.success());
    library
}

fn run(fault: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let shim = shim(directory.path());
    support::child(
        "faulty_engine::child",
        &[
            (PATH, directory.path().join("db").to_str().unwrap()),
            ("LD_PRELOAD", &format!("{} libz.so.1", shim.display())),
            ("FAULTY_ZLIB", fault),
        ],
    )
}

#[test]
fn wrong_blocks_are_found_and_stored_raw() {
    if !support::has_zlib() {
        return;
    }
    let printed = run("wrong");
    let mismatches: u64 = printed
        .split("mismatches ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(mismatches > 10, "{printed}");
    assert!(
        printed.contains("did not decode to what it was compressed from (leafpress zlib:1)"),
        "{printed}"
    );
}

#[test]
fn software_takes_over_from_an_engine_that_fails() {
    if !support::has_zlib() {
        return;
    }
    let printed = run("fails");
    let taken_over: u64 = printed
        .split("taken over ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(taken_over > 10, "{printed}");
}

/// Not a test by itself: what the ones above run with a library preloaded.
#[test]
#[ignore = "run by another test"]
fn child() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let db = DB::open(&support::leafpress("codec=zlib:1;verify=true"), &path).unwrap();
    fill(&db, 0..3000);
    assert_eq!(compressions(&db)[0].types, "C4");
    check(&db, 0..3000);
    println!(
        "mismatches {} taken over {} ",
        ticker("leafpress.verify.mismatches"),
        ticker("leafpress.compress.taken.over.by.software")
    );
    println!("{}", std::fs::read_to_string(Path::new(&path).join("LOG")).unwrap());
}
