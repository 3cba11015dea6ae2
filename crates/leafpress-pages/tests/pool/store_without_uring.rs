//! A kernel that refuses io_uring, at opening or later: batches are executed page by page.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::io;
use std::path::PathBuf;

use crate::alone::run_alone;
use crate::store_support::{page, read_batch, refused, scratch, write_batch};
use leafpress_pages::store::{AutoOnOff, FileStore, PageStore};

const SETUP: &str = "LEAFPRESS_TEST_NO_URING_SETUP";
const ENTER: &str = "LEAFPRESS_TEST_NO_URING_ENTER";

/// Makes system call `number` fail from now on, as in a container.
fn forbid(number: libc::c_long) -> io::Result<()> {
    crate::system_calls::forbid(number, libc::EPERM)
}

fn batches_work(store: &FileStore) {
    let pages: Vec<_> = (0..200).map(|n| (n, page(n, 0, 4096))).collect();
    for round in 0..3 {
        for result in write_batch(store, &pages) {
            result.unwrap();
        }
        let numbers: Vec<u64> = (0..200).collect();
        for ((_, expected), bytes) in pages.iter().zip(read_batch(store, &numbers)) {
            assert!(bytes.unwrap() == *expected, "round {round}");
        }
    }
}

fn refused_from_the_start(test: &str, variable: &str, number: libc::c_long) {
    let Some(directory) = std::env::var_os(variable).map(PathBuf::from) else {
        let directory = scratch();
        if let Err(e) = run_alone(test, variable, directory.path(), move || forbid(number)) {
            eprintln!("skipped: no filter on system calls: {e}");
        }
        return;
    };
    let path = directory.join("pages");
    let store = FileStore::create(&path, 4096).unwrap();
    assert!(!store.uses_io_uring());
    assert!(
        store.describe().contains("batches page by page (no io_uring: "),
        "{store}"
    );
    batches_work(&store);
    let (kind, text) = refused(FileStore::options().io_uring(AutoOnOff::On).open(&path, 4096));
    assert_eq!(kind, io::ErrorKind::Unsupported);
    assert!(text.contains("io_uring does not work: "), "{text}");
}

#[test]
fn a_filter_that_forbids_making_rings() {
    refused_from_the_start(
        "store_without_uring::a_filter_that_forbids_making_rings",
        SETUP,
        libc::SYS_io_uring_setup,
    );
}

#[test]
fn a_filter_that_forbids_using_rings() {
    refused_from_the_start(
        "store_without_uring::a_filter_that_forbids_using_rings",
        ENTER,
        libc::SYS_io_uring_enter,
    );
}

/// A thread may not use what was allowed when the store was opened.
#[test]
fn a_ring_that_stops_working() {
    for number in [libc::SYS_io_uring_enter, libc::SYS_io_uring_setup] {
        let directory = scratch();
        let store = FileStore::create(directory.path().join("pages"), 4096).unwrap();
        if !store.uses_io_uring() {
            eprintln!("skipped: {store}");
            return;
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if let Err(e) = forbid(number) {
                    eprintln!("skipped: no filter on system calls: {e}");
                }
                batches_work(&store);
            });
        });
        batches_work(&store);
    }
}
