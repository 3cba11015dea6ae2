//! A tree's methods for one record.
//!
//! Reads of records that are short keep the interpreter's lock: they take a microsecond or a few, do not wait for other
//! threads, and make the `bytes` of the tree's bytes without an intermediate copy. Releasing the lock would cost more
//! than that, much more next to a thread that computes, which keeps it for five milliseconds. Writes release it, since
//! each may compress a leaf.

use pyo3::exceptions::{PyIndexError, PyKeyError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};

use crate::errors::{missing, of_tree};
use crate::input::Encoding;
use crate::tree::Tree;
use crate::tree::bounds::Bounds;
use crate::tree::range::TreeRange;

/// A key and its value.
type Record = (Vec<u8>, Vec<u8>);

#[pymethods]
impl Tree {
    /// Returns the value of a key, or for a slice the view of its range: see `irange` for the keys alone.
    ///
    ///     >>> tree = Tree({b"a": b"1", b"b": b"2", b"c": b"3"})
    ///     >>> tree[b"a"]
    ///     b'1'
    ///     >>> dict(tree[b"b":])
    ///     {b'b': b'2', b'c': b'3'}
    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        if let Ok(slice) = key.cast::<PySlice>() {
            let bounds = Bounds::of_slice(&this.options.keys, slice)?;
            return Ok(Bound::new(slf.py(), TreeRange::new(slf, bounds))?.into_any());
        }
        match this.read(slf.py(), key)? {
            Some(value) => Ok(value),
            None => Err(missing(key)),
        }
    }

    /// Inserts or replaces.
    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if key.is_instance_of::<PySlice>() {
            return Err(PyTypeError::new_err(
                "a slice of a tree cannot be assigned to: update() takes many records",
            ));
        }
        let key = self.options.keys.input(key, "a key")?;
        let value = self.options.values.input(value, "a value")?;
        let (key, value): (&[u8], &[u8]) = (&key, &value);
        self.note_value(value.len());
        self.work(py, |tree| tree.insert(key, value).map(drop))
    }

    /// Removes a key, or all records of a slice.
    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(slice) = key.cast::<PySlice>() {
            let bounds = Bounds::of_slice(&self.options.keys, slice)?;
            return self.remove_all_in(py, &bounds);
        }
        let bytes = self.options.keys.input(key, "a key")?;
        let bytes: &[u8] = &bytes;
        if self.work(py, |tree| tree.remove(bytes))? {
            Ok(())
        } else {
            Err(missing(key))
        }
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = self.options.keys.input(key, "a key")?;
        let key: &[u8] = &key;
        if self.reads_are_short() {
            return self.inner()?.contains_key(key).map_err(|error| of_tree(&error));
        }
        self.work(py, |tree| tree.contains_key(key))
    }

    /// Returns the value of a key, or `default`.
    ///
    ///     >>> tree = Tree({b"a": b"1"})
    ///     >>> tree.get(b"a"), tree.get(b"b"), tree.get(b"b", b"none")
    ///     (b'1', None, b'none')
    #[pyo3(signature = (key, default = None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.read(py, key)?.or(default))
    }

    /// Returns the value of a key; if there is none, inserts `default` and returns it.
    ///
    /// Atomic: of several threads that set a key's first value, all get the one that was stored.
    ///
    ///     >>> tree = Tree()
    ///     >>> tree.setdefault(b"a", b"1"), tree.setdefault(b"a", b"2")
    ///     (b'1', b'1')
    #[pyo3(signature = (key, default, /))]
    fn setdefault<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let key = self.options.keys.input(key, "a key")?;
        let value = self.options.values.input(default, "a value")?;
        let (key, value): (&[u8], &[u8]) = (&key, &value);
        self.note_value(value.len());
        let found = self.work(py, |tree| tree.get_or_insert_with(key, || value))?;
        self.options.values.output(py, &found)
    }

    /// Removes a key and returns its value; if it is absent, returns the default, or raises KeyError if there is none.
    ///
    ///     >>> tree = Tree({b"a": b"1"})
    ///     >>> tree.pop(b"a"), tree.pop(b"a", None)
    ///     (b'1', None)
    #[pyo3(signature = (key, /, *default), text_signature = "($self, key, default=..., /)")]
    fn pop<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if default.len() > 1 {
            return Err(PyTypeError::new_err(format!(
                "pop expected at most 2 arguments, got {}",
                default.len() + 1
            )));
        }
        let bytes = self.options.keys.input(key, "a key")?;
        let bytes: &[u8] = &bytes;
        match self.work(py, |tree| tree.take(bytes))? {
            Some(value) => self.options.values.output(py, &value),
            None if default.is_empty() => Err(missing(key)),
            None => default.get_item(0),
        }
    }

    /// Removes the record at an index of the order, by default the last, and returns its key and value. Atomic for the
    /// key.
    ///
    /// The first and the last take one read; another index takes one read for each record between it and the nearer
    /// end.
    ///
    ///     >>> tree = Tree({b"a": b"1", b"b": b"2", b"c": b"3"})
    ///     >>> tree.popitem(), tree.popitem(0)
    ///     ((b'c', b'3'), (b'a', b'1'))
    #[pyo3(signature = (index = None), text_signature = "($self, index=-1)")]
    fn popitem<'py>(&self, py: Python<'py>, index: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyTuple>> {
        let index = index.map_or(Ok(-1), place)?;
        let taken = self.work(py, |tree| match index {
            -1 => tree.pop_last(),
            0 => tree.pop_first(),
            _ => loop {
                let Some((key, _)) = nth(tree, index)? else {
                    return Ok(None);
                };
                // [`None`] if another thread was faster.
                if let Some(value) = tree.take(&key)? {
                    return Ok(Some((key, value)));
                }
            },
        })?;
        match taken {
            Some(record) => self.pair(py, &record),
            None if self.inner()?.is_empty() => Err(PyKeyError::new_err("popitem(): the tree is empty")),
            None => Err(PyIndexError::new_err("index out of range")),
        }
    }

    /// Returns the key and the value at an index of the order, by default the last.
    ///
    /// The first and the last take one read; another index takes one read for each record between it and the nearer
    /// end.
    ///
    ///     >>> tree = Tree({b"a": b"1", b"b": b"2", b"c": b"3"})
    ///     >>> tree.peekitem(), tree.peekitem(0)
    ///     ((b'c', b'3'), (b'a', b'1'))
    #[pyo3(signature = (index = None), text_signature = "($self, index=-1)")]
    fn peekitem<'py>(&self, py: Python<'py>, index: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyTuple>> {
        let index = index.map_or(Ok(-1), place)?;
        match self.work(py, |tree| nth(tree, index))? {
            Some(record) => self.pair(py, &record),
            None => Err(PyIndexError::new_err("index out of range")),
        }
    }
}

impl Tree {
    /// Returns the value of a key that is a Python object.
    #[inline]
    pub fn read<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = self.options.keys.input(key, "a key")?;
        self.read_bytes(py, &key)
    }

    pub fn read_bytes<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        let values = &self.options.values;
        // A Python encoding runs Python code, which may use the tree.
        if self.reads_are_short() && !matches!(values, Encoding::Named(_)) {
            let read = self.inner()?.get_with(key, |value| values.output(py, value));
            return read.map_err(|error| of_tree(&error))?.transpose();
        }
        match self.work(py, |tree| tree.get(key))? {
            Some(value) => values.output(py, &value).map(Some),
            None => Ok(None),
        }
    }

    /// Returns a record as a tuple.
    fn pair<'py>(&self, py: Python<'py>, (key, value): &Record) -> PyResult<Bound<'py, PyTuple>> {
        let key = self.options.keys.output(py, key)?;
        let value = self.options.values.output(py, value)?;
        PyTuple::new(py, [key, value])
    }
}

/// Returns an index of the order. An impossible one is out of range.
fn place(index: &Bound<'_, PyAny>) -> PyResult<isize> {
    index.extract().map_err(
        |error: PyErr| match error.is_instance_of::<PyOverflowError>(index.py()) {
            true => PyIndexError::new_err("index out of range"),
            false => error,
        },
    )
}

/// Returns the record at an index, from the front, or below 0 from the back.
fn nth(tree: &leafpress::Tree, index: isize) -> Result<Option<Record>, leafpress::TreeError> {
    let (len, from_end) = (tree.len(), index.unsigned_abs());
    let (mut skipped, mut is_front) = match index < 0 {
        true => (from_end - 1, false),
        false => (from_end, true),
    };
    if skipped >= len {
        return Ok(None);
    }
    if skipped > len / 2 {
        (skipped, is_front) = (len - 1 - skipped, !is_front);
    }
    match (skipped, is_front) {
        (0, true) => return tree.first(),
        (0, false) => return tree.last(),
        _ => {}
    }
    let mut records = tree.iter();
    for _ in 0..skipped {
        let step = match is_front {
            true => records.next_with(|_, _| ()),
            false => records.next_back_with(|_, _| ()),
        };
        match step {
            Some(step) => step?,
            None => return Ok(None),
        }
    }
    match is_front {
        true => records.next(),
        false => records.next_back(),
    }
    .transpose()
}
