//! The registry's uncompressed concurrent ordered maps, as stores.
//!
//! Keys and values are arrays where all have one length, and boxed where they have not: the cheapest these maps can
//! have them. Keys shorter than the array are padded with zeros behind, which keeps their order as long as all keys of
//! a map have the same length.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock};

use crossbeam_skiplist::SkipMap;
use leafpress::TreeError;
use masstree::{MassTree15, RangeBound};
use scc::{Guard, TreeIndex};

use crate::harness::store::{ConditionalStore, Store};

/// A key of these maps.
pub(crate) trait Key: Clone + Ord + Hash + Borrow<Self::Probe> + Send + Sync + 'static {
    /// The borrowed form of a key, for lookups without allocation.
    type Probe: Ord + Hash + ?Sized;
    /// The key's bytes, padded if its length is fixed.
    fn take(bytes: &[u8]) -> Result<Self, TreeError>;
    /// Passes the lookup form of the key with these bytes.
    fn probe<R>(bytes: &[u8], look: impl FnOnce(&Self::Probe) -> R) -> Result<R, TreeError>;
    /// The key with its padding.
    fn bytes(&self) -> &[u8];
}

/// A value of these maps.
pub(crate) trait Value: Clone + Send + Sync + 'static {
    /// A copy of the bytes.
    fn take(bytes: &[u8]) -> Result<Self, TreeError>;
    /// The value.
    fn bytes(&self) -> &[u8];
}

impl<const N: usize> Key for [u8; N] {
    type Probe = Self;

    #[inline]
    fn probe<R>(bytes: &[u8], look: impl FnOnce(&Self) -> R) -> Result<R, TreeError> {
        Ok(look(&<Self as Key>::take(bytes)?))
    }

    #[inline]
    fn take(bytes: &[u8]) -> Result<Self, TreeError> {
        if let Ok(whole) = bytes.try_into() {
            return Ok(whole);
        }
        let mut key = [0; N];
        let place = key
            .get_mut(..bytes.len())
            .ok_or(TreeError::KeyTooLong { len: bytes.len() })?;
        place.copy_from_slice(bytes);
        Ok(key)
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Key for Box<[u8]> {
    type Probe = [u8];

    #[inline]
    fn take(bytes: &[u8]) -> Result<Self, TreeError> {
        Ok(bytes.into())
    }

    #[inline]
    fn probe<R>(bytes: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<R, TreeError> {
        Ok(look(bytes))
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl<const N: usize> Value for [u8; N] {
    #[inline]
    fn take(bytes: &[u8]) -> Result<Self, TreeError> {
        bytes
            .try_into()
            .map_err(|_| TreeError::Invalid(format!("{} bytes where {N} are expected", bytes.len())))
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Value for Box<[u8]> {
    #[inline]
    fn take(bytes: &[u8]) -> Result<Self, TreeError> {
        Ok(bytes.into())
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Length of a key up to which masstree's inclusive scans include it, in bytes.
const LAYERS_THAT_INCLUDE: usize = 16;

/// How these maps have keys: arrays where all have one of some usual lengths, and boxes otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Array8,
    Array16,
    Array32,
    /// UUIDs as text.
    Array36,
    Boxed,
}

impl KeyKind {
    /// For keys of this length, or of several: no key is padded.
    pub(crate) fn of(fixed: Option<usize>) -> Self {
        match fixed {
            Some(8) => Self::Array8,
            Some(16) => Self::Array16,
            Some(32) => Self::Array32,
            Some(36) => Self::Array36,
            _ => Self::Boxed,
        }
    }
}

/// Longest key that masstree takes, in bytes: it panics at longer ones.
pub(crate) const MASSTREE_KEY_BYTES: usize = masstree::MAX_KEY_LENGTH;

#[inline]
fn fits_masstree(key: &[u8]) -> Result<(), TreeError> {
    if key.len() > MASSTREE_KEY_BYTES {
        return Err(TreeError::KeyTooLong { len: key.len() });
    }
    Ok(())
}

fn hand_out(value: &mut Vec<u8>, found: &[u8]) {
    value.clear();
    value.extend_from_slice(found);
}

/// [`Store`]'s reading in terms of [`ConditionalStore`]'s.
fn get_into<S: ConditionalStore>(store: &S, key: &[u8], value: &mut Vec<u8>) -> Result<bool, TreeError> {
    store.read(key, |found| hand_out(value, found))
}

impl<V: Value> Store for MassTree15<V> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        fits_masstree(key)?;
        Ok(self.insert_with_guard(key, V::take(value)?, &self.guard()).is_none())
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, TreeError> {
        get_into(self, key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, TreeError> {
        fits_masstree(key)?;
        let removed = self.remove_with_guard(key, &self.guard());
        removed
            .map(|value| value.is_some())
            .map_err(|e| TreeError::Invalid(format!("masstree: {e:?}")))
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), TreeError> {
        fits_masstree(start)?;
        let guard = self.guard();
        let mut left = limit;
        let mut from = RangeBound::Included(start);
        if start.len() > LAYERS_THAT_INCLUDE && left > 0 {
            // Scans of masstree 0.9.5 leave the first key out when it lies deeper than two layers of 8 bytes, so it is
            // read apart.
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
    /// Two steps: exact only without concurrent writes of the key.
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        fits_masstree(key)?;
        let guard = self.guard();
        if self.get_ref(key, &guard).is_some() {
            return Ok(false);
        }
        Ok(self.insert_with_guard(key, V::take(value)?, &guard).is_none())
    }

    /// Two steps: exact only without a concurrent removal of the key.
    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        fits_masstree(key)?;
        let guard = self.guard();
        if self.get_ref(key, &guard).is_none() {
            return Ok(false);
        }
        self.insert_with_guard(key, V::take(value)?, &guard);
        Ok(true)
    }

    #[inline]
    fn read(&self, key: &[u8], mut read: impl FnMut(&[u8])) -> Result<bool, TreeError> {
        fits_masstree(key)?;
        let guard = self.guard();
        let found = self.get_ref(key, &guard);
        Ok(found.map(|found| read((*found).bytes())).is_some())
    }
}

impl<K: Key, V: Value> Store for TreeIndex<K, V> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        match self.insert_sync(K::take(key)?, V::take(value)?) {
            Ok(()) => Ok(true),
            Err((key, value)) => {
                self.upsert_sync(key, value);
                Ok(false)
            }
        }
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, TreeError> {
        get_into(self, key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, TreeError> {
        K::probe(key, |key| self.remove_sync(key))
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), TreeError> {
        let guard = Guard::new();
        K::probe(start, |start| {
            let bounds = (Bound::Included(start), Bound::Unbounded);
            for (key, value) in self.range::<K::Probe, _>(bounds, &guard).take(limit) {
                visit(key.bytes(), value.bytes());
            }
        })
    }

    fn len(&self) -> usize {
        self.len()
    }
}

impl<K: Key, V: Value> ConditionalStore for TreeIndex<K, V> {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        Ok(self.insert_sync(K::take(key)?, V::take(value)?).is_ok())
    }

    /// Two steps: exact only without a concurrent removal of the key.
    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        if !K::probe(key, |key| self.contains(key))? {
            return Ok(false);
        }
        self.upsert_sync(K::take(key)?, V::take(value)?);
        Ok(true)
    }

    #[inline]
    fn read(&self, key: &[u8], mut read: impl FnMut(&[u8])) -> Result<bool, TreeError> {
        K::probe(key, |key| self.peek_with(key, |_, found| read(found.bytes())).is_some())
    }
}

impl<K: Key, V: Value> Store for SkipMap<K, V> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        // `insert` does not report it, so this is exact only without concurrent writes of the key.
        let new = !K::probe(key, |key| self.contains_key(key))?;
        self.insert(K::take(key)?, V::take(value)?);
        Ok(new)
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, TreeError> {
        get_into(self, key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, TreeError> {
        K::probe(key, |key| self.remove(key).is_some())
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), TreeError> {
        K::probe(start, |start| {
            let bounds = (Bound::Included(start), Bound::Unbounded);
            for entry in self.range::<K::Probe, _>(bounds).take(limit) {
                visit(entry.key().bytes(), entry.value().bytes());
            }
        })
    }

    fn len(&self) -> usize {
        self.len()
    }
}

impl<K: Key, V: Value> ConditionalStore for SkipMap<K, V> {
    /// Exact only without concurrent inserts of the key: the map does not report which insert won.
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        let value = V::take(value)?;
        let mut made = false;
        self.get_or_insert_with(K::take(key)?, || {
            made = true;
            value
        });
        Ok(made)
    }

    /// Two steps: exact only without a concurrent removal of the key.
    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        if !K::probe(key, |key| self.contains_key(key))? {
            return Ok(false);
        }
        self.insert(K::take(key)?, V::take(value)?);
        Ok(true)
    }

    #[inline]
    fn read(&self, key: &[u8], mut read: impl FnMut(&[u8])) -> Result<bool, TreeError> {
        K::probe(key, |key| {
            self.get(key).map(|entry| read(entry.value().bytes())).is_some()
        })
    }
}

impl<K: Key, V: Value> Store for RwLock<BTreeMap<K, V>> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        let (key, value) = (K::take(key)?, V::take(value)?);
        let mut map = self.write().unwrap_or_else(PoisonError::into_inner);
        Ok(map.insert(key, value).is_none())
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, TreeError> {
        get_into(self, key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, TreeError> {
        let mut map = self.write().unwrap_or_else(PoisonError::into_inner);
        K::probe(key, |key| map.remove(key).is_some())
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), TreeError> {
        let map = RwLock::read(self).unwrap_or_else(PoisonError::into_inner);
        K::probe(start, |start| {
            let bounds = (Bound::Included(start), Bound::Unbounded);
            for (key, value) in map.range::<K::Probe, _>(bounds).take(limit) {
                visit(key.bytes(), value.bytes());
            }
        })
    }

    fn len(&self) -> usize {
        RwLock::read(self).unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl<K: Key, V: Value> ConditionalStore for RwLock<BTreeMap<K, V>> {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
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

    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        let value = V::take(value)?;
        let mut map = self.write().unwrap_or_else(PoisonError::into_inner);
        K::probe(key, |key| map.get_mut(key).map(|old| *old = value).is_some())
    }

    #[inline]
    fn read(&self, key: &[u8], mut read: impl FnMut(&[u8])) -> Result<bool, TreeError> {
        let map = RwLock::read(self).unwrap_or_else(PoisonError::into_inner);
        K::probe(key, |key| map.get(key).map(|found| read(found.bytes())).is_some())
    }
}
