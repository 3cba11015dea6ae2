//! Comma-separated values with a line of names first.

use csv::{ByteRecord, ErrorKind, ReaderBuilder};

use super::{Found, Malformed};

/// Fields may be quoted and hold line ends then. The value is the row as it stands, without its line end.
pub(super) fn parse(part: &[u8], column: &str, found: &mut Found) -> Result<(), Malformed> {
    let mut reader = ReaderBuilder::new().from_reader(part);
    let names = reader.byte_headers().map_err(|e| malformed(&e))?;
    if names.is_empty() {
        return Ok(());
    }
    let Some(at) = names.iter().position(|name| strip_mark(name) == column.as_bytes()) else {
        let known: Vec<_> = names
            .iter()
            .map(|name| String::from_utf8_lossy(strip_mark(name)))
            .collect();
        return Err(Malformed::new(
            1,
            format!("no column is called `{column}`; there are: {}", known.join(" ")),
        ));
    };
    let mut row = ByteRecord::new();
    while reader.read_byte_record(&mut row).map_err(|e| malformed(&e))? {
        let start = row.position().map_or(0, csv::Position::byte) as usize;
        let end = reader.position().byte() as usize;
        // Empty lines before a row are passed over, and belong to no row.
        let bytes = &part[start..end];
        let blanks = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let ends = bytes
            .iter()
            .rev()
            .take_while(|byte| matches!(byte, b'\r' | b'\n'))
            .count();
        found.push(row.get(at).unwrap_or_default(), start + blanks..end - ends);
    }
    Ok(())
}

/// Spreadsheets put a byte order mark in front of the first name.
fn strip_mark(name: &[u8]) -> &[u8] {
    name.strip_prefix("\u{feff}".as_bytes()).unwrap_or(name)
}

fn malformed(error: &csv::Error) -> Malformed {
    let line = error.position().map_or(1, csv::Position::line);
    match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => Malformed::new(
            line,
            format!("{len} fields in a row where the first line names {expected_len} columns"),
        ),
        _ => Malformed::new(line, error.to_string()),
    }
}
