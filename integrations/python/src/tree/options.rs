//! The options of a tree: keyword arguments, and the library's builder.

use leafpress::{Dictionary, DictionaryChoice, TreeBuilder};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::errors::{Class, of_codec};
use crate::input::{Encoding, Input};

/// The number of a dictionary that is passed as bytes. The tree has no other one then.
const PASSED_DICTIONARY_ID: u32 = 1;

/// The value of `dictionary=`.
#[derive(Clone)]
enum DictionaryOption {
    Auto,
    Off,
    Given(Dictionary),
}

impl DictionaryOption {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if object.is_none() {
            return Ok(Self::Off);
        }
        if let Ok(text) = object.cast::<PyString>() {
            return match text.to_str()? {
                "auto" => Ok(Self::Auto),
                other => Err(Class::InvalidOption.error(format!(
                    "dictionary: {other:?} is unknown: it takes \"auto\", None, a leafpress.codec.Dictionary, or its \
                     bytes"
                ))),
            };
        }
        let bytes = match object.hasattr("to_bytes")? && !object.is_instance_of::<pyo3::types::PyInt>() {
            true => object.call_method0("to_bytes")?,
            false => object.clone(),
        };
        let bytes = Input::of_buffer(&bytes, "dictionary")?;
        Ok(Self::Given(Dictionary::from_bytes(
            PASSED_DICTIONARY_ID,
            bytes.as_ref(),
        )))
    }
}

/// The sizes among the options, in the order of [`SIZES`]; [`None`] is the library's default.
const SIZES: [&str; 7] = [
    "dictionary_bytes",
    "frame_bytes",
    "leaf_bytes",
    "landing_bytes",
    "shards",
    "background_threads",
    "load_threads",
];

/// The options of a tree, kept for making another like it.
#[derive(Clone)]
pub struct Options {
    codec: leafpress::Codec,
    pub keys: Encoding,
    pub values: Encoding,
    dictionary: DictionaryOption,
    sizes: [Option<usize>; SIZES.len()],
}

impl Options {
    /// Returns the options of keyword arguments.
    ///
    /// # Errors
    /// `TypeError` for an unknown name, or a value of the wrong type; `InvalidOption` for a value that is not allowed.
    pub fn of(py: Python<'_>, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Self {
            codec: leafpress::Codec::Trial {
                goal: leafpress::codec::TrialGoal::Balance,
            },
            keys: Encoding::Bytes,
            values: Encoding::Bytes,
            dictionary: DictionaryOption::Auto,
            sizes: [None; SIZES.len()],
        };
        let Some(given) = given else { return Ok(options) };
        for (name, value) in given.iter() {
            let name: String = name.extract()?;
            match name.as_str() {
                "codec" => options.codec = codec(&value)?,
                "encoding" => (options.keys, options.values) = encodings(py, &value)?,
                "dictionary" => options.dictionary = DictionaryOption::of(&value)?,
                _ => {
                    let Some(at) = SIZES.iter().position(|size| *size == name) else {
                        return Err(PyTypeError::new_err(format!(
                            "Tree takes no keyword argument {name:?}; it takes codec, encoding, dictionary, {}",
                            SIZES.join(", ")
                        )));
                    };
                    options.sizes[at] = size(SIZES[at], &value)?;
                }
            }
        }
        Ok(options)
    }

    /// Builds an empty tree.
    ///
    /// # Errors
    /// As the library's builder.
    pub fn build(&self) -> Result<leafpress::Tree, leafpress::TreeError> {
        let mut builder: TreeBuilder = leafpress::Tree::builder().codec(self.codec);
        builder = builder.dictionary(match &self.dictionary {
            DictionaryOption::Auto => DictionaryChoice::Auto,
            DictionaryOption::Off => DictionaryChoice::Off,
            DictionaryOption::Given(dictionary) => DictionaryChoice::Given(dictionary.clone()),
        });
        let setters: [fn(TreeBuilder, usize) -> TreeBuilder; SIZES.len()] = [
            TreeBuilder::dictionary_bytes,
            TreeBuilder::frame_bytes,
            TreeBuilder::leaf_bytes,
            TreeBuilder::landing_bytes,
            TreeBuilder::shards,
            TreeBuilder::background_threads,
            TreeBuilder::load_threads,
        ];
        for (set, size) in setters.iter().zip(self.sizes) {
            if let Some(size) = size {
                builder = set(builder, size);
            }
        }
        builder.build()
    }

    /// Returns the keyword arguments of these options.
    pub fn to_keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let keywords = PyDict::new(py);
        keywords.set_item("codec", self.codec.to_string())?;
        keywords.set_item("encoding", self.encoding(py)?)?;
        match &self.dictionary {
            DictionaryOption::Auto => keywords.set_item("dictionary", "auto")?,
            DictionaryOption::Off => keywords.set_item("dictionary", py.None())?,
            DictionaryOption::Given(given) => keywords.set_item("dictionary", PyBytes::new(py, given.bytes()))?,
        }
        for (name, size) in SIZES.iter().zip(self.sizes) {
            if size.is_some() {
                keywords.set_item(name, size)?;
            }
        }
        Ok(keywords)
    }

    pub fn codec_name(&self) -> String {
        self.codec.to_string()
    }

    /// Returns the encoding in the form of `encoding=`: one name, or a pair if keys and values differ.
    pub fn encoding<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.keys == self.values {
            return Ok(self.keys.name().into_pyobject(py)?.into_any());
        }
        Ok((self.keys.name(), self.values.name()).into_pyobject(py)?.into_any())
    }
}

fn codec(object: &Bound<'_, PyAny>) -> PyResult<leafpress::Codec> {
    let text = object
        .cast::<PyString>()
        .map_err(|_| PyTypeError::new_err("codec must be a str, such as \"lz4\" or \"zstd:3\""))?;
    text.to_str()?.parse().map_err(|error| of_codec(&error))
}

fn encodings(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<(Encoding, Encoding)> {
    let one = |object: &Bound<'_, PyAny>| -> PyResult<Encoding> {
        let name = object.extract::<Option<String>>().map_err(|_| {
            PyTypeError::new_err("encoding must be None, the name of one, or a pair of these for keys and values")
        })?;
        Encoding::of_name(py, name.as_deref())
    };
    match object.cast::<PyTuple>() {
        Ok(pair) if pair.len() == 2 => Ok((one(&pair.get_item(0)?)?, one(&pair.get_item(1)?)?)),
        Ok(other) => Err(Class::InvalidOption.error(format!(
            "encoding: a pair is for keys and values, and this has {} elements",
            other.len()
        ))),
        Err(_) => one(object).map(|both| (both.clone(), both)),
    }
}

/// Returns a whole number that is not below 0, or `None`.
fn size(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    if object.is_none() {
        return Ok(None);
    }
    match object.extract::<usize>() {
        Ok(size) => Ok(Some(size)),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => Err(Class::InvalidOption.error(format!(
            "{name}: {} is out of bounds",
            object
                .str()
                .map_or_else(|_| "the number".to_owned(), |text| text.to_string())
        ))),
        Err(_) => Err(PyTypeError::new_err(format!("{name} must be an int or None"))),
    }
}
