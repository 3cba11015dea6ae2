//! A full disk, or a file with a size limit: the write returns an error, and existing pages are unchanged.
//!
//! Each test runs in a process of its own that has the limit.

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::alone::run_alone;
use crate::store_support::{methods, page, read, refused, scratch, write_batch};
use leafpress_pages::store::{DirectoryStore, PageStore};

const LIMIT: &str = "LEAFPRESS_TEST_FILE_LIMIT";
const FULL: &str = "LEAFPRESS_TEST_FULL_DISK";
const LIMIT_BYTES: u64 = 100_000;

/// Returns the directory for this process, if it is the one with the limit.
fn limited_directory(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

/// Writes new pages until one fails, and checks that all others are unchanged; then once more in one batch.
fn fill(store: &dyn PageStore, path: &Path, expected: io::ErrorKind) {
    const MANY: u64 = 1000;
    let mut there = Vec::new();
    let failed = loop {
        let n = there.len() as u64;
        assert!(n < MANY, "{}: no limit", store.describe());
        match store.write(n, &page(n, 0, 4096)) {
            Ok(()) => there.push(n),
            Err(e) => break e,
        }
    };
    assert_eq!(failed.kind(), expected, "{failed}");
    assert!(failed.to_string().contains(path.to_str().unwrap()), "{failed}");
    let absent = there.len() as u64;
    assert!(absent > 0);
    assert_eq!(refused(read(store, absent)).0, io::ErrorKind::NotFound);
    let again: Vec<_> = (0..absent + 5).map(|n| (n, page(n, 1, 4096))).collect();
    for (n, result) in (0..).zip(write_batch(store, &again)) {
        // Pages in a directory are replaced, which transiently takes room for two.
        match result {
            Ok(()) => assert!(n < absent && read(store, n).unwrap() == page(n, 1, 4096), "page {n}"),
            Err(e) => {
                assert_eq!(e.kind(), expected, "{e}");
                assert!(n >= absent || read(store, n).unwrap() == page(n, 0, 4096), "page {n}");
            }
        }
    }
    for n in absent..absent + 5 {
        assert_eq!(refused(read(store, n)).0, io::ErrorKind::NotFound, "page {n}");
    }
    // A removal frees room.
    store.remove(0).unwrap();
    store.write(0, &page(0, 2, 4096)).unwrap();
    assert!(read(store, 0).unwrap() == page(0, 2, 4096));
}

#[test]
fn a_file_that_may_not_grow() {
    let Some(directory) = limited_directory(LIMIT) else {
        let directory = scratch();
        run_alone(
            "store_full_disk::a_file_that_may_not_grow",
            LIMIT,
            directory.path(),
            || {
                let limit = libc::rlimit {
                    rlim_cur: LIMIT_BYTES,
                    rlim_max: LIMIT_BYTES,
                };
                // SAFETY: the limit is only read. The signal is ignored so that writes fail instead of ending the
                // process.
                unsafe {
                    libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                    libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
                }
                Ok(())
            },
        )
        .expect("a process");
        return;
    };
    for (name, options) in methods() {
        let path = directory.join(name);
        let store = options.create(&path, 4096).unwrap();
        fill(&store, &path, io::ErrorKind::FileTooLarge);
        assert!(fs::metadata(&path).unwrap().len() <= LIMIT_BYTES);
        // A last page that cannot be extended is unchanged.
        let path = directory.join("short");
        fs::write(&path, page(0, 0, 24 * 4096 + 500)).unwrap();
        let store = options.open(&path, 4096).unwrap();
        let failed = store.write(24, &page(24, 1, 4096)).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::FileTooLarge, "{failed}");
        assert_eq!(store.page_bytes(24).unwrap(), 500);
        assert_eq!(fs::metadata(&path).unwrap().len(), 24 * 4096 + 500);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_file_system_that_is_full() {
    let Some(directory) = limited_directory(FULL) else {
        let directory = scratch();
        let at = CString::new(directory.path().to_str().unwrap()).unwrap();
        let printed = run_alone(
            "store_full_disk::a_file_system_that_is_full",
            FULL,
            directory.path(),
            move || {
                // SAFETY: system calls with C strings that outlive them. The test checks their results.
                unsafe {
                    if libc::unshare(libc::CLONE_NEWNS) != 0 {
                        libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS);
                    }
                    let none = std::ptr::null();
                    let private = libc::MS_REC | libc::MS_PRIVATE;
                    if libc::mount(c"none".as_ptr(), c"/".as_ptr(), none, private, none.cast()) == 0 {
                        let size = c"size=256k".as_ptr().cast();
                        libc::mount(c"tmpfs".as_ptr(), at.as_ptr(), c"tmpfs".as_ptr(), 0, size);
                    }
                }
                Ok(())
            },
        )
        .expect("a process");
        for line in printed.lines().filter(|line| line.contains("skipped: ")) {
            eprintln!("{line}");
        }
        return;
    };
    let name = CString::new(directory.to_str().unwrap()).unwrap();
    // SAFETY: zeros are a valid value of this struct of integers; the path is a C string.
    let (bytes, failed) = unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        let failed = libc::statvfs(name.as_ptr(), &mut about);
        (about.f_blocks * about.f_frsize, failed)
    };
    if failed != 0 || bytes > 1 << 20 {
        eprintln!("skipped: this user may not mount a small file system");
        return;
    }
    for (name, options) in methods() {
        let path = directory.join(&name);
        let options = options.direct(leafpress_pages::store::AutoOnOff::Auto);
        let store = options.create(&path, 4096).unwrap();
        fill(&store, &path, io::ErrorKind::StorageFull);
        drop(store);
        fs::remove_file(&path).unwrap();
    }
    let files = DirectoryStore::options()
        .longest_page_bytes(4096)
        .open(&directory)
        .unwrap();
    fill(&files, &directory, io::ErrorKind::StorageFull);
    for entry in fs::read_dir(&directory).unwrap() {
        let entry = entry.unwrap();
        let len = entry.metadata().unwrap().len();
        assert_eq!(len, 4096, "{:?} was left behind", entry.file_name());
    }
}
