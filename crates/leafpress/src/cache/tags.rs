//! Tags of records, and their invalidation in constant time.
//!
//! A record with tags carries their hashes and a *stamp*, a time at which nothing that it was made of had been
//! invalidated: that of the insertion, or of the beginning of its load. Invalidating a tag visits no record: it notes
//! the tag with a stamp, and a record is invalid if one of its tags was invalidated at its stamp or later. Readers
//! treat it as expired, in memory and on disk.
//!
//! Stamps are milliseconds of the cache's clock. Those of records are later than the last invalidation, and each
//! invalidation has a later stamp than all before, so that a record which is inserted right after an invalidation is
//! valid.
//!
//! Invalidations are kept in a set-associative table that is read without a lock, one cache line for each tag. A full
//! set forgets its oldest invalidation and instead takes all records of the set's tags up to its stamp for invalid: a
//! few records more are lost, and no invalidation is.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::record;
use super::record_tags::ID_BITS;
use leafpress_base::bytes::Bytes;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, room_for};

/// Bits of an identity that an entry of the table has; the others choose the set.
const PRINT_BITS: u32 = 16;
const WAYS: usize = 7;
const SET_BYTES: u64 = 64;
/// The table takes at most this fraction (1/256) of the memory.
const TABLE_DIVISOR: u64 = 256;
const MIN_SETS: u64 = 16;
const MAX_SETS: u64 = 1 << 16;

/// A moment in the order of the invalidations of a cache's tags: see [`Cache::moment`](super::Cache::moment).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(pub(super) u64);

/// Invalidations of the tags whose identities choose this set.
#[derive(Default)]
#[repr(align(64))]
struct Set {
    /// Records up to this stamp are invalid.
    floor: AtomicU64,
    /// A stamp, and in the lower bits a part of the tag's identity; 0 for none.
    ways: [AtomicU64; WAYS],
}

impl Set {
    fn words(&self) -> impl Iterator<Item = &AtomicU64> {
        std::iter::once(&self.floor).chain(&self.ways)
    }

    fn has(&self, print: u64, stamp: u64) -> bool {
        let is_later = |entry: u64| entry & PRINT_MASK == print && entry >> PRINT_BITS >= stamp;
        self.floor.load(Ordering::SeqCst) >= stamp || self.ways.iter().any(|way| is_later(way.load(Ordering::SeqCst)))
    }

    fn note(&self, entry: u64) {
        let is_same = |other: u64| other == 0 || other & PRINT_MASK == entry & PRINT_MASK;
        let replace = |way: &AtomicU64, old| {
            way.compare_exchange(old, entry, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
        };
        loop {
            let mut oldest = (&self.ways[0], u64::MAX);
            let mut own = None;
            for way in &self.ways {
                let old = way.load(Ordering::SeqCst);
                if is_same(old) {
                    own = Some((way, old));
                    break;
                }
                if old < oldest.1 {
                    oldest = (way, old);
                }
            }
            let is_noted = match own {
                Some((way, old)) => old >= entry || replace(way, old),
                None => {
                    // First the floor: at no moment is the forgotten invalidation in neither.
                    self.floor.fetch_max(oldest.1 >> PRINT_BITS, Ordering::SeqCst);
                    replace(oldest.0, oldest.1)
                }
            };
            if is_noted {
                return;
            }
        }
    }
}

const PRINT_MASK: u64 = (1 << PRINT_BITS) - 1;
/// The latest stamp.
const MAX_STAMP: u64 = (1 << ID_BITS) - 1;

/// The invalidations of a cache.
#[derive(Default)]
pub(super) struct TagTable {
    /// Made by the first invalidation: a power of two.
    sets: OnceLock<Box<[Set]>>,
    /// Stamp of the last invalidation.
    last: AtomicU64,
    /// Records up to this stamp are invalid, whatever their tags.
    floor: AtomicU64,
}

fn millis(now: Duration) -> u64 {
    u64::try_from(now.as_millis()).map_or(MAX_STAMP, |ms| ms.min(MAX_STAMP))
}

fn new_sets(count: u64) -> Result<Box<[Set]>, OutOfMemory> {
    let mut sets = room_for(count as usize)?;
    sets.resize_with(count as usize, Set::default);
    Ok(sets.into_boxed_slice())
}

impl TagTable {
    /// Returns the stamp of what is begun at `now`.
    pub(super) fn stamp(&self, now: Duration) -> u64 {
        millis(now).max((self.last.load(Ordering::SeqCst) + 1).min(MAX_STAMP))
    }

    /// Invalidates the records with a tag that have a stamp so far.
    pub(super) fn invalidate(&self, id: u64, now: Duration, memory_bytes: u64) -> Result<(), OutOfMemory> {
        let sets = match self.sets.get() {
            Some(sets) => sets,
            None => {
                let most = (memory_bytes / TABLE_DIVISOR / SET_BYTES).clamp(MIN_SETS, MAX_SETS);
                let sets = new_sets(1 << most.ilog2())?;
                self.sets.get_or_init(|| sets)
            }
        };
        let next = |last: u64| Some(millis(now).max((last + 1).min(MAX_STAMP)));
        let before = self.last.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        let stamp = before.ok().and_then(next).unwrap_or(MAX_STAMP);
        set_of(sets, id).note(stamp << PRINT_BITS | id & PRINT_MASK);
        Ok(())
    }

    /// Invalidates all records with tags that were made before `now`, by an earlier cache.
    pub(super) fn invalidate_all(&self, now: Duration) {
        self.last.fetch_max(millis(now), Ordering::SeqCst);
        self.floor.fetch_max(millis(now), Ordering::SeqCst);
    }

    /// Returns true if one of the tags was invalidated at `stamp` or later.
    pub(super) fn has_any(&self, ids: impl IntoIterator<Item = u64>, stamp: u64) -> bool {
        if self.last.load(Ordering::SeqCst) < stamp {
            return false;
        }
        if self.floor.load(Ordering::SeqCst) >= stamp {
            return true;
        }
        let Some(sets) = self.sets.get() else { return false };
        ids.into_iter().any(|id| set_of(sets, id).has(id & PRINT_MASK, stamp))
    }

    /// Returns true if a stored record has tags and is invalid by them.
    pub(super) fn has_invalidated(&self, stored: &[u8]) -> bool {
        record::tags(stored).is_some_and(|(stamp, ids)| self.has_any(ids, stamp))
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.sets.get().map_or(0, |sets| size_of_val::<[Set]>(sets) as u64)
    }

    /// Encodes the table for the next cache: `last u64   floor u64   sets u32   words u64...`, little endian.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, OutOfMemory> {
        let sets = self.sets.get().map_or(&[][..], |sets| sets);
        let mut bytes = room_for(HEADER_BYTES + size_of_val(sets))?;
        bytes.try_append(&self.last.load(Ordering::SeqCst).to_le_bytes())?;
        bytes.try_append(&self.floor.load(Ordering::SeqCst).to_le_bytes())?;
        bytes.try_append(&(sets.len() as u32).to_le_bytes())?;
        for word in sets.iter().flat_map(Set::words) {
            bytes.try_append(&word.load(Ordering::SeqCst).to_le_bytes())?;
        }
        Ok(bytes)
    }

    /// Decodes what [`TagTable::to_bytes`] has encoded; [`None`] if it is something else.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Option<Self>, OutOfMemory> {
        let mut bytes = Bytes(bytes);
        let table = Self::default();
        let Some((last, (floor, count))) = bytes.u64().zip(bytes.u64().zip(bytes.u32())) else {
            return Ok(None);
        };
        let count = u64::from(count);
        let is_valid = count == 0 || (count.is_power_of_two() && count <= MAX_SETS);
        if !is_valid || bytes.0.len() as u64 != count * SET_BYTES || last > MAX_STAMP || floor > last {
            return Ok(None);
        }
        table.last.store(last, Ordering::SeqCst);
        table.floor.store(floor, Ordering::SeqCst);
        if count > 0 {
            let sets = new_sets(count)?;
            for word in sets.iter().flat_map(Set::words) {
                word.store(bytes.u64().unwrap_or(0), Ordering::SeqCst);
            }
            let _ = table.sets.set(sets);
        }
        Ok(Some(table))
    }
}

impl TagTable {
    /// Returns the table that an earlier cache has left; with `bytes` that are something else or nothing, one that
    /// refuses all records with tags that are older than `now`.
    pub(super) fn kept(bytes: &[u8], memory_bytes: u64, now: Duration) -> Result<Self, OutOfMemory> {
        let most = (memory_bytes / TABLE_DIVISOR).max(MIN_SETS * SET_BYTES);
        if let Some(table) = Self::from_bytes(bytes)?.filter(|table| table.held_bytes() <= most) {
            return Ok(table);
        }
        let table = Self::default();
        table.invalidate_all(now);
        Ok(table)
    }
}

/// Length of an encoded table without its sets.
const HEADER_BYTES: usize = 8 + 8 + 4;

fn set_of(sets: &[Set], id: u64) -> &Set {
    &sets[(id >> PRINT_BITS) as usize & (sets.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::record_tags::{MAX_TAGS, Tags, id_of};

    const NOW: Duration = Duration::from_secs(2_000_000_000);

    fn ids(range: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
        range.map(|n| id_of(format!("tag {n}").as_bytes()))
    }

    #[test]
    fn what_is_inserted_after_an_invalidation_of_the_same_moment_is_valid() {
        let table = TagTable::default();
        let id = id_of(b"tag");
        for _ in 0..100 {
            let stamp = table.stamp(NOW);
            assert!(!table.has_any([id], stamp));
            table.invalidate(id, NOW, 4 << 20).unwrap();
            assert!(table.has_any([id], stamp));
            assert!(!table.has_any([id], table.stamp(NOW)));
        }
        assert!(!table.has_any([id], table.stamp(NOW + Duration::from_secs(1))));
        // A clock that is behind the last invalidation.
        assert!(!table.has_any([id], table.stamp(Duration::ZERO)));
    }

    #[test]
    fn no_invalidation_is_forgotten_however_many_there_are() {
        let table = TagTable::default();
        let stamps: Vec<_> = ids(0..10_000)
            .map(|id| {
                let stamp = table.stamp(NOW);
                table.invalidate(id, NOW, 4 << 20).unwrap();
                (id, stamp)
            })
            .collect();
        assert!(stamps.iter().all(|(id, stamp)| table.has_any([*id], *stamp)));
        assert!(ids(0..20_000).all(|id| !table.has_any([id], table.stamp(NOW))));
        assert_eq!(table.held_bytes(), (4 << 20) / TABLE_DIVISOR);
        let again = TagTable::from_bytes(&table.to_bytes().unwrap()).unwrap().unwrap();
        assert!(stamps.iter().all(|(id, stamp)| again.has_any([*id], *stamp)));
        assert_eq!(again.stamp(NOW), table.stamp(NOW));
        assert!(ids(0..20_000).all(|id| !again.has_any([id], again.stamp(NOW))));
    }

    #[test]
    fn few_invalidations_lose_no_other_records() {
        let table = TagTable::default();
        let stamp = table.stamp(NOW);
        for id in ids(0..300) {
            table.invalidate(id, NOW, 64 << 20).unwrap();
        }
        let lost = ids(1000..11_000).filter(|id| table.has_any([*id], stamp)).count();
        assert!(lost < 10, "{lost}");
        let floors = table
            .sets
            .get()
            .unwrap()
            .iter()
            .map(|set| set.floor.load(Ordering::SeqCst));
        assert_eq!(floors.max(), Some(0));
    }

    #[test]
    fn an_encoded_table_that_is_damaged_is_refused() {
        let table = TagTable::default();
        assert!(TagTable::from_bytes(&table.to_bytes().unwrap()).unwrap().is_some());
        table.invalidate(1, NOW, 4 << 20).unwrap();
        let bytes = table.to_bytes().unwrap();
        for len in 0..bytes.len() {
            assert!(TagTable::from_bytes(&bytes[..len]).unwrap().is_none(), "{len}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(TagTable::from_bytes(&longer).unwrap().is_none());
        let mut other = bytes;
        other[16] ^= 3;
        assert!(TagTable::from_bytes(&other).unwrap().is_none());
    }

    #[test]
    fn all_that_was_before_a_crash_is_invalid() {
        let table = TagTable::default();
        table.invalidate_all(NOW);
        assert!(table.has_any([5], millis(NOW)) && table.has_any([5], 1));
        assert!(!table.has_any([5], table.stamp(NOW)));
    }

    #[test]
    fn tags_are_counted_once_and_bounded() {
        let mut tags = Tags::default();
        assert_eq!(tags.stamped(7), None);
        for n in 0..MAX_TAGS {
            tags.add(&[n as u8]);
            tags.add(&[n as u8]);
            assert_eq!(tags.ids().len(), n + 1);
        }
        assert!(!tags.has_too_many());
        tags.add(b"another");
        assert!(tags.has_too_many() && tags.ids().len() == MAX_TAGS);
        assert_eq!(tags.stamped(7).unwrap().stamp(), 7);
    }
}
