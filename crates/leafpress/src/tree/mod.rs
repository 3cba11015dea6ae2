//! The compressed B+tree.
//!
//! [`Tree`] is what users see. Inside, from the outside in: `core` holds the parts, `read` does the point reads, `scan` the range
//! scans, and `write` writes under a leaf's latch. `index` leads from a key to its leaf, `node` is what stands in leaves, inner nodes
//! and landing buffers, `compact` makes new leaves of a leaf and what landed on it, `bulk` of records that come in key
//! order, and `upkeep` works beside the writers.
//! `docs/design.md` draws the pages and gives the reasons.

#[allow(unsafe_code)]
mod admin;
mod bulk;
mod compact;
#[allow(unsafe_code)]
mod core;
mod count;
mod error;
pub(crate) mod evict;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
#[allow(unsafe_code)]
pub mod fuzz;
pub(crate) mod hash;
#[allow(unsafe_code)]
mod hot;
mod in_range;
mod index;
mod key_range;
#[allow(unsafe_code)]
mod local;
mod node;
mod options;
mod read;
mod remove_range;
mod sample;
mod scan;
mod stats;
mod tending;
mod update;
mod upkeep;
mod validate;
mod walk;
#[allow(unsafe_code)]
mod write;

use std::ops::Bound;
use std::sync::Arc;

use crate::codec::Dictionary;
use crate::mem::room::copied;
use crate::tree::upkeep::defragment::Sweep;
use crate::tree::upkeep::temperature::Temperatures;
pub use error::{Error, MAX_KEY_BYTES, MAX_VALUE_BYTES};
pub use key_range::KeyRange;
pub use options::{Builder, DictionaryChoice, Layout, ShardBy, TemperatureRule, Tending};
pub use remove_range::RemovedRange;
pub use scan::Range;
pub use stats::Stats;
pub use update::Update;

use crate::sync::worker::Workers;
use crate::tree::core::{Condition, Core};
use crate::tree::key_range::prefixed;
use crate::tree::scan::End;

/// A key and its value.
pub type Record = (Vec<u8>, Vec<u8>);

/// A concurrent, ordered map from byte strings to byte strings whose leaves are kept compressed.
///
/// Keys are at most [`MAX_KEY_BYTES`] long, values at most [`MAX_VALUE_BYTES`]; both may be empty. All methods take `&self` and may be
/// called from any number of threads. Reads never wait for a lock.
///
/// An operation on one record is atomic: [`Tree::get`], [`Tree::insert`], [`Tree::insert_if_absent`], [`Tree::update_if_present`],
/// [`Tree::remove`], [`Tree::swap`], [`Tree::take`], [`Tree::compare_and_swap`] and [`Tree::update_with`] of one key happen one after the
/// other, in an order that all threads agree on. What is made of several of these says itself what is atomic: [`Tree::pop_first`],
/// [`Tree::pop_last`], [`Tree::get_or_insert_with`], [`Tree::retain`].
/// [`Tree::extend`], [`Tree::get_many`], [`Tree::clear`] and scans are not of one moment.
///
/// Keys are taken by reference, as whatever has bytes: `tree.get("a")`, `tree.get(&42_u64.to_be_bytes())`, `tree.range("a".."b")`.
pub struct Tree {
    core: Arc<Core>,
    workers: Workers,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree")
            .field("codec", &self.core.engines.warm.codec())
            .field("shards", &self.core.shards.len())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl Tree {
    /// A builder with every option at its default.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Inserts or replaces; returns whether the key was new.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`], [`Error::OutOfMemory`], or [`Error::Codec`] when compressing or decompressing
    /// a frame fails. The key's old record is then still there.
    pub fn insert(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<bool, Error> {
        self.core
            .write(key.as_ref(), Some(value.as_ref()), Condition::Always)
            .map(|(present, _)| !present)
    }

    /// Inserts unless the key is there; returns whether it inserted.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn insert_if_absent(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<bool, Error> {
        self.core
            .write(key.as_ref(), Some(value.as_ref()), Condition::IfAbsent)
            .map(|(_, applied)| applied)
    }

    /// Replaces the value if the key is there; returns whether it did.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn update_if_present(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<bool, Error> {
        self.core
            .write(key.as_ref(), Some(value.as_ref()), Condition::IfPresent)
            .map(|(_, applied)| applied)
    }

    /// Removes the key; returns whether it was there.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] or [`Error::Codec`]; the record is then still there.
    pub fn remove(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, Error> {
        self.core
            .write(key.as_ref(), None, Condition::Always)
            .map(|(present, _)| present)
    }

    /// The key's value, copied; `None` when absent.
    ///
    /// # Errors
    /// [`Error::Codec`] when its frame cannot be decoded, [`Error::OutOfMemory`].
    pub fn get(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Vec<u8>>, Error> {
        self.core.get_copied(key.as_ref())
    }

    /// Replaces the content of `value` by the key's value and returns true; leaves `value` empty and returns false when absent.
    ///
    /// # Errors
    /// As [`Tree::get`]; `value` is then empty.
    pub fn get_into(&self, key: &(impl AsRef<[u8]> + ?Sized), value: &mut Vec<u8>) -> Result<bool, Error> {
        self.core.get_into(key.as_ref(), value)
    }

    /// Calls `read` with the key's value and returns what it returns; `None` when absent. The bytes are the tree's own (raw records) or
    /// the decode buffer's; memory is not reclaimed while `read` runs.
    ///
    /// # Errors
    /// As [`Tree::get`].
    #[inline]
    pub fn get_with<R>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        self.core.get(key.as_ref(), |found| found.with(read))
    }

    /// The keys' values, copied, in the order of the keys; [`None`] for those that are absent.
    ///
    /// It takes less time than as many [`Tree::get`]s, much less where the tree is larger than the caches: the reads wait for memory
    /// together. Each record is as some write left it, but they need not be of one moment.
    ///
    /// # Errors
    /// As [`Tree::get`], if any of the values cannot be read. [`Tree::get_many_with`] gives the others.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let bytes = size_of_val(keys);
        let mut values = Vec::new();
        values
            .try_reserve_exact(keys.len())
            .map_err(|_| Error::OutOfMemory { bytes })?;
        self.core.get_many(keys, |_, found| {
            let value = found.map(|read| {
                let mut value = Vec::new();
                read.append_to(&mut value).map(|()| value)
            });
            values.push(value.transpose()?);
            Ok(())
        })?;
        Ok(values)
    }

    /// Calls `read` with the index in `keys` and the value of each key, in order; [`None`] where absent. What is said of
    /// [`Tree::get_many`] and [`Tree::get_with`] holds.
    ///
    /// # Errors
    /// As [`Tree::get`]: the first, when all keys have had their turn. `read` is not called for a key whose value cannot be read.
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        self.core.get_many(keys, |index, found| match found {
            Some(found) => found.with(|value| read(index, Some(value))),
            None => {
                read(index, None);
                Ok(())
            }
        })
    }

    /// Whether the key is there. Decodes nothing but, at most, the frame that would hold the key.
    ///
    /// # Errors
    /// [`Error::Codec`] when that frame cannot be decoded.
    pub fn contains_key(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, Error> {
        self.core.contains_key(key.as_ref())
    }

    /// The record with the least key, copied; `None` when there is none.
    ///
    /// # Errors
    /// [`Error::Codec`] when a frame cannot be decoded, [`Error::OutOfMemory`].
    pub fn first(&self) -> Result<Option<Record>, Error> {
        self.at_end(End::Front)
    }

    /// The record with the greatest key, copied; `None` when there is none.
    ///
    /// # Errors
    /// As [`Tree::first`].
    pub fn last(&self) -> Result<Option<Record>, Error> {
        self.at_end(End::Back)
    }

    /// Removes the record with the least key and returns it; `None` when there is none.
    ///
    /// Atomic for the key: no other call gets the same record, and the value is the one that was removed. The key was the least when it
    /// was looked for; a lesser one that is inserted before this returns stays.
    ///
    /// # Errors
    /// As [`Tree::first`] and [`Tree::take`]; the record is then still there.
    pub fn pop_first(&self) -> Result<Option<Record>, Error> {
        self.pop(End::Front)
    }

    /// Removes the record with the greatest key and returns it; `None` when there is none. What is said of [`Tree::pop_first`] holds.
    ///
    /// # Errors
    /// As [`Tree::pop_first`].
    pub fn pop_last(&self) -> Result<Option<Record>, Error> {
        self.pop(End::Back)
    }

    /// The records whose keys are in `range`, in key order, from either end (`.rev()`).
    ///
    /// A key that is there from the scan's start to its end is seen exactly once; one that comes or goes meanwhile may or may not be. Each
    /// record is as some write left it.
    pub fn range(&self, range: impl KeyRange) -> Range<'_> {
        Range::new(&self.core, range.into_bounds(), None)
    }

    /// All records, in key order, from either end. What is said of [`Tree::range`] holds.
    pub fn iter(&self) -> Range<'_> {
        self.range(..)
    }

    /// The records whose keys begin with `prefix`, in key order, from either end. What is said of [`Tree::range`] holds.
    pub fn prefix(&self, prefix: &(impl AsRef<[u8]> + ?Sized)) -> Range<'_> {
        Range::new(&self.core, prefixed(prefix.as_ref()), None)
    }

    /// Calls `visit` with up to `limit` records from `start` on, in key order; returns how many there were. What is said of
    /// [`Tree::range`] holds, but nothing is allocated for a record, and no more is read than is asked for: the way to do a short scan.
    ///
    /// # Errors
    /// [`Error::Codec`] when a frame cannot be decoded, [`Error::OutOfMemory`]; records before it have been visited.
    pub fn scan(
        &self,
        start: &(impl AsRef<[u8]> + ?Sized),
        limit: usize,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, Error> {
        let start = Bound::Included(copied(start.as_ref())?);
        let mut range = Range::new(&self.core, Ok((start, Bound::Unbounded)), Some(limit));
        let mut visited = 0;
        while let Some(step) = range.step(End::Front, &mut visit) {
            step?;
            visited += 1;
        }
        Ok(visited)
    }

    fn at_end(&self, end: End) -> Result<Option<Record>, Error> {
        let mut range = Range::new(&self.core, Ok((Bound::Unbounded, Bound::Unbounded)), Some(1));
        range.record(end).transpose()
    }

    fn pop(&self, end: End) -> Result<Option<Record>, Error> {
        while let Some((key, _)) = self.at_end(end)? {
            // Nothing where another thread was faster.
            if let Some(value) = self.take(&key)? {
                return Ok(Some((key, value)));
            }
        }
        Ok(None)
    }

    /// Number of records. Under concurrent writes, a number that was right a moment ago.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes every record.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; shards cleared so far stay cleared.
    pub fn clear(&self) -> Result<(), Error> {
        self.core.clear()
    }

    /// What [`Stats::bytes_held`] says, without a visit of every leaf. With the feature `node-heap` it asks the system what is resident.
    #[must_use]
    pub fn bytes_held(&self) -> u64 {
        self.core.bytes_held()
    }

    /// What the tree holds and what it did. Visits every leaf.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Has landing buffers that are made or filled from now on be at least so long, whatever [`Builder::landing_bytes`] says; 0 takes that
    /// back, and more than 16 KiB is that.
    ///
    /// It is for as long as a child of the process shares its memory: a compaction writes all of a leaf, and each page that is written is
    /// then held twice; what lands writes little more than itself.
    pub fn set_least_landing_bytes(&self, bytes: usize) {
        self.core.set_least_landing_bytes(bytes);
    }

    /// The dictionary that new frames are compressed with; `None` where there is none, yet or at all.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn dictionary(&self) -> Result<Option<Dictionary>, Error> {
        self.core.current_dictionary()
    }

    /// Compacts every leaf: landing buffers are emptied, and all frames are compressed with the newest dictionary, which is trained anew
    /// first.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] or [`Error::Codec`]; no record is lost, and leaves compacted so far stay so.
    pub fn compact(&self) -> Result<(), Error> {
        self.core.train_dictionary()?;
        self.core.sweep(Sweep::Landed)
    }

    /// Puts the tree in the state in which it would be some time after the last write: background work that is due is done (dictionary
    /// training and compressing with it, queued compactions), what landed is compacted where it is worth a pass, and what was replaced is
    /// reclaimed, where no reader is in its way.
    ///
    /// # Errors
    /// [`Error::Background`] where a background thread has ended because all it did panicked; what can be done without it is done.
    pub fn settle(&self) -> Result<(), Error> {
        let settled = self.core.background.settle(&self.core, true);
        self.core.flush_retired();
        settled
    }

    /// Moves every leaf and landing buffer, as the background thread does that defragments the heap: model checkers have neither.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; leaves moved so far stay so.
    #[cfg(any(shuttle, miri))]
    pub fn defragment(&self) -> Result<(), Error> {
        self.core.sweep(Sweep::Defragment)
    }

    /// Checks every structural invariant. No other thread may be writing meanwhile.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the first one that is broken.
    pub fn validate(&self) -> Result<(), Error> {
        // Leaves keep their temperature meanwhile.
        let _passes = self.core.temperatures.as_ref().map(Temperatures::hold);
        // What landed stays there, to be checked. A background thread that is no more leaves the tree right.
        let _ = self.core.background.settle(&self.core, false);
        self.core.flush_retired();
        self.core.validate()
    }
}

impl<'t> IntoIterator for &'t Tree {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;
    type IntoIter = Range<'t>;

    fn into_iter(self) -> Range<'t> {
        self.iter()
    }
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<Tree>();
    shared_between_threads::<Builder>();
    shared_between_threads::<Range<'_>>();
    shared_between_threads::<Stats>();
    shared_between_threads::<Error>();
};

impl Drop for Tree {
    fn drop(&mut self) {
        self.core.background.stop();
        self.workers.join();
    }
}
