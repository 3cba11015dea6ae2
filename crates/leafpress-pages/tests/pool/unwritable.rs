//! Pages that cannot be written: refused at once if the store can detect that, and otherwise without effect on
//! unrelated operations.

use std::fs;
use std::path::Path;

use crate::support::{TestStore, page, version_of};
use leafpress_pages::PagePool;
use leafpress_pages::pool::{PoolError, RawShare};
use leafpress_pages::store::{DirectoryStore, FileStore, MemoryStore};

const LEN: usize = 4096;

fn file(directory: &Path, len: usize) -> std::path::PathBuf {
    let path = directory.join("pages");
    fs::write(&path, vec![1; len]).unwrap();
    path
}

fn is_refused(result: Result<(), PoolError>, page: u64) -> String {
    let error = result.unwrap_err();
    assert!(
        matches!(error, PoolError::Refused { page: of, .. } if of == page),
        "{error}"
    );
    error.to_string()
}

#[test]
fn a_read_only_store_takes_no_updates() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), LEN * 400);
    let store = FileStore::options().read_only(true).open(&path, LEN).unwrap();
    let pool = PagePool::builder(store)
        .memory(400 << 10)
        .background_threads(0)
        .build()
        .unwrap();
    for id in 0..200 {
        let text = is_refused(pool.write(id, &[9; LEN]), id);
        assert!(text.starts_with(&format!("the store cannot take page {id}: ")) && text.ends_with("opened read-only"));
    }
    pool.flush().unwrap();
    assert!(*pool.get(399).unwrap() == [1; LEN]);
    assert!(pool.remove(3).is_err());
    assert!(*pool.get(3).unwrap() == [1; LEN]);

    let store = DirectoryStore::options()
        .read_only(true)
        .open(directory.path())
        .unwrap();
    assert!(PagePool::builder(store).build().unwrap().write(0, &[9; LEN]).is_err());
}

#[test]
fn a_page_behind_a_short_last_one_waits_until_that_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(file(directory.path(), LEN + 700), LEN).unwrap();
    let pool = PagePool::builder(store).build().unwrap();
    let text = is_refused(pool.write(2, &[9; LEN]), 2);
    assert!(text.contains("page 1, now the last, has 700 of 4096 bytes"), "{text}");
    pool.flush().unwrap();
    // A whole last page that exists in the pool only is sufficient.
    pool.write(1, &[8; LEN]).unwrap();
    pool.write(2, &[9; LEN]).unwrap();
    pool.flush().unwrap();
    drop(pool);
    let bytes = fs::read(directory.path().join("pages")).unwrap();
    assert!(bytes[LEN..2 * LEN] == [8; LEN] && bytes[2 * LEN..] == [9; LEN]);
}

#[test]
fn a_number_past_what_a_store_can_address_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(file(directory.path(), LEN), LEN).unwrap();
    let pool = PagePool::builder(store).build().unwrap();
    for id in [u64::MAX, u64::MAX / LEN as u64, 1 << 52] {
        is_refused(pool.write(id, &[9; LEN]), id);
    }
    pool.flush().unwrap();
    let memory = PagePool::builder(MemoryStore::new(LEN).unwrap()).build().unwrap();
    is_refused(memory.write(u64::MAX, &[9; LEN]), u64::MAX);
    let store = DirectoryStore::open(directory.path()).unwrap();
    let directory = PagePool::builder(store).build().unwrap();
    is_refused(directory.write(u64::MAX, &[9; LEN]), u64::MAX);
}

/// Returns a pool full of pages that the device, which is gone by then, does not accept, and their number.
fn filled(store: &TestStore) -> (PagePool, u64) {
    let pool = PagePool::builder(store.clone())
        .memory(400 << 10)
        .share(RawShare::Fixed { raw_percent: 100 })
        .background_threads(0)
        .build()
        .unwrap();
    store.fail_writes(true);
    let full = (0..400).find_map(|id| pool.write(id, &page(id, 1, LEN, 30)).err().map(|error| (id, error)));
    let (taken, error) = full.expect("400 pages do not fit");
    // A writing caller gets the error.
    assert!(matches!(error, PoolError::Store { operation: "write", .. }), "{error}");
    assert!(taken > 50, "{taken}");
    (pool, taken)
}

fn store() -> TestStore {
    TestStore::new((0..400).map(|id| page(id, 0, LEN, 30)), LEN, true)
}

#[test]
fn readers_of_other_pages_get_them() {
    let store = store();
    let (pool, taken) = filled(&store);
    let tries = store.writes();
    for id in taken..400 {
        assert_eq!(version_of(id, &pool.get(id).unwrap()), 0);
    }
    assert_eq!(pool.prefetch(&[taken, taken + 1]).unwrap(), 0);
    assert!(
        store.writes() <= tries + taken,
        "every read tries to write: {} after {tries}",
        store.writes()
    );
    let held = pool.get(399).unwrap();
    assert_eq!(pool.stats().pinned_copy_bytes, LEN, "in memory of its own");
    drop(held);
    for id in 0..taken {
        assert_eq!(version_of(id, &pool.get(id).unwrap()), 1, "nothing is lost");
    }
    let error = pool.flush().unwrap_err();
    assert!(
        matches!(
            error,
            PoolError::Store {
                page: 0,
                operation: "write",
                ..
            }
        ),
        "{error}"
    );
    store.fail_writes(false);
    pool.flush().unwrap();
    for id in 0..taken {
        assert_eq!(version_of(id, &store.page(id).unwrap()), 1);
    }
    // There is room again.
    pool.get(399).unwrap();
    assert_eq!(pool.stats().pinned_copy_bytes, 0);
}

#[test]
fn a_page_that_cannot_be_written_can_be_discarded() {
    let store = store();
    let (pool, taken) = filled(&store);
    let held = pool.get(5).unwrap();
    for id in 0..taken {
        assert!(pool.discard(id));
        assert!(!pool.discard(id), "once");
    }
    assert_eq!(version_of(5, &held), 1, "a guard keeps its version");
    pool.flush().unwrap();
    for id in 0..400 {
        assert_eq!(version_of(id, &pool.get(id).unwrap()), 0);
        assert!(!pool.discard(id), "clean");
    }
    // A page that the store never had is gone.
    assert!(pool.write(1000, &page(1000, 1, LEN, 30)).is_ok() && pool.discard(1000));
    assert!(matches!(pool.get(1000), Err(PoolError::NotFound { page: 1000 })));
    assert!(!pool.discard(2000));
}
