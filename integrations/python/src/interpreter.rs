//! Only one interpreter of a process may use the module, the first that imports it.
//!
//! Objects that the module keeps for the whole process, such as the classes of its exceptions, belong to that
//! interpreter.

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Its number; no interpreter has the number -1.
static OWNER: AtomicI64 = AtomicI64::new(-1);

/// # Errors
/// `ImportError` in another interpreter than the first.
pub fn claim(_py: Python<'_>) -> PyResult<()> {
    // SAFETY: both may be called while the thread is attached to an interpreter, as the token says; the first never
    // returns null then.
    let current = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    match OWNER.compare_exchange(-1, current, Ordering::Relaxed, Ordering::Relaxed) {
        Err(owner) if owner != current => Err(PyImportError::new_err(
            "leafpress is imported by another interpreter of this process, and only one may have it: use threads or \
             processes",
        )),
        _ => Ok(()),
    }
}
