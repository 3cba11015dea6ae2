//! Conversion between Python's objects and keys and values.

use std::ops::Deref;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::call;
use crate::errors::Class;

/// Bytes of an object that cannot change: borrowed from `bytes` and UTF-8 `str`, copied from any other buffer. They
/// stay valid when the interpreter's lock is released.
pub struct Input<'a, 'py> {
    bytes: &'a [u8],
    /// The owner of the bytes, if it is not the caller's object.
    _copy: Option<Bound<'py, PyBytes>>,
}

impl Deref for Input<'_, '_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl AsRef<[u8]> for Input<'_, '_> {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

impl<'a, 'py> Input<'a, 'py> {
    /// Returns the bytes of `bytes`, `bytearray`, `memoryview` or any object with the buffer protocol.
    ///
    /// # Errors
    /// `TypeError` with `role` and the type of the object.
    #[inline]
    pub fn of_buffer(object: &'a Bound<'py, PyAny>, role: &str) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self {
                bytes: bytes.as_bytes(),
                _copy: None,
            });
        }
        Self::of_other(object, role)
    }

    #[cold]
    fn of_other(object: &Bound<'py, PyAny>, role: &str) -> PyResult<Self> {
        let py = object.py();
        // SAFETY: both functions take any object and return a new reference, or null with an exception set. That there
        // is a memory view of it shows that it is a buffer: `PyBytes_FromObject` alone would take lists of numbers too.
        // The buffer protocol itself is not in the stable interface of Python 3.10.
        let copy = unsafe {
            let view = Bound::from_owned_ptr_or_opt(py, ffi::PyMemoryView_FromObject(object.as_ptr()));
            let Some(view) = view else {
                drop(PyErr::take(py));
                return Err(wrong_type(object, role, "bytes or another buffer"));
            };
            Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromObject(view.as_ptr()))?.cast_into_unchecked::<PyBytes>()
        };
        Ok(Self::held_by(copy))
    }

    fn held_by(copy: Bound<'py, PyBytes>) -> Self {
        let bytes: *const [u8] = copy.as_bytes();
        Self {
            // SAFETY: they belong to a `bytes` object, which never changes or moves them, and which is kept next to
            // them.
            bytes: unsafe { &*bytes },
            _copy: Some(copy),
        }
    }
}

fn wrong_type(object: &Bound<'_, PyAny>, role: &str, wanted: &str) -> PyErr {
    let found = object
        .get_type()
        .name()
        .map_or_else(|_| "something else".into(), |name| name.to_string());
    PyTypeError::new_err(format!("{role} must be {wanted}, not {found}"))
}

/// The Python type of keys or values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As `bytes`.
    Bytes,
    /// As `str` in UTF-8. The order of the bytes is the order of the strings.
    Utf8,
    /// As `str` in an encoding of Python's, by its name. The order is that of the bytes.
    Named(String),
}

impl Encoding {
    /// Returns the encoding of a name as `str.encode` takes it; [`None`] stands for [`Encoding::Bytes`].
    ///
    /// # Errors
    /// `InvalidOption` for a name that Python does not know.
    pub fn of_name(py: Python<'_>, name: Option<&str>) -> PyResult<Self> {
        let Some(name) = name else {
            return Ok(Self::Bytes);
        };
        let found = py
            .import("codecs")?
            .call_method1("lookup", (name,))
            .map_err(|_| Class::InvalidOption.error(format!("encoding: Python knows no encoding {name:?}")))?;
        let name: String = found.getattr("name")?.extract()?;
        Ok(if name == "utf-8" { Self::Utf8 } else { Self::Named(name) })
    }

    /// Returns the name, for making another tree like this one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Bytes => None,
            Self::Utf8 => Some("utf-8"),
            Self::Named(name) => Some(name),
        }
    }

    /// Returns the bytes of a key or value; `role` is its name in messages.
    ///
    /// # Errors
    /// `TypeError` for an object of another type, `UnicodeEncodeError` for text that cannot be encoded.
    #[inline]
    pub fn input<'a, 'py>(&self, object: &'a Bound<'py, PyAny>, role: &str) -> PyResult<Input<'a, 'py>> {
        match self {
            Self::Bytes => Input::of_buffer(object, role),
            Self::Utf8 => match object.cast::<PyString>() {
                Ok(text) => Ok(Input {
                    bytes: text.to_str()?.as_bytes(),
                    _copy: None,
                }),
                Err(_) => Err(wrong_type(object, role, "str, as the encoding says")),
            },
            Self::Named(name) => {
                let text = object
                    .cast::<PyString>()
                    .map_err(|_| wrong_type(object, role, "str, as the encoding says"))?;
                let encoded = call::method(text.as_any(), "encode", (name,))?;
                let encoded = encoded
                    .cast_into::<PyBytes>()
                    .map_err(|_| Class::InvalidOption.error(format!("encoding: {name} makes no bytes of a str")))?;
                Ok(Input::held_by(encoded))
            }
        }
    }

    /// Makes an object of bytes that a tree or cache holds.
    ///
    /// # Errors
    /// `UnicodeDecodeError` if they are not valid in the encoding.
    #[inline]
    pub fn output<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Bytes => Ok(PyBytes::new(py, bytes).into_any()),
            // SAFETY: the pointer and the length are those of the slice, which the function copies. It checks the
            // bytes.
            Self::Utf8 => unsafe {
                Bound::from_owned_ptr_or_err(
                    py,
                    ffi::PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), bytes.len().cast_signed(), std::ptr::null()),
                )
            },
            Self::Named(name) => call::method(&PyBytes::new(py, bytes), "decode", (name,)),
        }
    }
}
