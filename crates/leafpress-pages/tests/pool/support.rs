//! A store that monitors its use, and pages that identify themselves.
#![allow(dead_code, reason = "every test uses a part")]

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use leafpress_pages::store::{PageId, PageStore};

/// The header of a page: its number, its version, and a checksum of all its bytes.
const HEADER_BYTES: usize = 24;

fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0x9E37_79B9_7F4A_7C15, |sum: u64, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (sum ^ u64::from_le_bytes(word))
            .wrapping_mul(0x2545_F491_4F6C_DD1D)
            .rotate_left(29)
    })
}

/// Returns a page of `len` bytes, `noise` percent of them random and the rest repeating.
pub fn page(id: PageId, version: u64, len: usize, noise: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(id.wrapping_mul(31).wrapping_add(version));
    let mut bytes = vec![0; len];
    let noisy = len * noise / 100;
    random.fill(&mut bytes[..noisy]);
    for (at, byte) in bytes[noisy..].iter_mut().enumerate() {
        *byte = ((at % 23) as u8).wrapping_add(id as u8);
    }
    bytes[..8].copy_from_slice(&id.to_le_bytes());
    bytes[8..16].copy_from_slice(&version.to_le_bytes());
    bytes[16..HEADER_BYTES].fill(0);
    let sum = checksum(&bytes);
    bytes[16..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Returns the version of a page; panics if a byte of it is wrong or it is another page.
#[track_caller]
pub fn version_of(id: PageId, bytes: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(word(0), id, "another page");
    let mut without = bytes.to_vec();
    without[16..HEADER_BYTES].fill(0);
    assert_eq!(word(16), checksum(&without), "page {id}: a wrong byte");
    word(8)
}

#[derive(Default)]
struct Inner {
    pages: Mutex<HashMap<PageId, Vec<u8>>>,
    busy: Mutex<HashSet<PageId>>,
    len: AtomicU64,
    fail_writes: AtomicBool,
    fail_reads: AtomicBool,
    fail_removes: AtomicBool,
    reads: AtomicU64,
    writes: AtomicU64,
    overlaps: AtomicU64,
}

/// Pages in memory. Counts overlapping operations on the same page, which the pool guarantees not to make, and fails on
/// demand.
#[derive(Clone, Default)]
pub struct TestStore {
    inner: Arc<Inner>,
    max_page_bytes: usize,
    one_length: bool,
}

impl TestStore {
    pub fn new(pages: impl IntoIterator<Item = Vec<u8>>, max_page_bytes: usize, one_length: bool) -> Self {
        let pages: HashMap<PageId, Vec<u8>> = (0..).zip(pages).collect();
        Self {
            inner: Arc::new(Inner {
                len: AtomicU64::new(pages.len() as u64),
                pages: Mutex::new(pages),
                ..Inner::default()
            }),
            max_page_bytes,
            one_length,
        }
    }

    pub fn fail_writes(&self, fail: bool) {
        self.inner.fail_writes.store(fail, Ordering::SeqCst);
    }

    pub fn fail_reads(&self, fail: bool) {
        self.inner.fail_reads.store(fail, Ordering::SeqCst);
    }

    pub fn fail_removes(&self, fail: bool) {
        self.inner.fail_removes.store(fail, Ordering::SeqCst);
    }

    pub fn page(&self, id: PageId) -> Option<Vec<u8>> {
        self.inner.pages.lock().unwrap().get(&id).cloned()
    }

    pub fn reads(&self) -> u64 {
        self.inner.reads.load(Ordering::SeqCst)
    }

    pub fn writes(&self) -> u64 {
        self.inner.writes.load(Ordering::SeqCst)
    }

    pub fn overlaps(&self) -> u64 {
        self.inner.overlaps.load(Ordering::SeqCst)
    }

    fn alone<R>(&self, page: PageId, fail: &AtomicBool, work: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        if !self.inner.busy.lock().unwrap().insert(page) {
            self.inner.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        std::thread::yield_now();
        let result = if fail.load(Ordering::SeqCst) {
            Err(io::Error::other("the device is gone"))
        } else {
            work()
        };
        self.inner.busy.lock().unwrap().remove(&page);
        result
    }
}

impl PageStore for TestStore {
    fn len(&self) -> u64 {
        self.inner.len.load(Ordering::SeqCst)
    }

    fn max_page_bytes(&self) -> usize {
        self.max_page_bytes
    }

    fn has_one_length(&self) -> bool {
        self.one_length
    }

    fn page_bytes(&self, page: PageId) -> io::Result<usize> {
        let pages = self.inner.pages.lock().unwrap();
        pages.get(&page).map(Vec::len).ok_or(io::ErrorKind::NotFound.into())
    }

    fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
        self.inner.reads.fetch_add(1, Ordering::SeqCst);
        self.alone(page, &self.inner.fail_reads, || {
            let pages = self.inner.pages.lock().unwrap();
            let bytes = pages.get(&page).ok_or(io::ErrorKind::NotFound)?;
            if bytes.len() != into.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            into.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn write(&self, page: PageId, bytes: &[u8]) -> io::Result<()> {
        self.inner.writes.fetch_add(1, Ordering::SeqCst);
        self.alone(page, &self.inner.fail_writes, || {
            self.inner.len.fetch_max(page + 1, Ordering::SeqCst);
            self.inner.pages.lock().unwrap().insert(page, bytes.to_vec());
            Ok(())
        })
    }

    fn remove(&self, page: PageId) -> io::Result<()> {
        self.alone(page, &self.inner.fail_removes, || {
            self.inner.pages.lock().unwrap().remove(&page);
            Ok(())
        })
    }
}
