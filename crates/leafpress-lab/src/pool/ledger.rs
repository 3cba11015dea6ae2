//! Expected contents of every page: the proof that no byte is wrong.
//!
//! Each watched page has a hash of its initial contents and a version. A version is even while the page exists and odd
//! while it is removed. An update stamps 16 bytes of the page, at a place that its number decides, with the new
//! version, so that what was read identifies its version, and the rest of it must be as it was at the start. Writers of
//! a page take turns; a reader takes any version from the one that was done before it asked to the one that was begun
//! before it had its answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use leafpress::store::PageId;
use rapidhash::v3::rapidhash_v3;

use super::options::Verify;
use crate::core::keys::mix;

/// Bytes of a stamp: a version, and a hash of it and the page's number.
const STAMP_BYTES: usize = 16;
/// Locks that pages share, by their numbers.
const LOCKS: usize = 1024;
/// Wrong answers that are kept in words.
const EXAMPLES: usize = 5;

/// A version of a page: even while it exists, odd while it is removed.
pub(super) type Version = u32;

/// Expected contents of every watched page.
pub(super) struct Ledger {
    verify: Verify,
    /// Hash of each page as it was at the start, 0 for one that is not watched.
    whole: Vec<u64>,
    /// Hashes without the bytes of the stamp; empty if nothing is written.
    rest: Vec<u64>,
    /// Of each page: the version that is done, and in the upper half the last one that was begun. Empty when nothing is
    /// written.
    versions: Vec<AtomicU64>,
    locks: Vec<Mutex<()>>,
    wrong: AtomicU64,
    examples: Mutex<Vec<String>>,
}

impl Ledger {
    /// Creates a ledger of `pages` pages, none of which is known yet.
    pub(super) fn new(pages: u64, verify: Verify, writes: bool) -> Self {
        let pages = pages as usize;
        let watches = verify != Verify::Off;
        let count = |wanted: bool| if wanted { pages } else { 0 };
        Self {
            verify,
            whole: vec![0; count(watches)],
            rest: vec![0; count(watches && writes)],
            versions: (0..count(writes)).map(|_| AtomicU64::new(0)).collect(),
            locks: (0..if writes { LOCKS } else { 0 }).map(|_| Mutex::new(())).collect(),
            wrong: AtomicU64::new(0),
            examples: Mutex::new(Vec::new()),
        }
    }

    /// Whether reads of the page are compared.
    #[inline]
    pub(super) fn watches(&self, page: PageId) -> bool {
        match self.verify {
            Verify::Off => false,
            Verify::OneIn(1) => true,
            Verify::OneIn(one_in) => mix(page).is_multiple_of(one_in),
        }
    }

    /// Hash of a watched page at the start.
    pub(super) fn note(&mut self, page: PageId, bytes: &[u8]) {
        self.whole[page as usize] = rapidhash_v3(bytes);
        if let Some(rest) = self.rest.get_mut(page as usize) {
            *rest = hash_of_rest(page, bytes);
        }
    }

    /// The completed version: to be taken before a read.
    #[inline]
    pub(super) fn done(&self, page: PageId) -> Version {
        let state = self.versions.get(page as usize);
        state.map_or(0, |state| state.load(Ordering::Acquire) as Version)
    }

    /// The last version begun: to be taken after a read.
    #[inline]
    fn begun(&self, page: PageId) -> Version {
        let state = self.versions.get(page as usize);
        state.map_or(0, |state| (state.load(Ordering::Acquire) >> 32) as Version)
    }

    /// Compares what was read, when version `done` was done before. A wrong page is counted.
    #[inline]
    pub(super) fn check(&self, page: PageId, bytes: &[u8], done: Version) -> bool {
        let reason = match self.version_of(page, bytes) {
            None => "bytes that match no version".to_owned(),
            Some(version) if (done..=self.begun(page)).contains(&version) => return true,
            Some(version) => format!(
                "version {version}, when {done} was complete and {} begun",
                self.begun(page)
            ),
        };
        self.accuse(format!("page {page}: {} bytes: {reason}", bytes.len()));
        false
    }

    /// Whether a page may be absent now, when version `done` was done before the read. A page that must not be is
    /// counted as wrong.
    pub(super) fn check_absent(&self, page: PageId, done: Version) -> bool {
        let begun = self.begun(page);
        // Between two even versions there may have been an odd one.
        let may = !done.is_multiple_of(2) || begun > done;
        if !may && self.watches(page) {
            self.accuse(format!("page {page}: it does not exist, but was never removed"));
        }
        may
    }

    /// The version of a watched page's bytes.
    fn version_of(&self, page: PageId, bytes: &[u8]) -> Option<Version> {
        let index = page as usize;
        if rapidhash_v3(bytes) == self.whole[index] {
            return Some(0);
        }
        let version = stamped(page, bytes)?;
        (self.rest.get(index) == Some(&hash_of_rest(page, bytes))).then_some(version)
    }

    /// A turn to write a page.
    pub(super) fn turn(&self, page: PageId) -> Turn<'_> {
        let lock = &self.locks[(mix(page) as usize) % self.locks.len()];
        Turn {
            state: &self.versions[page as usize],
            // The lock guards no data that a panic could leave half-done.
            _lock: lock.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Counts a wrong answer.
    pub(super) fn accuse(&self, what: String) {
        self.wrong.fetch_add(1, Ordering::Relaxed);
        let mut examples = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        if examples.len() < EXAMPLES {
            examples.push(what);
        }
    }

    /// Wrong answers, and the first few of them in words.
    pub(super) fn wrong(&self) -> (u64, Vec<String>) {
        let examples = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        (self.wrong.load(Ordering::Relaxed), examples.clone())
    }
}

/// A writer's exclusive turn with a page.
pub(super) struct Turn<'l> {
    state: &'l AtomicU64,
    _lock: MutexGuard<'l, ()>,
}

impl Turn<'_> {
    /// The current version.
    pub(super) fn current(&self) -> Version {
        self.state.load(Ordering::Relaxed) as Version
    }

    /// The page's next version with content.
    pub(super) fn next(&self) -> Version {
        // From an even one two steps, from an odd one, a removed page, one.
        (self.current() & !1).wrapping_add(2)
    }

    /// The version of the page removed.
    pub(super) fn removed(&self) -> Version {
        self.current() | 1
    }

    /// From now on readers may see `version`.
    pub(super) fn begin(&self, version: Version) {
        let done = self.current();
        self.state
            .store(u64::from(version) << 32 | u64::from(done), Ordering::Release);
    }

    /// From now on readers must see `version`. Without this, after [`Turn::begin`], they may see either.
    pub(super) fn finish(self, version: Version) {
        self.state
            .store(u64::from(version) << 32 | u64::from(version), Ordering::Release);
    }
}

/// Where a page's stamp is.
fn place(page: PageId, len: usize) -> usize {
    let places = (len / STAMP_BYTES).max(1) as u64;
    (mix(page ^ 0x5741_4d50) % places) as usize * STAMP_BYTES
}

fn seal(page: PageId, version: u64) -> u64 {
    mix(mix(page.wrapping_add(1)) ^ version)
}

/// Puts a version's stamp on a page. A page that is too short is unchanged.
pub(super) fn stamp(page: PageId, version: Version, bytes: &mut [u8]) {
    let at = place(page, bytes.len());
    if let Some(stamp) = bytes.get_mut(at..at + STAMP_BYTES) {
        let version = u64::from(version);
        stamp[..8].copy_from_slice(&version.to_le_bytes());
        stamp[8..].copy_from_slice(&seal(page, version).to_le_bytes());
    }
}

/// The version of a page's stamp, if it has one.
fn stamped(page: PageId, bytes: &[u8]) -> Option<Version> {
    let at = place(page, bytes.len());
    let (version, check) = bytes.get(at..at + STAMP_BYTES)?.split_first_chunk::<8>()?;
    let version = u64::from_le_bytes(*version);
    let is_ours = *check == seal(page, version).to_le_bytes();
    Version::try_from(version).ok().filter(|_| is_ours)
}

fn hash_of_rest(page: PageId, bytes: &[u8]) -> u64 {
    let at = place(page, bytes.len()).min(bytes.len());
    let end = (at + STAMP_BYTES).min(bytes.len());
    rapidhash_v3(&bytes[..at]) ^ mix(rapidhash_v3(&bytes[end..]))
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
