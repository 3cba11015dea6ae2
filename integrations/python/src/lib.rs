//! The extension module `leafpress._leafpress`: what the package `leafpress` puts its Python on.
//!
//! `input` takes keys and values from Python's objects and makes objects of them, `errors` makes exceptions of the library's errors,
//! `call` calls Python code, `fork` keeps a forked process from what its parent made, `interpreter` all interpreters but one from the module. The others are the module's classes and functions.
#![warn(missing_docs)]
// `call`, `fork`, `input` and `interpreter` need it: they call what has no safe binding.
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
