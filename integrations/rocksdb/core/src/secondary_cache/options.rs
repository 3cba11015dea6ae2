//! The options of `leafpress_secondary_cache`.

use std::fmt;
use std::str::FromStr;

use leafpress::codec::Codec;
use leafpress_pages::victim::{RawShare, VictimCache, VictimError};
use thiserror::Error;

/// The names of all options, in the order in which they are shown.
const NAMES: [&str; 8] = [
    "capacity",
    "codec",
    "dictionary",
    "share",
    "admission",
    "exclusive",
    "num_shard_bits",
    "name",
];

/// An option of a secondary cache that is wrong.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum SecondaryCacheOptionError {
    /// There is no such option.
    #[error("unknown option {0}; it has {names}", names = NAMES.join(", "))]
    Unknown(String),
    /// A value is not one that the option takes.
    #[error("{name} cannot be {value}: {reason}")]
    Value {
        /// The option.
        name: &'static str,
        /// The value.
        value: String,
        /// The allowed values.
        reason: String,
    },
    /// The capacity was not given.
    #[error("capacity is missing; give capacity=64MiB")]
    NoCapacity,
    /// An option cannot be changed in a cache that is in use.
    #[error("{0} cannot be changed in a cache that is in use; capacity can")]
    Fixed(&'static str),
    /// The cache could not be made with these options.
    #[error(transparent)]
    Victim(#[from] VictimError),
}

/// The options of a `leafpress_secondary_cache`; [`fmt::Display`] writes them as an options string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondaryCacheOptions {
    /// `capacity`: memory of the cache in bytes, everything included.
    pub capacity_bytes: usize,
    /// `codec`: what compresses the blocks.
    pub codec: Codec,
    /// `dictionary`: length of trained dictionaries in bytes; 0 for none.
    pub dictionary_bytes: usize,
    /// `share`: the part of the memory for blocks that are kept raw though they could be compressed; `adaptive`, or a
    /// percentage.
    pub share: RawShare,
    /// `admission`: whether blocks are refused when what would have to leave for them is worth more.
    pub admission: bool,
    /// `exclusive`: whether a block leaves when RocksDB takes it into its block cache for good. Else it stays, and is
    /// not compressed again when the block cache evicts it.
    pub exclusive: bool,
    /// `num_shard_bits`: 2 to this power shards; [`None`], written -1, for as many as suit the capacity.
    pub shard_bits: Option<u32>,
    /// `name`: what statistics call the cache; empty for a number.
    pub name: String,
}

impl SecondaryCacheOptions {
    /// Returns the defaults, with a capacity in bytes.
    pub fn new(capacity_bytes: usize) -> Self {
        Self {
            capacity_bytes,
            codec: Codec::Zstd { level: 1 },
            dictionary_bytes: 16 << 10,
            share: RawShare::Adaptive,
            admission: true,
            exclusive: true,
            shard_bits: None,
            name: String::new(),
        }
    }

    /// Options from names and values.
    ///
    /// # Errors
    /// [`SecondaryCacheOptionError`] for the first that is wrong, or when there is no capacity.
    pub fn from_pairs<'p>(
        pairs: impl IntoIterator<Item = (&'p str, &'p str)>,
    ) -> Result<Self, SecondaryCacheOptionError> {
        let mut options = Self::new(0);
        let mut has_capacity = false;
        for (name, value) in pairs {
            options.set(name, value.trim())?;
            has_capacity |= name == "capacity";
        }
        if has_capacity {
            Ok(options)
        } else {
            Err(SecondaryCacheOptionError::NoCapacity)
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), SecondaryCacheOptionError> {
        match name {
            "capacity" => self.capacity_bytes = size("capacity", value)?,
            "codec" => {
                self.codec = value
                    .parse()
                    .map_err(|error: leafpress::codec::CodecError| wrong("codec", value, error.to_string()))?;
            }
            "dictionary" => {
                self.dictionary_bytes = match value {
                    "off" | "none" | "false" => 0,
                    size_text => size("dictionary", size_text)?,
                }
            }
            "share" => self.share = share(value)?,
            "admission" => self.admission = boolean("admission", value)?,
            "exclusive" => self.exclusive = boolean("exclusive", value)?,
            "num_shard_bits" => {
                self.shard_bits = match value.parse::<i64>() {
                    Ok(bits) if bits < 0 => None,
                    Ok(bits) if bits <= i64::from(leafpress_pages::victim::MAX_SHARD_BITS) => u32::try_from(bits).ok(),
                    _ => {
                        let reason = format!("give 0 to {}, or -1", leafpress_pages::victim::MAX_SHARD_BITS);
                        return Err(wrong("num_shard_bits", value, reason));
                    }
                }
            }
            "name" => {
                if !value
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
                {
                    return Err(wrong("name", value, "give letters, digits, _ and -".to_owned()));
                }
                value.clone_into(&mut self.name);
            }
            other => return Err(SecondaryCacheOptionError::Unknown(other.to_owned())),
        }
        Ok(())
    }

    /// Returns the text of an option's value; [`None`] for an unknown name.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        Some(match name {
            "capacity" => self.capacity_bytes.to_string(),
            "codec" => self.codec.to_string(),
            "dictionary" => self.dictionary_bytes.to_string(),
            "share" => match self.share {
                RawShare::Adaptive => "adaptive".to_owned(),
                RawShare::Fixed { raw_percent } => raw_percent.to_string(),
            },
            "admission" => self.admission.to_string(),
            "exclusive" => self.exclusive.to_string(),
            "num_shard_bits" => self.shard_bits.map_or("-1".to_owned(), |bits| bits.to_string()),
            "name" => self.name.clone(),
            _ => return None,
        })
    }

    /// Makes the cache.
    pub(super) fn build(&self) -> Result<VictimCache, SecondaryCacheOptionError> {
        let mut builder = VictimCache::builder()
            .memory(self.capacity_bytes)
            .codec(self.codec)
            .dictionary_bytes(self.dictionary_bytes)
            .share(self.share)
            .admission(self.admission);
        if let Some(bits) = self.shard_bits {
            builder = builder.shard_bits(bits);
        }
        Ok(builder.build()?)
    }

    /// Returns the name of an option that has this name.
    pub(super) fn known(name: &str) -> Result<&'static str, SecondaryCacheOptionError> {
        let known = NAMES.into_iter().find(|known| *known == name);
        known.ok_or_else(|| SecondaryCacheOptionError::Unknown(name.to_owned()))
    }
}

/// `name=value` of all options, but for an empty name, joined by `;`.
impl fmt::Display for SecondaryCacheOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for name in NAMES {
            let value = self.value(name).unwrap_or_default();
            if !value.is_empty() {
                write!(f, "{separator}{name}={value}")?;
                separator = ";";
            }
        }
        Ok(())
    }
}

impl FromStr for SecondaryCacheOptions {
    type Err = SecondaryCacheOptionError;

    /// Parses `name=value;name=value`, with or without `leafpress_secondary_cache://` before it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.strip_prefix("leafpress_secondary_cache://").unwrap_or(text);
        let pairs = text.split(';').map(str::trim).filter(|pair| !pair.is_empty());
        Self::from_pairs(pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))))
    }
}

fn boolean(name: &'static str, text: &str) -> Result<bool, SecondaryCacheOptionError> {
    match text {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(wrong(name, text, "give true or false".to_owned())),
    }
}

fn share(text: &str) -> Result<RawShare, SecondaryCacheOptionError> {
    let digits = text.strip_suffix('%').unwrap_or(text);
    match digits.parse::<u8>() {
        _ if text == "adaptive" => Ok(RawShare::Adaptive),
        Ok(raw_percent @ 0..=100) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(RawShare::Fixed { raw_percent }),
        _ => {
            let reason = "give adaptive, or the percentage of the capacity for raw blocks, 0 to 100".to_owned();
            Err(wrong("share", text, reason))
        }
    }
}

fn wrong(name: &'static str, value: &str, reason: String) -> SecondaryCacheOptionError {
    SecondaryCacheOptionError::Value {
        name,
        value: value.to_owned(),
        reason,
    }
}

/// Returns a number of bytes.
pub(super) fn size(name: &'static str, text: &str) -> Result<usize, SecondaryCacheOptionError> {
    crate::size::parse(text).ok_or_else(|| wrong(name, text, format!("give {}", crate::size::SIZES)))
}
