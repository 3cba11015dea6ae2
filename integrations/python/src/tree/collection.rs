//! The methods of a tree as a collection: size, comparison, views, copies, upkeep and figures.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyType};

use crate::call;
use crate::tree::Tree;
use crate::tree::bounds::Bounds;
use crate::tree::iteration::{Part, TreeIterator};
use crate::tree::stats;

#[pymethods]
impl Tree {
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.inner()?.len())
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<TreeIterator> {
        TreeIterator::new(slf, Bounds::all(), Part::Keys, false)
    }

    fn __reversed__(slf: &Bound<'_, Self>) -> PyResult<TreeIterator> {
        TreeIterator::new(slf, Bounds::all(), Part::Keys, true)
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let Ok(tree) = other.cast::<Self>().map(Bound::get) else {
            return equals(slf.as_any(), other);
        };
        if tree.options.keys != this.options.keys || tree.options.values != this.options.values {
            return equals(slf.as_any(), other);
        }
        let tree = tree.inner()?;
        let is_equal = this.work(py, |this| have_same_records(this, tree))?;
        Ok(is_equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        represented(slf.as_any())
    }

    /// Returns all memory that the tree holds, in bytes.
    fn __sizeof__(&self, py: Python<'_>) -> PyResult<u64> {
        self.work(py, |tree| Ok(tree.bytes_held()))
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if other.cast::<PyMapping>().is_err() {
            return Ok(slf.py().NotImplemented().into_bound(slf.py()));
        }
        let both = Self::copy(slf)?;
        call::method(&both, "update", (other,))?;
        Ok(both)
    }

    fn __ror__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if other.cast::<PyMapping>().is_err() {
            return Ok(slf.py().NotImplemented().into_bound(slf.py()));
        }
        let both = Self::another(slf)?;
        call::method(&both, "update", (other,))?;
        call::method(&both, "update", (slf,))?;
        Ok(both)
    }

    fn __ior__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        self.load(py, other).map(drop)
    }

    /// Returns a set-like view of the keys, in their order.
    ///
    ///     >>> tree = Tree({b"a": b"1", b"b": b"2"})
    ///     >>> tree.keys() & {b"b", b"c"}
    ///     {b'b'}
    fn keys(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        view(slf.as_any(), Part::Keys)
    }

    /// Returns a view of the values, in the order of their keys.
    fn values(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        view(slf.as_any(), Part::Values)
    }

    /// Returns a set-like view of the keys with their values, in the order of the keys.
    fn items(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        view(slf.as_any(), Part::Items)
    }

    /// Returns another tree with the same records and options.
    fn copy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let other = Self::another(slf)?;
        match other.cast::<Self>() {
            Ok(tree) => tree.get().load_tree(slf.py(), slf.get())?,
            Err(_) => 0,
        };
        Self::copy_attributes(slf, &other, |attributes| Ok(attributes.into_any()))?;
        Ok(other)
    }

    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::copy(slf)
    }

    #[pyo3(signature = (memo, /))]
    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let other = Self::copy(slf)?;
        // References to the tree among its attributes refer to the copy then.
        memo.set_item(slf.as_ptr() as usize, &other)?;
        let deepcopy = py.import("copy")?.getattr("deepcopy")?;
        Self::copy_attributes(slf, &other, |attributes| call::with(&deepcopy, (attributes, memo)))?;
        Ok(other)
    }

    /// Makes a tree of keys that share one value, by default the empty one.
    ///
    ///     >>> Tree.fromkeys([b"b", b"a"], b"1")
    ///     Tree({b'a': b'1', b'b': b'1'})
    #[classmethod]
    #[pyo3(signature = (keys, value = None, /, **options), text_signature = "($cls, keys, value=None, /, **options)")]
    fn fromkeys<'py>(
        cls: &Bound<'py, PyType>,
        keys: &Bound<'py, PyAny>,
        value: Option<Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        let made = call::with_words(cls.as_any(), (), options)?;
        let tree = made.cast::<Self>()?.get();
        let value = value.map_or_else(|| tree.options.values.output(py, &[]), Ok)?;
        tree.load_keys(py, keys, &value)?;
        Ok(made)
    }

    /// Removes all records.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.work(py, leafpress::Tree::clear)
    }

    /// Does the work that the tree would do some time after the last write: trains a dictionary if one is due,
    /// compresses recent writes, and frees memory.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        self.work(py, leafpress::Tree::settle)
    }

    /// Compresses all records again, with a dictionary that is trained first.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        self.work(py, leafpress::Tree::compact)
    }

    /// Trains a dictionary from the current records, and compresses with it if that saves more than it costs; returns
    /// whether it did.
    ///
    /// This happens automatically as a tree grows. The method is for records whose content has changed since.
    fn train(&self, py: Python<'_>) -> PyResult<bool> {
        self.work(py, leafpress::Tree::train)
    }

    /// Checks the tree's structure; raises leafpress.Error if it is inconsistent, which is a bug in Leafpress. Nothing
    /// may write meanwhile.
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        self.work(py, leafpress::Tree::validate)
    }

    /// Returns the tree's statistics: a leafpress.TreeStats. It visits all leaves.
    ///
    ///     >>> tree = Tree({b"apple": b"red"})
    ///     >>> tree.stats().records, tree.stats().user_bytes
    ///     (1, 8)
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stats = self.work(py, |tree| Ok(tree.stats()))?;
        stats::named(py, &stats)
    }

    /// Returns the codec's name.
    #[getter]
    fn codec(&self) -> String {
        self.options.codec_name()
    }

    /// Returns the encoding, as passed: None for bytes.
    #[getter]
    fn encoding<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.options.encoding(py)
    }

    /// Returns the bytes of the current dictionary; None if there is none.
    #[getter]
    fn dictionary(&self, py: Python<'_>) -> PyResult<Option<Py<PyBytes>>> {
        let dictionary = self.work(py, leafpress::Tree::dictionary)?;
        Ok(dictionary.map(|dictionary| PyBytes::new(py, dictionary.bytes()).unbind()))
    }
}

impl Tree {
    /// Copies the attributes of an instance of a subclass to a copy of the tree.
    fn copy_attributes<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        copied: impl FnOnce(Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let Some(attributes) = slf.as_any().getattr_opt("__dict__")? else {
            return Ok(());
        };
        let attributes = attributes.cast_into::<PyDict>()?;
        if attributes.is_empty() {
            return Ok(());
        }
        other
            .getattr("__dict__")?
            .cast_into::<PyDict>()?
            .update(copied(attributes)?.cast()?)
    }

    /// Returns an empty tree of the same class and options.
    fn another<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let options = slf.get().options.to_keywords(slf.py())?;
        call::with_words(slf.get_type().as_any(), (), Some(&options))
    }
}

fn have_same_records(one: &leafpress::Tree, other: &leafpress::Tree) -> Result<bool, leafpress::TreeError> {
    if std::ptr::eq(one, other) {
        return Ok(true);
    }
    if one.len() != other.len() {
        return Ok(false);
    }
    let mut others = other.iter();
    for record in one.iter() {
        let (key, value) = record?;
        let is_same = others.next_with(|other_key, other_value| key == other_key && value == other_value);
        if is_same.transpose()? != Some(true) {
            return Ok(false);
        }
    }
    Ok(others.next_with(|_, _| ()).is_none())
}

/// Returns whether a tree or a range of one equals an object.
pub fn equals(mapping: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = mapping.py();
    if other.cast::<PyMapping>().is_err() {
        return Ok(py.NotImplemented());
    }
    static EQUAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    EQUAL
        .import(py, "leafpress._views", "equal")?
        .call1((mapping, other))
        .map(Bound::unbind)
}

/// Returns the `repr` of a tree or a range of one.
pub fn represented(mapping: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    static REPRESENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let represent = REPRESENT.import(mapping.py(), "leafpress._views", "represent")?;
    represent.call1((mapping,)).map(Bound::unbind)
}

/// Returns a view of a part of a tree or a range of one.
pub fn view(mapping: &Bound<'_, PyAny>, part: Part) -> PyResult<Py<PyAny>> {
    static KEYS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static VALUES: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static ITEMS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let (class, name) = match part {
        Part::Keys => (&KEYS, "TreeKeysView"),
        Part::Values => (&VALUES, "TreeValuesView"),
        Part::Items => (&ITEMS, "TreeItemsView"),
    };
    class
        .import(mapping.py(), "leafpress._views", name)?
        .call1((mapping,))
        .map(Bound::unbind)
}

/// Returns an iterator over the part that a view names.
pub fn iterator(tree: &Bound<'_, Tree>, bounds: Bounds, part: &str, is_reverse: bool) -> PyResult<TreeIterator> {
    TreeIterator::new(tree, bounds, Part::named(part)?, is_reverse)
}
