//! The options of a suite, and their bounds.

use std::path::PathBuf;

use leafpress::Codec;
use serde::{Serialize, Serializer};

use crate::core::words::between;
use crate::core::{Bytes, LabError};
use crate::harness::MAX_THREADS;

/// Shortest block, in bytes.
pub const MIN_BLOCK_BYTES: usize = 64;
/// Longest block, in bytes.
pub const MAX_BLOCK_BYTES: usize = 16 << 20;
/// Most passes.
pub const MAX_PASSES: usize = 1000;
/// Default block sizes, in bytes: the thesis' range from its pages of 4 KB to 64 KB.
pub const DEFAULT_BLOCK_BYTES: [usize; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
/// Sample size of a quick suite, in bytes.
pub const QUICK_BYTES: u64 = 8 << 20;

/// Options of a suite.
#[derive(Debug, Clone, Serialize)]
pub struct Options {
    /// Files and directories, which are searched recursively. Zip, gzip and zstd files are opened. A name without slash
    /// or dot that is not a file is a bundled sample.
    #[serde(serialize_with = "crate::core::paths::all::serialize")]
    pub paths: Vec<PathBuf>,
    /// Use an archive's own, compressed bytes instead of opening it.
    pub raw: bool,
    /// Which codecs; those that are not available here are an error. `None` is every codec of [`Codec::list`] but
    /// `none`, whose work memcpy shows; those that are not available are reported and left out.
    #[serde(serialize_with = "names")]
    pub codecs: Option<Vec<Codec>>,
    /// Lengths of blocks in bytes; one that is longer than every file is an error. `None` is [`DEFAULT_BLOCK_BYTES`]
    /// without those that are longer than every file.
    pub block_bytes: Option<Vec<usize>>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Passes over the data that are measured.
    pub passes: usize,
    /// Take this many bytes of all files together, evenly spread over them.
    pub max_bytes: Option<u64>,
    /// Take this many bytes of each file, evenly spread over it.
    pub max_file_bytes: Option<u64>,
}

/// Codecs by their names.
pub(super) fn names<S: Serializer>(codecs: &Option<Vec<Codec>>, serializer: S) -> Result<S::Ok, S::Error> {
    let names: Option<Vec<String>> = codecs
        .as_ref()
        .map(|codecs| codecs.iter().map(Codec::to_string).collect());
    names.serialize(serializer)
}

impl Options {
    /// Creates the defaults: all of `paths`, by every codec, in three passes, on one thread and on all CPUs.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut threads = vec![1, cores];
        threads.dedup();
        Self {
            paths,
            raw: false,
            codecs: None,
            block_bytes: None,
            threads,
            passes: 3,
            max_bytes: None,
            max_file_bytes: None,
        }
    }

    /// Checks all bounds that can be checked without the data.
    ///
    /// # Errors
    /// [`LabError::Option`] with the name of the option on the command line.
    pub fn validate(&self) -> Result<(), LabError> {
        if self.paths.is_empty() {
            return Err(LabError::option("paths", "name a file or a directory"));
        }
        bounds(
            self.codecs.as_deref(),
            self.block_bytes.as_deref(),
            &self.threads,
            self.passes,
        )
    }
}

/// Checks the common options of suites: codecs, lengths of blocks, numbers of threads, passes.
///
/// # Errors
/// As [`Options::validate`].
pub(super) fn bounds(
    codecs: Option<&[Codec]>,
    block_bytes: Option<&[usize]>,
    threads: &[usize],
    passes: usize,
) -> Result<(), LabError> {
    if let Some(codecs) = codecs {
        several("codecs", codecs, Codec::to_string, |_| Ok(()))?;
    }
    if let Some(lengths) = block_bytes {
        let shown = |length: &usize| Bytes(*length as u64).to_string();
        several("block-bytes", lengths, shown, |length| {
            if (MIN_BLOCK_BYTES..=MAX_BLOCK_BYTES).contains(length) {
                return Ok(());
            }
            Err(format!(
                "{} is not between {MIN_BLOCK_BYTES} bytes and {}",
                Bytes(*length as u64),
                Bytes(MAX_BLOCK_BYTES as u64)
            ))
        })?;
    }
    several("threads", threads, usize::to_string, |threads| {
        if (1..=MAX_THREADS).contains(threads) {
            return Ok(());
        }
        Err(format!("{threads} is not between 1 and {MAX_THREADS}"))
    })?;
    between("passes", passes, 1, MAX_PASSES)
}

/// Checks that a list has something in it, nothing twice, and nothing that is out of its bounds.
fn several<T: PartialEq>(
    option: &'static str,
    list: &[T],
    shown: impl Fn(&T) -> String,
    check: impl Fn(&T) -> Result<(), String>,
) -> Result<(), LabError> {
    if list.is_empty() {
        return Err(LabError::option(option, "the list is empty"));
    }
    for (at, one) in list.iter().enumerate() {
        check(one).map_err(|reason| LabError::option(option, reason))?;
        if list[..at].contains(one) {
            return Err(LabError::option(option, format!("{} is in the list twice", shown(one))));
        }
    }
    Ok(())
}

/// Parses the lengths of blocks in a list: `4K,8K,64K`.
///
/// # Errors
/// [`LabError::Option`] of `block-bytes`. The bounds are checked by [`Options::validate`].
pub fn block_bytes(text: &str) -> Result<Vec<usize>, LabError> {
    let length = |word: &str| {
        let Bytes(bytes) = word
            .parse()
            .map_err(|e| LabError::option("block-bytes", format!("{e}")))?;
        // Values out of range get an error with the range.
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    };
    words(text).map(length).collect()
}

/// Parses the numbers of threads in a list: `1,4,8`.
///
/// # Errors
/// [`LabError::Option`] of `threads`. The bounds are checked by [`Options::validate`].
pub fn threads(text: &str) -> Result<Vec<usize>, LabError> {
    let number = |word: &str| {
        let reason = |_| {
            LabError::option(
                "threads",
                format!("`{word}`: use numbers separated by commas, as in 1,4,8"),
            )
        };
        word.parse().map_err(reason)
    };
    words(text).map(number).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c == ',' || c.is_whitespace());
    words.filter(|word| !word.is_empty())
}
