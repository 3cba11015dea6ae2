//! Dictionaries of open files: equal ones share memory.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use leafpress::codec::{Codec, CodecError, Dictionary};

use super::statistics::{Ticker, count};

/// The dictionaries by the hash of their bytes. Of two with one hash the later one is known.
static KNOWN: Mutex<Option<HashMap<u64, Weak<Dictionary>>>> = Mutex::new(None);

/// The first bytes of a dictionary that zstd trained (`ZSTD_MAGIC_DICTIONARY`).
const ZSTD_MAGIC: [u8; 4] = [0x37, 0xA4, 0x30, 0xEC];

/// A file's dictionary.
#[derive(Debug)]
pub(crate) struct Reading {
    dictionary: Arc<Dictionary>,
    /// Whether this file was the first with this dictionary, and reports its memory.
    first: bool,
}

impl Reading {
    /// Prepares a dictionary, unless an open file has the same one. Each block names its codec. Zstandard's tables are
    /// made now if the bytes are a Zstandard dictionary, since RocksDB requests a dictionary's memory only once,
    /// directly after this call.
    ///
    /// # Errors
    /// [`CodecError::Failed`] when zstd's bytes are malformed.
    pub(crate) fn new(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let hash = hasher.finish();
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if let Some(dictionary) = known.get(&hash).and_then(Weak::upgrade)
            && dictionary.bytes() == bytes
        {
            count([(Ticker::DictionaryShared, 1)]);
            return Ok(Self {
                dictionary,
                first: false,
            });
        }
        if known.len() == known.capacity() {
            known.retain(|_, dictionary| dictionary.strong_count() > 0);
        }
        count([(Ticker::DictionaryPrepared, 1)]);
        let dictionary = Arc::new(Dictionary::from_bytes(1, bytes));
        if bytes.starts_with(&ZSTD_MAGIC) {
            dictionary.prepare_to_read(Codec::Zstd { level: 3 })?;
        }
        known.insert(hash, Arc::downgrade(&dictionary));
        Ok(Self {
            dictionary,
            first: true,
        })
    }

    /// Returns the dictionary.
    pub(crate) fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// Returns the memory that this file reports, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        if self.first { self.dictionary.held_bytes() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_dictionaries_are_one_and_forgotten_with_their_last_file() {
        let bytes = b"known.rs".repeat(100);
        let first = Reading::new(&bytes).unwrap();
        let second = Reading::new(&bytes).unwrap();
        assert!(Arc::ptr_eq(&first.dictionary, &second.dictionary));
        assert!(first.held_bytes() > 0 && second.held_bytes() == 0);
        let other = Reading::new(&bytes[8..]).unwrap();
        assert!(!Arc::ptr_eq(&first.dictionary, &other.dictionary));
        let last = Arc::downgrade(&first.dictionary);
        drop((first, second));
        assert!(last.upgrade().is_none());
        assert!(Reading::new(&bytes).unwrap().first);
    }

    #[test]
    fn a_malformed_dictionary_is_refused() {
        let mut bytes = vec![0xFF; 200];
        bytes[..4].copy_from_slice(&ZSTD_MAGIC);
        assert!(Reading::new(&bytes).is_err());
    }
}
