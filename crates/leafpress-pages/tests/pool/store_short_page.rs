//! A file's last page may be short, and stays so.

use std::fs;
use std::io;
use std::thread;

use crate::store_support::{create, methods, page, read, read_batch, refused, scratch, write_batch};
use leafpress_pages::store::{AutoOnOff, FileStore, PageStore};

#[test]
fn any_file_is_pages_and_a_rest() {
    for (_, options) in methods() {
        let directory = scratch();
        for len in [1, 511, 512, 513, 4095, 4096, 4097, 12_345, 200_000_usize] {
            let path = directory.path().join(len.to_string());
            let bytes = page(7, 0, len);
            fs::write(&path, &bytes).unwrap();
            for page_bytes in [512, 4096, 8192, 1 << 20] {
                let store = options.open(&path, page_bytes).unwrap();
                let chunks: Vec<&[u8]> = bytes.chunks(page_bytes).collect();
                assert_eq!(store.len(), chunks.len() as u64, "{store}");
                let numbers: Vec<u64> = (0..store.len()).collect();
                let batch = read_batch(&store, &numbers);
                for ((n, chunk), from_batch) in (0..).zip(&chunks).zip(batch) {
                    assert_eq!(store.page_bytes(n).unwrap(), chunk.len(), "{store}");
                    assert!(read(&store, n).unwrap() == *chunk, "{store}: page {n}");
                    assert!(from_batch.unwrap() == *chunk, "{store}: page {n} of a batch");
                }
            }
        }
    }
}

#[test]
fn the_file_grows_and_shrinks_with_its_last_page() {
    for (_, options) in methods() {
        let directory = scratch();
        let path = directory.path().join("pages");
        fs::write(&path, page(0, 0, 4096 + 700)).unwrap();
        let store = options.open(&path, 4096).unwrap();
        let length = || fs::metadata(&path).unwrap().len();
        for (version, len) in (1..).zip([700, 100, 512, 513, 1, 4095, 4096, 3000, 4096]) {
            store.write(1, &page(1, version, len)).unwrap();
            assert_eq!(length(), 4096 + len as u64, "{store}");
            assert!(
                read(&store, 1).unwrap() == page(1, version, len),
                "{store}: {len} bytes"
            );
            assert!(read(&store, 0).unwrap() == page(0, 0, 4096 + 700)[..4096], "{store}");
            assert!(
                fs::read(&path).unwrap()[4096..] == page(1, version, len),
                "{store}: {len} bytes"
            );
        }
        // Only the last page may be short.
        let (kind, text) = refused(store.write(0, &page(0, 1, 700)));
        assert_eq!(kind, io::ErrorKind::InvalidInput);
        assert!(text.contains("only the last page, 1"), "{text}");
        store.write(1, &page(1, 20, 700)).unwrap();
        let (kind, text) = refused(store.write(2, &page(2, 0, 4096)));
        assert_eq!(kind, io::ErrorKind::InvalidInput);
        assert!(text.contains("has 700 of 4096 bytes"), "{text}");
        assert_eq!(length(), 4096 + 700);
        // A new page may be short.
        store.write(1, &page(1, 21, 4096)).unwrap();
        store.write(2, &page(2, 0, 5)).unwrap();
        assert_eq!((store.len(), length()), (3, 8192 + 5));
        assert!(read(&store, 2).unwrap() == page(2, 0, 5));
    }
}

#[test]
fn a_removed_last_page_can_be_written_again() {
    for (_, options) in methods() {
        let directory = scratch();
        let path = directory.path().join("pages");
        fs::write(&path, page(0, 0, 4096 + 700)).unwrap();
        let store = options.open(&path, 4096).unwrap();
        store.remove(1).unwrap();
        assert_eq!(read(&store, 1).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(
            fs::read(&path).unwrap()[4096..].iter().all(|&byte| byte == 0),
            "{store}"
        );
        store.write(1, &page(1, 1, 700)).unwrap();
        assert!(read(&store, 1).unwrap() == page(1, 1, 700));
        store.remove(1).unwrap();
        store.write(2, &page(2, 1, 4096)).unwrap();
        assert_eq!(store.len(), 3);
        assert_eq!(read(&store, 1).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(read(&store, 2).unwrap() == page(2, 1, 4096));
    }
}

/// They are not both accepted, whichever the store writes first.
#[test]
fn a_short_page_and_the_next_in_one_batch() {
    for (_, options) in methods() {
        let directory = scratch();
        let path = directory.path().join("pages");
        let store = options.create(&path, 512).unwrap();
        store.write(2, &page(2, 0, 512)).unwrap();
        let results = write_batch(&store, &[(3, page(3, 0, 8)), (4, page(4, 0, 512))]);
        let taken: Vec<_> = results.iter().map(Result::is_ok).collect();
        assert!(taken == [true, false] || taken == [false, true], "{store}: {results:?}");
        for (n, len, taken) in [(3, 8, taken[0]), (4, 512, taken[1])] {
            assert_eq!(
                read(&store, n).ok(),
                taken.then(|| page(n, 0, len)),
                "{store}: page {n}"
            );
        }
    }
}

/// A removed page's blocks are returned to the file system if that supports it, and its neighbours are unchanged.
#[test]
fn a_removed_page_is_zeroes_when_opened_again() {
    for (_, options) in methods() {
        for len in [512, 4096, 65536] {
            let directory = scratch();
            let path = directory.path().join("pages");
            let store = create(&options, &path, len).unwrap();
            for n in 0..40 {
                store.write(n, &page(n, 0, len)).unwrap();
            }
            for n in (0..40).filter(|n| n % 3 != 0) {
                store.remove(n).unwrap();
            }
            drop(store);
            let store = FileStore::open(&path, len).unwrap();
            for n in 0..40 {
                let expected = if n % 3 == 0 { page(n, 0, len) } else { vec![0; len] };
                assert!(read(&store, n).unwrap() == expected, "{store}: page {n}");
            }
        }
    }
}

/// The short page's end is written through the page cache, in blocks that its neighbour shares, while the neighbour is
/// written directly.
#[test]
fn a_short_page_and_its_neighbour_written_at_once() {
    for (_, options) in methods() {
        let directory = scratch();
        let path = directory.path().join("pages");
        let store = create(&options, &path, 512).unwrap();
        for n in 0..7 {
            store.write(n, &page(n, 0, 512)).unwrap();
        }
        thread::scope(|scope| {
            scope.spawn(|| {
                for version in 1..300 {
                    let len = 1 + (version as usize * 37) % 511;
                    store.write(7, &page(7, version, len)).unwrap();
                    assert!(read(&store, 7).unwrap() == page(7, version, len), "the short page");
                }
            });
            for neighbours in [[5, 6], [3, 4]] {
                let store = &store;
                scope.spawn(move || {
                    for version in 1..300 {
                        let pages: Vec<_> = neighbours.map(|n| (n, page(n, version, 512))).into();
                        for result in write_batch(store, &pages) {
                            result.unwrap();
                        }
                        for (n, expected) in &pages {
                            assert!(read(store, *n).unwrap() == *expected, "page {n}");
                        }
                    }
                });
            }
        });
        drop(store);
        let bytes = fs::read(&path).unwrap();
        for n in 3..7 {
            assert!(
                bytes[n * 512..][..512] == page(n as u64, 299, 512),
                "page {n} at the end"
            );
        }
    }
}

/// All four methods leave the same file and read the same from it.
#[test]
fn every_method_does_the_same() {
    let directory = scratch();
    let mut files = Vec::new();
    for (name, options) in methods() {
        let path = directory.path().join(&name);
        let store = create(&options, &path, 1024).unwrap();
        let mut random = fastrand::Rng::with_seed(42);
        for version in 0..600 {
            let n = random.u64(0..50);
            match random.u32(0..10) {
                0 => store.remove(n).unwrap(),
                1 => {
                    let len = random.usize(1..=1024);
                    // Refused by all methods or by none.
                    let _ = store.write(n, &page(n, version, len));
                }
                _ => {
                    let _ = store.write(n, &page(n, version, 1024));
                }
            }
        }
        let there: Vec<_> = (0..store.len()).map(|n| read(&store, n).ok()).collect();
        store.sync().unwrap();
        files.push((name, there, fs::read(&path).unwrap()));
    }
    for (name, there, bytes) in &files[1..] {
        assert!(*there == files[0].1, "{name}: pages");
        assert!(*bytes == files[0].2, "{name}: bytes");
    }
    let auto = FileStore::options().direct(AutoOnOff::Auto).io_uring(AutoOnOff::Auto);
    let store = auto.open(directory.path().join(&files[0].0), 1024).unwrap();
    let length = files[0].2.len() as u64;
    assert_eq!(store.len(), length.div_ceil(1024));
}
