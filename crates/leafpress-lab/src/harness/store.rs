//! The interface of a map under test.

use leafpress::{Tree, TreeError, TreeStats};

/// Most threads that a tree loads with.
pub(crate) const MAX_LOAD_THREADS: usize = 64;

/// A concurrent ordered map. The tree is one; so are the maps it is compared with, and the broken ones that tests run.
pub trait Store: Send + Sync {
    /// Inserts or replaces; returns whether the key was new.
    ///
    /// # Errors
    /// The map's error.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError>;

    /// Takes records whose keys ascend, and returns how many were new; `None`, before any is requested, if the map
    /// has no other way to do so than to put each.
    ///
    /// # Errors
    /// The map's error.
    fn load_sorted(&self, records: &mut dyn Iterator<Item = (Vec<u8>, &[u8])>) -> Option<Result<u64, TreeError>> {
        let _ = records;
        None
    }

    /// Replaces `value` by the key's value; false when absent.
    ///
    /// # Errors
    /// The map's error.
    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, TreeError>;

    /// Replaces each of `values` by the value of the key at its index, and each of `found` by whether there is one. All
    /// three are of one length.
    ///
    /// # Errors
    /// The map's error, if it cannot answer for one of the values.
    fn get_many_into(&self, keys: &[&[u8]], values: &mut [Vec<u8>], found: &mut [bool]) -> Result<(), TreeError> {
        for ((key, value), found) in keys.iter().zip(values).zip(found) {
            *found = self.get_into(key, value)?;
        }
        Ok(())
    }

    /// Removes the key; returns whether it existed.
    ///
    /// # Errors
    /// The map's error.
    fn remove(&self, key: &[u8]) -> Result<bool, TreeError>;

    /// Visits up to `limit` records from `start` on, ascending.
    ///
    /// # Errors
    /// The map's error.
    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), TreeError>;

    /// Number of records.
    fn len(&self) -> usize;

    /// Whether it is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until background work that was due is done.
    ///
    /// # Errors
    /// The map's error.
    fn settle(&self) -> Result<(), TreeError> {
        Ok(())
    }

    /// Memory and counters; all zero for maps that have none.
    fn stats(&self) -> TreeStats {
        TreeStats::default()
    }

    /// Checks every structural invariant.
    ///
    /// # Errors
    /// The broken invariant.
    fn validate(&self) -> Result<(), TreeError> {
        Ok(())
    }
}

/// A store with conditional writes, and with reads that do not copy values.
pub trait ConditionalStore: Store {
    /// Inserts unless the key exists; returns whether it inserted.
    ///
    /// # Errors
    /// The map's error.
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError>;

    /// Replaces the value if the key exists; returns whether it did.
    ///
    /// # Errors
    /// The map's error.
    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError>;

    /// Calls `read` once with the key's value; false, and no call, when absent.
    ///
    /// # Errors
    /// The map's error.
    fn read(&self, key: &[u8], read: impl FnMut(&[u8])) -> Result<bool, TreeError>;
}

impl ConditionalStore for Tree {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        self.insert_if_absent(key, value)
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        self.replace(key, value)
    }

    #[inline]
    fn read(&self, key: &[u8], read: impl FnMut(&[u8])) -> Result<bool, TreeError> {
        Ok(self.get_with(key, read)?.is_some())
    }
}

impl Store for Tree {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        Tree::insert(self, key, value)
    }

    fn load_sorted(&self, records: &mut dyn Iterator<Item = (Vec<u8>, &[u8])>) -> Option<Result<u64, TreeError>> {
        Some(self.extend(records))
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, TreeError> {
        Tree::get_into(self, key, value)
    }

    fn get_many_into(&self, keys: &[&[u8]], values: &mut [Vec<u8>], found: &mut [bool]) -> Result<(), TreeError> {
        self.get_many_with(keys, |index, answer| {
            values[index].clear();
            values[index].extend_from_slice(answer.unwrap_or_default());
            found[index] = answer.is_some();
        })
    }

    fn remove(&self, key: &[u8]) -> Result<bool, TreeError> {
        Tree::remove(self, key)
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), TreeError> {
        self.range(start..).limit(limit).visit(visit).map(drop)
    }

    fn len(&self) -> usize {
        Tree::len(self)
    }

    fn settle(&self) -> Result<(), TreeError> {
        Tree::settle(self)
    }

    fn stats(&self) -> TreeStats {
        Tree::stats(self)
    }

    fn validate(&self) -> Result<(), TreeError> {
        Tree::validate(self)
    }
}
