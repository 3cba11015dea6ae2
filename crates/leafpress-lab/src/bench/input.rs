//! INPUT: a shared library's path, or the name of a built-in index.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::{Builtin, Index, OpenLibrary, Options};
use crate::core::LabError;
use crate::core::paths::serde_as_name;

/// The index to benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// One of ours.
    Builtin(Builtin),
    /// A shared library written for PiBench.
    Library(PathBuf),
}

impl Input {
    /// Parses a word of any bytes, like [`FromStr`]: a word that is not UTF-8 is a library's path.
    ///
    /// # Errors
    /// As [`FromStr`].
    pub fn named(word: &OsStr) -> Result<Self, LabError> {
        match word.to_str() {
            Some(text) => text.parse(),
            None => Ok(Self::Library(word.into())),
        }
    }

    fn word(&self) -> OsString {
        match self {
            Self::Builtin(builtin) => builtin.to_string().into(),
            Self::Library(path) => path.into(),
        }
    }

    /// Returns a name short enough for a table or a chart: a library's file name without its extension.
    pub fn short_name(&self) -> String {
        match self {
            Self::Builtin(builtin) => builtin.to_string(),
            Self::Library(path) => path.file_stem().map_or_else(
                || path.display().to_string(),
                |stem| stem.to_string_lossy().into_owned(),
            ),
        }
    }

    /// Returns whether it supports scans.
    pub fn scans(&self) -> bool {
        !matches!(self, Self::Builtin(Builtin::HashMap))
    }

    /// Creates the index, empty or with its pool's contents.
    ///
    /// # Errors
    /// [`LabError::Index`] when it cannot be made, [`LabError::Option`] when the tree's options are out of bounds.
    pub fn open(&self, options: &Options, library: Option<OpenLibrary>) -> Result<Box<dyn Index>, LabError> {
        match (self, library) {
            (Self::Builtin(builtin), _) => builtin.make(options),
            (Self::Library(path), Some(open)) => open(path, options).map_err(|e| self.error(e.to_string())),
            (Self::Library(_), None) => {
                Err(self.error("this program was built without the loader of shared libraries"))
            }
        }
    }

    pub(super) fn error(&self, reason: impl Into<String>) -> LabError {
        LabError::Index {
            index: self.to_string(),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin(builtin) => builtin.fmt(f),
            Self::Library(path) => path.display().fmt(f),
        }
    }
}

impl FromStr for Input {
    type Err = LabError;

    /// A word with a slash, or with a shared library's suffix, is a path; anything else is a built-in index.
    fn from_str(s: &str) -> Result<Self, LabError> {
        if s.contains('/') || s.ends_with(".so") || s.contains(".so.") {
            Ok(Self::Library(s.into()))
        } else {
            s.parse().map(Self::Builtin)
        }
    }
}

serde_as_name!(Input);
