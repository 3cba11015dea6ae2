//! Tab-separated tables, for programs.

use super::NOT_APPLICABLE;

/// A cell; `None` has no meaning in its row.
pub type Cell = Option<String>;

/// Creates a cell of a word. A tab or the end of a line, which a path or a name may have in it, becomes a space: tables
/// are cut at them.
pub fn word(value: impl ToString) -> Cell {
    Some(value.to_string().replace(['\t', '\n', '\r'], " "))
}

/// Creates a cell of a figure; empty where it is not finite.
pub fn number(value: f64, decimals: usize) -> Cell {
    value.is_finite().then(|| format!("{value:.decimals$}"))
}

/// Formats a line with its end. Cells with quotes in them are quoted, as readers of such tables expect.
pub fn line(cells: impl IntoIterator<Item = Cell>) -> String {
    let mut writer = csv::WriterBuilder::new().delimiter(b'\t').from_writer(Vec::new());
    let cells = cells
        .into_iter()
        .map(|cell| cell.unwrap_or_else(|| NOT_APPLICABLE.into()));
    // Writing to memory does not fail, and a single record may have any length.
    let bytes = writer.write_record(cells).ok().and_then(|()| writer.into_inner().ok());
    String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
}

/// Formats a table: the names of its columns, and a line for each row.
pub fn table<'n>(names: impl IntoIterator<Item = &'n str>, rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
    let rows: String = rows.into_iter().map(line).collect();
    line(names.into_iter().map(word)) + &rows
}

/// Formats a table of columns, each a name and a function that `cell` asks for what it has of a row.
pub fn columns<R, F, C: Into<Cell>, const N: usize>(
    columns: [(&'static str, F); N],
    rows: impl IntoIterator<Item = R>,
    cell: impl Fn(&F, &R) -> C,
) -> String {
    let cells = |row: R| {
        columns
            .iter()
            .map(|(_, of)| cell(of, &row).into().and_then(word))
            .collect()
    };
    table(columns.iter().map(|(name, _)| *name), rows.into_iter().map(cells))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_reads_back_whatever_is_in_it() {
        let rows = [
            vec![word("\"a\"\tb\nc"), number(1.25, 1), None],
            vec![word(""), number(f64::NAN, 1), word(3)],
        ];
        let text = table(["name", "x", "y"], rows);
        let mut reader = csv::ReaderBuilder::new().delimiter(b'\t').from_reader(text.as_bytes());
        let read: Vec<Vec<String>> = reader
            .records()
            .map(|record| record.unwrap().iter().map(str::to_owned).collect())
            .collect();
        assert_eq!(read, [["\"a\" b c", "1.2", "NA"], ["", "NA", "3"]]);
        assert_eq!(
            text.lines().map(|line| line.matches('\t').count()).collect::<Vec<_>>(),
            [2, 2, 2]
        );
    }
}
