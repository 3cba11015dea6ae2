//! One dictionary for many files.
//!
//! RocksDB trains a dictionary for each file and reads each file with its own. Files of a column family are similar, so
//! here the later files use the first file's dictionary, until one compresses clearly less with it than the first did.
//! Each file still stores the dictionary that it was written with. The gain: writing needs no blocks as samples, and a
//! reader of several files keeps using one prepared dictionary.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use leafpress::codec::{Codec, Dictionary};

use super::statistics::{Ticker, count};

/// Minimum raw bytes of a file for a measurement of its dictionary's savings.
const ENOUGH_RAW_BYTES: u64 = 256 << 10;
/// A file whose compression ratio is worse than the best one by more than this factor makes the next file train again.
const MUCH_MORE: f64 = 1.06;

/// The dictionaries of a manager.
#[derive(Debug, Default)]
pub(crate) struct SharedDictionaries {
    lines: Mutex<HashMap<(String, Codec, usize), Arc<Line>>>,
}

impl SharedDictionaries {
    /// Returns the shared dictionaries of the files of a column family that are written by a codec, with dictionaries
    /// of up to `dictionary_bytes`.
    pub(crate) fn line(&self, family: &str, codec: Codec, dictionary_bytes: usize) -> Arc<Line> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(lines.entry((family.to_owned(), codec, dictionary_bytes)).or_default())
    }
}

/// Files that share a dictionary.
#[derive(Debug, Default)]
pub(crate) struct Line {
    current: Mutex<Option<Current>>,
}

#[derive(Debug)]
struct Current {
    dictionary: Dictionary,
    /// Stored bytes over raw bytes of the file that shrank best with it; none before the first is finished.
    best: Option<f64>,
}

impl Line {
    /// Returns the dictionary for the next file; `None` if it is to train one.
    pub(crate) fn current(&self) -> Option<Dictionary> {
        self.lock().as_ref().map(|current| current.dictionary.clone())
    }

    /// A file has trained a dictionary, which others will use.
    pub(crate) fn offer(&self, dictionary: &Dictionary) {
        *self.lock() = Some(Current {
            dictionary: dictionary.clone(),
            best: None,
        });
    }

    /// A file that was written with a dictionary is finished.
    fn finished(&self, dictionary: &Dictionary, fraction: f64) {
        let mut current = self.lock();
        let Some(found) = current
            .as_mut()
            .filter(|found| found.dictionary.bytes() == dictionary.bytes())
        else {
            return;
        };
        match found.best {
            Some(best) if fraction > best * MUCH_MORE => {
                count([(Ticker::DictionaryOutgrown, 1)]);
                *current = None;
            }
            best => found.best = Some(best.map_or(fraction, |best| best.min(fraction))),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The compression ratio of one file, reported to its line when the last compressor of the file is dropped.
#[derive(Debug)]
pub(crate) struct Tally {
    line: Arc<Line>,
    dictionary: Dictionary,
    raw_bytes: AtomicU64,
    stored_bytes: AtomicU64,
}

impl Tally {
    /// For a file that is written with a dictionary.
    pub(crate) fn new(line: Arc<Line>, dictionary: Dictionary) -> Self {
        Self {
            line,
            dictionary,
            raw_bytes: AtomicU64::new(0),
            stored_bytes: AtomicU64::new(0),
        }
    }

    /// Records that a block of `raw_bytes` is stored in `stored_bytes`.
    pub(crate) fn add(&self, raw_bytes: usize, stored_bytes: usize) {
        self.raw_bytes.fetch_add(raw_bytes as u64, Relaxed);
        self.stored_bytes.fetch_add(stored_bytes as u64, Relaxed);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let (raw, stored) = (self.raw_bytes.load(Relaxed), self.stored_bytes.load(Relaxed));
        if raw >= ENOUGH_RAW_BYTES {
            self.line.finished(&self.dictionary, stored as f64 / raw as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(line: &Arc<Line>, stored_of_1000: usize) -> Dictionary {
        let dictionary = line.current().unwrap_or_else(|| {
            static NEXT: AtomicU64 = AtomicU64::new(0);
            let trained = Dictionary::from_bytes(1, NEXT.fetch_add(1, Relaxed).to_le_bytes().repeat(40));
            line.offer(&trained);
            trained
        });
        let tally = Tally::new(Arc::clone(line), dictionary.clone());
        for _ in 0..300 {
            tally.add(1000, stored_of_1000);
        }
        dictionary
    }

    #[test]
    fn a_dictionary_serves_until_a_file_shrinks_less() {
        let dictionaries = SharedDictionaries::default();
        let line = dictionaries.line("default", Codec::Zstd { level: 3 }, 8192);
        let first = write(&line, 400);
        for stored in [410, 390, 400, 410] {
            assert!(write(&line, stored).bytes() == first.bytes());
        }
        // A file that was written before another dictionary was trained is not a measurement of that one.
        let late = Tally::new(Arc::clone(&line), first.clone());
        late.add(1 << 20, 1 << 20);
        assert!(write(&line, 430).bytes() == first.bytes());
        let second = write(&line, 600);
        assert!(second.bytes() != first.bytes());
        drop(late);
        assert!(write(&line, 620).bytes() == second.bytes());
        // The codec of another level, another family, and another length have their own.
        assert!(
            dictionaries
                .line("default", Codec::Zstd { level: 3 }, 4096)
                .current()
                .is_none()
        );
        assert!(
            dictionaries
                .line("default", Codec::Zstd { level: 6 }, 8192)
                .current()
                .is_none()
        );
        assert!(
            dictionaries
                .line("other", Codec::Zstd { level: 3 }, 8192)
                .current()
                .is_none()
        );
        assert!(
            dictionaries
                .line("default", Codec::Zstd { level: 3 }, 8192)
                .current()
                .is_some()
        );
    }

    #[test]
    fn a_small_file_does_not_retire_a_dictionary() {
        let line = SharedDictionaries::default().line("", Codec::Zstd { level: 3 }, 8192);
        let first = write(&line, 400);
        Tally::new(Arc::clone(&line), first.clone()).add(1000, 1000);
        assert!(line.current().is_some());
    }
}
