//! `leafpress.Tree`: the library's tree as a mapping of Python's.
//!
//! `options` has what a tree is built of, `record` the methods about one record, `atomic` those that read and write it as one, `batch` those about many, `loading` takes records from
//! Python's iterables, `bounds` makes ranges of slices, `range` is the view of one, `iteration` goes through records, `whole` has what
//! concerns all of a tree, `stats` what it says of itself, and `pickle` carries it elsewhere.
//!
//! Who waits for the library lets go of the interpreter's lock, but for reads of one short record: see `record`.

mod atomic;
mod batch;
mod bounds;
mod iteration;
mod loading;
mod pickle;
mod range;
mod record;
mod stats;
mod whole;

mod options;

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::of_tree;
use crate::fork::OfThisProcess;
use crate::tree::options::Options;

/// A value from which on reads of the tree let go of the interpreter's lock. To decode less takes a few microseconds; to take the lock
/// back, up to the five milliseconds that a thread may keep it which took it meanwhile.
const LONG_VALUE_BYTES: usize = 64 << 10;

/// An ordered map from bytes to bytes, or str to str, that stays compressed in memory.
///
/// `records` is a mapping or an iterable of pairs, as for dict. Keys are at most 1,024 bytes long, values at most 64 MiB; with
/// `encoding="utf-8"` both are str, with `encoding=("utf-8", None)` keys are. Without one they are bytes, and any buffer is taken.
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
/// It has all that dict has, and what SortedDict adds for order. Keys come in the order of their bytes.
///
/// Keyword arguments:
///   codec              "lz4" (fast), "zstd:1" to "zstd:19" (smaller), "deflate:1", "none", "auto" (by how much is read): see
///                      `leafpress.codec.available()`
///   encoding           None, the name of an encoding, or a pair of these for keys and values
///   dictionary         "auto" has one trained from the tree's own records, None has none, or bytes, or a leafpress.codec.Dictionary
///   dictionary_bytes   the most that a trained one may have, 1,024 to 1,048,576
///   frame_bytes        raw bytes that are compressed together, from 1 to leaf_bytes; chosen by the tree if not given
///   leaf_bytes         raw bytes of a leaf, 1,024 to 32,768
///   landing_bytes      room for new records beside a leaf, 0 to 16,384
///   shards             trees inside that threads write to side by side, 1 to 1,024
///   background_threads threads that compress what was written, 0 to 64; with 0 writers do
///   load_threads       threads that load a long sorted run, 1 to 64
///
/// All methods may be called from any number of threads. What concerns one record is atomic; iteration, batches and what is made of
/// them are not of one moment. In a process that is forked from the one that made the tree all methods raise ForkedProcess.
#[pyclass(module = "leafpress", frozen, mapping, subclass, weakref, generic)]
pub struct Tree {
    tree: OfThisProcess<leafpress::Tree>,
    options: Options,
    /// Whether there may be values from [`LONG_VALUE_BYTES`] on.
    has_long_values: AtomicBool,
}

#[pymethods]
impl Tree {
    #[new]
    #[pyo3(
        signature = (records = None, /, **options),
        text_signature = "(records=(), /, *, codec='lz4', encoding=None, dictionary='auto', dictionary_bytes=None, frame_bytes=None, \
                          leaf_bytes=None, landing_bytes=None, shards=None, background_threads=None, load_threads=None)"
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
    /// An empty tree.
    fn of(py: Python<'_>, options: Options) -> PyResult<Self> {
        let tree = py.detach(|| options.build()).map_err(|error| of_tree(&error))?;
        Ok(Self {
            tree: OfThisProcess::new("tree", tree),
            options,
            has_long_values: AtomicBool::new(false),
        })
    }

    /// The library's tree.
    ///
    /// # Errors
    /// `ForkedProcess`.
    #[inline]
    fn inner(&self) -> PyResult<&leafpress::Tree> {
        self.tree.get()
    }

    /// Does what reads or writes the tree with the interpreter's lock let go.
    fn work<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&leafpress::Tree) -> Result<R, leafpress::TreeError> + Send,
    ) -> PyResult<R> {
        let tree = self.inner()?;
        py.detach(|| work(tree)).map_err(|error| of_tree(&error))
    }

    /// Notes how long a value is that is written.
    #[inline]
    fn note_value(&self, value_bytes: usize) {
        if value_bytes >= LONG_VALUE_BYTES {
            self.has_long_values.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a read of one record is short for certain, and keeps the interpreter's lock.
    #[inline]
    fn reads_are_short(&self) -> bool {
        !self.has_long_values.load(Ordering::Relaxed)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Others may go on while its threads are waited for and its memory is given back.
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
