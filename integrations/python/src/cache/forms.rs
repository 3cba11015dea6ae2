//! What keys and values are in Python, and what bytes they are in the cache.

use pyo3::exceptions::PyTypeError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use pyo3::{PyTraverseError, intern};

use super::keys;
use crate::call;
use crate::errors::Class;
use crate::input::{Encoding, Input};

/// What keys are.
pub enum KeyForm {
    /// bytes, or str in an encoding.
    Plain(Encoding),
    /// Of several types: see [`keys`].
    Tagged,
}

/// The bytes of a key: its own, or made for it.
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
    /// `TypeError` and others for what is no key.
    #[inline]
    pub fn input<'a, 'py>(&self, object: &'a Bound<'py, PyAny>) -> PyResult<Key<'a, 'py>> {
        match self {
            Self::Plain(encoding) => encoding.input(object, "key").map(Key::Of),
            Self::Tagged => keys::encoded(object).map(Key::Made),
        }
    }

    /// The keys that begin with this: from where, and up to where if that is not all that begins so.
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

    /// Whether keys are bytes and nothing else.
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

/// Makes values of bytes, and bytes of values.
struct Serializer {
    dumps: Py<PyAny>,
    loads: Py<PyAny>,
    /// `loads` takes str.
    is_text: bool,
    mark: u8,
}

/// What values are.
pub struct ValueForm {
    encoding: Encoding,
    serializer: Option<Serializer>,
    /// Stands behind each value, where there is a disk tier: what another form has written is not there. Bytes from outside that were
    /// cached as they are never reach a serializer.
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

/// The forms that a cache's options ask for. `serializer` is `None`, a name, or a pair of callables.
///
/// # Errors
/// `InvalidOption` and `TypeError` for options that are none, `CodecUnavailable`'s kin `ImportError` for a module that is not installed.
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
            "encoding: with a serializer, values are made by it: give an encoding for keys alone, as in encoding=\"utf-8\"",
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

/// Encodings of keys and of values: one name for both, or a pair.
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
                        "serializer: there is no {name:?}: \"pickle\", \"json\", \"msgpack\" and pairs of callables (dumps, loads) are known"
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
    /// The bytes of a value.
    ///
    /// # Errors
    /// `TypeError` for what is no value, and whatever the serializer raises.
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

    /// An object with the bytes of a value, which [`ValueForm::finish`] makes the value of. It runs no Python. [`None`] is a value of another
    /// form.
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

    /// What the serializer makes of it.
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

    /// The value of bytes; [`None`] where they are of another form.
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

    /// Whether values are made by a serializer.
    pub fn is_serialized(&self) -> bool {
        self.serializer.is_some()
    }

    /// Whether values are str.
    pub fn is_text(&self) -> bool {
        self.encoding != Encoding::Bytes
    }

    /// For the garbage collector.
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

/// `"name"` of an object, for messages.
pub fn name_of(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().getattr(intern!(object.py(), "__name__"));
    name.map_or_else(|_| "something else".into(), |name| name.to_string())
}
