//! Ordered scans of the records in memory.

use super::error::CacheError;
use super::inner::CacheInner;
use super::record;
use crate::tree::{Range, Record};

/// An iterator over the records of a range of keys in memory, in key order, from either end; from
/// [`Cache::range`](super::Cache::range) and [`Cache::prefix`](super::Cache::prefix).
pub struct CacheRange<'c> {
    core: &'c CacheInner,
    records: Range<'c>,
    has_ended: bool,
}

impl<'c> CacheRange<'c> {
    pub(super) fn new(core: &'c CacheInner, records: Range<'c>) -> Self {
        // Otherwise records with queued reads would be skipped as expired.
        core.apply_queued_reads();
        Self {
            core,
            records,
            has_ended: false,
        }
    }

    /// The item at the end: an error, once, if the cache was closed, so that the range is not taken for complete.
    fn end(&mut self) -> Option<Result<Record, CacheError>> {
        let closed = self.core.check_open().err();
        closed
            .filter(|_| !std::mem::replace(&mut self.has_ended, true))
            .map(Err)
    }

    /// Decodes the header; returns the record as it was inserted, unless it has expired.
    fn opened(&self, record: Result<Record, crate::tree::TreeError>) -> Option<Result<Record, CacheError>> {
        let (key, mut stored) = match record {
            Ok(record) => record,
            Err(error) => return Some(Err(error.into())),
        };
        let (value, expiry) = self.core.read(&stored);
        if record::is_expired(expiry, || self.core.clock.now()) {
            return None;
        }
        let header = stored.len() - value.len();
        stored.drain(..header);
        Some(Ok((key, stored)))
    }
}

impl Iterator for CacheRange<'_> {
    type Item = Result<Record, CacheError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(record) = self.records.next() else {
                return self.end();
            };
            if let Some(opened) = self.opened(record) {
                return Some(opened);
            }
        }
    }
}

impl DoubleEndedIterator for CacheRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            let Some(record) = self.records.next_back() else {
                return self.end();
            };
            if let Some(opened) = self.opened(record) {
                return Some(opened);
            }
        }
    }
}
