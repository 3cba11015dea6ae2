//! No exception leaves the shim into RocksDB: `host/alloc_faults.cc` fails the allocations below it one by one.
#![cfg(target_os = "linux")]

mod host;

use std::process::Command;

use host::{compile, library, run};

#[test]
fn every_failed_allocation_is_an_error_and_no_exception() {
    let output = run(Command::new(compile("alloc_faults.cc", true)).arg(library()));
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> = printed.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines.len(), 2, "{printed}");
    let failed = |line: &[&str], what: &str| {
        let at = line.iter().position(|word| *word == what).unwrap();
        line[at + 1].parse::<u64>().unwrap()
    };
    // One at a time, then each with all that follow it.
    for line in &lines {
        assert!(
            failed(line, "overrides") > 50 && failed(line, "database") > 100,
            "{printed}"
        );
    }
}
