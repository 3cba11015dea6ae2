//! The size of landing buffers in a run.

use std::fmt;
use std::str::FromStr;

use crate::core::words::serde_as_text;

/// Bytes of a leaf's landing buffer. It is written as a number or as `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LandingBytes {
    /// As the tree chooses by its records.
    #[default]
    Auto,
    /// This many for every leaf.
    Fixed(usize),
}

impl LandingBytes {
    /// Returns the bytes, where they are fixed.
    pub fn fixed(self) -> Option<usize> {
        match self {
            Self::Auto => None,
            Self::Fixed(bytes) => Some(bytes),
        }
    }
}

impl fmt::Display for LandingBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Fixed(bytes) => bytes.fmt(f),
        }
    }
}

impl FromStr for LandingBytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            text => text
                .parse()
                .map(Self::Fixed)
                .map_err(|_| format!("`{text}` is neither a number of bytes nor `auto`")),
        }
    }
}

serde_as_text!(LandingBytes);
