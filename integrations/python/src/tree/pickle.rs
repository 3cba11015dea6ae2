//! Trees in pickles: options and compressed records.
//!
//! The records go in key order into sealed blocks of some hundred KiB. In a block's raw bytes each record is the length
//! of its key, the length of its value (32 bits each, least byte first), its key and its value.

use leafpress::codec::sealed::{Sealer, unseal};
use leafpress::{Codec, CodecError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple, PyType};

use crate::call;
use crate::errors::{Class, of_codec, of_tree};
use crate::tree::Tree;

/// Most bytes of keys and values of a tree that is pickled: 1 GiB.
const MAX_PICKLED_BYTES: usize = 1 << 30;
/// Raw bytes that end a block.
const BLOCK_BYTES: usize = 256 << 10;
/// Most raw bytes of a block: its last record may be as long as one can be.
const MAX_BLOCK_BYTES: usize =
    BLOCK_BYTES + 2 * LENGTH_BYTES + leafpress::tree::MAX_KEY_BYTES + leafpress::tree::MAX_VALUE_BYTES;
const LENGTH_BYTES: usize = 4;
const CODEC: Codec = Codec::Zstd { level: 1 };

#[pymethods]
impl Tree {
    /// Trees are pickled with their options and records; up to 1 GiB of keys and values.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, this) = (slf.py(), slf.get());
        let tree = this.inner()?;
        let blocks = py.detach(|| blocks_of(tree))?;
        let blocks = PyList::new(py, blocks.iter().map(|block| PyBytes::new(py, block)))?;
        let restore = py.import("leafpress._leafpress")?.getattr("_restore_tree")?;
        let arguments = (slf.get_type(), this.options.to_keywords(py)?, blocks)
            .into_pyobject(py)?
            .into_any();
        // The attributes of an instance of a subclass.
        let state = slf.as_any().getattr_opt("__dict__")?;
        let mut reduced = vec![restore, arguments];
        reduced.extend(state.filter(|state| state.is_truthy().unwrap_or(false)));
        PyTuple::new(py, reduced)
    }
}

/// Makes the tree of a pickle.
#[pyfunction]
#[pyo3(signature = (cls, options, blocks, /))]
pub fn _restore_tree<'py>(
    cls: &Bound<'py, PyType>,
    options: &Bound<'py, PyDict>,
    blocks: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = cls.py();
    let made = call::with_words(cls.as_any(), (), Some(options))?;
    let tree = made.cast::<Tree>()?.get();
    for block in blocks.try_iter()? {
        let block = block?.cast_into::<PyBytes>()?;
        let block = block.as_bytes();
        let inner = tree.inner()?;
        let longest = py.detach(|| restore(inner, block))?;
        tree.note_value(longest);
    }
    Ok(made)
}

fn blocks_of(tree: &leafpress::Tree) -> PyResult<Vec<Vec<u8>>> {
    let sealer = Sealer::open(CODEC).map_err(|error| of_codec(&error))?;
    let (mut blocks, mut raw, mut bytes) = (Vec::new(), Vec::new(), 0);
    let mut records = tree.iter();
    let seal = |raw: &mut Vec<u8>| {
        let sealed = sealer.seal(raw, None).map_err(|error| of_codec(&error));
        raw.clear();
        sealed
    };
    loop {
        let step = records.next_with(|key, value| {
            // Neither reaches 4 GiB.
            raw.extend_from_slice(&(key.len() as u32).to_le_bytes());
            raw.extend_from_slice(&(value.len() as u32).to_le_bytes());
            raw.extend_from_slice(key);
            raw.extend_from_slice(value);
            key.len() + value.len()
        });
        let Some(step) = step else { break };
        bytes += step.map_err(|error| of_tree(&error))?;
        if bytes > MAX_PICKLED_BYTES {
            return Err(Class::Error.error(
                "this tree has more than 1 GiB of keys and values, which is not pickled: write its items() to a file \
                 in pieces, and give put_many() of another tree an iterator of them",
            ));
        }
        if raw.len() >= BLOCK_BYTES {
            blocks.push(seal(&mut raw)?);
        }
    }
    if !raw.is_empty() {
        blocks.push(seal(&mut raw)?);
    }
    Ok(blocks)
}

/// Inserts a block's records into the tree; returns the length of the longest value.
fn restore(tree: &leafpress::Tree, block: &[u8]) -> PyResult<usize> {
    let raw = unseal(block, &[], MAX_BLOCK_BYTES).map_err(|error| of_codec(&error))?;
    let (mut rest, mut longest, mut is_whole) = (raw.as_slice(), 0, true);
    let records = std::iter::from_fn(|| {
        if rest.is_empty() {
            return None;
        }
        let record = split_record(&mut rest);
        is_whole = record.is_some();
        longest = longest.max(record.map_or(0, |(_, value)| value.len()));
        record
    });
    tree.extend(records).map_err(|error| of_tree(&error))?;
    if !is_whole {
        return Err(of_codec(&CodecError::Corrupt {
            codec: "a pickled tree",
            reason: "a record is cut off".into(),
        }));
    }
    Ok(longest)
}

/// Removes and returns the first record; [`None`] if it is truncated.
fn split_record<'r>(rest: &mut &'r [u8]) -> Option<(&'r [u8], &'r [u8])> {
    let mut length = || -> Option<usize> {
        let (length, behind) = rest.split_first_chunk::<LENGTH_BYTES>()?;
        *rest = behind;
        usize::try_from(u32::from_le_bytes(*length)).ok()
    };
    let (key_len, value_len) = (length()?, length()?);
    let (key, behind) = rest.split_at_checked(key_len)?;
    let (value, behind) = behind.split_at_checked(value_len)?;
    *rest = behind;
    Some((key, value))
}
