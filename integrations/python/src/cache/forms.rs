//! Conversion of keys and values between Python's objects and the cache's bytes.

use pyo3::exceptions::PyTypeError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use pyo3::{PyTraverseError, intern};

use super::keys;
use crate::call;
use crate::errors::Class;
use crate::input::{Encoding, Input};

/// The type of keys.
pub enum KeyForm {
    /// bytes, or str in an encoding.
    Plain(Encoding),
    /// Several types: see [`keys`].
    Tagged,
}

/// The bytes of a key: borrowed, or made for it.
pub enum Key<'a, 'py> {
    Of(Input<'a, 'py>),
    Made(Vec<u8>),
}

impl AsRef<[u8]> for Key<'_, '_> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Of(input) => input,
            Self::Made(bytes) => bytes,
        }
    }
}

impl KeyForm {
    /// # Errors
    /// `TypeError` and others for what is not a key.
    #[inline]
    pub fn input<'a, 'py>(&self, object: &'a Bound<'py, PyAny>) -> PyResult<Key<'a, 'py>> {
        match self {
            Self::Plain(encoding) => encoding.input(object, "key").map(Key::Of),
            Self::Tagged => keys::encoded(object).map(Key::Made),
        }
    }

    /// Returns the range of the keys that begin with this prefix: its start, and its end if it is bounded.
    ///
    /// # Errors
    /// As [`KeyForm::input`].
    pub fn prefix(&self, object: &Bound<'_, PyAny>) -> PyResult<(Vec<u8>, Option<Vec<u8>>)> {
        match self {
            Self::Plain(encoding) => Ok((encoding.input(object, "prefix")?.to_vec(), None)),
            Self::Tagged => keys::prefix(object),
        }
    }

    /// # Errors
    /// Where the bytes are not of this form.
    pub fn output<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Plain(encoding) => encoding.output(py, bytes),
            Self::Tagged => keys::decoded(py, bytes),
        }
    }

    /// Returns whether keys are only bytes.
    pub fn are_bytes(&self) -> bool {
        matches!(self, Self::Plain(Encoding::Bytes))
    }

    fn mark(&self) -> u8 {
        match self {
            Self::Plain(Encoding::Bytes) => 0,
            Self::Plain(_) => 1,
            // 2 was an order that had floats behind ints.
            Self::Tagged => 3,
        }
    }
}

/// Converts between bytes and values.
struct Serializer {
    dumps: Py<PyAny>,
    loads: Py<PyAny>,
    /// `loads` takes str.
    is_text: bool,
    mark: u8,
}

/// The type of values.
pub struct ValueForm {
    encoding: Encoding,
    serializer: Option<Serializer>,
    /// A mark behind each value, if there is a disk tier: values that another form has written are ignored. Bytes from
    /// outside that were cached verbatim never reach a serializer.
    mark: Option<u8>,
}

/// The bytes of a value as the cache keeps them.
pub enum Value<'a, 'py> {
    Of(Input<'a, 'py>),
    Made(Vec<u8>),
}

impl AsRef<[u8]> for Value<'_, '_> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Of(input) => input,
            Self::Made(bytes) => bytes,
        }
    }
}

/// Returns the forms that a cache's options select. `serializer` is `None`, a name, or a pair of callables.
///
/// # Errors
/// `InvalidOption` and `TypeError` for invalid options, `ImportError`, a base of `CodecUnavailable`, for a module that
/// is not installed.
pub fn forms(
    py: Python<'_>,
    serializer: Option<&Bound<'_, PyAny>>,
    encoding: Option<&Bound<'_, PyAny>>,
    is_on_disk: bool,
) -> PyResult<(KeyForm, ValueForm)> {
    let (of_keys, of_values) = encodings(py, encoding)?;
    let serializer = serializer.filter(|of| !of.is_none()).map(Serializer::of).transpose()?;
    if serializer.is_some() && of_values != Encoding::Bytes && encoding.is_some_and(|of| of.is_instance_of::<PyTuple>())
    {
        return Err(Class::InvalidOption.error(
            "encoding: with a serializer, values are made by it: give an encoding for keys alone, as in \
             encoding=\"utf-8\"",
        ));
    }
    let keys = match (&serializer, of_keys) {
        (Some(_), Encoding::Bytes) => KeyForm::Tagged,
        (_, encoding) => KeyForm::Plain(encoding),
    };
    let of_value = match &serializer {
        Some(serializer) => serializer.mark,
        None => u8::from(of_values != Encoding::Bytes),
    };
    let mark = is_on_disk.then(|| keys.mark() << 4 | of_value);
    let values = ValueForm {
        encoding: if serializer.is_some() {
            Encoding::Bytes
        } else {
            of_values
        },
        serializer,
        mark,
    };
    Ok((keys, values))
}

/// Returns the encodings of keys and of values: one name for both, or a pair.
fn encodings(py: Python<'_>, encoding: Option<&Bound<'_, PyAny>>) -> PyResult<(Encoding, Encoding)> {
    let Some(encoding) = encoding.filter(|of| !of.is_none()) else {
        return Ok((Encoding::Bytes, Encoding::Bytes));
    };
    let wrong = || {
        PyTypeError::new_err("encoding must be None, a name as \"utf-8\", or a pair of these for keys and for values")
    };
    let name = |of: &Bound<'_, PyAny>| -> PyResult<Encoding> {
        let name: Option<String> = of.extract().map_err(|_| wrong())?;
        Encoding::of_name(py, name.as_deref())
    };
    match encoding.cast::<PyTuple>() {
        Ok(pair) if pair.len() == 2 => Ok((name(&pair.get_item(0)?)?, name(&pair.get_item(1)?)?)),
        Ok(_) => Err(wrong()),
        Err(_) => Ok((name(encoding)?, name(encoding)?)),
    }
}

impl Serializer {
    fn of(serializer: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = serializer.py();
        if let Ok(name) = serializer.cast::<PyString>() {
            let name = name.to_str()?;
            let mark = match name {
                "pickle" => 2,
                "json" => 3,
                "msgpack" => 4,
                _ => {
                    return Err(Class::InvalidOption.error(format!(
                        "serializer: there is no {name:?}: \"pickle\", \"json\", \"msgpack\" and pairs of callables \
                         (dumps, loads) are known"
                    )));
                }
            };
            let found = py.import("leafpress._serializers")?.getattr(name)?.call0()?;
            let (dumps, loads) = found.extract()?;
            return Ok(Self {
                dumps,
                loads,
                is_text: mark == 3,
                mark,
            });
        }
        let wrong = || PyTypeError::new_err("serializer must be a name or a pair of callables (dumps, loads)");
        let (dumps, loads): (Bound<'_, PyAny>, Bound<'_, PyAny>) = serializer.extract().map_err(|_| wrong())?;
        if !dumps.is_callable() || !loads.is_callable() {
            return Err(wrong());
        }
        Ok(Self {
            dumps: dumps.unbind(),
            loads: loads.unbind(),
            is_text: false,
            mark: 5,
        })
    }
}

impl ValueForm {
    /// Returns the bytes of a value.
    ///
    /// # Errors
    /// `TypeError` for what is not a value, and whatever the serializer raises.
    pub fn input<'a, 'py>(&self, object: &'a Bound<'py, PyAny>) -> PyResult<Value<'a, 'py>> {
        let py = object.py();
        let Some(serializer) = &self.serializer else {
            let input = self.encoding.input(object, "value")?;
            return Ok(match self.mark {
                None => Value::Of(input),
                Some(mark) => Value::Made(marked(&input, Some(mark))),
            });
        };
        let dumped = call::with(serializer.dumps.bind(py), (object,))?;
        let bytes = match dumped.cast::<PyString>() {
            Ok(text) => marked(text.to_str()?.as_bytes(), self.mark),
            Err(_) => marked(
                &Input::of_buffer(&dumped, "what the serializer's dumps returns")?,
                self.mark,
            ),
        };
        Ok(Value::Made(bytes))
    }

    /// Returns an object with the bytes of a value, which [`ValueForm::finish`] converts to the value. It runs no
    /// Python code. [`None`] means a value of another form.
    ///
    /// # Errors
    /// `UnicodeDecodeError` where the bytes are not of the encoding.
    #[inline]
    pub fn raw<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(bytes) = self.unmarked(bytes) else {
            return Ok(None);
        };
        match &self.serializer {
            None => self.encoding.output(py, bytes).map(Some),
            Some(serializer) if serializer.is_text => Encoding::Utf8.output(py, bytes).map(Some),
            Some(_) => Ok(Some(PyBytes::new(py, bytes).into_any())),
        }
    }

    /// Returns the serializer's result.
    ///
    /// # Errors
    /// Whatever the serializer raises.
    #[inline]
    pub fn finish<'py>(&self, raw: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match &self.serializer {
            None => Ok(raw),
            Some(serializer) => call::with(serializer.loads.bind(raw.py()), (&raw,)),
        }
    }

    /// Returns the value of bytes; [`None`] if they are of another form.
    ///
    /// # Errors
    /// As [`ValueForm::raw`] and [`ValueForm::finish`].
    pub fn output<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.raw(py, bytes)?.map(|raw| self.finish(raw)).transpose()
    }

    fn unmarked<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        match self.mark {
            None => Some(bytes),
            Some(mark) => bytes
                .split_last()
                .filter(|(last, _)| **last == mark)
                .map(|(_, value)| value),
        }
    }

    /// Returns whether values are made by a serializer.
    pub fn is_serialized(&self) -> bool {
        self.serializer.is_some()
    }

    /// Returns whether values are str.
    pub fn is_text(&self) -> bool {
        self.encoding != Encoding::Bytes
    }

    /// Visits its objects for the garbage collector.
    ///
    /// # Errors
    /// The visitor's.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(serializer) = &self.serializer {
            visit.call(&serializer.dumps)?;
            visit.call(&serializer.loads)?;
        }
        Ok(())
    }
}

fn marked(bytes: &[u8], mark: Option<u8>) -> Vec<u8> {
    let mut marked = Vec::with_capacity(bytes.len() + 1);
    marked.extend_from_slice(bytes);
    marked.extend(mark);
    marked
}

/// Returns `"name"` of an object, for messages.
pub fn name_of(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().getattr(intern!(object.py(), "__name__"));
    name.map_or_else(|_| "something else".into(), |name| name.to_string())
}
