//! Batches of a scan: records read at once.

use crate::tree::error::TreeError;
use crate::tree::node::decoder::Value;
use crate::tree::node::landing::{Change, LandedWrite};
use crate::tree::node::large::Large;
use leafpress_base::mem::room::{TryGrow, copied};
use leafpress_codec::Engine;

/// A batch ends before its large values exceed this in total, unless it has only one.
const MAX_BATCH_LARGE_BYTES: usize = 4 << 20;

pub(crate) type Record = (Vec<u8>, Vec<u8>);

/// The end of a range that a record is taken from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Front,
    Back,
}

/// Records in key order, which can be taken from both ends.
#[derive(Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// Start of each record, and of its value.
    at: Vec<(usize, usize)>,
    /// Large values, each with its record's index, ascending.
    large: Vec<(usize, Vec<u8>)>,
    head: usize,
    tail: usize,
}

impl Batch {
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), TreeError> {
        let start = self.bytes.len();
        let bytes = key.len() + value.len();
        self.bytes.try_grow(bytes)?;
        self.at.try_grow(1)?;
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.at.push((start, start + key.len()));
        self.tail = self.at.len();
        Ok(())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    fn key(&self, index: usize) -> &[u8] {
        let (start, middle) = self.at[index];
        &self.bytes[start..middle]
    }

    #[inline]
    pub(crate) fn peek(&self, end: End) -> Option<&[u8]> {
        let index = match end {
            End::Front => self.head,
            End::Back => self.tail.wrapping_sub(1),
        };
        (!self.is_empty()).then(|| self.key(index))
    }

    /// Removes a record from a batch that is not empty, and calls `read` with it.
    #[inline]
    pub(crate) fn pop<R>(&mut self, end: End, read: impl FnOnce(&[u8], &[u8]) -> R) -> R {
        let index = match end {
            End::Front => {
                self.head += 1;
                self.head - 1
            }
            End::Back => {
                self.tail -= 1;
                self.tail
            }
        };
        let (start, middle) = self.at[index];
        let key = &self.bytes[start..middle];
        if !self.large.is_empty()
            && let Ok(large) = self.large.binary_search_by_key(&index, |(index, _)| *index)
        {
            return read(key, &std::mem::take(&mut self.large[large].1));
        }
        let value_end = self.at.get(index + 1).map_or(self.bytes.len(), |(start, _)| *start);
        read(key, &self.bytes[middle..value_end])
    }
}

/// A batch whose large values are not read yet.
#[derive(Default)]
pub(crate) struct Gathered<'g> {
    batch: Batch,
    /// Large values, each with its record's index, ascending.
    large: Vec<(usize, Large<'g>)>,
}

impl<'g> Gathered<'g> {
    pub(crate) fn push(&mut self, key: &[u8], value: Value<'_, 'g>) -> Result<(), TreeError> {
        match value {
            Value::Inline(value) => self.batch.push(key, value),
            Value::Large(large) => {
                self.large.try_push((self.batch.at.len(), large))?;
                self.batch.push(key, &[])
            }
        }
    }

    pub(crate) fn push_entry(&mut self, (entry, value): &(LandedWrite<'g>, Vec<u8>)) -> Result<(), TreeError> {
        match entry.change {
            Change::Put(value) => self.push(entry.key, Value::Inline(value)),
            Change::PutLarge(large) => self.push(entry.key, Value::Large(large)),
            Change::Compressed { .. } => self.push(entry.key, Value::Inline(value)),
            Change::Remove => Ok(()),
        }
    }

    /// Drops records at the far end until the large values are within their bound, and returns the key up to which the
    /// batch then covers the range: exclusive from the front, inclusive from the back. `None` when it drops none.
    pub(crate) fn trim(&mut self, end: End) -> Result<Option<Vec<u8>>, TreeError> {
        let mut bytes = 0usize;
        let mut fits = |(_, large): &(usize, Large<'_>)| {
            let len = large.raw_len();
            let fits = bytes == 0 || bytes + len <= MAX_BATCH_LARGE_BYTES;
            bytes += len;
            fits
        };
        match end {
            End::Front => {
                let Some(past) = self.large.iter().position(|large| !fits(large)) else {
                    return Ok(None);
                };
                self.batch.tail = self.large[past].0;
                self.large.truncate(past);
                Ok(Some(copied(self.batch.key(self.batch.tail))?))
            }
            End::Back => {
                let Some(past) = self.large.iter().rposition(|large| !fits(large)) else {
                    return Ok(None);
                };
                self.batch.head = self.large[past].0 + 1;
                self.large.drain(..=past);
                Ok(Some(copied(self.batch.key(self.batch.head))?))
            }
        }
    }

    /// Reads the remaining large values, and returns the batch.
    pub(crate) fn read_large(self, engine: &dyn Engine) -> Result<Batch, TreeError> {
        let mut batch = self.batch;
        batch.large.try_room(self.large.len())?;
        for (index, large) in self.large {
            let mut value = Vec::new();
            large.read_into(engine, &mut value)?;
            batch.large.push((index, value));
        }
        Ok(batch)
    }
}
