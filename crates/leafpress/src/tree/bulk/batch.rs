//! Batches: records of a run, copied back to back.

use std::ops::Range;

use crate::tree::compact::settings::Settings;
use crate::tree::error::TreeError;
use crate::tree::node::layout::MAX_RECORDS;

/// Large values fill no leaf: a batch of this multiple of its target size counts as full regardless.
const MAX_BATCHES: usize = 4;

/// Where a record ends; it starts where the previous one ends.
#[derive(Clone, Copy)]
struct Ends {
    key: usize,
    value: usize,
}

/// Records whose keys ascend.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    ends: Vec<Ends>,
    /// How full the last leaf is.
    last_leaf: Fill,
}

/// How full a leaf is.
#[derive(Clone, Copy, Default)]
struct Fill {
    bytes: usize,
    records: usize,
}

impl Fill {
    /// Adds a record that takes `bytes` in the leaf if it fits, as it does into an empty leaf. Returns whether it did.
    fn add(&mut self, bytes: usize, settings: &Settings) -> bool {
        let fits = self.records == 0 || (self.bytes + bytes <= settings.leaf_bytes && self.records < MAX_RECORDS);
        if fits {
            self.bytes += bytes;
            self.records += 1;
        }
        fits
    }
}

/// Returns the bytes that a record takes in a leaf.
fn bytes_in_leaf(key: &[u8], value: &[u8], settings: &Settings) -> usize {
    key.len()
        + if value.len() > settings.inline_value_bytes {
            0
        } else {
            value.len()
        }
}

impl Batch {
    /// Reserves room for about `bytes` of records, if there is memory for them, to avoid copies as the batch grows.
    pub(super) fn reserve(&mut self, bytes: usize) {
        let _ = self.bytes.try_reserve_exact(bytes);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the number of records.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes of the records' keys and values.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes of the keys and values of some of the records.
    pub(super) fn bytes_of(&self, range: Range<usize>) -> usize {
        match range.end.checked_sub(1) {
            Some(last) if !range.is_empty() => self.ends[last].value - self.start(range.start),
            _ => 0,
        }
    }

    fn start(&self, index: usize) -> usize {
        match index.checked_sub(1) {
            None => 0,
            Some(before) => self.ends[before].value,
        }
    }

    /// Returns whether the batch holds at least `bytes` and its records fill their leaves, so that the next one would
    /// begin another leaf.
    pub(super) fn is_full_before(&self, key: &[u8], value: &[u8], bytes: usize, settings: &Settings) -> bool {
        let mut last_leaf = self.last_leaf;
        self.bytes() >= bytes
            && (!last_leaf.add(bytes_in_leaf(key, value, settings), settings) || self.bytes() >= bytes * MAX_BATCHES)
    }

    /// Appends a record, whose key is above those of all others.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`]; the record is not appended.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8], settings: &Settings) -> Result<(), TreeError> {
        let bytes = key.len() + value.len();
        let no_memory = |_| TreeError::OutOfMemory { bytes };
        self.bytes.try_reserve(bytes).map_err(no_memory)?;
        self.ends.try_reserve(1).map_err(no_memory)?;
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push(Ends {
            key: key_end,
            value: self.bytes.len(),
        });
        let in_leaf = bytes_in_leaf(key, value, settings);
        if !self.last_leaf.add(in_leaf, settings) {
            self.last_leaf = Fill {
                bytes: in_leaf,
                records: 1,
            };
        }
        Ok(())
    }

    /// Returns the record's key and value.
    pub(super) fn record(&self, index: usize) -> (&[u8], &[u8]) {
        let Ends { key, value } = self.ends[index];
        (&self.bytes[self.start(index)..key], &self.bytes[key..value])
    }

    pub(super) fn key(&self, index: usize) -> &[u8] {
        self.record(index).0
    }

    pub(super) fn records(&self, range: Range<usize>) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = self.start(range.start);
        self.ends[range].iter().map(move |&Ends { key, value }| {
            let record = (&self.bytes[start..key], &self.bytes[key..value]);
            start = value;
            record
        })
    }

    /// Returns the first record from `from` on whose key is not below `key`.
    pub(super) fn first_from(&self, from: usize, key: &[u8]) -> usize {
        let (mut low, mut high) = (from, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.key(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Divides these records into leaves, each as full as possible.
    pub(super) fn leaves<'a>(
        &'a self,
        range: Range<usize>,
        settings: &'a Settings,
    ) -> impl Iterator<Item = Range<usize>> + 'a {
        let mut from = range.start;
        std::iter::from_fn(move || {
            let start = from;
            let mut fill = Fill::default();
            let mut records = self.records(start..range.end);
            while records
                .next()
                .is_some_and(|(key, value)| fill.add(bytes_in_leaf(key, value, settings), settings))
            {
                from += 1;
            }
            (start < from).then_some(start..from)
        })
    }

    /// Removes the records and keeps the allocation.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.last_leaf = Fill::default();
    }
}
