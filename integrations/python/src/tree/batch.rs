//! A tree's methods for many records.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::call;
use crate::input::{Encoding, Input};
use crate::tree::Tree;

/// Keys that are looked up at once, while the interpreter's lock is released.
const KEYS_AT_ONCE: usize = 1024;

/// Values that were read, one after the other in one buffer.
struct Values {
    bytes: Vec<u8>,
    /// The range of each; [`None`] for an absent key.
    places: Vec<Option<(usize, usize)>>,
}

#[pymethods]
impl Tree {
    /// Returns a list of the keys' values, in their order; `default` for absent keys.
    ///
    /// Other threads run meanwhile, and the reads wait for memory together: in a large tree it is faster than reading
    /// one by one.
    ///
    ///     >>> tree = Tree({b"a": b"1", b"b": b"2"})
    ///     >>> tree.get_many([b"b", b"x", b"a"])
    ///     [b'2', None, b'1']
    #[pyo3(signature = (keys, default = None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        default: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let none = py.None().into_bound(py);
        let default = default.unwrap_or(&none);
        let mut found = Vec::new();
        self.in_batches(keys, |inputs| {
            let keys: Vec<&[u8]> = inputs.iter().map(Input::as_ref).collect();
            let values = self.work(py, |tree| values_of(tree, &keys))?;
            for place in &values.places {
                found.push(match place {
                    Some((begin, end)) => self.options.values.output(py, &values.bytes[*begin..*end])?,
                    None => default.clone(),
                });
            }
            Ok(())
        })?;
        PyList::new(py, found)
    }

    /// Inserts or replaces records of a mapping or an iterable of pairs, and returns how many keys were new.
    ///
    /// Records in the order of their keys are packed into full leaves at once, which takes a small part of the time.
    ///
    ///     >>> tree = Tree()
    ///     >>> tree.put_many([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")])
    ///     2
    #[pyo3(signature = (records, /))]
    fn put_many(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.load(py, records)
    }

    /// Removes keys and returns how many were there.
    ///
    ///     >>> tree = Tree({b"a": b"1", b"b": b"2"})
    ///     >>> tree.remove_many([b"a", b"x"])
    ///     1
    #[pyo3(signature = (keys, /))]
    fn remove_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut removed = 0;
        self.in_batches(keys, |inputs| {
            let keys: Vec<&[u8]> = inputs.iter().map(Input::as_ref).collect();
            let (gone, ended) = py.detach(|| -> PyResult<_> {
                let (tree, mut gone) = (self.inner()?, 0);
                for key in keys {
                    match tree.remove(key) {
                        Ok(was_there) => gone += u64::from(was_there),
                        Err(error) => return Ok((gone, Err(error))),
                    }
                }
                Ok((gone, Ok(())))
            })?;
            removed += gone;
            ended.map_err(|error| crate::errors::of_tree(&error))
        })?;
        Ok(removed)
    }

    /// Inserts or replaces records of a mapping or an iterable of pairs, and of keyword arguments, as dict.update does.
    ///
    ///     >>> tree = Tree(encoding="utf-8")
    ///     >>> tree.update({"a": "1"}, b="2")
    ///     >>> dict(tree)
    ///     {'a': '1', 'b': '2'}
    #[pyo3(signature = (records = None, /, **more), text_signature = "($self, records=(), /, **more)")]
    fn update(
        &self,
        py: Python<'_>,
        records: Option<&Bound<'_, PyAny>>,
        more: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        if let Some(records) = records {
            self.load(py, records)?;
        }
        if let Some(more) = more {
            self.load(py, more.as_any())?;
        }
        Ok(())
    }
}

impl Tree {
    /// Calls `visit` with some keys of an iterable at a time.
    fn in_batches<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        mut visit: impl FnMut(&[Input<'_, 'py>]) -> PyResult<()>,
    ) -> PyResult<()> {
        let encoding: &Encoding = &self.options.keys;
        let py = keys.py();
        let mut keys = call::iterate(keys)?;
        loop {
            // The objects are kept as long as their bytes are used.
            let objects = keys.by_ref().take(KEYS_AT_ONCE).collect::<PyResult<Vec<_>>>()?;
            if objects.is_empty() {
                return Ok(());
            }
            let inputs = objects.iter().map(|object| encoding.input(object, "a key"));
            visit(&inputs.collect::<PyResult<Vec<_>>>()?)?;
            py.check_signals()?;
        }
    }
}

fn values_of(tree: &leafpress::Tree, keys: &[&[u8]]) -> Result<Values, leafpress::TreeError> {
    let mut values = Values {
        bytes: Vec::new(),
        places: Vec::with_capacity(keys.len()),
    };
    tree.get_many_with(keys, |_, value| {
        values.places.push(value.map(|value| {
            let begin = values.bytes.len();
            values.bytes.extend_from_slice(value);
            (begin, values.bytes.len())
        }));
    })?;
    Ok(values)
}
