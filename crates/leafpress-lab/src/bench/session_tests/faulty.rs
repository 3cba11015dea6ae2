//! An index that stores its records, and fails as configured.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::bench::{Index, IndexError};

/// A map with a fault or two.
#[derive(Default)]
pub(super) struct Faulty {
    pub(super) map: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Every key it was ever given, by thread.
    pub(super) keys: Mutex<HashMap<std::thread::ThreadId, Vec<Vec<u8>>>>,
    /// Drops the insert of this number.
    pub(super) loses: Option<u64>,
    pub(super) inserts: AtomicU64,
    /// Stops the world for so long, once, at find number `stalls_at`.
    pub(super) stall: Option<Duration>,
    pub(super) finds: AtomicU64,
    pub(super) stalls_at: u64,
    pub(super) fails_finds: bool,
    pub(super) panics: bool,
    pub(super) scans_backwards: bool,
    pub(super) attached: AtomicU64,
    pub(super) detached: AtomicU64,
}

impl Faulty {
    fn note(&self, key: &[u8]) {
        let mut keys = self.keys.lock().unwrap();
        keys.entry(std::thread::current().id()).or_default().push(key.to_vec());
    }
}

impl Index for Faulty {
    fn find(&self, key: &[u8], value_out: &mut [u8]) -> Result<bool, IndexError> {
        self.note(key);
        let number = self.finds.fetch_add(1, Ordering::Relaxed);
        let map = self.map.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(stall) = self.stall.filter(|_| number == self.stalls_at) {
            // The lock is held: all threads wait.
            std::thread::sleep(stall);
        }
        assert!(!(self.panics && number >= self.stalls_at), "an index that panics");
        if self.fails_finds && number >= self.stalls_at {
            return Err(IndexError::new("an index that fails"));
        }
        Ok(map
            .get(key)
            .map(|value| value_out[..value.len()].copy_from_slice(value))
            .is_some())
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        self.note(key);
        if self.loses == Some(self.inserts.fetch_add(1, Ordering::Relaxed)) {
            return Ok(true);
        }
        Ok(self.map.lock().unwrap().insert(key.to_vec(), value.to_vec()).is_none())
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        self.note(key);
        let mut map = self.map.lock().unwrap();
        Ok(map.get_mut(key).map(|old| old.copy_from_slice(value)).is_some())
    }

    fn remove(&self, key: &[u8]) -> Result<bool, IndexError> {
        self.note(key);
        Ok(self.map.lock().unwrap().remove(key).is_some())
    }

    fn scan(&self, key: &[u8], records: usize, out: &mut Vec<u8>) -> Result<usize, IndexError> {
        self.note(key);
        let map = self.map.lock().unwrap();
        let mut found: Vec<_> = map.range(key.to_vec()..).take(records).collect();
        if self.scans_backwards {
            found.reverse();
        }
        out.clear();
        for (key, value) in &found {
            out.extend_from_slice(key);
            out.extend_from_slice(value);
        }
        Ok(found.len())
    }

    fn name(&self) -> String {
        "faulty".into()
    }

    fn attach_thread(&self) -> Result<(), IndexError> {
        self.attached.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn detach_thread(&self) {
        self.detached.fetch_add(1, Ordering::Relaxed);
    }
}
