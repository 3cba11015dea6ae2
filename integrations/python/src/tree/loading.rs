//! Loads records from Python's mappings and iterables into a tree.
//!
//! The library takes an iterator of records, which it packs into leaves while the interpreter's lock is released. The
//! iterator here takes the lock for some records at a time, and copies these.

use std::ops::Range;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};

use crate::call;
use crate::errors::of_tree;
use crate::tree::Tree;

/// Records, or bytes, that end a chunk.
const CHUNK_RECORDS: usize = 1024;
const CHUNK_BYTES: usize = 256 << 10;

/// The source of records.
enum Source {
    /// An iterator of pairs.
    Pairs(Py<PyAny>),
    /// Keys, and the object that has the value of each.
    Keys(Py<PyAny>, Py<PyAny>),
    /// Keys that share one value.
    OneValue(Py<PyAny>, Py<PyAny>),
}

impl Source {
    /// Distinguishes mappings from others as `dict.update` does.
    fn of(records: &Bound<'_, PyAny>) -> PyResult<Self> {
        if records.is_instance_of::<PyDict>() || records.cast::<PyMapping>().is_ok() {
            let items = call::method(records, "items", ())?;
            return Ok(Self::Pairs(call::iterate(&items)?.unbind()));
        }
        if records.hasattr("keys")? {
            let keys = call::method(records, "keys", ())?;
            return Ok(Self::Keys(call::iterate(&keys)?.unbind(), records.clone().unbind()));
        }
        Ok(Self::Pairs(call::iterate(records)?.unbind()))
    }

    /// Returns the next key and value; `index` is its number.
    fn next<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let (Self::Pairs(iterator) | Self::Keys(iterator, _) | Self::OneValue(iterator, _)) = self;
        let Some(item) = call::next(iterator.bind(py)).transpose()? else {
            return Ok(None);
        };
        match self {
            Self::Pairs(_) => pair(&item, index).map(Some),
            Self::Keys(_, mapping) => {
                let value = call::item(mapping.bind(py), &item)?;
                Ok(Some((item, value)))
            }
            Self::OneValue(_, value) => Ok(Some((item, value.bind(py).clone()))),
        }
    }
}

/// Returns the two elements of a pair.
fn pair<'py>(item: &Bound<'py, PyAny>, index: usize) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    if let Ok(tuple) = item.cast_exact::<PyTuple>()
        && tuple.len() == 2
    {
        return Ok((tuple.get_item(0)?, tuple.get_item(1)?));
    }
    let elements = call::iterate(item)
        .map_err(|_| PyTypeError::new_err(format!("record #{index} is not a pair of a key and a value")))?;
    let elements = elements.take(3).collect::<PyResult<Vec<_>>>()?;
    <[_; 2]>::try_from(elements).map(Into::into).map_err(|elements| {
        let found = if elements.len() > 2 {
            "more than 2".to_owned()
        } else {
            elements.len().to_string()
        };
        PyValueError::new_err(format!(
            "record #{index} has {found} elements, and a key and a value are 2"
        ))
    })
}

/// Records that were copied from Python's objects.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Where each record's key and value end.
    ends: Vec<(usize, usize)>,
}

/// A key or a value in a chunk.
struct Piece {
    chunk: Arc<Chunk>,
    place: Range<usize>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.chunk.bytes[self.place.clone()]
    }
}

/// The library's iterator of Python's records.
struct Records<'r> {
    tree: &'r Tree,
    source: &'r Source,
    chunk: Arc<Chunk>,
    returned: usize,
    /// How many were taken from the source.
    taken: usize,
    is_done: bool,
    /// The exception that the source raised: the earlier ones are records.
    failed: &'r mut Option<PyErr>,
}

impl Records<'_> {
    /// Takes the next chunk from the source.
    fn fill(&mut self) {
        let mut chunk = Chunk::default();
        let filled = Python::attach(|py| {
            py.check_signals()?;
            while chunk.ends.len() < CHUNK_RECORDS && chunk.bytes.len() < CHUNK_BYTES {
                let Some((key, value)) = self.source.next(py, self.taken)? else {
                    self.is_done = true;
                    break;
                };
                let key = self.tree.options.keys.input(&key, "a key")?;
                let value = self.tree.options.values.input(&value, "a value")?;
                self.tree.note_value(value.len());
                chunk.bytes.extend_from_slice(&key);
                let key_end = chunk.bytes.len();
                chunk.bytes.extend_from_slice(&value);
                chunk.ends.push((key_end, chunk.bytes.len()));
                self.taken += 1;
            }
            Ok(())
        });
        if let Err(error) = filled {
            *self.failed = Some(error);
            self.is_done = true;
        }
        self.chunk = Arc::new(chunk);
        self.returned = 0;
    }
}

impl Iterator for Records<'_> {
    type Item = (Piece, Piece);

    fn next(&mut self) -> Option<Self::Item> {
        if self.returned == self.chunk.ends.len() {
            if self.is_done {
                return None;
            }
            self.fill();
        }
        let (key_end, value_end) = *self.chunk.ends.get(self.returned)?;
        let begin = self
            .returned
            .checked_sub(1)
            .map_or(0, |before| self.chunk.ends[before].1);
        self.returned += 1;
        let piece = |place| Piece {
            chunk: Arc::clone(&self.chunk),
            place,
        };
        Some((piece(begin..key_end), piece(key_end..value_end)))
    }
}

impl Tree {
    /// Loads the records of a mapping or an iterable of pairs, and returns how many keys were new.
    ///
    /// # Errors
    /// The source's exceptions, or the library's errors. The earlier records are in the tree.
    pub fn load(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.inner()?;
        if let Ok(other) = records.cast::<Self>() {
            let other = other.get();
            if other.options.keys == self.options.keys && other.options.values == self.options.values {
                return self.load_tree(py, other);
            }
        }
        self.load_from(py, &Source::of(records)?)
    }

    /// Loads keys that share one value.
    pub fn load_keys(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.load_from(
            py,
            &Source::OneValue(call::iterate(keys)?.unbind(), value.clone().unbind()),
        )
    }

    fn load_from(&self, py: Python<'_>, source: &Source) -> PyResult<u64> {
        let mut failed = None;
        let records = Records {
            tree: self,
            source,
            chunk: Arc::default(),
            returned: 0,
            taken: 0,
            is_done: false,
            failed: &mut failed,
        };
        let new = self.work(py, |tree| tree.extend(records));
        match failed {
            Some(error) => Err(error),
            None => new,
        }
    }

    /// Loads all records of another tree with the same encodings.
    pub fn load_tree(&self, py: Python<'_>, other: &Self) -> PyResult<u64> {
        if std::ptr::eq(self, other) {
            return Ok(0);
        }
        if !other.reads_are_short() {
            self.note_value(usize::MAX);
        }
        let (from, mut failed) = (other.inner()?, None);
        let new = self.work(py, |tree| {
            tree.extend(
                from.iter()
                    .map_while(|record| record.map_err(|error| failed = Some(error)).ok()),
            )
        });
        match failed {
            Some(error) => Err(of_tree(&error)),
            None => new,
        }
    }
}
