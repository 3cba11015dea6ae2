//! The block cache of a database, and the cache behind it.

use std::fmt;
use std::str::FromStr;

use leafpress_lab::Bytes;
use serde::{Deserialize, Serialize};

use crate::BenchError;

/// The secondary cache behind a block cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secondary {
    /// RocksDB's `CompressedSecondaryCache` with this capacity in bytes, with its own default codec, LZ4.
    Compressed(u64),
    /// Leafpress's secondary cache with this capacity in bytes and options in order.
    Leafpress(u64, Vec<(String, String)>),
}

impl Secondary {
    /// Returns its capacity in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Compressed(bytes) | Self::Leafpress(bytes, _) => *bytes,
        }
    }

    /// Returns the options string for `SecondaryCache::CreateFromString`.
    pub fn uri(&self) -> String {
        match self {
            Self::Compressed(bytes) => {
                format!("compressed_secondary_cache://capacity={bytes};compression_type=kLZ4Compression")
            }
            Self::Leafpress(bytes, options) => {
                let options: String = options.iter().map(|(name, value)| format!(";{name}={value}")).collect();
                format!("leafpress_secondary_cache://capacity={bytes}{options}")
            }
        }
    }
}

/// The cache of an instance: `none`, `SIZE`, `SIZE+compressed-secondary:SIZE` or
/// `SIZE+leafpress-secondary:SIZE[,option=value..]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Cache {
    /// Bytes of the block cache; 0 is none.
    pub bytes: u64,
    /// The secondary cache behind it.
    pub secondary: Option<Secondary>,
}

impl Cache {
    /// Memory of both, in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.bytes + self.secondary.as_ref().map_or(0, Secondary::bytes)
    }
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            0 => f.write_str("none")?,
            bytes => write!(f, "{}", Bytes(bytes))?,
        }
        match &self.secondary {
            None => Ok(()),
            Some(Secondary::Compressed(bytes)) => write!(f, "+compressed-secondary:{}", Bytes(*bytes)),
            Some(Secondary::Leafpress(bytes, options)) => {
                write!(f, "+leafpress-secondary:{}", Bytes(*bytes))?;
                options
                    .iter()
                    .try_for_each(|(name, value)| write!(f, ",{name}={value}"))
            }
        }
    }
}

impl FromStr for Cache {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self, BenchError> {
        let refuse = |reason: String| BenchError::option("cache", format!("`{text}`: {reason}"));
        let size = |text: &str| match text.parse::<Bytes>() {
            Ok(Bytes(0)) => Err(refuse("a cache has more than 0 bytes".into())),
            Ok(Bytes(bytes)) => Ok(bytes),
            Err(e) => Err(refuse(e.to_string())),
        };
        let (first, second) = text.split_once('+').map_or((text, None), |(a, b)| (a, Some(b)));
        if first == "none" {
            return match second {
                None => Ok(Self::default()),
                Some(_) => Err(refuse(
                    "a secondary cache is behind a block cache: give its size first".into(),
                )),
            };
        }
        let bytes = size(first)?;
        let secondary = second
            .map(|second| {
                let mut words = second.split(',');
                let name = words.next().unwrap_or_default();
                let options = words.map(|word| {
                    let option = word.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
                    option.ok_or_else(|| refuse(format!("`{word}` is not option=value")))
                });
                let options = options.collect::<Result<Vec<_>, _>>()?;
                match name.split_once(':') {
                    Some(("compressed-secondary", bytes)) if options.is_empty() => {
                        Ok(Secondary::Compressed(size(bytes)?))
                    }
                    Some(("leafpress-secondary", bytes)) => Ok(Secondary::Leafpress(size(bytes)?, options)),
                    _ => Err(refuse(
                        "use none, SIZE, SIZE+compressed-secondary:SIZE or \
                         SIZE+leafpress-secondary:SIZE[,option=value..]"
                            .into(),
                    )),
                }
            })
            .transpose()?;
        Ok(Self { bytes, secondary })
    }
}

impl From<Cache> for String {
    fn from(cache: Cache) -> Self {
        cache.to_string()
    }
}

impl TryFrom<String> for Cache {
    type Error = BenchError;

    fn try_from(text: String) -> Result<Self, BenchError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_round_trip() {
        for name in [
            "none",
            "64M",
            "16M+compressed-secondary:48M",
            "16M+leafpress-secondary:48M,codec=zstd:1",
        ] {
            assert_eq!(name.parse::<Cache>().unwrap().to_string(), name);
        }
        for name in [
            "",
            "x",
            "0",
            "none+compressed-secondary:1M",
            "1M+other:1M",
            "1M+compressed-secondary:1M,a=b",
            "1M+leafpress-secondary:1M,a",
        ] {
            assert!(name.parse::<Cache>().is_err(), "{name}");
        }
    }
}
