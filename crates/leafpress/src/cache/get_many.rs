//! Reads of several keys in one call.
//!
//! Their look-ups in the tree overlap. The pages of keys that are on disk are read in one batch for each
//! [`KEYS_AT_ONCE`] keys, in the order of their positions, each page once.

use std::ops::Range;

use super::counters::Count;
use super::disk::{Located, Tier};
use super::disk_lookup::Lookup;
use super::error::CacheError;
use super::inner::{CacheInner, Seen};
use crate::tree;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, collected};

/// Keys that are looked up together in a cache with a disk tier. It bounds the pages that one batch reads, and the
/// values that wait until those before them have been read.
pub(super) const KEYS_AT_ONCE: usize = 64;

/// The values of a group of keys, for the keys from the first one that was not in memory.
#[derive(Default)]
struct Waiting {
    /// Index of the first key.
    first: usize,
    bytes: Vec<u8>,
    values: Vec<Option<Range<usize>>>,
    /// Indices of the keys that are not in the tree.
    missed: Vec<usize>,
    /// Indices of the keys whose records cannot be decoded.
    damaged: Vec<usize>,
}

impl Waiting {
    fn append(&mut self, value: &[u8]) -> Result<Range<usize>, OutOfMemory> {
        let start = self.bytes.len();
        self.bytes.try_append(value)?;
        Ok(start..self.bytes.len())
    }

    fn set(&mut self, index: usize, value: &[u8]) -> Result<(), OutOfMemory> {
        let range = self.append(value)?;
        if let Some(slot) = self.values.get_mut(index - self.first) {
            *slot = Some(range);
        }
        Ok(())
    }
}

impl CacheInner {
    /// Calls `read` with each key's index and value, in order, and counts them; [`None`] for an absent key.
    pub(super) fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), CacheError> {
        self.check_open()?;
        if self.queued_reads.get().is_some() {
            // A record may only seem expired until queued reads are applied.
            for (index, key) in keys.iter().enumerate() {
                if self.get(key.as_ref(), |value| read(index, Some(value)))?.is_none() {
                    read(index, None);
                }
            }
            return Ok(());
        }
        let Some(disk) = &self.disk else {
            return self.get_many_in_memory(keys, read);
        };
        let mut start = 0;
        for keys in keys.chunks(KEYS_AT_ONCE) {
            self.get_group(disk, keys, |index, value| read(start + index, value))?;
            start += keys.len();
        }
        Ok(())
    }

    fn get_many_in_memory<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), CacheError> {
        let (mut next, mut hits) = (0, 0);
        // Records that cannot be decoded are skipped.
        let result = self.tree.get_many_with(keys, |index, stored| {
            (next..index).for_each(|missed| read(missed, None));
            next = index + 1;
            let value = stored.and_then(|stored| self.unexpired(keys[index].as_ref(), stored));
            hits += u64::from(value.is_some());
            self.sample_read(keys[index].as_ref(), value.is_some());
            read(index, value);
        });
        (next..keys.len()).for_each(|missed| read(missed, None));
        self.counters.add(Count::MemoryHits, hits);
        self.counters.add(Count::Misses, keys.len() as u64 - hits);
        if has_damage(result)? {
            self.counters.add(Count::Damaged, 1);
        }
        Ok(())
    }

    /// Returns a record's value unless it is expired, and notes the read if it has to extend the idle deadline.
    pub(super) fn unexpired<'r>(&self, key: &[u8], stored: &'r [u8]) -> Option<&'r [u8]> {
        let (value, expiry) = self.read(stored);
        if let Some(expiry) = expiry {
            let now = self.clock.now();
            if expiry.is_expired(now) {
                return None;
            }
            if self.wants_touch(stored, now) {
                self.queue_read(key);
            }
        }
        Some(value)
    }

    /// Like [`CacheInner::get_many`], for the keys of one group, in both tiers.
    fn get_group<K: AsRef<[u8]>>(
        &self,
        disk: &Tier,
        keys: &[K],
        mut read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), CacheError> {
        // Before the look-up in the tree, as for a single key: a record on disk is the newest only while the tree has
        // none.
        let lookups = collected(keys.iter().map(|key| Lookup::new(disk, key.as_ref())))?;
        let mut waiting = self.read_from_tree(keys, &mut read)?;
        let wanted = waiting
            .missed
            .iter()
            .map(|index| (lookups[*index].hash, keys[*index].as_ref()));
        let wanted = collected(wanted)?;
        let missed = std::mem::take(&mut waiting.missed);
        let mut alone = std::mem::take(&mut waiting.damaged);
        let (mut hits, mut misses, mut stored) = (0, 0, Vec::new());
        disk.find_many(&wanted, |nth, located| {
            let index = missed[nth];
            match located {
                Located::Found(record) => {
                    stored.clear();
                    stored.try_append(record)?;
                    let key = keys[index].as_ref();
                    let set = |value: &[u8]| waiting.set(index, value);
                    let mut seen = Seen::default();
                    let set = self.take_from_disk(disk, &lookups[index], key, &mut stored, set, &mut seen);
                    if seen.wants_touch {
                        self.queue_read(key);
                    }
                    self.sample_read(key, set.is_some());
                    match set {
                        Some(set) => set.map(|()| hits += 1)?,
                        None => misses += 1,
                    }
                }
                Located::Absent => {
                    misses += 1;
                    self.sample_read(keys[index].as_ref(), false);
                }
                Located::Unknown => alone.try_push(index)?,
            }
            Ok(())
        })?;
        self.counters.add(Count::DiskHits, hits);
        self.counters.add(Count::Misses, misses);
        for index in alone {
            let value = self.get(keys[index].as_ref(), |value| waiting.set(index, value))?;
            value.transpose()?;
        }
        for (nth, value) in waiting.values.iter().enumerate() {
            read(waiting.first + nth, value.clone().map(|range| &waiting.bytes[range]));
        }
        Ok(())
    }

    /// Looks the keys up in the tree: calls `read` for those before the first that is not there, and returns the
    /// others.
    fn read_from_tree<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        read: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<Waiting, CacheError> {
        let mut waiting = Waiting {
            first: keys.len(),
            ..Waiting::default()
        };
        let (mut next, mut hits, mut misses) = (0, 0, 0);
        let mut lacks = None;
        let result = self.tree.get_many_with(keys, |index, stored| {
            let mut visit = || {
                // Records that cannot be decoded are skipped.
                for damaged in std::mem::replace(&mut next, index + 1)..index {
                    waiting.first = waiting.first.min(damaged);
                    waiting.values.try_push(None)?;
                    waiting.damaged.try_push(damaged)?;
                }
                let value = stored.and_then(|stored| self.unexpired(keys[index].as_ref(), stored));
                let is_missed = stored.is_none();
                hits += u64::from(value.is_some());
                misses += u64::from(value.is_none() && !is_missed);
                if !is_missed {
                    self.sample_read(keys[index].as_ref(), value.is_some());
                }
                if is_missed {
                    waiting.first = waiting.first.min(index);
                    waiting.missed.try_push(index)?;
                }
                if index < waiting.first {
                    read(index, value);
                    return Ok(());
                }
                let range = value.map(|value| waiting.append(value)).transpose()?;
                waiting.values.try_push(range)
            };
            if lacks.is_none() {
                lacks = visit().err();
            }
        });
        if let Some(OutOfMemory { bytes }) = lacks {
            return Err(CacheError::OutOfMemory { bytes });
        }
        has_damage(result)?;
        for damaged in next..keys.len() {
            waiting.first = waiting.first.min(damaged);
            waiting.values.try_push(None)?;
            waiting.damaged.try_push(damaged)?;
        }
        self.counters.add(Count::MemoryHits, hits);
        self.counters.add(Count::Misses, misses);
        Ok(waiting)
    }
}

/// Returns true if a record could not be decoded.
pub(super) fn has_damage(result: Result<(), tree::TreeError>) -> Result<bool, CacheError> {
    match result.map_err(CacheError::from) {
        Ok(()) => Ok(false),
        Err(memory @ CacheError::OutOfMemory { .. }) => Err(memory),
        Err(_) => Ok(true),
    }
}
