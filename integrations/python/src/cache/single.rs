//! Methods for one record.

use leafpress::cache::CacheUpdate;
use pyo3::{Borrowed, intern, prelude::*};

use super::{CacheBase, entry, options};
use crate::{call, errors};

/// An argument for which None is a value.
enum Default<'py> {
    Missing,
    Given(Bound<'py, PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Default<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self::Given(object.to_owned()))
    }
}

#[pymethods]
impl CacheBase {
    /// Return the value of a key, or default if the key is absent.
    ///
    /// >>> Cache(encoding="utf-8").get("absent", "default")
    /// 'default'
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find(key)?.or(default))
    }

    fn __getitem__<'py>(this: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(found) = this.get().find(key)? {
            return Ok(found);
        }
        // As for dict, a subclass may define the value of absent keys.
        match this.get_type().getattr_opt(intern!(this.py(), "__missing__"))? {
            Some(of_class) => call::with(&of_class, (this, key)),
            None => Err(errors::missing(key)),
        }
    }

    /// Return the value of a key if it is in memory, or default: get without a lookup on disk. A miss is not counted.
    ///
    /// >>> Cache(encoding="utf-8").get_in_memory("absent") is None
    /// True
    #[pyo3(signature = (key, default=None))]
    fn get_in_memory<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find_in_memory(key)?.or(default))
    }

    /// Insert or replace.
    ///
    /// ttl is the record's time to live, in seconds or as a timedelta, from 1 ms to 10 years; None stands for the
    /// cache's own ttl. tags is a str or bytes, or up to eight of them: invalidate_tag removes all records with a tag.
    /// time_to_idle, from 1 s to 10 years, is how long the record is kept without being read; None stands for the
    /// cache's own. A value of more than an eighth of the memory is not kept, and the previous value is removed.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.set("session:7", "open", ttl=60)
    /// >>> cache["session:7"]
    /// 'open'
    #[pyo3(
        signature = (key, value, ttl=None, tags=None, time_to_idle=None),
        text_signature = "($self, key, value, ttl=None, tags=(), time_to_idle=None)",
    )]
    fn set(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        tags: Option<&Bound<'_, PyAny>>,
        time_to_idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let entry = entry(ttl, tags, time_to_idle)?;
        let (py, key, value) = (key.py(), self.keys.input(key)?, self.values.input(value)?);
        let (key, value): (&[u8], &[u8]) = (key.as_ref(), value.as_ref());
        let is_long = self.note_length(value.len());
        self.short(py, is_long, |cache| cache.insert_entry(key, value, entry))
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set(key, value, None, None, None)
    }

    /// Insert if the key is absent; return whether it was inserted. Of several threads that add a key, one does.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.add("lock", "mine"), cache.add("lock", "yours"), cache["lock"]
    /// (True, False, 'mine')
    #[pyo3(
        signature = (key, value, ttl=None, tags=None, time_to_idle=None),
        text_signature = "($self, key, value, ttl=None, tags=(), time_to_idle=None)",
    )]
    fn add(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        tags: Option<&Bound<'_, PyAny>>,
        time_to_idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let entry = entry(ttl, tags, time_to_idle)?;
        let (py, key, value) = (key.py(), self.keys.input(key)?, self.values.input(value)?);
        let (key, value): (&[u8], &[u8]) = (key.as_ref(), value.as_ref());
        let is_long = self.note_length(value.len());
        let answer = self.short(py, is_long, |cache| {
            cache.update_with(key, |found| match found {
                None => CacheUpdate::PutWith(value, entry),
                Some(_) => CacheUpdate::Keep,
            })
        })?;
        Ok(answer != CacheUpdate::Keep)
    }

    /// Return the value of a key, or else insert default and return it, as dict.setdefault does. Of several threads one
    /// inserts, and all get its value.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.setdefault("apple", "red"), cache.setdefault("apple", "green")
    /// ('red', 'red')
    #[pyo3(signature = (key, default=None, ttl=None))]
    fn setdefault<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        ttl: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, entry) = (key.py(), entry(ttl, None, None)?);
        if let Some(found) = self.find(key)? {
            return Ok(found);
        }
        let default = default.unwrap_or_else(|| py.None().into_bound(py));
        let (key, value) = (self.keys.input(key)?, self.values.input(&default)?);
        let (key, value): (&[u8], &[u8]) = (key.as_ref(), value.as_ref());
        let is_long = self.note_length(value.len());
        loop {
            let mut found = None;
            self.short(py, is_long, |cache| {
                cache.update_with(key, |there| match there {
                    None => CacheUpdate::PutWith(value, entry),
                    Some(there) => {
                        found = Some(there.to_vec());
                        CacheUpdate::Keep
                    }
                })
            })?;
            let Some(found) = found else { return Ok(default) };
            if let Some(found) = self.answer(py, key, &found)? {
                return Ok(found);
            }
        }
    }

    /// Set the record's ttl from now on; return whether the record exists. Without a ttl the cache's own one applies,
    /// or none.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.set("session:7", "open", ttl=60)
    /// >>> cache.touch("session:7", ttl=3600), cache.touch("session:8")
    /// (True, False)
    #[pyo3(signature = (key, ttl=None))]
    fn touch(&self, key: &Bound<'_, PyAny>, ttl: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let ttl = options::time_or_none("ttl", ttl)?.or(self.ttl);
        let (py, key) = (key.py(), self.keys.input(key)?);
        let key: &[u8] = key.as_ref();
        self.unlocked(py, |cache| cache.expire(key, ttl))
    }

    /// Remove all records that were set with a tag, in memory and on disk. It takes constant time: the records are
    /// absent from now on, and their memory is freed as that of expired ones. A load that has begun before stores
    /// nothing that is found afterwards.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.set("/shop/7", "<html>", tags=("product:7", "category:3"))
    /// >>> cache.invalidate_tag("product:7")
    /// >>> "/shop/7" in cache
    /// False
    fn invalidate_tag(&self, tag: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = options::tag(tag)?;
        self.unlocked(tag.py(), |cache| cache.invalidate_tag(bytes))
    }

    /// Remove a key; return whether it was there.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache["apple"] = "red"
    /// >>> cache.delete("apple"), cache.delete("apple")
    /// (True, False)
    fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, key) = (key.py(), self.keys.input(key)?);
        let key: &[u8] = key.as_ref();
        self.short(py, false, |cache| cache.remove(key))
    }

    /// Remove a key without reporting whether it was there. With a disk tier, delete may have to read the disk for its
    /// result; this method reads nothing. on_removal is called for a record that was in memory.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache["apple"] = "red"
    /// >>> cache.invalidate("apple")
    /// >>> cache.invalidate("apple")
    /// >>> "apple" in cache
    /// False
    fn invalidate(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, key) = (key.py(), self.keys.input(key)?);
        let key: &[u8] = key.as_ref();
        self.short(py, false, |cache| cache.invalidate(key))
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.delete(key)? {
            Ok(())
        } else {
            Err(errors::missing(key))
        }
    }

    /// Remove a key and return its value. Of several threads that take a key, one gets it.
    ///
    /// As for dict, an absent key raises KeyError unless there is a default.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache["apple"] = "red"
    /// >>> cache.pop("apple"), cache.pop("apple", "gone")
    /// ('red', 'gone')
    #[pyo3(signature = (key, default=Default::Missing), text_signature = "($self, key, default=...)")]
    fn pop<'py>(&self, key: &Bound<'py, PyAny>, default: Default<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (py, bytes) = (key.py(), self.keys.input(key)?);
        let bytes: &[u8] = bytes.as_ref();
        let taken = self.unlocked(py, |cache| cache.take(bytes))?;
        let value = taken.map_or(Ok(None), |taken| self.values.output(py, &taken))?;
        match (value, default) {
            (Some(value), _) => Ok(value),
            (None, Default::Given(default)) => Ok(default),
            (None, Default::Missing) => Err(errors::missing(key)),
        }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, key) = (key.py(), self.keys.input(key)?);
        let key: &[u8] = key.as_ref();
        self.short(py, false, |cache| cache.contains_key(key))
    }
}
