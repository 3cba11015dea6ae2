//! The extension module `leafpress._leafpress`, on which the package `leafpress` is built.
//!
//! `input` converts keys and values from and to Python's objects, `errors` converts the library's errors to exceptions,
//! `call` calls Python code, `fork` refuses uses of a parent's objects in a forked process, `interpreter` refuses other
//! interpreters. The others are the module's classes and functions.
#![warn(missing_docs)]
// `call`, `fork`, `input` and `interpreter` need it: they call functions without safe bindings.
#![deny(unsafe_code, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

#[cfg(feature = "advise")]
mod advise;
mod cache;
#[allow(unsafe_code)]
mod call;
mod codec;
mod errors;
#[allow(unsafe_code)]
mod fork;
#[allow(unsafe_code)]
mod input;
#[allow(unsafe_code)]
mod interpreter;
mod lock;
mod tree;

use pyo3::prelude::*;

#[pymodule]
fn _leafpress(module: &Bound<'_, PyModule>) -> PyResult<()> {
    interpreter::claim(module.py())?;
    fork::watch();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    #[cfg(feature = "advise")]
    advise::register(module)?;
    cache::register(module)?;
    codec::register(module)?;
    tree::register(module)
}
