//! The lines of a dump.

use std::ops::Range;

use crate::core::corpus::without_mark;

/// A line without its end, and where it is.
#[derive(Debug, Clone)]
pub(super) struct Line<'p> {
    /// From 1.
    pub number: u64,
    pub place: Range<usize>,
    pub bytes: &'p [u8],
}

impl Line<'_> {
    /// Whether it is blank.
    pub(super) fn is_blank(&self) -> bool {
        self.bytes.trim_ascii().is_empty()
    }
}

/// The lines of `part`, which end with `\n` or `\r\n`; the last one may have no end. A byte order mark at the start
/// belongs to none.
pub(super) fn lines(part: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let marked = without_mark(part);
    let mut start = part.len() - marked.len();
    let lines = marked.split_inclusive(|&byte| byte == b'\n').zip(1..);
    lines.map(move |(line, number)| {
        let bytes = line.strip_suffix(b"\n").unwrap_or(line);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let place = start..start + bytes.len();
        start += line.len();
        Line { number, place, bytes }
    })
}
