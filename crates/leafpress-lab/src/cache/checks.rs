//! Which version of a key a value may be, while threads read, insert and overwrite.
//!
//! One word per key stores its version, which begins at 0, and two bits: one while a thread inserts, one while what it
//! inserts is a new version. Insertions of one key come one after the other, as they would from a backend that
//! serialises its writers; an older value that comes back is then the cache's doing. A value that is found must be of a
//! version that was not yet replaced when the read began, and had been begun when it ended. A removal begins a version
//! too: what the backend has is new, and the old value must not be found.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::outcome::Mismatches;
use super::workload::Workload;

const LOCKED: u32 = 1;
const WRITING: u32 = 2;
/// Factor of the version.
const VERSION: u32 = 4;
/// Older versions that a value is compared with, to distinguish stale from wrong.
const REMEMBERED: u32 = 64;
/// Maximum skew of two millisecond clocks.
const CLOCK_SLACK_MS: u32 = 20;

/// The version of every key.
pub(super) struct Versions {
    words: Box<[AtomicU32]>,
    /// Where records expire: when each was last inserted, in milliseconds from the start.
    inserted: Option<Expiry>,
}

struct Expiry {
    at_ms: Box<[AtomicU32]>,
    ttl_ms: u32,
    started: Instant,
}

/// State of a key before a read began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    version: u32,
    at_ms: u32,
}

impl Versions {
    /// All keys at version 0. The memory is touched, so that it is the process's before a cache is measured.
    pub(super) fn new(keys: u64, ttl: Option<Duration>) -> Self {
        // A written word is resident; one of a zeroed allocation is not.
        let words = || -> Box<[AtomicU32]> { (0..keys).map(|_| AtomicU32::new(0)).collect() };
        let touched = |words: Box<[AtomicU32]>| {
            for word in &words {
                word.store(1, Ordering::Relaxed);
                word.store(0, Ordering::Relaxed);
            }
            words
        };
        Self {
            words: touched(words()),
            inserted: ttl.map(|ttl| Expiry {
                at_ms: touched(words()),
                ttl_ms: u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX),
                started: Instant::now(),
            }),
        }
    }

    fn word(&self, id: u64) -> &AtomicU32 {
        &self.words[id as usize]
    }

    /// Before a read of the key.
    #[inline]
    pub(super) fn before(&self, id: u64) -> Before {
        Before {
            version: self.word(id).load(Ordering::Acquire) / VERSION,
            at_ms: self.inserted.as_ref().map_or(0, Expiry::now_ms),
        }
    }

    /// Locks the key for an insertion of its version, which it returns; `None` while another thread inserts it.
    #[inline]
    pub(super) fn try_fill(&self, id: u64) -> Option<u32> {
        let word = self.word(id).fetch_or(LOCKED, Ordering::AcqRel);
        (word & LOCKED == 0).then_some(word / VERSION)
    }

    /// Locks the key for an insertion of its next version, or to remove the current one; the next one is returned,
    /// once no other thread inserts the key.
    pub(super) fn write(&self, id: u64) -> u32 {
        loop {
            if let Some(version) = self.try_fill(id) {
                self.word(id).fetch_or(WRITING, Ordering::AcqRel);
                return version.wrapping_add(1) % (u32::MAX / VERSION);
            }
            // Its holder may not be scheduled.
            std::thread::yield_now();
        }
    }

    /// The insertion of this version is over.
    #[inline]
    pub(super) fn done(&self, id: u64, version: u32) {
        if let Some(inserted) = &self.inserted {
            inserted.at_ms[id as usize].store(inserted.now_ms(), Ordering::Relaxed);
        }
        self.word(id).store(version * VERSION, Ordering::Release);
    }

    /// Judges a value that a read found.
    #[inline]
    pub(super) fn judge(
        &self,
        workload: &Workload,
        id: u64,
        before: Before,
        value: &[u8],
        mismatches: &mut Mismatches,
    ) {
        let word = self.word(id).load(Ordering::Acquire);
        let newest = word / VERSION + u32::from(word & WRITING != 0);
        if let Some(inserted) = &self.inserted {
            let at = inserted.at_ms[id as usize].load(Ordering::Relaxed);
            // While another thread inserts it the time is not known.
            let over = at.saturating_add(inserted.ttl_ms).saturating_add(CLOCK_SLACK_MS);
            if word & LOCKED == 0 && before.at_ms > over {
                mismatches.expired += 1;
                return note(mismatches, || {
                    format!("key {id}: returned {} ms after it expired", before.at_ms - over)
                });
            }
        }
        if !(before.version..=newest).any(|version| workload.holds(id, version, value)) {
            self.blame(workload, id, before, value, mismatches);
        }
    }

    /// Checks a value of a key that is requested once: there can be none.
    #[cold]
    pub(super) fn unasked(id: u64, mismatches: &mut Mismatches) {
        mismatches.wrong += 1;
        note(mismatches, || format!("key {id}: found, but never inserted"));
    }

    #[cold]
    fn blame(&self, workload: &Workload, id: u64, before: Before, value: &[u8], mismatches: &mut Mismatches) {
        let oldest = before.version.saturating_sub(REMEMBERED);
        let version = before.version;
        match (oldest..version).rev().find(|older| workload.holds(id, *older, value)) {
            Some(older) => {
                mismatches.stale += 1;
                note(mismatches, || {
                    format!("key {id}: version {older} when {version} was current")
                });
            }
            None => {
                mismatches.wrong += 1;
                let len = value.len();
                note(mismatches, || {
                    format!("key {id}: {len} bytes that match no recent version")
                });
            }
        }
    }
}

impl Expiry {
    fn now_ms(&self) -> u32 {
        u32::try_from(self.started.elapsed().as_millis()).unwrap_or(u32::MAX)
    }
}

fn note(mismatches: &mut Mismatches, words: impl FnOnce() -> String) {
    if mismatches.examples.len() < Mismatches::EXAMPLES {
        mismatches.examples.push(words());
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::paper_workload;
    use super::*;

    fn judged(versions: &Versions, workload: &Workload, before: Before, version: u32) -> Mismatches {
        let (mut value, mut mismatches) = (Vec::new(), Mismatches::default());
        workload.fill(7, version, &mut value);
        versions.judge(workload, 7, before, &value, &mut mismatches);
        mismatches
    }

    #[test]
    fn a_value_is_of_a_version_that_was_there_during_the_read() {
        let (workload, versions) = (paper_workload(100), Versions::new(100, None));
        let first = versions.before(7);
        assert_eq!(judged(&versions, &workload, first, 0).total(), 0);
        assert_eq!(judged(&versions, &workload, first, 1).wrong, 1, "it was not begun");
        let version = versions.write(7);
        assert_eq!((version, versions.try_fill(7)), (1, None), "one insertion at a time");
        for allowed in [0, 1] {
            assert_eq!(
                judged(&versions, &workload, first, allowed).total(),
                0,
                "while it is written"
            );
        }
        versions.done(7, version);
        assert_eq!(
            judged(&versions, &workload, first, 0).total(),
            0,
            "the read began before"
        );
        let stale = judged(&versions, &workload, versions.before(7), 0);
        assert_eq!((stale.stale, stale.wrong), (1, 0));
        assert_eq!(stale.examples, ["key 7: version 0 when 1 was current"]);
        assert_eq!(versions.try_fill(7), Some(1));
        versions.done(7, 1);
        let mut mismatches = Mismatches::default();
        versions.judge(&workload, 7, versions.before(7), b"no such bytes", &mut mismatches);
        assert_eq!((mismatches.wrong, mismatches.stale), (1, 0));
    }

    #[test]
    fn reports_an_expired_value() {
        let workload = paper_workload(100);
        let versions = Versions::new(100, Some(Duration::from_millis(5)));
        versions.done(7, 0);
        assert_eq!(judged(&versions, &workload, versions.before(7), 0).total(), 0);
        std::thread::sleep(Duration::from_millis(u64::from(CLOCK_SLACK_MS) + 20));
        assert_eq!(judged(&versions, &workload, versions.before(7), 0).expired, 1);
    }
}
