//! A tree's atomic methods for one record.

use pyo3::prelude::*;

use crate::call;
use crate::tree::Tree;

#[pymethods]
impl Tree {
    /// Inserts or replaces, and returns the previous value, or None.
    ///
    /// Atomic: of several threads each gets the value that another one inserted.
    ///
    ///     >>> tree = Tree({b"a": b"1"})
    ///     >>> tree.swap(b"a", b"2"), tree.swap(b"b", b"3")
    ///     (b'1', None)
    #[pyo3(signature = (key, value, /))]
    fn swap<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = self.options.keys.input(key, "a key")?;
        let value = self.options.values.input(value, "a value")?;
        let (key, value): (&[u8], &[u8]) = (&key, &value);
        self.note_value(value.len());
        let old = self.work(py, |tree| tree.swap(key, value))?;
        old.map(|old| self.options.values.output(py, &old)).transpose()
    }

    /// Writes `new` if the key's value is `expected`, and returns whether it was. None stands for an absent record: as
    /// `expected` the key must not be there, as `new` it is removed.
    ///
    ///     >>> tree = Tree({b"a": b"1"})
    ///     >>> tree.compare_and_swap(b"a", b"1", b"2"), tree.compare_and_swap(b"a", b"1", b"3")
    ///     (True, False)
    ///     >>> tree.compare_and_swap(b"a", b"2", None), b"a" in tree
    ///     (True, False)
    #[pyo3(signature = (key, expected, new, /))]
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        expected: Option<&Bound<'_, PyAny>>,
        new: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let key = self.options.keys.input(key, "a key")?;
        let value = |object| self.options.values.input(object, "a value");
        let (expected, new) = (expected.map(value).transpose()?, new.map(value).transpose()?);
        let (key, expected, new) = (&*key, expected.as_deref(), new.as_deref());
        self.note_value(new.map_or(0, <[u8]>::len));
        self.work(py, |tree| tree.compare_and_swap(key, expected, new))
    }

    /// Replaces the key's value by the result of `function`, and returns it. The function gets None if the key is
    /// absent, and removes the key by returning None.
    ///
    /// Atomic: if another thread writes the key meanwhile, the function is called again with the new value. No lock is
    /// held while it runs, so that it may use the tree.
    ///
    ///     >>> tree = Tree()
    ///     >>> for word in b"to be or not to be".split():
    ///     ...     _ = tree.update_with(word, lambda count: b"%d" % (int(count or 0) + 1))
    ///     >>> dict(tree)
    ///     {b'be': b'2', b'not': b'1', b'or': b'1', b'to': b'2'}
    #[pyo3(signature = (key, function, /))]
    fn update_with<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = self.options.keys.input(key, "a key")?;
        let key: &[u8] = &key;
        let values = &self.options.values;
        loop {
            let old = self.work(py, |tree| tree.get(key))?;
            let shown = old.as_deref().map(|old| values.output(py, old)).transpose()?;
            let made = call::with(function, (shown,))?;
            let new = match made.is_none() {
                true => None,
                false => Some(values.input(&made, "what the function returns")?),
            };
            let (old, new) = (old.as_deref(), new.as_deref());
            self.note_value(new.map_or(0, <[u8]>::len));
            if self.work(py, |tree| tree.compare_and_swap(key, old, new))? {
                return Ok(new.is_some().then_some(made));
            }
            py.check_signals()?;
        }
    }
}
