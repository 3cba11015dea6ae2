//! Sources of a corpus: files, directories, archives, bundled samples.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use clap::builder::{OsStringValueParser, TryMapValueParser, TypedValueParser, ValueParserFactory};
use serde::{Deserialize, Serialize};

use super::listing::{Listed, Listing, Reader};
#[cfg(feature = "pool")]
use super::packing::plain;
use super::samples::{self, Sample};
use super::take::{Extent, Sampled, Taking};
use crate::core::{Bytes, LabError, about};

/// A source of values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A file, or a directory with all files below it in the order of their paths. Zip, gzip, zstd and xz files are
    /// opened.
    Path(#[serde(with = "crate::core::paths")] PathBuf),
    /// A bundled sample, named without its extension: a file of the directory `LEAFPRESS_DATA` if that is set, else one
    /// that is part of the program.
    Sample(String),
    /// Made-up values of which this share (0 to 1) is compressible: see [`Source::validate`] for the bounds and
    /// `synthetic` in the source for the recipe, which is fio's `buffer_compress_percentage`.
    Synthetic(f64),
}

impl Source {
    /// Checks the bounds of synthetic data.
    ///
    /// # Errors
    /// [`LabError::Option`] when the compressible share is not between 0 and 1.
    pub fn validate(&self) -> Result<(), LabError> {
        match self {
            Self::Synthetic(eta) if !(0.0..=1.0).contains(eta) => Err(LabError::option(
                "data",
                format!("synthetic:{eta}: the compressible share must be between 0 and 1"),
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(feature = "pool")]
impl Source {
    /// Checks that it exists, without reading it.
    pub(crate) fn find(&self) -> Result<(), LabError> {
        let path = match self {
            Self::Synthetic(_) => return Ok(()),
            Self::Sample(name) => match samples::find(name)? {
                Sample::File(path) => path,
                Sample::Bundled(_) => return Ok(()),
            },
            Self::Path(path) => path.clone(),
        };
        let found = path.metadata();
        found
            .map_err(|e| LabError::data(path.display().to_string(), plain(&e)))
            .map(drop)
    }
}

impl Source {
    /// Parses a word of any bytes, like [`FromStr`]: a word that is not UTF-8 is a path.
    ///
    /// # Errors
    /// As [`FromStr`].
    pub fn named(word: &OsStr) -> Result<Self, LabError> {
        match word.to_str() {
            Some(text) => text.parse(),
            None => Ok(Self::Path(word.into())),
        }
    }
}

impl ValueParserFactory for Source {
    type Parser = TryMapValueParser<OsStringValueParser, fn(OsString) -> Result<Self, LabError>>;

    fn value_parser() -> Self::Parser {
        OsStringValueParser::new().try_map(|word| Self::named(&word))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Sample(name) => f.write_str(name),
            Self::Synthetic(eta) => write!(f, "synthetic:{eta}"),
        }
    }
}

impl FromStr for Source {
    type Err = LabError;

    /// `synthetic:ETA`; an existing path, or a word with a slash or a dot, is a path; anything else is a sample.
    fn from_str(s: &str) -> Result<Self, LabError> {
        if let Some(eta) = s.strip_prefix("synthetic:") {
            let eta = eta
                .parse()
                .map_err(|_| LabError::option("data", format!("`{s}`: {eta} is not a number between 0 and 1")))?;
            let source = Self::Synthetic(eta);
            source.validate()?;
            return Ok(source);
        }
        if s.is_empty() {
            return Err(LabError::option(
                "data",
                "it is empty; name a file, directory, archive or bundled sample",
            ));
        }
        if s.contains(['/', '.']) || Path::new(s).exists() {
            return Ok(Self::Path(s.into()));
        }
        Ok(Self::Sample(s.into()))
    }
}

/// The parts of a source: one for a file, one per archive entry, one per file of a directory; and how much of it they
/// are if they are not all.
pub(super) fn read(
    source: &Source,
    raw: bool,
    extent: Extent,
    cancel: &AtomicBool,
) -> Result<(Vec<Vec<u8>>, Option<Sampled>), LabError> {
    let root = match source {
        Source::Sample(name) => samples::find(name)?,
        Source::Path(path) => Sample::File(path.clone()),
        // Synthetic data has no file; the caller makes it.
        Source::Synthetic(_) => return Ok((Vec::new(), None)),
    };
    let name = source.to_string();
    let is_directory = matches!(&root, Sample::File(path) if path.is_dir());
    let listing = Listing::new([(root, name.clone())], raw, cancel)?;
    if let Some(fault) = listing.fault {
        return Err(LabError::data(fault.file, fault.reason));
    }
    if let Extent::Whole(most_bytes) = extent {
        check_length(&name, &listing.files, most_bytes)?;
    }
    if listing.files.is_empty() && is_directory {
        return Err(LabError::data(name, "the directory has no files with contents"));
    }
    let (mut taking, mut reader) = (Taking::new(extent, listing.copies, cancel), Reader::default());
    for file in &listing.files {
        let taken = reader.read(file, |contents| taking.part(contents));
        taken.map_err(|reason| LabError::data(&file.name, reason))?;
    }
    taking.finish()
}

/// Rejects files that exceed the limit, before anything is read.
fn check_length(name: &str, files: &[Listed], most_bytes: u64) -> Result<(), LabError> {
    let bytes = files.iter().filter_map(|file| file.bytes).fold(0, u64::saturating_add);
    if bytes <= most_bytes {
        return Ok(());
    }
    Err(LabError::data(
        name,
        format!(
            "its {} exceed the limit of {} for data that is read whole: extract a part into a separate file",
            about(bytes as f64),
            Bytes(most_bytes)
        ),
    ))
}
