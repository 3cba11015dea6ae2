//! The compression of a database's blocks: RocksDB's own codecs, or Leafpress's by its `compression_manager`.

use std::fmt;
use std::str::FromStr;

use leafpress_lab::Bytes;
use serde::{Deserialize, Serialize};

use crate::BenchError;

/// Sample bytes for each byte of a dictionary, as zstd advises.
const TRAINING_BYTES_PER_DICTIONARY_BYTE: u64 = 100;
/// Largest dictionary in bytes.
pub const MAX_DICTIONARY_BYTES: u64 = 1 << 20;

/// The codec.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Nothing.
    None,
    /// RocksDB's own LZ4.
    Lz4,
    /// RocksDB's own LZ4HC, at a level or at its default, 9.
    Lz4Hc(Option<i32>),
    /// RocksDB's own zstd, at a level or at its default, 3.
    Zstd(Option<i32>),
    /// A codec of Leafpress.
    Leafpress {
        /// The codec's name, as `leafpress codecs` lists them.
        codec: String,
        /// Options of the compression manager, in order.
        options: Vec<(String, String)>,
    },
}

/// The origin of compressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engines {
    /// RocksDB's own.
    RocksDb,
    /// Leafpress's.
    Ours,
    /// Both.
    All,
}

/// A compression: `none`, `lz4`, `lz4hc[:LEVEL]`, `zstd[:LEVEL]` or `leafpress:CODEC`, each followed by
/// `,option=value`. `dict=BYTES` is RocksDB's `max_dict_bytes` for all of them; the rest are options of `leafpress`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Compression {
    /// The codec.
    pub engine: Engine,
    /// Maximum bytes of a file's dictionary; 0 for none.
    pub dictionary_bytes: u64,
}

impl Compression {
    /// Returns RocksDB's zstd at its default level, the baseline.
    pub const ZSTD: Self = Self {
        engine: Engine::Zstd(None),
        dictionary_bytes: 0,
    };

    /// No compression.
    pub const NONE: Self = Self {
        engine: Engine::None,
        dictionary_bytes: 0,
    };

    /// Returns the codec's name, which determines the colour in charts.
    pub fn codec(&self) -> String {
        match &self.engine {
            Engine::Leafpress { codec, .. } => codec.clone(),
            _ => self.with_dictionary(0).to_string(),
        }
    }

    /// Returns whether it is a codec of Leafpress.
    pub fn is_leafpress(&self) -> bool {
        matches!(self.engine, Engine::Leafpress { .. })
    }

    /// Returns this compression with a dictionary of at most this many bytes.
    pub fn with_dictionary(&self, dictionary_bytes: u64) -> Self {
        Self {
            engine: self.engine.clone(),
            dictionary_bytes,
        }
    }

    /// Returns its options for RocksDB's options string.
    pub fn options_string(&self) -> String {
        let dictionary = match self.dictionary_bytes {
            0 => String::new(),
            bytes => format!(
                "max_dict_bytes={bytes};zstd_max_train_bytes={};",
                bytes * TRAINING_BYTES_PER_DICTIONARY_BYTE
            ),
        };
        // RocksDB refuses empty braces.
        let with = |options: String| match options.is_empty() {
            true => String::new(),
            false => format!("compression_opts={{{options}}};"),
        };
        match &self.engine {
            Engine::None => "compression=kNoCompression;".into(),
            Engine::Lz4 => format!("compression=kLZ4Compression;{}", with(dictionary)),
            Engine::Lz4Hc(level) | Engine::Zstd(level) => {
                let name = match self.engine {
                    Engine::Lz4Hc(_) => "kLZ4HCCompression",
                    _ => "kZSTD",
                };
                let level = level.map_or_else(String::new, |level| format!("level={level};"));
                format!("compression={name};{}", with(level + &dictionary))
            }
            Engine::Leafpress { codec, options } => {
                let options: String = options.iter().map(|(name, value)| format!("{name}={value};")).collect();
                format!(
                    "compression=kZSTD;{}compression_manager={{id=leafpress;codec={codec};{options}}};",
                    with(dictionary)
                )
            }
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.engine {
            Engine::None => f.write_str("none")?,
            Engine::Lz4 => f.write_str("lz4")?,
            Engine::Lz4Hc(None) => f.write_str("lz4hc")?,
            Engine::Lz4Hc(Some(level)) => write!(f, "lz4hc:{level}")?,
            Engine::Zstd(None) => f.write_str("zstd")?,
            Engine::Zstd(Some(level)) => write!(f, "zstd:{level}")?,
            Engine::Leafpress { codec, .. } => write!(f, "leafpress:{codec}")?,
        }
        if let Engine::Leafpress { options, .. } = &self.engine {
            for (name, value) in options {
                write!(f, ",{name}={value}")?;
            }
        }
        match self.dictionary_bytes {
            0 => Ok(()),
            bytes => write!(f, ",dict={}", Bytes(bytes)),
        }
    }
}

impl FromStr for Compression {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self, BenchError> {
        let refuse = |reason: String| BenchError::option("compression", format!("`{text}`: {reason}"));
        let mut words = text.split(',').map(str::trim);
        let name = words.next().unwrap_or_default();
        let mut options = Vec::new();
        let mut dictionary_bytes = 0;
        for word in words {
            let Some((option, value)) = word.split_once('=') else {
                return Err(refuse(format!("`{word}` is not option=value")));
            };
            let plain = |text: &str| !text.is_empty() && !text.contains(['{', '}', ';', ' ']);
            if !plain(option) || !plain(value) {
                return Err(refuse(format!(
                    "`{word}` is not option=value, without spaces, braces and semicolons"
                )));
            }
            if option == "dict" {
                let Bytes(bytes) = value.parse().map_err(|e| refuse(format!("dict: {e}")))?;
                if bytes > MAX_DICTIONARY_BYTES {
                    return Err(refuse(format!(
                        "a dictionary has at most {} bytes",
                        Bytes(MAX_DICTIONARY_BYTES)
                    )));
                }
                dictionary_bytes = bytes;
            } else {
                options.push((option.to_owned(), value.to_owned()));
            }
        }
        let engine = engine(name, options).map_err(refuse)?;
        if engine == Engine::None && dictionary_bytes > 0 {
            return Err(refuse("without compression there is no dictionary".into()));
        }
        Ok(Self {
            engine,
            dictionary_bytes,
        })
    }
}

fn engine(name: &str, options: Vec<(String, String)>) -> Result<Engine, String> {
    if let Some(codec) = name.strip_prefix("leafpress:") {
        codec.parse::<leafpress::Codec>().map_err(|e| e.to_string())?;
        return Ok(Engine::Leafpress {
            codec: codec.to_owned(),
            options,
        });
    }
    if let Some((option, _)) = options.first() {
        return Err(format!(
            "RocksDB's own codecs have no option `{option}` here; dict=BYTES is there for all"
        ));
    }
    match name.split_once(':') {
        None if name == "none" => Ok(Engine::None),
        None if name == "lz4" => Ok(Engine::Lz4),
        None if name == "lz4hc" => Ok(Engine::Lz4Hc(None)),
        None if name == "zstd" => Ok(Engine::Zstd(None)),
        Some(("lz4hc", level)) => match level.parse() {
            Ok(level @ 1..=12) => Ok(Engine::Lz4Hc(Some(level))),
            _ => Err("LZ4HC's levels are 1 to 12".into()),
        },
        Some(("zstd", level)) => match level.parse() {
            Ok(level @ -131_072..=22) => Ok(Engine::Zstd(Some(level))),
            _ => Err("zstd's levels are -131072 to 22".into()),
        },
        _ => Err("use none, lz4, lz4hc[:LEVEL], zstd[:LEVEL] or leafpress:CODEC[,option=value..]".into()),
    }
}

impl From<Compression> for String {
    fn from(compression: Compression) -> Self {
        compression.to_string()
    }
}

impl TryFrom<String> for Compression {
    type Error = BenchError;

    fn try_from(text: String) -> Result<Self, BenchError> {
        text.parse()
    }
}

/// Parses a list of compressions, separated by commas. A word with `=` belongs to the compression before it.
///
/// # Errors
/// [`BenchError::Option`] for an unknown compression, or a repeated one.
pub fn list(text: &str) -> Result<Vec<Compression>, BenchError> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match words.last_mut() {
            // An option whose value is a codec, as in `level_codec=0:lz4`.
            Some(last) if word.split_once('=').is_some_and(|(option, _)| !option.contains(':')) => {
                last.push(',');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    let mut compressions: Vec<Compression> = Vec::new();
    for word in words {
        let compression: Compression = word.parse()?;
        if compressions.contains(&compression) {
            return Err(BenchError::option(
                "compression",
                format!("{compression} is there twice"),
            ));
        }
        compressions.push(compression);
    }
    if compressions.is_empty() {
        return Err(BenchError::option("compression", "the list is empty"));
    }
    Ok(compressions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in [
            "none",
            "lz4",
            "lz4hc",
            "lz4hc:5,dict=64K",
            "zstd",
            "zstd:-5",
            "zstd:3,dict=16K",
            "leafpress:lz4",
            "leafpress:deflate:1,verify=true",
            "leafpress:zstd:3,parallel_threads=2,dict=64K",
        ] {
            assert_eq!(name.parse::<Compression>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn an_invalid_compression_is_reported() {
        for (name, word) in [
            ("", "leafpress:CODEC"),
            ("snappy", "leafpress:CODEC"),
            ("zstd:99", "-131072 to 22"),
            ("lz4hc:13", "1 to 12"),
            ("none,dict=4K", "no dictionary"),
            ("lz4,verify=true", "verify"),
            ("leafpress:brotli", "brotli"),
            ("leafpress:lz4,verify", "option=value"),
            ("leafpress:lz4,verify=a;b", "semicolons"),
            ("lz4,dict=2M", "at most 1M"),
        ] {
            let message = name.parse::<Compression>().unwrap_err().to_string();
            assert!(
                message.contains(word) && message.starts_with("--compression: "),
                "{message}"
            );
        }
    }

    #[test]
    fn lists_keep_options_with_their_codec() {
        let names: Vec<_> = list("none,zstd:3,dict=16K,leafpress:zstd:3,verify=true,level_codec=0:lz4,lz4")
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            names,
            [
                "none",
                "zstd:3,dict=16K",
                "leafpress:zstd:3,verify=true,level_codec=0:lz4",
                "lz4"
            ]
        );
        assert!(list("lz4,lz4").is_err() && list("").is_err());
    }
}
