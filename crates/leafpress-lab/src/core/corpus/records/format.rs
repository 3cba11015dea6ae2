//! The formats of dumps, and their names.

use std::fmt;
use std::str::FromStr;

use super::{Found, Malformed, csv, jsonl, stanzas, tsv};
use crate::core::LabError;
use crate::core::words::serde_as_text;

/// How a dump holds its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordFormat {
    /// A JSON document a line; the key is what this JSON pointer (RFC 6901) points to, a string or a number. The value
    /// is the line.
    JsonLines(String),
    /// Comma-separated values (RFC 4180) with a line of names first; the key is the field of this column. The value is
    /// the row.
    Csv(String),
    /// Paragraphs of `Field: value` lines with an empty line between, as Debian's `Packages` (RFC 822's headers); the
    /// key is this field's value. The value is the paragraph.
    Stanzas(String),
    /// A line is the key, a tab, and the value.
    Tsv,
}

const KNOWN: &str = "jsonl:/POINTER, csv:COLUMN, stanzas:FIELD, tsv";

impl RecordFormat {
    pub(super) fn parse(&self, part: &[u8], found: &mut Found) -> Result<(), Malformed> {
        match self {
            Self::JsonLines(pointer) => jsonl::parse(part, pointer, found),
            Self::Csv(column) => csv::parse(part, column, found),
            Self::Stanzas(field) => stanzas::parse(part, field, found),
            Self::Tsv => tsv::parse(part, found),
        }
    }
}

impl fmt::Display for RecordFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::JsonLines(pointer) => write!(f, "jsonl:{pointer}"),
            Self::Csv(column) => write!(f, "csv:{column}"),
            Self::Stanzas(field) => write!(f, "stanzas:{field}"),
            Self::Tsv => f.write_str("tsv"),
        }
    }
}

impl FromStr for RecordFormat {
    type Err = LabError;

    fn from_str(s: &str) -> Result<Self, LabError> {
        let wrong = |reason: String| Err(LabError::option("records", reason));
        match s.split_once(':') {
            None if s == "tsv" => Ok(Self::Tsv),
            Some(("jsonl", pointer)) => match pointer_fault(pointer) {
                None => Ok(Self::JsonLines(pointer.into())),
                Some(fault) => wrong(format!(
                    "`{s}`: {fault}; a JSON pointer is written as in jsonl:/user/id"
                )),
            },
            Some(("csv", column)) if !column.is_empty() => Ok(Self::Csv(column.into())),
            Some(("stanzas", field)) if stanzas::is_name(field.as_bytes()) => Ok(Self::Stanzas(field.into())),
            _ => wrong(format!("unknown format `{s}`; known: {KNOWN}")),
        }
    }
}

serde_as_text!(RecordFormat);

/// The error of a JSON pointer.
fn pointer_fault(pointer: &str) -> Option<&'static str> {
    if !pointer.starts_with('/') {
        return Some("the pointer does not begin with a slash");
    }
    let mut after_tildes = pointer.split('~').skip(1);
    after_tildes
        .any(|after| !after.starts_with(['0', '1']))
        .then_some("a tilde in a pointer is written ~0, a slash in a name ~1")
}
