//! What another cache can begin with: the keys that are read most, and the dictionary.

use bumpalo::Bump;

use super::Cache;
use super::error::CacheError;
use super::evict::heat;
use crate::tree::cache_hooks::{Evictor, Hand, Shown};
use leafpress_base::mem::room::{TryGrow, copied};
use leafpress_codec::Dictionary;

impl Cache {
    /// Returns the keys of the records in memory that are read most, the most read first, at most `most` of them. The
    /// order is that of eviction: a number from 0 to 5 for each record, so it is coarse. With [`Cache::peek`] and
    /// [`Cache::ttl`] it moves the records that matter to another cache, which is then warm from the beginning:
    ///
    /// ```
    /// use std::time::Duration;
    /// use leafpress::cache::InsertOptions;
    ///
    /// # let old = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # old.insert("user:42", "Ada")?;
    /// # old.get("user:42")?;
    /// let new = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// for key in old.hottest_keys(1_000)? {
    ///     if let (Some(value), Some(ttl)) = (old.peek(&key)?, old.ttl(&key)?) {
    ///         new.insert_entry(&key, &value, InsertOptions::ttl(ttl.max(Duration::from_millis(1))))?;
    ///     }
    /// }
    /// assert_eq!(new.get("user:42")?.as_deref(), Some(b"Ada".as_slice()));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// It visits every leaf and decodes its keys; records that other threads are writing meanwhile may be left out. A
    /// record that was just written does not count as read until its leaf is compacted. The keys that are being
    /// collected take memory beyond the budget, several times that of those that are returned.
    ///
    /// # Errors
    /// Returns [`CacheError::OutOfMemory`] or [`CacheError::Closed`].
    pub fn hottest_keys(&self, most: usize) -> Result<Vec<Vec<u8>>, CacheError> {
        let mut most_of_each = most;
        loop {
            self.core.check_open()?;
            if let Some(keys) = self.hottest_of(most, most_of_each)? {
                return Ok(keys);
            }
            most_of_each = most_of_each.saturating_mul(2);
        }
    }

    /// Returns at most `most` keys, from at most `most_of_each` that are read as much as each other; [`None`] if there
    /// are more of those, and some that were collected have no value.
    fn hottest_of(&self, most: usize, most_of_each: usize) -> Result<Option<Vec<Vec<u8>>>, CacheError> {
        let mut hottest = Hottest {
            most_of_each,
            by_heat: Default::default(),
            is_cut: Default::default(),
            failed: None,
        };
        let (mut hand, mut arena) = (Hand::default(), Bump::new());
        while hand.rounds == 0 {
            self.core.tree.evict_at(&mut hand, &mut arena, &mut hottest)?;
        }
        if let Some(error) = hottest.failed {
            return Err(error);
        }
        let mut keys = Vec::new();
        for (collected, is_cut) in hottest.by_heat.into_iter().zip(hottest.is_cut).rev() {
            for key in collected {
                if keys.len() == most {
                    return Ok(Some(keys));
                }
                // Tombstones and expired records have no value.
                if self.peek_with(&key, |_| ())?.is_some() {
                    keys.try_push(key)?;
                }
            }
            if is_cut && keys.len() < most {
                return Ok(None);
            }
        }
        Ok(Some(keys))
    }

    /// Returns the dictionary that the cache's records are compressed with, for a cache of similar records to begin
    /// with ([`CacheBuilder::initial_dictionary`](super::CacheBuilder::initial_dictionary)); [`None`] if there is none
    /// yet. Its bytes and its codec can be stored: see [`Dictionary::from_trained`].
    ///
    /// # Errors
    /// Returns [`CacheError::OutOfMemory`].
    pub fn dictionary(&self) -> Result<Option<Dictionary>, CacheError> {
        Ok(self.core.tree.dictionary()?)
    }
}

/// The values that [`heat`] has.
const HEATS: usize = 6;

/// Collects keys, and evicts nothing.
struct Hottest {
    most_of_each: usize,
    by_heat: [Vec<Vec<u8>>; HEATS],
    /// Whether keys were left out.
    is_cut: [bool; HEATS],
    failed: Option<CacheError>,
}

impl Evictor for Hottest {
    fn wants_values(&self) -> bool {
        false
    }

    fn choose(&mut self, records: &mut [Shown<'_>]) {
        for record in records.iter() {
            let heat = usize::from(heat(record.mark)).min(HEATS - 1);
            let keys = &mut self.by_heat[heat];
            if keys.len() >= self.most_of_each {
                self.is_cut[heat] = true;
            } else if let Err(error) = copied(record.key).and_then(|key| keys.try_push(key)) {
                self.failed = Some(error.into());
            }
        }
    }

    fn gone(&mut self, _record: &Shown<'_>) {}
}
