//! Loads a saved value from an untrusted source: everything is validated.

use std::fmt;

use leafpress::TreeError;

use super::block::{BlockError, Records, open};
use super::dictionaries::for_loading;
use super::{ENCODING, KIND_MAP, KIND_TEXT};
use crate::api::io::{Loaded, Loader};
use crate::store::databases::place_loaded;
use crate::store::generation::Hold;
use crate::store::map::Map;
use crate::store::text::Text;
use crate::store::value::Value;

/// The source of saved parts: a snapshot, or a test's buffer.
pub trait Source {
    /// The source's type of bytes.
    type Bytes: std::ops::Deref<Target = [u8]>;
    /// Returns the next number.
    fn unsigned(&mut self) -> Option<u64>;
    /// Returns the next bytes.
    fn bytes(&mut self) -> Option<Self::Bytes>;
    /// Returns a place for a new value.
    fn place(&mut self) -> Result<(Hold, u64), TreeError>;
}

impl Source for Loader {
    type Bytes = Loaded;

    fn unsigned(&mut self) -> Option<u64> {
        Loader::unsigned(self)
    }

    fn bytes(&mut self) -> Option<Loaded> {
        Loader::bytes(self)
    }

    fn place(&mut self) -> Result<(Hold, u64), TreeError> {
        place_loaded(self.database())
    }
}

/// Why a value cannot be loaded.
#[derive(Debug)]
pub enum LoadError {
    /// It was saved by a later version.
    Version(i32),
    /// Its kind is unknown to this version.
    Kind(u64),
    /// It ends too early, or its parts have other types.
    Cut,
    /// A block is invalid.
    Block(BlockError),
    /// Its fields do not ascend, or their number differs from its header.
    Fields,
    /// It cannot be stored.
    Tree(TreeError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(
                f,
                "its encoding has version {version}, and this module knows {ENCODING}"
            ),
            Self::Kind(kind) => write!(f, "it is of kind {kind}, which this module does not know"),
            Self::Cut => f.write_str("it ends too early"),
            Self::Block(error) => write!(f, "{error}"),
            Self::Fields => f.write_str("its fields do not ascend, or there are not as many as it says"),
            Self::Tree(error) => write!(f, "{error}"),
        }
    }
}

impl From<BlockError> for LoadError {
    fn from(error: BlockError) -> Self {
        Self::Block(error)
    }
}

impl From<TreeError> for LoadError {
    fn from(error: TreeError) -> Self {
        Self::Tree(error)
    }
}

/// Loads a value.
pub fn load(loader: &mut Loader, version: i32) -> Option<Value> {
    match load_from(loader, version) {
        Ok(value) => Some(value),
        Err(error) => {
            loader.log(&format!("leafpress: a value cannot be loaded: {error}"));
            None
        }
    }
}

/// Loads a value.
pub fn load_from(source: &mut impl Source, version: i32) -> Result<Value, LoadError> {
    if version != ENCODING {
        return Err(LoadError::Version(version));
    }
    match source.unsigned().ok_or(LoadError::Cut)? {
        KIND_TEXT => {
            let block = source.bytes().ok_or(LoadError::Cut)?;
            let value = open(&block, for_loading)?;
            Ok(Value::Text(Text::new(source.place()?, &value)?))
        }
        KIND_MAP => Ok(Value::Map(Box::new(load_map(source)?))),
        kind => Err(LoadError::Kind(kind)),
    }
}

fn load_map(source: &mut impl Source) -> Result<Map, LoadError> {
    let fields = source.unsigned().ok_or(LoadError::Cut)?;
    if fields == 0 {
        return Err(LoadError::Fields);
    }
    let mut map = Map::new(source.place()?);
    let mut last: Option<Vec<u8>> = None;
    while map.len() < fields {
        let block = source.bytes().ok_or(LoadError::Cut)?;
        let content = open(&block, for_loading)?;
        let records: Vec<(&[u8], &[u8])> = Records::new(&content).collect::<Result<_, _>>()?;
        let ascend = records.is_sorted_by(|a, b| a.0 < b.0);
        let first = records.first().ok_or(LoadError::Fields)?.0;
        let follow = last.as_deref().is_none_or(|last| last < first);
        if !ascend || !follow || records.len() as u64 > fields - map.len() {
            return Err(LoadError::Fields);
        }
        map.extend(&records)?;
        last = records.last().map(|(field, _)| field.to_vec());
    }
    Ok(map)
}
