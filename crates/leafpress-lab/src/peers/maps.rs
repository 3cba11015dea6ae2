//! The registry's uncompressed concurrent ordered maps, as stores of 8-byte keys and 128-byte values.
//!
//! Keys and values are arrays of a fixed length, which is the cheapest these maps can have them: no length, no second allocation.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock};

use crossbeam_skiplist::SkipMap;
use leafpress::Error;
use masstree::{MassTree15, RangeBound};
use scc::{Guard, TreeIndex};

use crate::store::Store;

/// Length of a key in bytes.
pub const KEY_BYTES: usize = 8;
/// Length of a value in bytes.
pub const VALUE_BYTES: usize = 128;

type Key = [u8; KEY_BYTES];
type Value = [u8; VALUE_BYTES];

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Error> {
    bytes
        .try_into()
        .map_err(|_| Error::Invalid(format!("{} bytes where {N} are expected", bytes.len())))
}

fn hand_out(value: &mut Vec<u8>, found: &[u8]) {
    value.clear();
    value.extend_from_slice(found);
}

impl Store for MassTree15<Value> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(self.insert_with_guard(key, fixed(value)?, &self.guard()).is_none())
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        let guard = self.guard();
        let found = self.get_ref(key, &guard);
        Ok(found.map(|found| hand_out(value, &*found)).is_some())
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let removed = self.remove_with_guard(key, &self.guard());
        removed
            .map(|value| value.is_some())
            .map_err(|e| Error::Invalid(format!("masstree: {e:?}")))
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let mut left = limit;
        let visitor = |key: &[u8], value: &Value| {
            visit(key, value);
            left -= 1;
            left > 0
        };
        self.scan_ref(
            RangeBound::Included(start),
            RangeBound::Unbounded,
            visitor,
            &self.guard(),
        );
        Ok(())
    }

    fn len(&self) -> usize {
        self.len()
    }
}

impl Store for TreeIndex<Key, Value> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        match self.insert_sync(fixed(key)?, fixed(value)?) {
            Ok(()) => Ok(true),
            Err((key, value)) => {
                self.upsert_sync(key, value);
                Ok(false)
            }
        }
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        Ok(self
            .peek_with(&fixed::<KEY_BYTES>(key)?, |_, found| hand_out(value, found))
            .is_some())
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.remove_sync(&fixed::<KEY_BYTES>(key)?))
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let guard = Guard::new();
        for (key, value) in self.range(fixed::<KEY_BYTES>(start)?.., &guard).take(limit) {
            visit(key, value);
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.len()
    }
}

impl Store for SkipMap<Key, Value> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let key = fixed(key)?;
        // `insert` does not tell, so this is exact only while nobody else writes the key.
        let new = !self.contains_key(&key);
        self.insert(key, fixed(value)?);
        Ok(new)
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        Ok(self
            .get(&fixed::<KEY_BYTES>(key)?)
            .map(|entry| hand_out(value, entry.value()))
            .is_some())
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.remove(&fixed::<KEY_BYTES>(key)?).is_some())
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        for entry in self.range(fixed::<KEY_BYTES>(start)?..).take(limit) {
            visit(entry.key(), entry.value());
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.len()
    }
}

impl Store for RwLock<BTreeMap<Key, Value>> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let mut map = self.write().unwrap_or_else(PoisonError::into_inner);
        Ok(map.insert(fixed(key)?, fixed(value)?).is_none())
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        let map = self.read().unwrap_or_else(PoisonError::into_inner);
        Ok(map
            .get(&fixed::<KEY_BYTES>(key)?)
            .map(|found| hand_out(value, found))
            .is_some())
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let mut map = self.write().unwrap_or_else(PoisonError::into_inner);
        Ok(map.remove(&fixed::<KEY_BYTES>(key)?).is_some())
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let map = self.read().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in map
            .range((Bound::Included(fixed::<KEY_BYTES>(start)?), Bound::Unbounded))
            .take(limit)
        {
            visit(key, value);
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}
