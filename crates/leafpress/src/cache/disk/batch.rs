//! A batch of records that have left memory and are not on disk yet. Readers look here before the disk.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, room_for};

/// Maximum epoch that crash recovery can store. Larger epochs saturate: then records are lost, and none is stale.
pub(super) const MAX_EPOCH: u32 = (1 << 24) - 1;
/// Link of a record that has no older version.
const NONE: u32 = u32::MAX;
/// Header of each record: link to an older record with the same hash, key length, record length.
const HEADER_BYTES: usize = 12;
/// Estimated size of a table's cell in addition to its entry.
const CELL_BYTES: usize = size_of::<(u64, u32)>() + 2;

/// Identity hasher: the keys are hashes already.
#[derive(Default)]
pub(super) struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Not used by the table; a valid hash nevertheless.
        self.0 = rapidhash::v3::rapidhash_v3(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Records in the order of arrival, and an index of the newest record of each hash.
#[derive(Default)]
pub(super) struct Batch {
    /// Increases from one batch to the next. With crash recovery, each record ends with it.
    pub epoch: u32,
    bytes: Vec<u8>,
    newest: HashMap<u64, u32, BuildHasherDefault<Same>>,
}

/// A record of a batch: its key's hash and its offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchSlot {
    pub hash: u64,
    at: u32,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }

    /// Returns an empty batch, reusing the allocation if it has about the size of a batch of `bytes`.
    pub(super) fn emptied(mut self, bytes: usize) -> Self {
        self.bytes.clear();
        self.newest.clear();
        self.bytes.shrink_to(2 * bytes);
        self.newest.shrink_to(2 * bytes / HEADER_BYTES);
        self
    }

    /// Reserves `bytes` at once: incremental growth would leave blocks of all sizes to the allocator.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        self.bytes.try_room(bytes.saturating_sub(self.bytes.len()))
    }

    /// Bytes of keys, records and headers.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.newest.capacity() * CELL_BYTES
    }

    /// Adds a record, which replaces an older one of its key. `behind` is appended to it.
    pub(super) fn push(&mut self, hash: u64, key: &[u8], record: &[u8], behind: &[u8]) -> Result<(), OutOfMemory> {
        let record_bytes = record.len() + behind.len();
        let bytes = HEADER_BYTES + key.len() + record_bytes;
        if self.bytes.len() + bytes >= NONE as usize {
            return Err(OutOfMemory { bytes });
        }
        self.bytes.try_grow(bytes)?;
        self.newest
            .try_reserve(1)
            .map_err(|_| OutOfMemory { bytes: CELL_BYTES })?;
        let older = self.newest.insert(hash, self.bytes.len() as u32).unwrap_or(NONE);
        for word in [older, key.len() as u32, record_bytes as u32] {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(record);
        self.bytes.extend_from_slice(behind);
        Ok(())
    }

    fn word(&self, at: usize) -> u32 {
        let word = self.bytes.get(at..).and_then(<[u8]>::first_chunk);
        word.map_or(NONE, |word| u32::from_le_bytes(*word))
    }

    /// Returns the key and the record at an offset, and the link to an older one.
    fn at(&self, at: u32) -> (&[u8], &[u8], u32) {
        let at = at as usize;
        let key_bytes = self.word(at + 4) as usize;
        let start = at + HEADER_BYTES;
        let end = start + key_bytes + self.word(at + 8) as usize;
        let both = self.bytes.get(start..end).unwrap_or_default();
        let (key, record) = both.split_at(key_bytes.min(both.len()));
        (key, record, self.word(at))
    }

    pub(super) fn key(&self, entry: BatchSlot) -> &[u8] {
        self.at(entry.at).0
    }

    pub(super) fn record(&self, entry: BatchSlot) -> &[u8] {
        self.at(entry.at).1
    }

    /// Returns the newest record of a key.
    pub(super) fn find(&self, hash: u64, key: &[u8]) -> Option<&[u8]> {
        let mut at = self.newest.get(&hash).copied().unwrap_or(NONE);
        while at != NONE {
            let (found, record, older) = self.at(at);
            if found == key {
                return Some(record);
            }
            at = older;
        }
        None
    }

    /// Returns the newest record of each key, in key order.
    pub(super) fn entries(&self) -> Result<Vec<BatchSlot>, OutOfMemory> {
        let mut entries = room_for(self.newest.len())?;
        for (&hash, &newest) in &self.newest {
            let mut at = newest;
            while at != NONE {
                let (_, _, older) = self.at(at);
                entries.try_push(BatchSlot { hash, at })?;
                at = older;
            }
        }
        // Later records are newer, and are sorted first among those of a key.
        entries.sort_unstable_by(|one: &BatchSlot, other| {
            let order = self.key(*one).cmp(self.key(*other));
            order.then(other.at.cmp(&one.at))
        });
        entries.dedup_by(|older, newer| self.key(*older) == self.key(*newer));
        Ok(entries)
    }

    /// Sorts entries in the order of a run: by hash, then by key.
    pub(super) fn sort_for_run(&self, entries: &mut [BatchSlot]) {
        entries.sort_unstable_by(|one, other| {
            let order = one.hash.cmp(&other.hash);
            order.then_with(|| self.key(*one).cmp(self.key(*other)))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_each_key_is_found_also_of_one_hash() {
        let mut batch = Batch::default();
        for (hash, key, record) in [
            (7, "a", "1"),
            (7, "b", "2"),
            (9, "c", "3"),
            (7, "a", "4"),
            (7, "b", ""),
            (u64::MAX, "", "5"),
        ] {
            batch.push(hash, key.as_bytes(), record.as_bytes(), b"").unwrap();
        }
        assert_eq!(batch.find(7, b"a"), Some(&b"4"[..]));
        assert_eq!(batch.find(7, b"b"), Some(&b""[..]));
        assert_eq!(batch.find(u64::MAX, b""), Some(&b"5"[..]));
        assert_eq!(batch.find(7, b"c"), None);
        let mut entries = batch.entries().unwrap();
        let seen = |entries: &[BatchSlot]| -> Vec<(Vec<u8>, Vec<u8>)> {
            let of = |entry: &BatchSlot| (batch.key(*entry).to_vec(), batch.record(*entry).to_vec());
            entries.iter().map(of).collect()
        };
        let expected = |records: [(&str, &str); 4]| records.map(|(key, record)| (key.into(), record.into()));
        assert_eq!(seen(&entries), expected([("", "5"), ("a", "4"), ("b", ""), ("c", "3")]));
        batch.sort_for_run(&mut entries);
        assert_eq!(seen(&entries), expected([("a", "4"), ("b", ""), ("c", "3"), ("", "5")]));
    }
}
