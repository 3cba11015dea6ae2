//! The order of a tree: views of ranges, and positions of keys.

use std::ops::Bound as End;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PySlice;

use crate::errors::missing;
use crate::tree::Tree;
use crate::tree::bounds::Bounds;
use crate::tree::collection::{equals, iterator, represented, view};
use crate::tree::iteration::{Part, TreeIterator};

/// Records that one call removes from a range between two checks for signals.
const REMOVED_AT_ONCE: usize = 10_000;

/// The records of a tree in a range of keys: a mapping that reads through to the tree's current content.
///
/// `tree[b"a":b"c"]` and `tree.prefix(b"user:")` make one. Slices of it are narrower ones. `len` counts by leaves,
/// without reading their records.
///
///     >>> tree = Tree({b"a": b"1", b"b": b"2", b"c": b"3"})
///     >>> some = tree[b"b":]
///     >>> len(some), b"a" in some, some.get(b"c")
///     (2, False, b'3')
///     >>> list(reversed(some))
///     [b'c', b'b']
#[pyclass(module = "leafpress", frozen, mapping, weakref, generic)]
pub struct TreeRange {
    tree: Py<Tree>,
    bounds: Bounds,
}

impl TreeRange {
    pub fn new(tree: &Bound<'_, Tree>, bounds: Bounds) -> Self {
        Self {
            tree: tree.clone().unbind(),
            bounds,
        }
    }

    fn holds(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = self.tree.bind(py).get().options.keys.input(key, "a key")?;
        Ok(self.bounds.contains(&key))
    }
}

#[pymethods]
impl TreeRange {
    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            let tree = self.tree.bind(py);
            let bounds = Bounds::of_slice(&tree.get().options.keys, slice)?.within(&self.bounds);
            return Ok(Bound::new(py, Self::new(tree, bounds))?.into_any());
        }
        self.get(py, key, None)?.ok_or_else(|| missing(key))
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.holds(py, key)? && self.tree.bind(py).contains(key)?)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let counted = self
            .tree
            .bind(py)
            .get()
            .work(py, |tree| tree.count(self.bounds.as_ref()))?;
        Ok(usize::try_from(counted)?)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let first = |tree: &leafpress::Tree| tree.range(self.bounds.as_ref()).next_with(|_, _| ()).transpose();
        Ok(self.tree.bind(py).get().work(py, first)?.is_some())
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<TreeIterator> {
        TreeIterator::new(self.tree.bind(py), self.bounds.clone(), Part::Keys, false)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<TreeIterator> {
        TreeIterator::new(self.tree.bind(py), self.bounds.clone(), Part::Keys, true)
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        equals(slf.as_any(), other)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        represented(slf.as_any())
    }

    /// Returns the value of a key that is in the range, or `default`.
    #[pyo3(signature = (key, default = None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = match self.holds(py, key)? {
            true => self.tree.bind(py).get().read(py, key)?,
            false => None,
        };
        Ok(found.or(default))
    }

    /// Returns a set-like view of the range's keys.
    fn keys(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        view(slf.as_any(), Part::Keys)
    }

    /// Returns a view of the range's values.
    fn values(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        view(slf.as_any(), Part::Values)
    }

    /// Returns a set-like view of the range's keys and values.
    fn items(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        view(slf.as_any(), Part::Items)
    }

    #[pyo3(signature = (part, reverse, /))]
    fn _iterate(&self, py: Python<'_>, part: &str, reverse: bool) -> PyResult<TreeIterator> {
        iterator(self.tree.bind(py), self.bounds.clone(), part, reverse)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.tree)
    }
}

#[pymethods]
impl Tree {
    /// Returns an iterator over the keys from `minimum` to `maximum`, or in reverse.
    ///
    /// None stands for an open end; `inclusive` has for each end whether it is in the range.
    ///
    ///     >>> tree = Tree({b"a": b"1", b"b": b"2", b"c": b"3"})
    ///     >>> list(tree.irange(b"b")), list(tree.irange(None, b"b", reverse=True))
    ///     ([b'b', b'c'], [b'b', b'a'])
    ///     >>> list(tree.irange(b"a", b"c", inclusive=(False, False)))
    ///     [b'b']
    #[pyo3(
        signature = (minimum = None, maximum = None, inclusive = (true, true), reverse = false),
        text_signature = "($self, minimum=None, maximum=None, inclusive=(True, True), reverse=False)"
    )]
    fn irange(
        slf: &Bound<'_, Self>,
        minimum: Option<&Bound<'_, PyAny>>,
        maximum: Option<&Bound<'_, PyAny>>,
        inclusive: (bool, bool),
        reverse: bool,
    ) -> PyResult<TreeIterator> {
        let bounds = Bounds::of_ends(&slf.get().options.keys, minimum, maximum, inclusive)?;
        TreeIterator::new(slf, bounds, Part::Keys, reverse)
    }

    /// Returns the view of the records whose keys begin with `prefix`.
    ///
    ///     >>> tree = Tree({b"user:1": b"Ada", b"user:2": b"Alan", b"zebra": b""})
    ///     >>> list(tree.prefix(b"user:").values())
    ///     [b'Ada', b'Alan']
    #[pyo3(signature = (prefix, /))]
    fn prefix<'py>(slf: &Bound<'py, Self>, prefix: &Bound<'py, PyAny>) -> PyResult<TreeRange> {
        let bytes = slf.get().options.keys.input(prefix, "a prefix")?;
        Ok(TreeRange::new(slf, Bounds::of_prefix(&bytes)))
    }

    /// Returns how many keys are below `key`: its index, or the one it would have.
    ///
    /// It visits each leaf below the key, which takes a hundredth of the time of reading the records.
    ///
    ///     >>> tree = Tree({b"a": b"1", b"b": b"2", b"c": b"3"})
    ///     >>> tree.bisect_left(b"b"), tree.bisect_right(b"b"), tree.bisect_left(b"bb")
    ///     (1, 2, 2)
    #[pyo3(signature = (key, /))]
    fn bisect_left(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let key = self.options.keys.input(key, "a key")?;
        let key: &[u8] = &key;
        self.work(py, |tree| tree.count((End::Unbounded, End::Excluded(key))))
    }

    /// Returns how many keys are not above `key`. The notes on bisect_left apply.
    #[pyo3(signature = (key, /))]
    fn bisect_right(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let key = self.options.keys.input(key, "a key")?;
        let key: &[u8] = &key;
        self.work(py, |tree| tree.count((End::Unbounded, End::Included(key))))
    }

    /// Returns the short name of bisect_right.
    #[pyo3(signature = (key, /))]
    fn bisect(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.bisect_right(py, key)
    }

    #[pyo3(signature = (part, reverse, /))]
    fn _iterate(slf: &Bound<'_, Self>, part: &str, reverse: bool) -> PyResult<TreeIterator> {
        iterator(slf, Bounds::all(), part, reverse)
    }
}

impl Tree {
    /// Removes the records of a range.
    ///
    /// # Errors
    /// The library's, and exceptions of a signal's handler: the records removed so far are gone.
    pub fn remove_all_in(&self, py: Python<'_>, bounds: &Bounds) -> PyResult<()> {
        loop {
            let removed = self.work(py, |tree| tree.remove_range(bounds.as_ref(), REMOVED_AT_ONCE))?;
            if removed.is_done {
                return Ok(());
            }
            py.check_signals()?;
        }
    }
}
