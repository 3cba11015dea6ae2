//! Tables for people.

use comfy_table::{CellAlignment, LineStyle, Row, Table, TableStyle};

use super::NOT_APPLICABLE;
use super::width::page_width;

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
///
/// What is wider than the page becomes several tables below each other, each with the first columns.
pub(crate) fn of_figures(
    headings: impl Into<Row>,
    rows: impl IntoIterator<Item = impl Into<Row>>,
    words: usize,
) -> String {
    let headings = texts(&headings.into());
    let rows: Vec<Vec<String>> = rows.into_iter().map(|row| texts(&row.into())).collect();
    let tables = groups(&headings, &rows, words, page_width())
        .into_iter()
        .map(|columns| {
            let pick = |row: &Vec<String>| {
                columns
                    .iter()
                    .map(|at| row.get(*at).cloned().unwrap_or_default())
                    .collect()
            };
            let headings: Vec<String> = columns
                .iter()
                .enumerate()
                .map(|(place, at)| heading(&headings, &columns, place, *at))
                .collect();
            let rows: Vec<Vec<String>> = rows.iter().map(pick).collect();
            let mut table = of_words(headings, rows);
            for column in table.column_iter_mut().skip(words) {
                column.set_padding((1, 0)).set_cell_alignment(CellAlignment::Right);
            }
            table.to_string()
        });
    tables.collect::<Vec<_>>().join("\n")
}

fn texts(row: &Row) -> Vec<String> {
    row.cell_iter().map(comfy_table::Cell::content).collect()
}

/// A column's heading. One that goes on from the column before, which is not beside it any more, says what that said.
fn heading(headings: &[String], columns: &[usize], place: usize, at: usize) -> String {
    let own = &headings[at];
    let is_beside = place > 0 && columns[place - 1] + 1 == at;
    if is_beside || !own.starts_with('\n') {
        return own.clone();
    }
    let above = headings[..at].iter().rev().find(|heading| !heading.starts_with('\n'));
    let label = above.and_then(|heading| heading.lines().next()).unwrap_or_default();
    format!("{label}{own}")
}

/// Columns that stand in one table each, so that none is wider than `width` if that can be.
fn groups(headings: &[String], rows: &[Vec<String>], words: usize, width: usize) -> Vec<Vec<usize>> {
    let length = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let of_column = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| length(cell));
        // With the space between it and the next.
        let padding = if at < words { 3 } else { 2 };
        cells.chain([length(&headings[at])]).max().unwrap_or(0) + padding
    };
    // What a row is about is in every table.
    let first: Vec<usize> = (0..words.max(1).min(headings.len())).collect();
    let taken: usize = first.iter().map(|at| of_column(*at)).sum();
    let mut groups = vec![first.clone()];
    let mut room = width.saturating_sub(taken);
    for at in first.len()..headings.len() {
        let column = of_column(at);
        let is_begun = groups.last().is_some_and(|group| group.len() > first.len());
        if column > room && is_begun {
            groups.push(first.clone());
            room = width.saturating_sub(taken);
        }
        if let Some(group) = groups.last_mut() {
            group.push(at);
        }
        room = room.saturating_sub(column);
    }
    groups
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
pub(crate) fn of_marked(headings: impl Into<Row>, rows: Vec<Vec<Marked>>, words: usize) -> String {
    // A space in place of the mark keeps digits under digits.
    let mark = |cell: Marked| format!("{}{}", cell.text, if cell.best { '*' } else { ' ' });
    of_figures(headings, rows.into_iter().map(|row| row.into_iter().map(mark)), words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_too_wide_becomes_several() {
        let headings = ["name", "hits\nmemory", "\ndisk", "time\nus"].map(String::from);
        let rows = vec![["a", "1", "22", "333"].map(String::from).to_vec()];
        assert_eq!(groups(&headings, &rows, 1, 80), [vec![0, 1, 2, 3]]);
        // 7 for the name, 8 and 6 and 6.
        assert_eq!(groups(&headings, &rows, 1, 21), [vec![0, 1, 2], vec![0, 3]]);
        assert_eq!(groups(&headings, &rows, 1, 19), [vec![0, 1], vec![0, 2, 3]]);
        assert_eq!(groups(&headings, &rows, 1, 15), [vec![0, 1], vec![0, 2], vec![0, 3]]);
        assert_eq!(groups(&headings, &rows, 1, 3).len(), 3, "as narrow as can be");
        assert_eq!(
            heading(&headings, &[0, 2], 1, 2),
            "hits\ndisk",
            "the label goes with it"
        );
        assert_eq!(heading(&headings, &[0, 1, 2], 2, 2), "\ndisk");
    }

    #[test]
    fn every_figure_is_in_a_table() {
        let headings: Vec<String> = (0..40).map(|at| format!("column {at}")).collect();
        let row: Vec<String> = (0..40).map(|at| format!("figure-{at}")).collect();
        let text = of_figures(headings, [row], 1);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!((0..40).all(|at| text.contains(&format!("figure-{at}"))), "{text}");
    }
}
