//! Errors of a store's sync if the system refuses it.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::io;

use crate::store_support::{page, refused, scratch};
use crate::system_calls::{forbid, forbid_opening};
use leafpress_pages::PagePool;
use leafpress_pages::pool::PoolError;
use leafpress_pages::store::{DirectoryStore, FileStore, PageStore};

/// Runs `work` in a thread after `prepare` has restricted its system calls. If that is not possible, runs nothing.
fn in_a_thread<R: Send>(prepare: impl FnOnce() -> io::Result<()> + Send, work: impl FnOnce() -> R + Send) -> Option<R> {
    std::thread::scope(|scope| {
        let run = || match prepare() {
            Ok(()) => Some(work()),
            Err(e) => {
                eprintln!("skipped: no filter on system calls: {e}");
                None
            }
        };
        scope.spawn(run).join().unwrap()
    })
}

#[test]
fn a_new_file_is_not_there_before_its_name_lasts() {
    let directory = scratch();
    let path = directory.path().join("pages");
    let Some(created) = in_a_thread(|| forbid(libc::SYS_fsync, libc::EIO), || FileStore::create(&path, 4096)) else {
        return;
    };
    let (_, text) = refused(created);
    assert!(text.contains("cannot create") && text.contains("cannot sync"), "{text}");
    assert!(!path.exists());
    FileStore::create(&path, 4096).unwrap();
}

#[test]
fn a_file_system_whose_directory_cannot_be_opened_is_not_synced() {
    let directory = scratch();
    std::fs::write(directory.path().join("page"), page(0, 0, 4096)).unwrap();
    let opened = in_a_thread(
        || forbid_opening(libc::EMFILE),
        || {
            let store = DirectoryStore::open(directory.path()).unwrap();
            (store.sync(), store)
        },
    );
    let Some((synced, store)) = opened else { return };
    let (_, text) = refused(synced);
    assert!(text.contains("cannot sync"), "{text}");
    store.sync().unwrap();
}

#[test]
fn a_directory_behind_a_link_is_synced() {
    let directory = scratch();
    let (real, link) = (directory.path().join("real"), directory.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let store = DirectoryStore::open(&link).unwrap();
    if let Some(synced) = in_a_thread(|| forbid(libc::SYS_syncfs, libc::EIO), || store.sync()) {
        refused(synced);
    }
}

#[test]
fn a_pool_writes_again_what_a_directory_could_not_sync() {
    let directory = scratch();
    let store = DirectoryStore::options()
        .longest_page_bytes(4096)
        .open(directory.path())
        .unwrap();
    let pool = PagePool::builder(store).build().unwrap();
    pool.write(3, &page(3, 1, 4096)).unwrap();
    let Some(flushed) = in_a_thread(|| forbid(libc::SYS_syncfs, libc::EIO), || pool.flush()) else {
        return;
    };
    assert!(matches!(flushed, Err(PoolError::Sync { .. })), "{flushed:?}");
    assert_eq!(pool.stats().write_backs, 1);
    pool.flush().unwrap();
    assert_eq!(
        pool.stats().write_backs,
        2,
        "a later sync says nothing of what was written before"
    );
    pool.flush().unwrap();
    assert_eq!(pool.stats().write_backs, 2);
}
