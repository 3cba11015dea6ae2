//! Reported memory equals the growth of the process: each test measures resident memory in a process of its own.
#![cfg(target_os = "linux")]

#[path = "../support/alone.rs"]
mod alone;
mod cache;
#[allow(dead_code)]
#[path = "../support/keys.rs"]
mod keys;
mod long_values;
mod pool;
mod tree;
#[cfg(feature = "node-heap")]
mod tree_under_writes;
mod victim;

/// Returns the anonymous resident memory of the process: pages of the program file are loaded at their first execution,
/// and are not measured.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

/// Runs the work in a dedicated process: `test` is the calling test's path in this program. With
/// `LEAFPRESS_RESIDENT=skip` it reports that it was skipped.
fn alone(test: &str, work: impl FnOnce()) {
    const VARIABLE: &str = "LEAFPRESS_TEST_ALONE";
    if std::env::var_os("LEAFPRESS_RESIDENT").is_some_and(|whether| whether == "skip") {
        eprintln!("skipped: resident memory is measured by `make resident`");
    } else if std::env::var_os(VARIABLE).is_some_and(|alone| alone == test) {
        work();
    } else {
        alone::run_alone(test, VARIABLE, test, || Ok(())).expect("a process");
    }
}
