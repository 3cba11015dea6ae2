//! Many records per call, with the interpreter's lock released.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping};

use super::forms::{Key, Value};
use super::{CacheBase, entry};
use crate::codec::Dictionary;
use crate::{call, errors};

/// Bytes that are gathered before they are passed on.
const MAX_BYTES: usize = 4 << 20;
/// Records that are gathered before they are passed on.
const MAX_RECORDS: usize = 4096;

/// Values in one buffer, and where each ends; [`None`] for an absent key.
#[derive(Default)]
struct Found {
    bytes: Vec<u8>,
    ends: Vec<Option<usize>>,
}

#[pymethods]
impl CacheBase {
    /// Return the values of keys, in a list in their order; default for absent keys. It is faster than as many calls of
    /// get.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache["apple"] = "red"
    /// >>> cache.get_many(["pear", "apple"], "?")
    /// ['?', 'red']
    #[pyo3(signature = (keys, default=None))]
    fn get_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = keys.py();
        let values = PyList::empty(py);
        let default = default.unwrap_or_else(|| py.None().into_bound(py));
        let mut objects = Vec::new();
        for key in call::iterate(keys)? {
            objects.push(key?);
            if objects.len() == MAX_RECORDS {
                self.get_chunk(&objects, &default, &values)?;
                objects.clear();
                py.check_signals()?;
            }
        }
        self.get_chunk(&objects, &default, &values)?;
        Ok(values)
    }

    /// Return the keys of the records in memory that are read most, the most read first, at most as many as most says.
    ///
    /// The order is that of eviction, so it is coarse. Their values make another cache warm.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache["apple"] = "red"
    /// >>> cache.hottest_keys()
    /// ['apple']
    #[pyo3(signature = (most=1000))]
    fn hottest_keys<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let keys = self.unlocked(py, |cache| cache.hottest_keys(most))?;
        keys.iter().map(|key| self.keys.output(py, key)).collect()
    }

    /// Return the dictionary that the cache has trained from its records, for Cache(dictionary=...) of a cache of
    /// similar records; None if there is none yet. It is pickled with its codec.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.dictionary() is None
    /// True
    fn dictionary(&self, py: Python<'_>) -> PyResult<Option<Dictionary>> {
        Ok(self.unlocked(py, |cache| cache.dictionary())?.map(Dictionary::of))
    }

    /// Insert or replace the records of a mapping, or of an iterable of pairs of key and value. ttl, tags and
    /// time_to_idle are as for set.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.set_many({"apple": "red", "pear": "green"}, ttl=60)
    /// >>> len(cache)
    /// 2
    #[pyo3(
        signature = (records, ttl=None, tags=None, time_to_idle=None),
        text_signature = "($self, records, ttl=None, tags=(), time_to_idle=None)",
    )]
    fn set_many(
        &self,
        records: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        tags: Option<&Bound<'_, PyAny>>,
        time_to_idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let entry = entry(ttl, tags, time_to_idle)?;
        let py = records.py();
        let pairs = match records.cast::<PyMapping>() {
            Ok(mapping) => call::method(mapping.as_any(), "items", ())?,
            Err(_) => records.clone(),
        };
        let (mut gathered, mut bytes) = (Vec::new(), 0);
        let hand_on = |gathered: &mut Vec<(Vec<u8>, Vec<u8>)>| {
            let records = std::mem::take(gathered);
            self.unlocked(py, |cache| {
                let mut records = records.iter();
                records.try_for_each(|(key, value)| cache.insert_entry(key, value, entry))
            })
        };
        for pair in call::iterate(&pairs)? {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            let (key, value) = (
                owned_key(self.keys.input(&key)?),
                owned_value(self.values.input(&value)?),
            );
            self.note_length(value.len());
            bytes += key.len() + value.len();
            gathered.push((key, value));
            if bytes >= MAX_BYTES || gathered.len() == MAX_RECORDS {
                hand_on(&mut gathered)?;
                bytes = 0;
                py.check_signals()?;
            }
        }
        hand_on(&mut gathered)
    }

    /// Insert or replace the records of a mapping, or of an iterable of pairs, and keyword arguments, as dict.update
    /// does.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.update({"apple": "red"}, pear="green")
    /// >>> len(cache)
    /// 2
    #[pyo3(signature = (records=None, /, **words), text_signature = "($self, records=(), /, **words)")]
    fn update(&self, records: Option<&Bound<'_, PyAny>>, words: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        records.map_or(Ok(()), |records| self.set_many(records, None, None, None))?;
        words.map_or(Ok(()), |words| self.set_many(words.as_any(), None, None, None))
    }

    /// Remove keys; return how many of them were there.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache["apple"] = "red"
    /// >>> cache.delete_many(["apple", "pear"])
    /// 1
    fn delete_many(&self, keys: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = keys.py();
        let (mut gathered, mut removed) = (Vec::new(), 0);
        let mut hand_on = |gathered: &mut Vec<Vec<u8>>| {
            let keys = std::mem::take(gathered);
            let (gone, ended) = self.with(|cache| {
                let cache: &leafpress::Cache = cache;
                Ok(py.detach(|| remove(cache, &keys)))
            })?;
            removed += gone;
            ended.map_err(|error| errors::of_cache(&error))
        };
        for key in call::iterate(keys)? {
            gathered.push(owned_key(self.keys.input(&key?)?));
            if gathered.len() == MAX_RECORDS {
                hand_on(&mut gathered)?;
                py.check_signals()?;
            }
        }
        hand_on(&mut gathered)?;
        Ok(removed)
    }
}

/// Removes keys up to the first failure; returns how many were there.
fn remove(cache: &leafpress::Cache, keys: &[Vec<u8>]) -> (u64, Result<(), leafpress::CacheError>) {
    let mut gone = 0;
    for key in keys {
        match cache.remove(key) {
            Ok(was_there) => gone += u64::from(was_there),
            Err(error) => return (gone, Err(error)),
        }
    }
    (gone, Ok(()))
}

fn owned_key(key: Key<'_, '_>) -> Vec<u8> {
    match key {
        Key::Of(input) => input.to_vec(),
        Key::Made(bytes) => bytes,
    }
}

fn owned_value(value: Value<'_, '_>) -> Vec<u8> {
    match value {
        Value::Of(input) => input.to_vec(),
        Value::Made(bytes) => bytes,
    }
}

impl CacheBase {
    /// Appends the values of keys to `values`.
    fn get_chunk<'py>(
        &self,
        objects: &[Bound<'py, PyAny>],
        default: &Bound<'py, PyAny>,
        values: &Bound<'py, PyList>,
    ) -> PyResult<()> {
        let Some(first) = objects.first() else { return Ok(()) };
        let py = first.py();
        let keys = objects.iter().map(|object| self.keys.input(object));
        let keys: Vec<Key<'_, '_>> = keys.collect::<PyResult<_>>()?;
        let mut keys: &[&[u8]] = &keys.iter().map(AsRef::as_ref).collect::<Vec<&[u8]>>();
        // Large results are returned in parts.
        while !keys.is_empty() {
            let found = self.with(|cache| {
                let found = py.detach(|| read(cache, keys));
                found.map_err(|error| errors::of_cache(&error))
            })?;
            keys = &keys[found.ends.len()..];
            self.append(py, &found, default, values)?;
        }
        Ok(())
    }

    fn append<'py>(
        &self,
        py: Python<'py>,
        found: &Found,
        default: &Bound<'py, PyAny>,
        values: &Bound<'py, PyList>,
    ) -> PyResult<()> {
        let mut start = 0;
        for end in &found.ends {
            let value = match end {
                Some(end) => self.values.output(py, &found.bytes[start..*end])?,
                None => None,
            };
            start = end.unwrap_or(start);
            values.append(value.as_ref().unwrap_or(default))?;
        }
        Ok(())
    }
}

/// Reads the values of the first keys: all, unless they are very large.
fn read(cache: &leafpress::Cache, keys: &[&[u8]]) -> Result<Found, leafpress::CacheError> {
    let mut found = Found::default();
    for keys in keys.chunks(256) {
        cache.get_many_with(keys, |_, value| {
            let end = value.map(|value| {
                found.bytes.extend_from_slice(value);
                found.bytes.len()
            });
            found.ends.push(end);
        })?;
        if found.bytes.len() > MAX_BYTES {
            break;
        }
    }
    Ok(found)
}
