//! The state of a removed page when its store is opened again, as documented by `PagePool::remove`.

use leafpress_pages::PagePool;
use leafpress_pages::pool::PoolError;
use leafpress_pages::store::{DirectoryStore, FileStore, PageStore};

const LEN: usize = 4096;

fn pool(store: impl PageStore + 'static) -> PagePool {
    PagePool::builder(store).memory(1 << 20).build().unwrap()
}

fn fill_and_remove(pool: &PagePool) {
    for id in 0..10 {
        pool.write(id, &[id as u8 + 1; LEN]).unwrap();
    }
    pool.remove(4).unwrap();
    pool.flush().unwrap();
    assert!(matches!(pool.get(4), Err(PoolError::NotFound { page: 4 })));
    assert!(*pool.get(5).unwrap() == [6; LEN]);
}

#[test]
fn of_a_file_it_is_zeros() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pages");
    fill_and_remove(&pool(FileStore::create(&path, LEN).unwrap()));
    let again = pool(FileStore::open(&path, LEN).unwrap());
    assert!(*again.get(4).unwrap() == [0; LEN]);
    assert!(*again.get(5).unwrap() == [6; LEN]);
}

#[test]
fn of_a_directory_it_is_the_page_behind_it() {
    let directory = tempfile::tempdir().unwrap();
    let options = || DirectoryStore::options().longest_page_bytes(LEN);
    fill_and_remove(&pool(options().open(directory.path()).unwrap()));
    let again = pool(options().open(directory.path()).unwrap());
    for (page, byte) in [(3, 4), (4, 6), (5, 7), (8, 10)] {
        assert!(*again.get(page).unwrap() == [byte; LEN], "{page}");
    }
    assert!(matches!(again.get(9), Err(PoolError::NotFound { page: 9 })));
}
