//! Pages written to any store read back unchanged, in any length, individually and in batches.

use std::sync::Arc;
use std::thread;

use crate::store_support::{create, methods, page, read, read_batch, scratch, write_batch};
use leafpress_pages::store::{DirectoryStore, FaultyStore, FileStore, MAX_PAGE_BYTES, MemoryStore, PageStore};

const LENGTHS: [usize; 7] = [512, 513, 4096, 5000, 8192, 65536, MAX_PAGE_BYTES];

/// Writes, reads, rewrites and removes pages of `len` bytes.
fn exercise(store: &dyn PageStore, len: usize) {
    let what = format!("{} of {len} bytes", store.describe());
    let pages = if len > 100_000 { 7 } else { 200 };
    for n in 0..pages {
        store.write(n, &page(n, 0, len)).expect(&what);
    }
    assert_eq!(store.len(), pages, "{what}");
    assert_eq!(store.max_page_bytes(), len, "{what}");
    for n in 0..pages {
        assert_eq!(store.page_bytes(n).unwrap(), len, "{what}");
        assert!(read(store, n).expect(&what) == page(n, 0, len), "{what}: page {n}");
    }
    let again: Vec<_> = (0..pages).step_by(3).map(|n| (n, page(n, 1, len))).collect();
    for result in write_batch(store, &again) {
        result.expect(&what);
    }
    // Backwards, and one twice.
    let numbers: Vec<u64> = (0..pages).rev().chain([0]).collect();
    for (&n, bytes) in numbers.iter().zip(read_batch(store, &numbers)) {
        let version = u64::from(n % 3 == 0);
        assert!(
            bytes.expect(&what) == page(n, version, len),
            "{what}: page {n} of a batch"
        );
    }
    store.remove(1).expect(&what);
    store.remove(1).expect(&what);
    store.remove(pages + 10).expect(&what);
    assert_eq!(
        read(store, 1).unwrap_err().kind(),
        std::io::ErrorKind::NotFound,
        "{what}"
    );
    let mixed = read_batch(store, &[0, 1, 2, u64::MAX]);
    assert!(mixed[0].is_ok() && mixed[2].is_ok(), "{what}");
    for absent in [&mixed[1], &mixed[3]] {
        assert_eq!(
            absent.as_ref().unwrap_err().kind(),
            std::io::ErrorKind::NotFound,
            "{what}"
        );
    }
    store.write(1, &page(1, 2, len)).expect(&what);
    assert!(read(store, 1).expect(&what) == page(1, 2, len), "{what}");
    store.sync().expect(&what);
    assert_eq!(store.len(), pages, "{what}");
}

#[test]
fn files() {
    for (name, options) in methods() {
        let directory = scratch();
        for len in LENGTHS {
            let path = directory.path().join(len.to_string());
            let store = create(&options, &path, len).unwrap();
            eprintln!("{name}: {}", store.describe());
            exercise(&store, len);
            drop(store);
            assert_eq!(path.metadata().unwrap().len() % len as u64, 0);
            let store = FileStore::open(&path, len).unwrap();
            for n in [0, 1, 5] {
                let version = [1, 2, 0, 1, 0, 0][n as usize];
                assert!(
                    read(&store, n).unwrap() == page(n, version, len),
                    "{store}: page {n} opened again"
                );
            }
        }
    }
}

#[test]
fn directories() {
    for len in LENGTHS {
        let directory = scratch();
        let store = DirectoryStore::options()
            .longest_page_bytes(len)
            .open(directory.path())
            .unwrap();
        exercise(&store, len);
        let store = DirectoryStore::open(directory.path()).unwrap();
        assert_eq!(store.skipped(), 0);
        for (n, version) in [(0, 1), (1, 2), (2, 0)] {
            assert!(
                read(&store, n).unwrap() == page(n, version, len),
                "{store}: page {n} opened again"
            );
        }
    }
}

#[test]
fn memory() {
    for len in LENGTHS.into_iter().chain([1]) {
        exercise(&MemoryStore::new(len).unwrap(), len);
    }
}

#[test]
fn behind_pointers_and_wrappers() {
    let store: Arc<dyn PageStore> = Arc::new(FaultyStore::new(MemoryStore::new(700).unwrap()));
    exercise(&store, 700);
    let store: Box<dyn PageStore> = Box::new(Arc::new(MemoryStore::new(700).unwrap()));
    exercise(&store, 700);
    let directory = scratch();
    let store = FaultyStore::new(FileStore::create(directory.path().join("pages"), 4096).unwrap());
    assert!(store.alignment() >= 1 && store.alignment() <= 4096);
    exercise(&store, 4096);
}

#[test]
fn pages_of_several_lengths_in_memory() {
    let lengths: [usize; 4] = [1, 600, 4096, 17];
    let store = MemoryStore::from_pages((0..).zip(lengths).map(|(n, len)| page(n, 0, len))).unwrap();
    assert_eq!((store.len(), store.max_page_bytes(), store.bytes()), (4, 4096, 4714));
    for (n, len) in (0..).zip(lengths) {
        assert_eq!(read(&store, n).unwrap(), page(n, 0, len));
    }
    store.write(1, &page(1, 1, 4000)).unwrap();
    assert_eq!(read(&store, 1).unwrap(), page(1, 1, 4000));
}

/// Buffers with addresses aligned for the store, and with unaligned ones.
#[test]
fn buffers_at_any_address() {
    for (_, options) in methods() {
        let directory = scratch();
        let store = options.create(directory.path().join("pages"), 4096).unwrap();
        for shift in [0, 1, 2, 64, 511, 512] {
            let mut memory = vec![0; 4 * 4096];
            let aligned = memory.as_ptr().addr().next_multiple_of(4096) - memory.as_ptr().addr();
            let at = aligned + shift;
            memory[at..at + 4096].copy_from_slice(&page(3, shift as u64, 4096));
            store.write(3, &memory[at..at + 4096]).unwrap();
            memory.fill(0);
            store.read(3, &mut memory[at..at + 4096]).unwrap();
            assert!(
                memory[at..at + 4096] == page(3, shift as u64, 4096),
                "{store}, {shift} bytes off"
            );
            // Nothing is written outside of the buffer.
            assert!(memory[..at].iter().chain(&memory[at + 4096..]).all(|&byte| byte == 0));
        }
    }
}

/// More reads than a ring has entries, and more bytes than are copied at once.
#[test]
fn batches_of_any_size() {
    for (_, options) in methods() {
        let directory = scratch();
        let store = options.create(directory.path().join("pages"), 4096).unwrap();
        let pages: Vec<_> = (0..3000).map(|n| (n, page(n, 0, 4096))).collect();
        for result in write_batch(&store, &pages) {
            result.unwrap();
        }
        for len in [0, 1, 2, 63, 64, 65, 128, 1000, 3000] {
            let mut numbers: Vec<u64> = (0..3000).collect();
            fastrand::Rng::with_seed(len as u64).shuffle(&mut numbers);
            numbers.truncate(len);
            for (&n, bytes) in numbers.iter().zip(read_batch(&store, &numbers)) {
                assert!(bytes.unwrap() == pages[n as usize].1, "{store}: page {n} of {len}");
            }
        }
    }
}

#[test]
fn threads_on_pages_of_their_own() {
    const THREADS: u64 = 4;
    const PAGES: u64 = 64;
    let work = |store: &dyn PageStore, len: usize| {
        thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    let mine: Vec<u64> = (0..PAGES).map(|n| n * THREADS + thread).collect();
                    for version in 0..6 {
                        let pages: Vec<_> = mine.iter().map(|&n| (n, page(n, version, len))).collect();
                        if version % 2 == 0 {
                            for (n, bytes) in &pages {
                                store.write(*n, bytes).unwrap();
                            }
                        } else {
                            write_batch(store, &pages).into_iter().for_each(Result::unwrap);
                        }
                        for (bytes, (n, expected)) in read_batch(store, &mine).into_iter().zip(&pages) {
                            assert!(bytes.unwrap() == *expected, "page {n}, version {version}");
                        }
                        for &n in mine.iter().skip(version as usize).step_by(7) {
                            store.remove(n).unwrap();
                            assert!(read(store, n).is_err());
                        }
                    }
                    for &n in &mine {
                        store.write(n, &page(n, 9, len)).unwrap();
                    }
                });
            }
        });
        assert_eq!(store.len(), THREADS * PAGES);
        for n in 0..THREADS * PAGES {
            assert!(read(store, n).unwrap() == page(n, 9, len), "page {n} at the end");
        }
    };
    for (_, options) in methods() {
        for len in [512, 4096, 5000] {
            let directory = scratch();
            work(&create(&options, &directory.path().join("pages"), len).unwrap(), len);
        }
    }
    work(&MemoryStore::new(4096).unwrap(), 4096);
    let directory = scratch();
    let options = DirectoryStore::options().longest_page_bytes(4096);
    work(&options.open(directory.path()).unwrap(), 4096);
}
