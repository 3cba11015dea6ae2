//! The registry's uncompressed concurrent ordered maps, as stores.
//!
//! Keys are arrays of a fixed length, and values too or boxed: the cheapest these maps can have them. Keys shorter than the array are
//! padded with zeros behind, which keeps their order as long as all keys of a map have the same length.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock};

use crossbeam_skiplist::SkipMap;
use leafpress::Error;
use masstree::{MassTree15, RangeBound};
use scc::{Guard, TreeIndex};

use crate::harness::store::{ConditionalStore, Store};

/// What these maps have as keys.
pub(crate) trait Key: Copy + Ord + Hash + Send + Sync + 'static {
    /// The key's bytes, padded.
    fn take(bytes: &[u8]) -> Result<Self, Error>;
    /// The key with its padding.
    fn bytes(&self) -> &[u8];
}

/// What these maps have as values.
pub(crate) trait Value: Clone + Send + Sync + 'static {
    /// A copy of the bytes.
    fn take(bytes: &[u8]) -> Result<Self, Error>;
    /// The value.
    fn bytes(&self) -> &[u8];
}

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn take(bytes: &[u8]) -> Result<Self, Error> {
        if let Ok(whole) = bytes.try_into() {
            return Ok(whole);
        }
        let mut key = [0; N];
        let place = key
            .get_mut(..bytes.len())
            .ok_or(Error::KeyTooLong { len: bytes.len() })?;
        place.copy_from_slice(bytes);
        Ok(key)
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl<const N: usize> Value for [u8; N] {
    #[inline]
    fn take(bytes: &[u8]) -> Result<Self, Error> {
        bytes
            .try_into()
            .map_err(|_| Error::Invalid(format!("{} bytes where {N} are expected", bytes.len())))
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Value for Box<[u8]> {
    #[inline]
    fn take(bytes: &[u8]) -> Result<Self, Error> {
        Ok(bytes.into())
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Length of a key up to which masstree's inclusive scans include it, in bytes.
const LAYERS_THAT_INCLUDE: usize = 16;

fn hand_out(value: &mut Vec<u8>, found: &[u8]) {
    value.clear();
    value.extend_from_slice(found);
}

/// [`Store`]'s reading in terms of [`ConditionalStore`]'s.
fn get_into<S: ConditionalStore>(store: &S, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
    store.read(key, |found| hand_out(value, found))
}

impl<V: Value> Store for MassTree15<V> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(self.insert_with_guard(key, V::take(value)?, &self.guard()).is_none())
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        get_into(self, key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let removed = self.remove_with_guard(key, &self.guard());
        removed
            .map(|value| value.is_some())
            .map_err(|e| Error::Invalid(format!("masstree: {e:?}")))
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let guard = self.guard();
        let mut left = limit;
        let mut from = RangeBound::Included(start);
        if start.len() > LAYERS_THAT_INCLUDE && left > 0 {
            // Scans of masstree 0.9.5 leave the first key out when it lies deeper than two layers of 8 bytes, so it is read apart.
            if let Some(value) = self.get_ref(start, &guard) {
                visit(start, (*value).bytes());
                left -= 1;
            }
            from = RangeBound::Excluded(start);
        }
        if left > 0 {
            let visitor = |key: &[u8], value: &V| {
                visit(key, value.bytes());
                left -= 1;
                left > 0
            };
            self.scan_ref(from, RangeBound::Unbounded, visitor, &guard);
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.len()
    }
}

impl<V: Value> ConditionalStore for MassTree15<V> {
    /// Two steps: exact only while nobody else writes the key.
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let guard = self.guard();
        if self.get_ref(key, &guard).is_some() {
            return Ok(false);
        }
        Ok(self.insert_with_guard(key, V::take(value)?, &guard).is_none())
    }

    /// Two steps: exact only while nobody removes the key.
    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let guard = self.guard();
        if self.get_ref(key, &guard).is_none() {
            return Ok(false);
        }
        self.insert_with_guard(key, V::take(value)?, &guard);
        Ok(true)
    }

    #[inline]
    fn read(&self, key: &[u8], mut read: impl FnMut(&[u8])) -> Result<bool, Error> {
        let guard = self.guard();
        let found = self.get_ref(key, &guard);
        Ok(found.map(|found| read((*found).bytes())).is_some())
    }
}

impl<K: Key, V: Value> Store for TreeIndex<K, V> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        match self.insert_sync(K::take(key)?, V::take(value)?) {
            Ok(()) => Ok(true),
            Err((key, value)) => {
                self.upsert_sync(key, value);
                Ok(false)
            }
        }
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        get_into(self, key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.remove_sync(&K::take(key)?))
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let guard = Guard::new();
        for (key, value) in self.range(K::take(start)?.., &guard).take(limit) {
            visit(key.bytes(), value.bytes());
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.len()
    }
}

impl<K: Key, V: Value> ConditionalStore for TreeIndex<K, V> {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(self.insert_sync(K::take(key)?, V::take(value)?).is_ok())
    }

    /// Two steps: exact only while nobody removes the key.
    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let key = K::take(key)?;
        if !self.contains(&key) {
            return Ok(false);
        }
        self.upsert_sync(key, V::take(value)?);
        Ok(true)
    }

    #[inline]
    fn read(&self, key: &[u8], mut read: impl FnMut(&[u8])) -> Result<bool, Error> {
        Ok(self.peek_with(&K::take(key)?, |_, found| read(found.bytes())).is_some())
    }
}

impl<K: Key, V: Value> Store for SkipMap<K, V> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let key = K::take(key)?;
        // `insert` does not tell, so this is exact only while nobody else writes the key.
        let new = !self.contains_key(&key);
        self.insert(key, V::take(value)?);
        Ok(new)
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        get_into(self, key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.remove(&K::take(key)?).is_some())
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        for entry in self.range(K::take(start)?..).take(limit) {
            visit(entry.key().bytes(), entry.value().bytes());
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.len()
    }
}

impl<K: Key, V: Value> ConditionalStore for SkipMap<K, V> {
    /// Exact only while nobody else inserts the key: the map does not tell whose insert won.
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let value = V::take(value)?;
        let mut made = false;
        self.get_or_insert_with(K::take(key)?, || {
            made = true;
            value
        });
        Ok(made)
    }

    /// Two steps: exact only while nobody removes the key.
    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let key = K::take(key)?;
        if !self.contains_key(&key) {
            return Ok(false);
        }
        self.insert(key, V::take(value)?);
        Ok(true)
    }

    #[inline]
    fn read(&self, key: &[u8], mut read: impl FnMut(&[u8])) -> Result<bool, Error> {
        let found = self.get(&K::take(key)?);
        Ok(found.map(|entry| read(entry.value().bytes())).is_some())
    }
}

impl<K: Key, V: Value> Store for RwLock<BTreeMap<K, V>> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let (key, value) = (K::take(key)?, V::take(value)?);
        let mut map = self.write().unwrap_or_else(PoisonError::into_inner);
        Ok(map.insert(key, value).is_none())
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        get_into(self, key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let mut map = self.write().unwrap_or_else(PoisonError::into_inner);
        Ok(map.remove(&K::take(key)?).is_some())
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let map = RwLock::read(self).unwrap_or_else(PoisonError::into_inner);
        for (key, value) in map
            .range((Bound::Included(K::take(start)?), Bound::Unbounded))
            .take(limit)
        {
            visit(key.bytes(), value.bytes());
        }
        Ok(())
    }

    fn len(&self) -> usize {
        RwLock::read(self).unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl<K: Key, V: Value> ConditionalStore for RwLock<BTreeMap<K, V>> {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        use std::collections::btree_map::Entry;
        let (key, value) = (K::take(key)?, V::take(value)?);
        let mut map = self.write().unwrap_or_else(PoisonError::into_inner);
        match map.entry(key) {
            Entry::Occupied(_) => Ok(false),
            Entry::Vacant(place) => {
                place.insert(value);
                Ok(true)
            }
        }
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let (key, value) = (K::take(key)?, V::take(value)?);
        let mut map = self.write().unwrap_or_else(PoisonError::into_inner);
        Ok(map.get_mut(&key).map(|old| *old = value).is_some())
    }

    #[inline]
    fn read(&self, key: &[u8], mut read: impl FnMut(&[u8])) -> Result<bool, Error> {
        let map = RwLock::read(self).unwrap_or_else(PoisonError::into_inner);
        Ok(map.get(&K::take(key)?).map(|found| read(found.bytes())).is_some())
    }
}
