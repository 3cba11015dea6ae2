//! Comma-separated values with a line of names first.

use csv::{ByteRecord, ErrorKind, ReaderBuilder};

use super::{Found, Malformed};
use crate::core::corpus::without_mark;

/// Quoted fields may contain line ends. The value is the row verbatim, without its line end.
pub(super) fn parse(part: &[u8], column: &str, found: &mut Found) -> Result<(), Malformed> {
    // Spreadsheets put a byte order mark in front.
    let rows = without_mark(part);
    let mark_bytes = part.len() - rows.len();
    let mut reader = ReaderBuilder::new().from_reader(rows);
    reader.byte_headers().map_err(|e| malformed(&e))?;
    if reader.position().byte() as usize == rows.len() {
        check_quotes(rows, 1)?;
    }
    let names = reader.byte_headers().map_err(|e| malformed(&e))?;
    if names.is_empty() {
        return Ok(());
    }
    let Some(at) = names.iter().position(|name| name == column.as_bytes()) else {
        let known: Vec<_> = names.iter().map(String::from_utf8_lossy).collect();
        return Err(Malformed::new(
            1,
            format!("no column is named `{column}`; columns: {}", known.join(" ")),
        ));
    };
    let mut row = ByteRecord::new();
    while reader.read_byte_record(&mut row).map_err(|e| malformed(&e))? {
        let start = row.position().map_or(0, csv::Position::byte) as usize;
        let end = reader.position().byte() as usize;
        // Empty lines before a row are passed over, and belong to no row.
        let bytes = &rows[start..end];
        if end == rows.len() {
            check_quotes(bytes, row.position().map_or(1, csv::Position::line))?;
        }
        let blanks = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let ends = bytes
            .iter()
            .rev()
            .take_while(|byte| matches!(byte, b'\r' | b'\n'))
            .count();
        let value = mark_bytes + start + blanks..mark_bytes + end - ends;
        found.push(row.get(at).unwrap_or_default(), value);
    }
    Ok(())
}

/// Refuses a last row, which begins in this line, with a quoted field that is not closed: the rest of the file is in
/// it.
fn check_quotes(row: &[u8], line: u64) -> Result<(), Malformed> {
    let mut opened_in = None;
    let (mut line, mut is_start) = (line, true);
    let mut bytes = row.iter().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, opened_in) {
            // Of a pair the first is one that is written twice.
            (b'"', Some(_)) if bytes.peek() == Some(&&b'"') => {
                bytes.next();
            }
            (b'"', Some(_)) => opened_in = None,
            (b'"', None) if is_start => opened_in = Some(line),
            _ => {}
        }
        line += u64::from(*byte == b'\n');
        is_start = opened_in.is_none() && matches!(byte, b',' | b'\n' | b'\r');
    }
    match opened_in {
        None => Ok(()),
        Some(line) => Err(Malformed::new(line, "unterminated quoted field")),
    }
}

fn malformed(error: &csv::Error) -> Malformed {
    let line = error.position().map_or(1, csv::Position::line);
    match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => Malformed::new(
            line,
            format!("{len} fields in a row; the first line names {expected_len} columns"),
        ),
        _ => Malformed::new(line, error.to_string()),
    }
}
