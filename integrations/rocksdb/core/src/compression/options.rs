//! The options of `compression_manager={id=leafpress;...}`.

use std::fmt;
use std::str::FromStr;

use leafpress::codec::{Codec, CodecError, MIN_DICTIONARY_BYTES, MIN_SAMPLE_BYTES, QplMode, QplPath};
use thiserror::Error;

use super::engines;

/// An invalid option, or options that exclude each other.
#[derive(Debug, Clone, Error)]
#[error("leafpress: {0}")]
pub struct OptionError(String);

impl From<CodecError> for OptionError {
    fn from(error: CodecError) -> Self {
        Self(error.to_string())
    }
}

/// The codec where none is named.
const DEFAULT_CODEC: Codec = Codec::Zstd { level: 3 };
/// Samples for each byte of a dictionary, where their size is not given.
const SAMPLES_PER_DICTIONARY: usize = 50;
const MAX_DICTIONARY_BYTES: usize = 1 << 20;
const MAX_SAMPLE_BYTES: usize = 256 << 20;
const MAX_PARALLEL_THREADS: u32 = 256;
/// LSM levels that RocksDB can have (RocksDB does not check `ColumnFamilyOptions::num_levels`; more are not in use).
const MAX_LSM_LEVEL: i32 = 63;
/// RocksDB's `CompressionOptions::kDefaultCompressionLevel`.
const ROCKSDB_DEFAULT_LEVEL: i32 = 32_767;
/// The largest `level`.
const MAX_LEVEL: i32 = 12;

/// The compression of databases, as in the options string.
///
/// Its text has the form of RocksDB's options strings:
///
/// ```
/// use leafpress_rocksdb::CompressionOptions;
///
/// let options: CompressionOptions = "codec=zstd:3;verify=true".parse()?;
/// assert_eq!(options.to_string(), "{id=leafpress;codec=zstd:3;verify=true}");
/// # Ok::<(), leafpress_rocksdb::OptionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompressionOptions {
    codec: Option<NamedCodec>,
    execution_path: Option<QplPath>,
    compression_mode: Option<QplMode>,
    level: Option<i32>,
    /// The LSM levels from which on a codec is used; ascending.
    level_codec: Vec<(i32, Codec)>,
    verify: Option<bool>,
    parallel_threads: Option<u32>,
    dictionary_bytes: Option<usize>,
    dictionary_sample_bytes: Option<usize>,
    dictionary_sharing: Option<bool>,
    honor_no_compression: Option<bool>,
}

/// The value of `codec=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedCodec {
    /// A codec with its settings.
    Whole(Codec),
    /// `qpl`, with the settings of other options.
    Qpl,
}

impl fmt::Display for NamedCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(codec) => codec.fmt(f),
            Self::Qpl => f.write_str("qpl"),
        }
    }
}

/// The options' names, in the order in which they are written.
const NAMES: [&str; 11] = [
    "codec",
    "level_codec",
    "execution_path",
    "compression_mode",
    "level",
    "verify",
    "parallel_threads",
    "dictionary_bytes",
    "dictionary_sample_bytes",
    "dictionary_sharing",
    "honor_no_compression",
];

impl CompressionOptions {
    /// Sets one option. An empty value resets it to its default.
    ///
    /// # Errors
    /// [`OptionError`], which names the allowed values.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let value = value.trim();
        let bad = |allowed: &str| OptionError(format!("{name}={value}: allowed are {allowed}"));
        match name {
            "codec" => {
                self.codec = match value {
                    "" => None,
                    "qpl" => Some(NamedCodec::Qpl),
                    codec => Some(NamedCodec::Whole(parse_codec(name, codec)?)),
                };
            }
            "level_codec" => self.level_codec = parse_level_codec(value)?,
            "execution_path" => {
                self.execution_path = match value {
                    "" => None,
                    "auto" => Some(QplPath::Auto),
                    "hw" | "hardware" => Some(QplPath::Hardware),
                    "sw" | "software" => Some(QplPath::Software),
                    _ => return Err(bad("auto, hw and sw")),
                };
            }
            "compression_mode" => {
                self.compression_mode = match value {
                    "" => None,
                    "dynamic" => Some(QplMode::Dynamic),
                    "fixed" => Some(QplMode::Fixed),
                    _ => return Err(bad("dynamic and fixed")),
                };
            }
            "level" => {
                let level = |value: &str| match value.parse().ok()? {
                    ROCKSDB_DEFAULT_LEVEL => Some(0),
                    level => (0..=MAX_LEVEL).contains(&level).then_some(level),
                };
                self.level = given(value, level).map_err(|()| bad(&format!("0 (the default) to {MAX_LEVEL}")))?;
            }
            "verify" => self.verify = boolean(value).map_err(|()| bad("true and false"))?,
            "dictionary_sharing" => {
                self.dictionary_sharing = boolean(value).map_err(|()| bad("true and false"))?;
            }
            "honor_no_compression" => {
                self.honor_no_compression = boolean(value).map_err(|()| bad("true and false"))?;
            }
            "parallel_threads" => {
                let allowed = format!("0 (as compression_opts says) to {MAX_PARALLEL_THREADS}");
                let threads = |value: &str| value.parse().ok().filter(|threads| *threads <= MAX_PARALLEL_THREADS);
                self.parallel_threads = given(value, threads).map_err(|()| bad(&allowed))?;
            }
            "dictionary_bytes" => {
                let allowed = format!("0 (no dictionary) and {MIN_DICTIONARY_BYTES} to {MAX_DICTIONARY_BYTES}");
                self.dictionary_bytes =
                    size(value, MIN_DICTIONARY_BYTES, MAX_DICTIONARY_BYTES).map_err(|()| bad(&allowed))?;
            }
            "dictionary_sample_bytes" => {
                let allowed = format!(
                    "0 ({SAMPLES_PER_DICTIONARY} times dictionary_bytes) and {MIN_SAMPLE_BYTES} to {MAX_SAMPLE_BYTES}"
                );
                self.dictionary_sample_bytes =
                    size(value, MIN_SAMPLE_BYTES, MAX_SAMPLE_BYTES).map_err(|()| bad(&allowed))?;
            }
            _ => {
                return Err(OptionError(format!(
                    "unknown option {name:?}; the options are {}",
                    NAMES.join(", ")
                )));
            }
        }
        debug_assert!(!value.is_empty() || self.text(name).is_empty());
        Ok(())
    }

    /// Returns an option's value as text; empty where it is not set or unknown.
    pub fn text(&self, name: &str) -> String {
        match name {
            "codec" => self.codec.map(|codec| codec.to_string()),
            "level_codec" => {
                let entries: Vec<_> = self
                    .level_codec
                    .iter()
                    .map(|(level, codec)| format!("{level}:{codec}"))
                    .collect();
                Some(entries.join(","))
            }
            "execution_path" => self.execution_path.map(|path| match path {
                QplPath::Auto => "auto".to_owned(),
                QplPath::Hardware => "hw".to_owned(),
                QplPath::Software => "sw".to_owned(),
            }),
            "compression_mode" => self.compression_mode.map(|mode| match mode {
                QplMode::Dynamic => "dynamic".to_owned(),
                QplMode::Fixed => "fixed".to_owned(),
            }),
            "level" => self.level.map(|level| level.to_string()),
            "verify" => self.verify.map(|verify| verify.to_string()),
            "parallel_threads" => self.parallel_threads.map(|n| n.to_string()),
            "dictionary_bytes" => self.dictionary_bytes.map(|n| n.to_string()),
            "dictionary_sample_bytes" => self.dictionary_sample_bytes.map(|n| n.to_string()),
            "dictionary_sharing" => self.dictionary_sharing.map(|sharing| sharing.to_string()),
            "honor_no_compression" => self.honor_no_compression.map(|honor| honor.to_string()),
            _ => None,
        }
        .unwrap_or_default()
    }

    /// Returns the names that [`CompressionOptions::set`] knows.
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// Converts `execution_path`, `compression_mode` and `level` to a codec.
    ///
    /// # Errors
    /// [`OptionError`] where options contradict each other.
    pub fn resolve(&mut self) -> Result<(), OptionError> {
        let separate = ["execution_path", "compression_mode", "level"];
        let given: Vec<&str> = separate
            .into_iter()
            .filter(|name| !self.text(name).is_empty())
            .collect();
        let (path, mode) = match self.codec {
            None if given.is_empty() => return Ok(()),
            Some(NamedCodec::Whole(_)) if given.is_empty() => return Ok(()),
            None | Some(NamedCodec::Qpl) => (QplPath::Auto, QplMode::Dynamic),
            Some(NamedCodec::Whole(Codec::Qpl { path, mode })) => (path, mode),
            Some(NamedCodec::Whole(codec)) => {
                return Err(OptionError(format!(
                    "codec={codec} cannot be combined with {}: the codec's name already says how it compresses; a \
                     level is written as in codec=zstd:6",
                    given.join(" and "),
                )));
            }
        };
        let path = self.execution_path.unwrap_or(path);
        let mode = self.compression_mode.unwrap_or(mode);
        let codec = match (self.level.unwrap_or(0), path) {
            (0 | 1, _) => Codec::Qpl { path, mode },
            (level, QplPath::Hardware) => {
                return Err(OptionError(format!(
                    "level={level} cannot be combined with execution_path=hw: the device has one level; allowed are \
                     level=0 and execution_path=sw"
                )));
            }
            (level, _) => Codec::Deflate { level },
        };
        self.codec = Some(NamedCodec::Whole(codec));
        (self.execution_path, self.compression_mode, self.level) = (None, None, None);
        Ok(())
    }

    /// Checks that every codec named can run here.
    ///
    /// # Errors
    /// [`OptionError`] with the reason and what to do.
    pub fn check_available(&self) -> Result<(), OptionError> {
        let codecs = self.level_codec.iter().map(|(_, codec)| *codec);
        for codec in codecs.chain([self.codec()]) {
            engines::check_available(codec)?;
        }
        Ok(())
    }

    /// Returns the codec of levels that `level_codec` does not mention.
    pub fn codec(&self) -> Codec {
        match self.codec {
            Some(NamedCodec::Whole(codec)) => codec,
            Some(NamedCodec::Qpl) => Codec::Qpl {
                path: QplPath::Auto,
                mode: QplMode::Dynamic,
            },
            None => DEFAULT_CODEC,
        }
    }

    /// Returns the codec for files of an LSM level: the entry of `level_codec` for this level or the nearest above it.
    /// Below 0 is unknown, as in files that are written to be ingested.
    pub fn codec_for_level(&self, level: i32) -> Codec {
        let entry = self.level_codec.iter().rev().find(|(from, _)| *from <= level);
        entry.map_or_else(|| self.codec(), |(_, codec)| *codec)
    }

    /// Returns the codec by whose engine deflate blocks are read, if one of the family is named.
    pub(crate) fn reading_codec(&self) -> Option<Codec> {
        let codecs = self.level_codec.iter().map(|(_, codec)| *codec);
        let rank = |codec: &Codec| match codec {
            Codec::Qpl { .. } => 0,
            _ => 1,
        };
        [self.codec()]
            .into_iter()
            .chain(codecs)
            .filter(|codec| matches!(codec, Codec::Qpl { .. } | Codec::Zlib { .. }))
            .min_by_key(rank)
    }

    /// Returns whether every block is decoded after it was encoded, and compared.
    pub fn verify(&self) -> bool {
        self.verify.unwrap_or(false)
    }

    /// Threads that compress a file's blocks; 0 leaves it to RocksDB's `compression_opts`.
    pub fn parallel_threads(&self) -> u32 {
        self.parallel_threads.unwrap_or(0)
    }

    /// Returns whether files with `kNoCompression` in RocksDB's own options stay uncompressed.
    pub fn honor_no_compression(&self) -> bool {
        self.honor_no_compression.unwrap_or(false)
    }

    /// Returns whether files of a column family are written with the dictionary of an earlier file, as long as it saves
    /// enough.
    pub fn dictionary_sharing(&self) -> bool {
        self.dictionary_sharing.unwrap_or(true)
    }

    /// Returns the largest dictionary and the sampled blocks to train it from, in bytes; RocksDB's own options
    /// have priority.
    pub(crate) fn dictionary(&self, max_dict_bytes: usize, zstd_max_train_bytes: usize) -> (usize, usize) {
        let bytes = match max_dict_bytes {
            0 => self.dictionary_bytes.unwrap_or(0),
            bytes => bytes.clamp(MIN_DICTIONARY_BYTES, MAX_DICTIONARY_BYTES),
        };
        let samples = match zstd_max_train_bytes {
            0 => self.dictionary_sample_bytes.filter(|bytes| *bytes > 0),
            bytes => Some(bytes),
        };
        (bytes, samples.unwrap_or(bytes * SAMPLES_PER_DICTIONARY))
    }
}

impl fmt::Display for CompressionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{id=leafpress")?;
        for name in NAMES {
            let value = self.text(name);
            if !value.is_empty() {
                write!(f, ";{name}={value}")?;
            }
        }
        f.write_str("}")
    }
}

impl FromStr for CompressionOptions {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<Self, OptionError> {
        let text = text.trim();
        let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        let mut options = Self::default();
        for pair in inside
            .unwrap_or(text)
            .split(';')
            .map(str::trim)
            .filter(|pair| !pair.is_empty())
        {
            match pair.split_once('=') {
                Some(("id", "leafpress")) => {}
                Some((name, value)) => options.set(name.trim(), value)?,
                None => {
                    return Err(OptionError(format!(
                        "{pair:?} is not of the form name=value; the options are {}",
                        NAMES.join(", ")
                    )));
                }
            }
        }
        options.resolve()?;
        Ok(options)
    }
}

fn parse_codec(option: &str, name: &str) -> Result<Codec, OptionError> {
    name.parse()
        .map_err(|error: CodecError| OptionError(format!("{option}: {error}")))
}

fn parse_level_codec(value: &str) -> Result<Vec<(i32, Codec)>, OptionError> {
    let mut entries: Vec<(i32, Codec)> = Vec::new();
    for entry in value.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let bad = |why: &str| {
            OptionError(format!(
                "level_codec: {entry:?} {why}; allowed are level:codec pairs with ascending levels, as 0:lz4,6:zstd:6"
            ))
        };
        let (level, codec) = entry.split_once(':').ok_or_else(|| bad("has no codec"))?;
        let level: i32 = level.parse().map_err(|_| bad("does not begin with a level"))?;
        if !(0..=MAX_LSM_LEVEL).contains(&level) {
            return Err(bad("is for no level that can be"));
        }
        if entries.last().is_some_and(|(last, _)| *last >= level) {
            return Err(bad("does not ascend"));
        }
        entries.push((level, parse_codec("level_codec", codec)?));
    }
    Ok(entries)
}

/// Returns the result of `parse`, `None` for an empty value.
fn given<T>(value: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, ()> {
    if value.is_empty() {
        return Ok(None);
    }
    parse(value).map(Some).ok_or(())
}

/// Returns a size that is 0 or within bounds.
fn size(value: &str, least: usize, most: usize) -> Result<Option<usize>, ()> {
    given(value, |value| {
        crate::size::parse(value).filter(|bytes| *bytes == 0 || (least..=most).contains(bytes))
    })
}

fn boolean(value: &str) -> Result<Option<bool>, ()> {
    match value {
        "" => Ok(None),
        "true" | "1" => Ok(Some(true)),
        "false" | "0" => Ok(Some(false)),
        _ => Err(()),
    }
}
