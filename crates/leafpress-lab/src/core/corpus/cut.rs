//! How bytes are cut into values.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use leafpress::tree::MAX_VALUE_BYTES;

use crate::core::words::serde_as_text;
use crate::core::{Bytes, LabError};

/// How bytes are cut into values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Values of this many bytes, 1 to 64 MiB; a remainder at the end of a file or archive entry is dropped.
    Fixed(usize),
    /// Lines without their `\n`; empty lines are skipped.
    Lines,
    /// Records with their length in front as a little-endian `u32`.
    LengthPrefixed,
}

impl Cut {
    pub(crate) fn validate(self) -> Result<(), LabError> {
        match self {
            Self::Fixed(len) if !(1..=MAX_VALUE_BYTES).contains(&len) => Err(LabError::option(
                "cut",
                format!("fixed:{len} is not between 1 and {MAX_VALUE_BYTES}"),
            )),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(len) => write!(f, "fixed:{len}"),
            Self::Lines => f.write_str("lines"),
            Self::LengthPrefixed => f.write_str("length-prefixed"),
        }
    }
}

impl FromStr for Cut {
    type Err = LabError;

    fn from_str(s: &str) -> Result<Self, LabError> {
        let cut = match s {
            "lines" => Some(Self::Lines),
            "length-prefixed" => Some(Self::LengthPrefixed),
            _ => s
                .strip_prefix("fixed:")
                .and_then(|len| len.parse::<Bytes>().ok())
                .and_then(|Bytes(len)| usize::try_from(len).ok())
                .map(Self::Fixed),
        };
        let cut = cut.ok_or_else(|| {
            LabError::option(
                "cut",
                format!("unknown cut `{s}`; known: fixed:N (bytes), lines, length-prefixed"),
            )
        })?;
        cut.validate()?;
        Ok(cut)
    }
}

serde_as_text!(Cut);

/// Appends the spans of `part`'s records, shifted by `offset`, the part's place in the corpus.
pub(super) fn spans(
    name: &str,
    part: &[u8],
    cut: Cut,
    offset: usize,
    out: &mut Vec<Range<usize>>,
) -> Result<(), LabError> {
    let mut push = |start: usize, end: usize| {
        if end - start > MAX_VALUE_BYTES {
            let reason = format!(
                "the record at byte {start} has {} bytes, more than the limit of {MAX_VALUE_BYTES}",
                end - start
            );
            return Err(LabError::data(name, reason));
        }
        out.push(offset + start..offset + end);
        Ok(())
    };
    if cut == Cut::Lines {
        let mut start = 0;
        for line in part.split(|&byte| byte == b'\n') {
            if !line.is_empty() {
                push(start, start + line.len())?;
            }
            start += line.len() + 1;
        }
        return Ok(());
    }
    let mut start = 0;
    while start < part.len() {
        let Some(prefix) = part[start..].first_chunk() else {
            return Err(LabError::data(
                name,
                format!("it ends inside the length of the record at byte {start}"),
            ));
        };
        let len = u32::from_le_bytes(*prefix) as usize;
        let body = start + prefix.len();
        if len > part.len() - body {
            let reason = format!(
                "the record at byte {start} says it has {len} bytes, but only {} are left",
                part.len() - body
            );
            return Err(LabError::data(name, reason));
        }
        push(body, body + len)?;
        start = body + len;
    }
    Ok(())
}
