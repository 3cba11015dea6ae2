//! The library's errors as Python's exceptions.
//!
//! The classes are written in Python, in `leafpress/_errors.py`: they have two bases, which a class made here cannot
//! have.

use std::path::Path;

use leafpress::{CacheError, CodecError, TreeError};
use pyo3::PyErrArguments;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// A class of `leafpress._errors`.
macro_rules! classes {
    ($($name:ident),* $(,)?) => {
        /// The exceptions of the package.
        #[derive(Clone, Copy, Debug)]
        pub enum Class { $(
            #[doc = concat!("`leafpress.", stringify!($name), "`")]
            $name,
        )* }

        impl Class {
            /// Returns an exception of this class, made of its message or its constructor's arguments.
            pub fn error(self, arguments: impl PyErrArguments + 'static) -> PyErr {
                Python::attach(|py| {
                    let class = match self { $( Self::$name => {
                        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
                        CLASS.import(py, "leafpress._errors", stringify!($name))
                    } )* };
                    match class {
                        Ok(class) => PyErr::from_type(class.clone(), arguments),
                        Err(error) => error,
                    }
                })
            }
        }
    };
}

classes! {
    Error, KeyTooLong, ValueTooLong, InvalidOption, OutOfMemory, CorruptBlock, CodecUnavailable, CodecFailed,
    DiskError, BackgroundFailed, Closed, ForkedProcess, LoadCycle,
}

/// Returns the `KeyError` of an absent key, whose argument is the key itself.
#[cold]
pub fn missing(key: &Bound<'_, PyAny>) -> PyErr {
    // In a tuple, which an exception would unpack, the key stays the argument.
    PyKeyError::new_err((key.clone().unbind(),))
}

/// Returns the error of a call of a closed cache.
#[cold]
pub fn closed() -> PyErr {
    Class::Closed.error("the cache is closed: make another, which finds what this one left on disk")
}

/// Converts a codec's error to an exception.
pub fn of_codec(error: &CodecError) -> PyErr {
    let class = match error {
        CodecError::UnknownName(_) => Class::InvalidOption,
        CodecError::Unavailable { .. } => Class::CodecUnavailable,
        CodecError::Corrupt { .. } | CodecError::UnknownDictionary { .. } => Class::CorruptBlock,
        CodecError::TooLong { .. } => Class::ValueTooLong,
        CodecError::OutOfMemory { .. } => Class::OutOfMemory,
        _ => Class::CodecFailed,
    };
    class.error(error.to_string())
}

/// Converts a tree's error to an exception.
pub fn of_tree(error: &TreeError) -> PyErr {
    let class = match error {
        TreeError::Codec(error) => return of_codec(error),
        TreeError::KeyTooLong { .. } => Class::KeyTooLong,
        TreeError::ValueTooLong { .. } => Class::ValueTooLong,
        TreeError::Option { .. } | TreeError::Unsorted { .. } => Class::InvalidOption,
        TreeError::OutOfMemory { .. } => Class::OutOfMemory,
        TreeError::Thread { .. } | TreeError::Background { .. } => Class::BackgroundFailed,
        _ => Class::Error,
    };
    class.error(error.to_string())
}

/// Returns the system's error number that a text ends with, as the standard library writes it.
fn os_error(text: &str) -> Option<i32> {
    let (_, number) = text.rsplit_once("(os error ")?;
    number.split(')').next()?.parse().ok()
}

/// Converts an error of a cache's disk tier to an `OSError` with its parts; `path` is the file, if that is known.
pub fn of_disk(error: &CacheError, path: Option<&Path>) -> PyErr {
    match (error, path) {
        (CacheError::Disk { .. } | CacheError::NotACache { .. }, Some(path)) => {
            let text = error.to_string();
            Class::DiskError.error((os_error(&text), text, path.as_os_str().to_owned()))
        }
        _ => of_cache(error),
    }
}

/// Converts a cache's error to an exception.
pub fn of_cache(error: &CacheError) -> PyErr {
    let class = match error {
        CacheError::Codec(error) => return of_codec(error),
        CacheError::KeyTooLong { .. } => Class::KeyTooLong,
        CacheError::ValueTooLong { .. } => Class::ValueTooLong,
        CacheError::Option { .. } => Class::InvalidOption,
        CacheError::Disk { .. } | CacheError::NotACache { .. } => Class::DiskError,
        CacheError::OutOfMemory { .. } => Class::OutOfMemory,
        CacheError::Background { .. } => Class::BackgroundFailed,
        _ => Class::Error,
    };
    class.error(error.to_string())
}
