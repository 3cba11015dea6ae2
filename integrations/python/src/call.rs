//! Calls that run Python code.
//!
//! Until version 3.13, an interpreter that is about to end stops its daemon threads by `pthread_exit` when they request
//! its lock. That unwinds the thread's stack, and unwinding it through Rust's frames aborts the process. pyo3 lets a
//! thread hang that is stopped while it takes the lock by pyo3. Called code takes the lock at any time, so the calls
//! here let the thread hang as well, as later interpreters do. The process ends without it.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// As in `pyo3::ffi`, except that they are declared to unwind.
///
/// They are called by pointers that are opaque to the compiler: pyo3 declares the same symbols as functions that never
/// unwind, and where both declarations meet, the optimizer relies on that and removes [`Hang`].
mod raw {
    use std::hint::black_box;

    use pyo3::ffi::PyObject;

    type Object = *mut PyObject;

    mod declared {
        use super::Object;

        unsafe extern "C-unwind" {
            pub fn PyObject_Call(callable: Object, arguments: Object, words: Object) -> Object;
            pub fn PyObject_GetIter(object: Object) -> Object;
            pub fn PyObject_GetItem(object: Object, key: Object) -> Object;
            pub fn PyIter_Next(iterator: Object) -> Object;
        }
    }

    pub fn object_call() -> unsafe extern "C-unwind" fn(Object, Object, Object) -> Object {
        black_box::<unsafe extern "C-unwind" fn(Object, Object, Object) -> Object>(declared::PyObject_Call)
    }

    pub fn object_get_iter() -> unsafe extern "C-unwind" fn(Object) -> Object {
        black_box::<unsafe extern "C-unwind" fn(Object) -> Object>(declared::PyObject_GetIter)
    }

    pub fn object_get_item() -> unsafe extern "C-unwind" fn(Object, Object) -> Object {
        black_box::<unsafe extern "C-unwind" fn(Object, Object) -> Object>(declared::PyObject_GetItem)
    }

    pub fn iter_next() -> unsafe extern "C-unwind" fn(Object) -> Object {
        black_box::<unsafe extern "C-unwind" fn(Object) -> Object>(declared::PyIter_Next)
    }
}

/// Hangs a thread that would be unwound.
struct Hang;

impl Drop for Hang {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Runs `call`, which runs Python code, and does not continue if that does not return. There may be no destructor
/// between the two.
#[inline(never)]
fn held<R>(call: impl FnOnce() -> R) -> R {
    let guard = Hang;
    let result = call();
    std::mem::forget(guard);
    result
}

/// Calls with arguments by position and by name.
///
/// # Errors
/// What it raises.
pub fn with_words<'py>(
    callable: &Bound<'py, PyAny>,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    words: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = callable.py();
    let arguments = arguments.into_pyobject(py).map_err(Into::into)?;
    let words = words.map_or(std::ptr::null_mut(), Bound::as_ptr);
    let (function, arguments) = (callable.as_ptr(), arguments.as_ptr());
    // SAFETY: the thread is attached, as `py` shows; the objects are borrowed for the call, a tuple and a dict or null
    // where such are requested; a new reference is returned, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, held(|| raw::object_call()(function, arguments, words))) }
}

/// Calls with arguments by position.
///
/// # Errors
/// What it raises.
pub fn with<'py>(
    callable: &Bound<'py, PyAny>,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    with_words(callable, arguments, None)
}

/// Calls a method.
///
/// # Errors
/// What it raises, or `AttributeError`.
pub fn method<'py>(
    object: &Bound<'py, PyAny>,
    name: &str,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    with(&object.getattr(name)?, arguments)
}

/// `object[key]`
///
/// # Errors
/// What it raises.
pub fn item<'py>(object: &Bound<'py, PyAny>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, from, key) = (object.py(), object.as_ptr(), key.as_ptr());
    // SAFETY: the thread is attached, as `py` shows, and both objects are borrowed for the call; a new reference is
    // returned, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, held(|| raw::object_get_item()(from, key))) }
}

/// A Python iterator.
pub struct Iter<'py>(Bound<'py, PyAny>);

/// Iterates over an object.
///
/// # Errors
/// `TypeError` where that cannot be done, and what its `__iter__` raises.
pub fn iterate<'py>(object: &Bound<'py, PyAny>) -> PyResult<Iter<'py>> {
    let (py, from) = (object.py(), object.as_ptr());
    // SAFETY: the thread is attached, as `py` shows, and the object is borrowed for the call; a new reference to an
    // iterator is returned, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, held(|| raw::object_get_iter()(from))) }.map(Iter)
}

impl Iter<'_> {
    /// Returns the iterator itself, to be stored.
    pub fn unbind(self) -> Py<PyAny> {
        self.0.unbind()
    }
}

/// Returns the next object of an iterator from [`Iter::unbind`].
pub fn next<'py>(iterator: &Bound<'py, PyAny>) -> Option<PyResult<Bound<'py, PyAny>>> {
    let (py, from) = (iterator.py(), iterator.as_ptr());
    // SAFETY: it is an iterator, and the thread is attached; a new reference is returned, or null, with an exception
    // set where it is not the end.
    let item = unsafe { Bound::from_owned_ptr_or_opt(py, held(|| raw::iter_next()(from))) };
    match item {
        Some(item) => Some(Ok(item)),
        None => PyErr::take(py).map(Err),
    }
}

impl<'py> Iterator for Iter<'py> {
    type Item = PyResult<Bound<'py, PyAny>>;

    fn next(&mut self) -> Option<Self::Item> {
        next(&self.0)
    }
}
