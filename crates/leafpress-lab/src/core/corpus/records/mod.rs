//! Records as people have them: key and value out of a dump of the user's own.

mod csv;
mod format;
mod jsonl;
mod lines;
mod stanzas;
mod tsv;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use leafpress::tree::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use serde::{Deserialize, Serialize};

pub use format::RecordFormat;

use super::take::Extent;
use super::{Copies, Corpus, Source, concatenate, source};
use crate::core::keys::KeySet;
use crate::core::{Bytes, LabError};

/// Runs of neighbours in a sample.
const RUNS: u64 = 64;

/// Records of a dump, in the order of their keys: record i has key i of [`Records::keys`] and value i of
/// [`Records::values`].
#[derive(Debug, Clone)]
pub struct Records {
    /// The keys, ascending.
    pub keys: Arc<KeySet>,
    /// The values: each the record's own bytes, verbatim from the dump.
    pub values: Arc<Corpus>,
    /// Records read and skipped.
    pub census: Census,
}

/// Records of a dump, read and skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Census {
    /// Records with distinct keys.
    pub records: u64,
    /// Records whose key came again further on: the last one counts.
    pub duplicates: u64,
    /// Records without a key, or with an empty one.
    pub without_key: u64,
    /// Records whose key is longer than a tree takes.
    pub long_keys: u64,
    /// Records whose value is longer than a tree takes.
    pub long_values: u64,
    /// Packed files that were not read, since their contents are also present unpacked.
    #[serde(default)]
    pub copies: Copies,
}

impl Census {
    /// Returns the skipped records, in words; `None` when there are none.
    pub fn left_out(&self) -> Option<String> {
        let parts = [
            (self.duplicates, "with a duplicate key (the last one counts)".to_owned()),
            (self.without_key, "without a key".to_owned()),
            (self.long_keys, format!("with a key over {MAX_KEY_BYTES} bytes")),
            (self.long_values, format!("over {}", Bytes(MAX_VALUE_BYTES as u64))),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts = parts.map(|(count, what)| format!("{count} {what}"));
        let copies = (self.copies.files > 0).then(|| self.copies.to_string());
        let parts: Vec<_> = copies.into_iter().chain(parts).collect();
        (!parts.is_empty()).then(|| format!("skipped: {}", parts.join(", ")))
    }
}

/// An error in a dump, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Malformed {
    /// From 1.
    line: u64,
    reason: String,
}

impl Malformed {
    fn new(line: u64, reason: impl Into<String>) -> Self {
        Self {
            line,
            reason: reason.into(),
        }
    }
}

/// Collects the parsers' records, in the order of the dump.
#[derive(Debug, Default)]
struct Found {
    /// The part of the dump that is read begins here in the whole.
    offset: usize,
    keys: Vec<u8>,
    /// Where key and value are.
    records: Vec<(Range<usize>, Range<usize>)>,
    census: Census,
}

impl Found {
    /// A record whose value is these bytes of the part; an empty key is none.
    fn push(&mut self, key: &[u8], value: Range<usize>) {
        if key.is_empty() {
            self.census.without_key += 1;
        } else if key.len() > MAX_KEY_BYTES {
            self.census.long_keys += 1;
        } else if value.len() > MAX_VALUE_BYTES {
            self.census.long_values += 1;
        } else {
            let start = self.keys.len();
            self.keys.extend_from_slice(key);
            let value = self.offset + value.start..self.offset + value.end;
            self.records.push((start..self.keys.len(), value));
        }
    }

    fn without_key(&mut self) {
        self.census.without_key += 1;
    }
}

impl Records {
    /// Reads the records of `source`.
    ///
    /// # Errors
    /// [`LabError::Data`] when the source is missing, empty, malformed (with the line's number), larger than
    /// [`MAX_CORPUS_BYTES`](super::MAX_CORPUS_BYTES) or half of the memory, or holds no record with a key;
    /// [`LabError::Option`] for synthetic data, which has no records.
    pub fn load(source: &Source, format: &RecordFormat) -> Result<Self, LabError> {
        Self::load_until(source, format, &AtomicBool::new(false))
    }

    /// Loads as [`Records::load`] does, and ends when `cancel` is set.
    ///
    /// # Errors
    /// As [`Records::load`]; [`LabError::Cancelled`].
    pub fn load_until(source: &Source, format: &RecordFormat, cancel: &AtomicBool) -> Result<Self, LabError> {
        if let Source::Synthetic(_) = source {
            return Err(LabError::option(
                "records",
                format!("{source} has no records: set a file with --data"),
            ));
        }
        // Detecting duplicate keys requires reading the whole dump.
        let (parts, sampled) = source::read(source, false, Extent::whole(), cancel)?;
        let mut records = Self::from_parts(&source.to_string(), parts, format)?;
        records.census.copies = sampled.map_or_else(Copies::default, |sampled| sampled.copies);
        Ok(records)
    }

    /// Reads the records of `parts`, the files or archive entries of the source called `name`; each part is a dump of
    /// its own.
    ///
    /// # Errors
    /// As [`Records::load`].
    pub fn from_parts(name: &str, parts: Vec<Vec<u8>>, format: &RecordFormat) -> Result<Self, LabError> {
        if parts.iter().all(Vec::is_empty) {
            return Err(LabError::data(name, "it is empty"));
        }
        let mut found = Found::default();
        for (number, part) in parts.iter().enumerate() {
            format.parse(part, &mut found).map_err(|malformed| {
                let place = if parts.len() > 1 {
                    format!("file {} of {}, line {}", number + 1, parts.len(), malformed.line)
                } else {
                    format!("line {}", malformed.line)
                };
                LabError::data(name, format!("{place}: {} (--records {format})", malformed.reason))
            })?;
            found.offset += part.len();
        }
        let Found {
            keys: bytes,
            mut records,
            mut census,
            ..
        } = found;
        let read = records.len();
        let key = |record: &(Range<usize>, Range<usize>)| &bytes[record.0.clone()];
        // Stable, so that of records with one key the last of the dump is the last here.
        records.sort_by(|one, other| key(one).cmp(key(other)));
        records.dedup_by(|next, kept| {
            let same = key(next) == key(kept);
            if same {
                std::mem::swap(next, kept);
            }
            same
        });
        census.records = records.len() as u64;
        census.duplicates = (read - records.len()) as u64;
        if records.is_empty() {
            let left_out = census
                .left_out()
                .map_or_else(String::new, |words| format!(" ({words})"));
            return Err(LabError::data(
                name,
                format!("it contains no record with a key{left_out} (--records {format})"),
            ));
        }
        let keys = KeySet::from_ascending(records.iter().map(key));
        let spans = records.into_iter().map(|(_, value)| value).collect();
        Ok(Self {
            keys: Arc::new(keys),
            values: Arc::new(Corpus::from_spans(concatenate(parts, Vec::len), spans)),
            census,
        })
    }

    /// Takes `count` of the records, evenly spread over their keys; all of them if there are fewer.
    #[must_use]
    pub fn take(self, count: u64) -> Self {
        let all = self.keys.len();
        if count >= all {
            return self;
        }
        self.only(|| (0..count).map(move |place| (u128::from(place) * u128::from(all) / u128::from(count)) as u64))
    }

    /// Takes at most `count` of the records, in runs of neighbours that are evenly spread over the keys, so that what a
    /// record has in common with its neighbours stays; all of them if there are fewer.
    #[must_use]
    pub fn take_runs(self, count: u64) -> Self {
        let all = self.keys.len();
        if count >= all {
            return self;
        }
        let runs = count.clamp(1, RUNS);
        let length = count / runs;
        let start = move |run: u64| (u128::from(run) * u128::from(all) / u128::from(runs)) as u64;
        self.only(|| (0..runs).flat_map(move |run| start(run)..start(run) + length))
    }

    /// The records with these numbers, ascending.
    fn only<I: Iterator<Item = u64>>(self, ids: impl Fn() -> I) -> Self {
        let keys = Arc::new(self.keys.only(ids()));
        // The only owner as yet; a second one would cost a copy.
        let values = Arc::try_unwrap(self.values).unwrap_or_else(|shared| shared.as_ref().clone());
        Self {
            keys,
            values: Arc::new(values.only(ids())),
            census: self.census,
        }
    }
}

#[cfg(test)]
mod tests;
