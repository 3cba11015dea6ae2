//! The library's errors as Python's exceptions.
//!
//! The classes are written in Python, in `leafpress/_errors.py`: they have two bases, which a class made here cannot have.

use leafpress::{CacheError, CodecError, Error};
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
            /// An exception of this class.
            pub fn error(self, message: impl Into<String>) -> PyErr {
                let message = message.into();
                Python::attach(|py| {
                    let class = match self { $( Self::$name => {
                        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
                        CLASS.import(py, "leafpress._errors", stringify!($name))
                    } )* };
                    match class {
                        Ok(class) => PyErr::from_type(class.clone(), message),
                        Err(error) => error,
                    }
                })
            }
        }
    };
}

classes! {
    Error, KeyTooLong, ValueTooLong, InvalidOption, OutOfMemory, CorruptBlock, CodecUnavailable, CodecFailed, DiskError, BackgroundFailed, Closed,
    ForkedProcess, LoadCycle,
}

/// A codec's error as an exception.
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

/// A tree's error as an exception.
pub fn of_tree(error: &Error) -> PyErr {
    let class = match error {
        Error::Codec(error) => return of_codec(error),
        Error::KeyTooLong { .. } => Class::KeyTooLong,
        Error::ValueTooLong { .. } => Class::ValueTooLong,
        Error::Option { .. } | Error::Unsorted { .. } => Class::InvalidOption,
        Error::OutOfMemory { .. } => Class::OutOfMemory,
        Error::Thread { .. } | Error::Background { .. } => Class::BackgroundFailed,
        _ => Class::Error,
    };
    class.error(error.to_string())
}

/// A cache's error as an exception.
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
