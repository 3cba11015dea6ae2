//! `leafpress.Tree`: the library's tree as a Python mapping.
//!
//! `options` has the options of a tree, `record` the methods about one record, `atomic` its atomic updates, `batch` the
//! methods about many records; `loading` reads records from Python's iterables, `bounds` converts slices to ranges,
//! `range` is the view of a range, `iteration` has the iterators, `collection` the methods about all records, `stats`
//! the statistics, and `pickle` the pickled form.
//!
//! A thread that waits for the library releases the interpreter's lock, except for reads of one short record: see
//! `record`.

mod atomic;
mod batch;
mod bounds;
mod collection;
mod iteration;
mod loading;
mod pickle;
mod range;
mod record;
mod stats;

mod options;

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::of_tree;
use crate::fork::OfThisProcess;
use crate::tree::options::Options;

/// Reads of values of at least this length release the interpreter's lock. Decoding less takes a few microseconds;
/// taking the lock again, up to the five milliseconds for which another thread may keep it.
const LONG_VALUE_BYTES: usize = 64 << 10;

/// An ordered map from bytes to bytes, or str to str, that stays compressed in memory.
///
/// `records` is a mapping or an iterable of pairs, as for dict. Keys are at most 1,024 bytes long, values at most 64
/// MiB; with `encoding="utf-8"` both are str, with `encoding=("utf-8", None)` keys are. Without one they are bytes, and
/// any buffer is taken.
///
///     >>> tree = Tree({b"apple": b"red", b"banana": b"yellow"})
///     >>> tree[b"cherry"] = b"dark red"
///     >>> tree[b"apple"]
///     b'red'
///     >>> list(tree[b"b":].items())
///     [(b'banana', b'yellow'), (b'cherry', b'dark red')]
///     >>> Tree({"apple": "red"}, encoding="utf-8")["apple"]
///     'red'
///
/// It has all methods of dict, and those that SortedDict adds for order. Keys are in the order of their bytes.
///
/// Keyword arguments:
///   codec              "trial" (the best for the tree's records, by trials), "lz4" (fast), "onpair" (short records),
///                      "zstd:1" to "zstd:19" (smaller), "deflate:1", "none", "auto" (by how much is read): see
///                      `leafpress.codec.available()`
///   encoding           None, the name of an encoding, or a pair of these for keys and values
///   dictionary         "auto" (trained from the tree's own records), None, bytes, or a leafpress.codec.Dictionary
///   dictionary_bytes   the most that a trained one may have, 1,024 to 1,048,576
///   frame_bytes        raw bytes that are compressed together, from 1 to leaf_bytes; chosen by the tree if not given
///   leaf_bytes         raw bytes of a leaf, 1,024 to 32,768
///   landing_bytes      buffer for new records of a leaf, 0 to 16,384
///   shards             trees inside that threads write to side by side, 1 to 1,024
///   background_threads threads that compress what was written, 0 to 64; with 0 writers do
///   load_threads       threads that load a long sorted run, 1 to 64
///
/// All methods may be called from any number of threads. Operations on one record are atomic; iteration, batches and
/// their results are not of one moment. In a process that is forked from the one that made the tree all methods raise
/// ForkedProcess.
#[pyclass(module = "leafpress", frozen, mapping, subclass, weakref, generic)]
pub struct Tree {
    tree: OfThisProcess<leafpress::Tree>,
    options: Options,
    /// Set if there may be values of [`LONG_VALUE_BYTES`] or more.
    has_long_values: AtomicBool,
}

#[pymethods]
impl Tree {
    #[new]
    #[pyo3(
        signature = (records = None, /, **options),
        text_signature = "(records=(), /, *, codec='trial', encoding=None, dictionary='auto', dictionary_bytes=None, \
                          frame_bytes=None, leaf_bytes=None, landing_bytes=None, shards=None, \
                          background_threads=None, load_threads=None)"
    )]
    fn new(py: Python<'_>, records: Option<&Bound<'_, PyAny>>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let made = Self::of(py, Options::of(py, options)?)?;
        if let Some(records) = records {
            made.load(py, records)?;
        }
        Ok(made)
    }
}

impl Tree {
    /// Makes an empty tree.
    fn of(py: Python<'_>, options: Options) -> PyResult<Self> {
        let tree = py.detach(|| options.build()).map_err(|error| of_tree(&error))?;
        Ok(Self {
            tree: OfThisProcess::new("tree", tree),
            options,
            has_long_values: AtomicBool::new(false),
        })
    }

    /// Returns the library's tree.
    ///
    /// # Errors
    /// `ForkedProcess`.
    #[inline]
    fn inner(&self) -> PyResult<&leafpress::Tree> {
        self.tree.get()
    }

    /// Runs work on the tree with the interpreter's lock released.
    fn work<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&leafpress::Tree) -> Result<R, leafpress::TreeError> + Send,
    ) -> PyResult<R> {
        let tree = self.inner()?;
        py.detach(|| work(tree)).map_err(|error| of_tree(&error))
    }

    /// Notes the length of a value to be written.
    #[inline]
    fn note_value(&self, value_bytes: usize) {
        if value_bytes >= LONG_VALUE_BYTES {
            self.has_long_values.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether a read of one record is certainly short, and keeps the interpreter's lock.
    #[inline]
    fn reads_are_short(&self) -> bool {
        !self.has_long_values.load(Ordering::Relaxed)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Others may run while its threads are joined and its memory is freed.
        let tree = &mut self.tree;
        Python::attach(|py| py.detach(|| tree.end()));
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<Tree>()?;
    module.add_class::<range::TreeRange>()?;
    module.add_class::<iteration::TreeIterator>()?;
    module.add_function(wrap_pyfunction!(pickle::_restore_tree, module)?)?;
    module.add("MAX_KEY_BYTES", leafpress::tree::MAX_KEY_BYTES)?;
    module.add("MAX_VALUE_BYTES", leafpress::tree::MAX_VALUE_BYTES)?;
    let abc = py.import("collections.abc")?;
    abc.getattr("MutableMapping")?
        .call_method1("register", (py.get_type::<Tree>(),))?;
    abc.getattr("Mapping")?
        .call_method1("register", (py.get_type::<range::TreeRange>(),))?;
    Ok(())
}
