//! `leafpress.codec`: self-describing sealed blocks, and dictionaries.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use crate::lock::Mutex;
use leafpress::codec::sealed::{self, Label, MAX_RAW_BYTES, Sealer};
use leafpress::codec::{Availability, MIN_DICTIONARY_BYTES, MIN_SAMPLE_BYTES, MIN_SAMPLES};
use leafpress::{Codec, CodecError};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyBytes, PyString};

use crate::cache::options;
use crate::errors::{Class, of_codec};
use crate::fork;
use crate::input::Input;

/// From this length on the interpreter's lock is released, as hashlib does.
const LONG_BYTES: usize = 2048;
/// Maximum number of codecs that are kept open.
const MAX_SEALERS: usize = 64;
/// The default length of a dictionary.
const DICTIONARY_BYTES: u64 = 32 << 10;
/// A training reads at most this many times the dictionary's bytes of samples: more only take time.
const MAX_SAMPLES_FACTOR: usize = 100;

/// A dictionary of what records have in common, so that short ones shrink: trained from samples, or any bytes.
///
/// Dictionaries are values: they are compared, hashed and pickled.
///
/// >>> dictionary = codec.Dictionary(b"what records have in common")
/// >>> codec.Dictionary(dictionary.to_bytes()) == dictionary, len(dictionary)
/// (True, 27)
#[pyclass(name = "Dictionary", module = "leafpress.codec", frozen)]
pub struct Dictionary {
    inner: leafpress::Dictionary,
}

/// The arguments that make a dictionary again: its bytes, its id, and its codec.
type Reduced<'py> = (Bound<'py, PyBytes>, Option<u32>, Option<String>);

impl Dictionary {
    /// Returns the class's object of a dictionary.
    pub fn of(inner: leafpress::Dictionary) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Dictionary {
    /// id is the number by which blocks refer to it: by default a hash of the bytes. codec names the codec that it was
    /// trained for; such a dictionary takes no other id.
    #[new]
    #[pyo3(signature = (data, /, id=None, codec=None))]
    fn new(data: &Bound<'_, PyAny>, id: Option<u32>, codec: Option<&str>) -> PyResult<Self> {
        let data = Input::of_buffer(data, "data")?;
        if data.is_empty() {
            return Err(Class::InvalidOption.error("a dictionary has some bytes, 256 at least to be of use"));
        }
        let codec: Option<Codec> = codec
            .map(|codec| codec.parse().map_err(|error| of_codec(&error)))
            .transpose()?;
        let inner = match (id, codec) {
            (Some(_), Some(_)) => {
                return Err(
                    Class::InvalidOption.error("id: the id of a dictionary with a codec is a hash of its bytes")
                );
            }
            (Some(id), None) => leafpress::Dictionary::from_bytes(id, data.to_vec()),
            (None, codec) => leafpress::Dictionary::from_trained(codec, data.to_vec()),
        };
        Ok(Self { inner })
    }

    /// Returns the name of the codec that it was trained for; None if that is unknown.
    #[getter]
    fn codec(&self) -> Option<String> {
        self.inner.codec().map(|codec| codec.to_string())
    }

    /// Returns the number by which blocks refer to it.
    #[getter]
    fn id(&self) -> u32 {
        self.inner.id()
    }

    /// Return its bytes, to store with the blocks: without them they cannot be read.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.bytes())
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.to_bytes(py)
    }

    fn __len__(&self) -> usize {
        self.inner.bytes().len()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, Reduced<'py>) {
        let codec = self.codec();
        let id = codec.is_none().then(|| self.id());
        (py.get_type::<Self>().into_any(), (self.to_bytes(py), id, codec))
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let Ok(other) = other.cast::<Self>() else {
            return Ok(py.NotImplemented());
        };
        let other = &other.get().inner;
        let is_same = self.inner.id() == other.id() && self.inner.bytes() == other.bytes();
        Ok(match op {
            CompareOp::Eq => is_same.into_pyobject(py)?.to_owned().into_any().unbind(),
            CompareOp::Ne => (!is_same).into_pyobject(py)?.to_owned().into_any().unbind(),
            _ => py.NotImplemented(),
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.inner.id(), self.inner.bytes()).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!(
            "<leafpress.codec.Dictionary {:#010x}, {} bytes>",
            self.id(),
            self.__len__()
        )
    }
}

/// Returns a dictionary, or makes one of bytes.
///
/// # Errors
/// `TypeError` for other types.
pub fn dictionary_of(object: &Bound<'_, PyAny>) -> PyResult<leafpress::Dictionary> {
    if let Ok(dictionary) = object.cast::<Dictionary>() {
        return Ok(dictionary.get().inner.clone());
    }
    Dictionary::new(object, None, None)
        .map(|dictionary| dictionary.inner)
        .map_err(|_| {
            let name = object
                .get_type()
                .name()
                .map_or_else(|_| "something else".into(), |name| name.to_string());
            PyTypeError::new_err(format!(
                "dictionary must be a leafpress.codec.Dictionary or its bytes, not {name}"
            ))
        })
}

/// Returns the codec of a name, opened once per process.
fn sealer(name: &str) -> PyResult<Sealer> {
    type Sealers = Mutex<HashMap<String, Sealer>>;
    // A child of a fork may find its parent's locked for ever.
    static SEALERS: [OnceLock<Sealers>; 16] = [const { OnceLock::new() }; 16];
    let sealers = SEALERS[fork::forks() as usize % SEALERS.len()].get_or_init(Mutex::default);
    if let Some(sealer) = sealers.lock().get(name) {
        return Ok(sealer.clone());
    }
    let codec: Codec = name.parse().map_err(|error| of_codec(&error))?;
    let sealer = Sealer::open(codec).map_err(|error| of_codec(&error))?;
    let mut sealers = sealers.lock();
    if sealers.len() >= MAX_SEALERS {
        sealers.clear();
    }
    sealers.insert(name.to_owned(), sealer.clone());
    Ok(sealer)
}

fn long<R: Send>(py: Python<'_>, bytes: usize, work: impl FnOnce() -> R + Send) -> R {
    if bytes < LONG_BYTES { work() } else { py.detach(work) }
}

/// Compress bytes into a self-describing block: its codec, its dictionary's id, its length, and a checksum.
///
/// Data that does not shrink is stored uncompressed, so that a block is at most 22 bytes longer than its data. Data may
/// have at most 1 GiB.
///
/// >>> len(codec.compress(b"the same words, " * 100)) < 60
/// True
#[pyfunction]
#[pyo3(signature = (data, codec="zstd:3", dictionary=None))]
fn compress<'py>(
    data: &Bound<'py, PyAny>,
    codec: &str,
    dictionary: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = data.py();
    let data = Input::of_buffer(data, "data")?;
    let dictionary = dictionary.map(dictionary_of).transpose()?;
    let sealer = sealer(codec)?;
    let data: &[u8] = &data;
    let block = long(py, data.len(), || sealer.seal(data, dictionary.as_ref()));
    Ok(PyBytes::new(py, &block.map_err(|error| of_codec(&error))?))
}

/// Return the data of a block. dictionary is the one it was compressed with, or several, of which the one that the
/// block names is used.
///
/// Data that is damaged, truncated or not a block raises CorruptBlock; a block of more than max_bytes raises
/// ValueTooLong before memory is allocated for it. The checksum finds damage; it does not protect against blocks that
/// are forged on purpose.
///
/// >>> codec.decompress(codec.compress(b"words", "lz4"), max_bytes="1MiB")
/// b'words'
#[pyfunction]
#[pyo3(
    signature = (block, dictionary=None, max_bytes=None),
    text_signature = "(block, dictionary=None, max_bytes='1GiB')",
)]
fn decompress<'py>(
    block: &Bound<'py, PyAny>,
    dictionary: Option<&Bound<'py, PyAny>>,
    max_bytes: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = block.py();
    let block = Input::of_buffer(block, "block")?;
    let block: &[u8] = &block;
    let most = max_bytes.map_or(Ok(MAX_RAW_BYTES as u64), |most| options::bytes("max_bytes", most))?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let dictionaries = dictionary.map_or(Ok(Vec::new()), dictionaries_of)?;
    let label = Label::read(block).map_err(|error| of_codec(&error))?;
    let is_known = |id| dictionaries.iter().any(|dictionary| dictionary.id() == id);
    if label.raw_bytes > most || label.dictionary_id.is_some_and(|id| !is_known(id)) {
        let data = sealed::unseal(block, &dictionaries, most).map_err(|error| of_codec(&error))?;
        return Ok(PyBytes::new(py, &data));
    }
    PyBytes::new_with(py, label.raw_bytes, |data| {
        let done = long(py, data.len(), || sealed::unseal_into(block, &dictionaries, data));
        done.map(drop).map_err(|error| of_codec(&error))
    })
}

fn dictionaries_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<leafpress::Dictionary>> {
    if object.is_instance_of::<Dictionary>() || Input::of_buffer(object, "dictionary").is_ok() {
        return Ok(vec![dictionary_of(object)?]);
    }
    let Ok(several) = object.try_iter() else {
        return dictionary_of(object).map(|dictionary| vec![dictionary]);
    };
    several.map(|dictionary| dictionary_of(&dictionary?)).collect()
}

/// Return the header of a block, without decoding it: the codec's family, the dictionary's id or None, and the length
/// of its data.
#[pyfunction]
fn _label(block: &Bound<'_, PyAny>) -> PyResult<(&'static str, Option<u32>, usize)> {
    let block = Input::of_buffer(block, "block")?;
    let label = Label::read(&block).map_err(|error| of_codec(&error))?;
    Ok((label.family, label.dictionary_id, label.raw_bytes))
}

/// Train a dictionary from records like those that it will be used for: at least 8 records and 2 KiB, ideally about
/// fifty times its size.
///
/// size is the most bytes that it may have, 256 or more. Training takes about 100 ms per MB of samples; beyond a
/// hundred times its size, an even selection of them is used.
///
/// >>> records = [b'{"id": %d, "name": "user %d"}' % (n, n * 7) for n in range(500)]
/// >>> dictionary = codec.train(records, size="1KiB")
/// >>> len(dictionary) <= 1024
/// True
#[pyfunction]
#[pyo3(signature = (samples, size=None, codec="zstd:3"), text_signature = "(samples, size='32KiB', codec='zstd:3')")]
fn train(samples: &Bound<'_, PyAny>, size: Option<&Bound<'_, PyAny>>, codec: &str) -> PyResult<Dictionary> {
    let py = samples.py();
    let size = size.map_or(Ok(DICTIONARY_BYTES), |size| options::bytes("size", size))?;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if !(MIN_DICTIONARY_BYTES..=64 << 20).contains(&size) {
        return Err(Class::InvalidOption.error(format!(
            "size: a dictionary has from {MIN_DICTIONARY_BYTES} bytes to 64 MiB, and not {size} bytes"
        )));
    }
    let codec: Codec = codec.parse().map_err(|error| of_codec(&error))?;
    if !matches!(codec.family(), "zstd" | "lz4") {
        return Err(Class::InvalidOption.error(format!("codec: {codec} uses no dictionary: zstd and lz4 do")));
    }
    if samples.is_instance_of::<PyString>() || samples.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(
            "samples must be an iterable of bytes, one for each record, and not one of them",
        ));
    }
    let mut gathered: Vec<Vec<u8>> = Vec::new();
    for sample in samples.try_iter()? {
        gathered.push(Input::of_buffer(&sample?, "a sample")?.to_vec());
    }
    let bytes: usize = gathered.iter().map(Vec::len).sum();
    if gathered.len() < MIN_SAMPLES || bytes < MIN_SAMPLE_BYTES {
        return Err(Class::InvalidOption.error(format!(
            "samples: {} of {bytes} bytes are too few: {MIN_SAMPLES} are needed, and {MIN_SAMPLE_BYTES} bytes",
            gathered.len()
        )));
    }
    let every = bytes
        .div_ceil(size.saturating_mul(MAX_SAMPLES_FACTOR))
        .min(gathered.len() / MIN_SAMPLES);
    let chosen: Vec<&[u8]> = gathered.iter().step_by(every.max(1)).map(Vec::as_slice).collect();
    let inner = py.detach(|| leafpress::Dictionary::train(codec, &chosen, size));
    let inner = inner.map_err(|error: CodecError| of_codec(&error))?;
    Ok(Dictionary { inner })
}

/// A codec's name, engine, library, and the reason why it cannot run.
type Row = (String, Option<&'static str>, Option<String>, Option<String>);

/// Return codecs at usual settings: name, its engine here or None, its library or None, the reason why it cannot run or
/// None.
#[pyfunction]
fn _available(py: Python<'_>) -> Vec<Row> {
    let row = |Availability {
                   codec,
                   engine,
                   provided_by,
                   ..
               }| {
        let reason = engine.as_ref().err().cloned();
        (codec.to_string(), engine.ok(), provided_by, reason)
    };
    py.detach(Codec::list).into_iter().map(row).collect()
}

/// Adds the functions and the class.
///
/// # Errors
/// Where they cannot be added.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Dictionary>()?;
    module.add_function(wrap_pyfunction!(compress, module)?)?;
    module.add_function(wrap_pyfunction!(decompress, module)?)?;
    module.add_function(wrap_pyfunction!(train, module)?)?;
    module.add_function(wrap_pyfunction!(_label, module)?)?;
    module.add_function(wrap_pyfunction!(_available, module)?)
}
