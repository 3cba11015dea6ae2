//! Iterators over records, in batches.

use std::ops::Bound as End;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyTuple;

use crate::call;
use crate::errors::of_tree;
use crate::input::Encoding;
use crate::tree::Tree;
use crate::tree::bounds::Bounds;

/// Records of the first batch; later ones double up to the maximum.
const FIRST_BATCH: usize = 16;
const MAX_BATCH: usize = 1024;
/// A batch ends with the record that fills it to this size.
const MAX_BATCH_BYTES: usize = 256 << 10;

/// The part of each record that an iterator returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Keys,
    Values,
    Items,
}

impl Part {
    /// Returns the part with this name in views.
    pub fn named(name: &str) -> PyResult<Self> {
        match name {
            "keys" => Ok(Self::Keys),
            "values" => Ok(Self::Values),
            "items" => Ok(Self::Items),
            _ => Err(PyTypeError::new_err("a part is keys, values or items")),
        }
    }
}

/// An iterator over keys, values or items of a tree, in the order of the keys, from either end.
///
/// A key that exists from the beginning to the end is returned exactly once, whatever is written meanwhile; one that is
/// inserted or removed meanwhile may or may not be. Some records are read ahead: a record that was removed or replaced
/// a moment ago may still be returned unchanged. Several threads may share one iterator.
#[pyclass(module = "leafpress", frozen)]
pub struct TreeIterator {
    tree: Py<Tree>,
    part: Part,
    is_reverse: bool,
    state: Mutex<State>,
}

struct State {
    /// The range that no batch covers yet; [`None`] at the end.
    rest: Option<Bounds>,
    batch: Batch,
    limit: usize,
}

/// Records that were read ahead.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where each record's key and value end.
    ends: Vec<(usize, usize)>,
    /// How many have been returned.
    returned: usize,
}

impl Batch {
    fn next(&mut self) -> Option<(&[u8], &[u8])> {
        let (key_end, value_end) = *self.ends.get(self.returned)?;
        let begin = self.returned.checked_sub(1).map_or(0, |before| self.ends[before].1);
        self.returned += 1;
        Some((&self.bytes[begin..key_end], &self.bytes[key_end..value_end]))
    }

    fn last_key(&self) -> Option<&[u8]> {
        let (key_end, _) = *self.ends.last()?;
        let begin = self.ends.len().checked_sub(2).map_or(0, |before| self.ends[before].1);
        Some(&self.bytes[begin..key_end])
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.returned = 0;
        // One long value does not justify keeping that much memory.
        self.bytes.shrink_to(4 * MAX_BATCH_BYTES);
    }
}

impl State {
    /// Reads the next batch. The interpreter's lock is not needed.
    fn refill(&mut self, tree: &leafpress::Tree, part: Part, is_reverse: bool) -> Result<(), leafpress::TreeError> {
        self.batch.clear();
        let Some(bounds) = self.rest.take() else {
            return Ok(());
        };
        let Batch { bytes, ends, .. } = &mut self.batch;
        let mut records = tree.range(bounds.as_ref());
        let mut is_done = false;
        while ends.len() < self.limit && bytes.len() < MAX_BATCH_BYTES {
            let keep = |key: &[u8], value: &[u8]| {
                bytes.extend_from_slice(key);
                let key_end = bytes.len();
                if part != Part::Keys {
                    bytes.extend_from_slice(value);
                }
                ends.push((key_end, bytes.len()));
            };
            let step = match is_reverse {
                false => records.next_with(keep),
                true => records.next_back_with(keep),
            };
            match step {
                Some(step) => step?,
                None => {
                    is_done = true;
                    break;
                }
            }
        }
        self.limit = (self.limit * 2).min(MAX_BATCH);
        if let Some(last) = self.batch.last_key().filter(|_| !is_done) {
            let last = End::Excluded(last.to_vec());
            self.rest = Some(match is_reverse {
                false => Bounds { low: last, ..bounds },
                true => Bounds { high: last, ..bounds },
            });
        }
        Ok(())
    }
}

/// Makes an object of the bytes of a part of a record; text in Python's own encodings is not decoded yet.
fn raw<'py>(py: Python<'py>, encoding: &Encoding, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match encoding {
        Encoding::Named(_) => Encoding::Bytes.output(py, bytes),
        other => other.output(py, bytes),
    }
}

fn decoded<'py>(encoding: &Encoding, object: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match encoding {
        Encoding::Named(name) => call::method(&object, "decode", (name,)),
        _ => Ok(object),
    }
}

impl TreeIterator {
    pub fn new(tree: &Bound<'_, Tree>, bounds: Bounds, part: Part, is_reverse: bool) -> PyResult<Self> {
        // In a forked process it fails here instead of at the first step.
        tree.get().inner()?;
        Ok(Self {
            tree: tree.clone().unbind(),
            part,
            is_reverse,
            state: Mutex::new(State {
                rest: Some(bounds),
                batch: Batch::default(),
                limit: FIRST_BATCH,
            }),
        })
    }
}

#[pymethods]
impl TreeIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let tree = self.tree.bind(py).get();
        let inner = tree.inner()?;
        let (keys, values) = (&tree.options.keys, &tree.options.values);
        let mut key_object = None;
        let mut value_object = None;
        let mut failed = None;
        {
            // While it is locked no Python code runs, which could use this iterator.
            let mut state = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
            let state = &mut *state;
            if state.batch.returned == state.batch.ends.len() {
                if state.rest.is_none() {
                    return Ok(None);
                }
                let (part, is_reverse) = (self.part, self.is_reverse);
                if let Err(error) = py.detach(|| state.refill(inner, part, is_reverse)) {
                    failed = Some(error);
                    state.rest = None;
                    state.batch.clear();
                }
            }
            if let Some((key, value)) = state.batch.next() {
                if self.part != Part::Values {
                    key_object = Some(raw(py, keys, key)?);
                }
                if self.part != Part::Keys {
                    value_object = Some(raw(py, values, value)?);
                }
            }
        }
        if let Some(error) = failed {
            return Err(of_tree(&error));
        }
        let key = key_object.map(|object| decoded(keys, object)).transpose()?;
        let value = value_object.map(|object| decoded(values, object)).transpose()?;
        match (key, value) {
            (Some(key), Some(value)) => Ok(Some(PyTuple::new(py, [key, value])?.into_any())),
            (one, other) => Ok(one.or(other)),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.tree)
    }
}
