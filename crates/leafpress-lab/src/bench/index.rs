//! Indexes under test.

use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use super::Options;

/// Why an index cannot be opened, or an operation on it failed.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct IndexError(pub String);

impl IndexError {
    /// Creates an error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl From<leafpress::TreeError> for IndexError {
    fn from(error: leafpress::TreeError) -> Self {
        Self(error.to_string())
    }
}

/// The order in which scans must return keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrder {
    /// As bytes compare.
    Bytes,
    /// As bytes, or as unsigned little-endian integers: wrappers may read a key as an integer. Any one of them, but the
    /// same throughout.
    BytesOrIntegers,
}

/// An index under test. Keys and values have the lengths of the run's [`Options`], or of its records; all methods are
/// called from many threads.
pub trait Index: Send + Sync {
    /// Looks the key up and copies its value to the front of `value_out`, which has at least the value's length. False
    /// when absent.
    ///
    /// # Errors
    /// The index's error; the run ends.
    fn find(&self, key: &[u8], value_out: &mut [u8]) -> Result<bool, IndexError>;

    /// Inserts unless the key exists; returns whether it inserted.
    ///
    /// # Errors
    /// As [`Index::find`].
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError>;

    /// Takes records whose keys ascend, and returns how many were new; `None`, before any is requested, if the
    /// index has no other way to do so than to insert each.
    ///
    /// # Errors
    /// As [`Index::find`].
    fn load_sorted(&self, records: &mut dyn Iterator<Item = (Vec<u8>, &[u8])>) -> Option<Result<u64, IndexError>> {
        let _ = records;
        None
    }

    /// Replaces the value if the key exists; returns whether it did.
    ///
    /// # Errors
    /// As [`Index::find`].
    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError>;

    /// Removes the key; returns whether it existed.
    ///
    /// # Errors
    /// As [`Index::find`].
    fn remove(&self, key: &[u8]) -> Result<bool, IndexError>;

    /// Replaces `out` by up to `records` records in key order from `key` on, each the key's bytes and then the value's,
    /// with both lengths in front as little-endian `u32` where [`Options::fixed_lengths`] has none; returns their
    /// number.
    ///
    /// # Errors
    /// As [`Index::find`].
    fn scan(&self, key: &[u8], records: usize, out: &mut Vec<u8>) -> Result<usize, IndexError>;

    /// A short description, with settings that affect its figures.
    fn name(&self) -> String;

    /// Whether it has an order to scan in.
    fn scans(&self) -> bool {
        true
    }

    /// Whether it stores anything: one that does not is neither read back after the load nor are its scans checked.
    fn stores(&self) -> bool {
        true
    }

    /// The order of its scans.
    fn key_order(&self) -> KeyOrder {
        KeyOrder::Bytes
    }

    /// All memory it holds by its own account, in bytes.
    fn held_bytes(&self) -> Option<u64> {
        None
    }

    /// Waits until background work that is due is done.
    ///
    /// # Errors
    /// The index's error.
    fn settle(&self) -> Result<(), IndexError> {
        Ok(())
    }

    /// Called by each thread before its first operation.
    ///
    /// # Errors
    /// The index's error, if the thread cannot use it.
    fn attach_thread(&self) -> Result<(), IndexError> {
        Ok(())
    }

    /// Called by each thread after its last operation.
    fn detach_thread(&self) {}
}

impl<I: Index + ?Sized> Index for Arc<I> {
    fn find(&self, key: &[u8], value_out: &mut [u8]) -> Result<bool, IndexError> {
        (**self).find(key, value_out)
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        (**self).insert(key, value)
    }

    fn load_sorted(&self, records: &mut dyn Iterator<Item = (Vec<u8>, &[u8])>) -> Option<Result<u64, IndexError>> {
        (**self).load_sorted(records)
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        (**self).update(key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, IndexError> {
        (**self).remove(key)
    }

    fn scan(&self, key: &[u8], records: usize, out: &mut Vec<u8>) -> Result<usize, IndexError> {
        (**self).scan(key, records, out)
    }

    fn name(&self) -> String {
        (**self).name()
    }

    fn scans(&self) -> bool {
        (**self).scans()
    }

    fn stores(&self) -> bool {
        (**self).stores()
    }

    fn key_order(&self) -> KeyOrder {
        (**self).key_order()
    }

    fn held_bytes(&self) -> Option<u64> {
        (**self).held_bytes()
    }

    fn settle(&self) -> Result<(), IndexError> {
        (**self).settle()
    }

    fn attach_thread(&self) -> Result<(), IndexError> {
        (**self).attach_thread()
    }

    fn detach_thread(&self) {
        (**self).detach_thread();
    }
}

/// Opens a shared library written for PiBench. The laboratory calls no foreign code itself; a caller that can passes
/// this function.
pub type OpenLibrary = fn(&Path, &Options) -> Result<Box<dyn Index>, IndexError>;
