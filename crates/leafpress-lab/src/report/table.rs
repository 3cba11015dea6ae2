//! Tables for people.

use comfy_table::{CellAlignment, LineStyle, Row, Table, TableStyle};

use super::NOT_APPLICABLE;

/// How tables for people are drawn: a rule above, below, and under the header.
pub const TABLE_STYLE: TableStyle = TableStyle::new()
    .top_border(RULE)
    .header_separator(RULE)
    .bottom_border(RULE);
const RULE: LineStyle = LineStyle::none().fill('─').junction('─');

/// A table of words.
pub(crate) fn of_words(headings: impl Into<Row>, rows: impl IntoIterator<Item = impl Into<Row>>) -> Table {
    let mut table = Table::new();
    table.load_style(TABLE_STYLE).set_header(headings);
    for row in rows {
        table.add_row(row);
    }
    table
}

/// A table whose first `words` columns are words. The others are figures, which stand to the right and close together.
pub(crate) fn of_figures(
    headings: impl Into<Row>,
    rows: impl IntoIterator<Item = impl Into<Row>>,
    words: usize,
) -> Table {
    let mut table = of_words(headings, rows);
    for column in table.column_iter_mut().skip(words) {
        column.set_padding((1, 0)).set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Sets these columns to the right.
pub(crate) fn to_the_right(mut table: Table, columns: impl IntoIterator<Item = usize>) -> Table {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A cell of a table in which the best of each column can be seen.
#[derive(Clone)]
pub(crate) struct Marked {
    pub text: String,
    pub best: bool,
}

/// Which figure of a column is the best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Best {
    Most,
    Least,
}

/// A column's cells: texts with the figures that they are ranked by, and those that have no meaning. Of one cell alone nothing is said.
pub(crate) fn ranked(cells: Vec<Option<(String, f64)>>, best: Option<Best>) -> Vec<Marked> {
    let figures = || cells.iter().flatten().map(|(_, figure)| *figure);
    let best = match best {
        _ if cells.len() < 2 => None,
        Some(Best::Most) => figures().reduce(f64::max),
        Some(Best::Least) => figures().reduce(f64::min),
        None => None,
    };
    let cells = cells.into_iter().map(|cell| match cell {
        Some((text, figure)) => Marked {
            text,
            best: Some(figure) == best,
        },
        None => Marked {
            text: NOT_APPLICABLE.into(),
            best: false,
        },
    });
    cells.collect()
}

/// As [`of_figures`], with a star behind what is best.
pub(crate) fn of_marked(headings: impl Into<Row>, rows: Vec<Vec<Marked>>, words: usize) -> Table {
    // A space in place of the mark keeps digits under digits.
    let mark = |cell: Marked| format!("{}{}", cell.text, if cell.best { '*' } else { ' ' });
    of_figures(headings, rows.into_iter().map(|row| row.into_iter().map(mark)), words)
}
