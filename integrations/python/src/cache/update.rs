//! Atomic changes of a value.

use leafpress::cache::CacheUpdate;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::{CacheBase, entry};
use crate::{call, errors};

#[pymethods]
impl CacheBase {
    /// Add delta to a number and return the sum. Atomic: concurrent additions are not lost.
    ///
    /// An absent key begins at default; with default=None it raises KeyError. The record keeps its time to live; a new
    /// one has ttl. Without a serializer a number is decimal text, as bytes or str. A cache may evict a counter like
    /// any record.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.incr("visits"), cache.incr("visits", 5), cache["visits"]
    /// (1, 6, '6')
    #[pyo3(
        signature = (key, delta=None, default=Some(0), ttl=None),
        text_signature = "($self, key, delta=1, default=0, ttl=None)",
    )]
    fn incr<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        delta: Option<Bound<'py, PyAny>>,
        default: Option<i64>,
        ttl: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let delta = delta.map_or_else(|| one(key.py()), Ok)?;
        self.step(key, default, ttl, |number| number.add(&delta))
    }

    /// Subtract delta from a number and return the difference: see incr.
    ///
    /// >>> Cache(serializer="json").decr("left", default=10)
    /// 9
    #[pyo3(
        signature = (key, delta=None, default=Some(0), ttl=None),
        text_signature = "($self, key, delta=1, default=0, ttl=None)",
    )]
    fn decr<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        delta: Option<Bound<'py, PyAny>>,
        default: Option<i64>,
        ttl: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let delta = delta.map_or_else(|| one(key.py()), Ok)?;
        self.step(key, default, ttl, |number| number.sub(&delta))
    }

    /// Replace the value of a key, or default if it is absent, by function's result, and return it. Atomic: if another
    /// thread has changed the value meanwhile, function is called again with the new value.
    ///
    /// The record keeps its time to live; a new one has ttl.
    ///
    /// >>> cache = Cache(serializer="json")
    /// >>> cache.update_with("seen", lambda seen: seen + ["apple"], default=[])
    /// ['apple']
    #[pyo3(signature = (key, function, default=None, ttl=None))]
    fn update_with<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        function: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        ttl: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = key.py();
        self.change(key, ttl, |found| {
            let old = found.or_else(|| default.clone());
            call::with(function, (old.unwrap_or_else(|| py.None().into_bound(py)),))
        })
    }
}

fn one(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(1_i64.into_pyobject(py)?.into_any())
}

impl CacheBase {
    /// Computes the new number, and returns it.
    fn step<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<i64>,
        ttl: Option<&Bound<'_, PyAny>>,
        step: impl Fn(Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = key.py();
        let is_text = !self.values.is_serialized();
        let mut sum = None;
        self.change(key, ttl, |found| {
            let number = match (found, default) {
                (Some(found), _) if is_text => number(&found)?,
                (Some(found), _) => found,
                (None, Some(default)) => default.into_pyobject(py)?.into_any(),
                (None, None) => return Err(errors::missing(key)),
            };
            let new = step(number)?;
            sum = Some(new.clone());
            if !is_text {
                return Ok(new);
            }
            if !new.is_instance_of::<PyInt>() {
                return Err(PyTypeError::new_err("without a serializer, counters are whole numbers"));
            }
            let text = new.str()?.into_any();
            if self.values.is_text() {
                Ok(text)
            } else {
                text.call_method1("encode", ("ascii",))
            }
        })?;
        sum.ok_or_else(|| errors::missing(key))
    }

    /// Replaces the value of a key by the result of `change`, and returns it.
    fn change<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        mut change: impl FnMut(Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, entry) = (key.py(), entry(ttl, None, None)?);
        let key_bytes = self.keys.input(key)?;
        let key_bytes: &[u8] = key_bytes.as_ref();
        // The previous value, and the result for it while it is unchanged.
        let mut old = self.unlocked(py, |cache| cache.get(key_bytes))?;
        loop {
            let found = old.as_deref().map_or(Ok(None), |old| self.values.output(py, old))?;
            let new = change(found)?;
            let value = self.values.input(&new)?;
            let value: &[u8] = value.as_ref();
            self.note_length(value.len());
            let mut now = None;
            let answer = self.unlocked(py, |cache| {
                cache.update_with(key_bytes, |found| {
                    if found != old.as_deref() {
                        now = Some(found.map(<[u8]>::to_vec));
                        return CacheUpdate::Keep;
                    }
                    now = None;
                    match found {
                        Some(_) => CacheUpdate::Put(value),
                        None => CacheUpdate::PutWith(value, entry),
                    }
                })
            })?;
            match (answer, now) {
                (CacheUpdate::Keep, Some(now)) => old = now,
                _ => return Ok(new),
            }
            py.check_signals()?;
        }
    }
}

/// Parses a number.
fn number<'py>(text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = text.py();
    let number = py.get_type::<PyInt>().call1((text,));
    number.map_err(|_| {
        PyTypeError::new_err(
            "the value is not a number: without a serializer a counter is decimal \
                                             text",
        )
    })
}
