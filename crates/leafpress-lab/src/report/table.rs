//! Tables for people.

use comfy_table::{CellAlignment, LineStyle, Row, Table, TableStyle};

use super::NOT_APPLICABLE;
use super::width::page_width;

/// How tables for people are drawn: a rule above, below, and under the header.
const TABLE_STYLE: TableStyle = TableStyle::new()
    .top_border(RULE)
    .header_separator(RULE)
    .bottom_border(RULE);
const RULE: LineStyle = LineStyle::none().fill('─').junction('─');

/// A table of words.
fn of_words(headings: impl Into<Row>, rows: impl IntoIterator<Item = impl Into<Row>>) -> Table {
    let mut table = Table::new();
    table.load_style(TABLE_STYLE).set_header(headings);
    for row in rows {
        table.add_row(row);
    }
    table
}

/// Columns that answer one question, behind those of words: what it is about, and which they are. The first of a
/// table's parts is what its reader came for, and stands under the table's own title.
pub type Part<'p> = (&'p str, &'p [usize]);

/// A table whose first `words` columns are words. The others are figures, which stand to the right and close together.
///
/// A table wider than the page becomes several tables below each other, each with the first columns.
pub(crate) fn of_figures(
    headings: impl Into<Row>,
    rows: impl IntoIterator<Item = impl Into<Row>>,
    words: usize,
) -> String {
    let figures = Figures::new(headings, rows, words);
    let columns = figures.columns();
    figures.pieces(&columns, page_width())
}

/// Creates a table whose first `words` columns are words, in the tables of its `parts`, which are the same however wide
/// the page is: so a column is found where it was last time. Columns in no part are for pages and files; those without
/// a figure are left out.
pub fn of_parts(
    headings: impl Into<Row>,
    rows: impl IntoIterator<Item = impl Into<Row>>,
    words: usize,
    parts: &[Part<'_>],
) -> String {
    Figures::new(headings, rows, words).parts(parts, page_width())
}

/// The cells of a table.
struct Figures {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Leading columns that identify a row. They are in every table.
    words: usize,
}

impl Figures {
    fn new(headings: impl Into<Row>, rows: impl IntoIterator<Item = impl Into<Row>>, words: usize) -> Self {
        Self {
            headings: texts(&headings.into()),
            rows: rows.into_iter().map(|row| texts(&row.into())).collect(),
            words,
        }
    }

    /// The columns of words: at least one, to identify rows.
    fn first(&self) -> Vec<usize> {
        (0..self.words.max(1).min(self.headings.len())).collect()
    }

    /// The columns after them.
    fn columns(&self) -> Vec<usize> {
        (self.first().len()..self.headings.len()).collect()
    }

    fn parts(&self, parts: &[Part<'_>], width: usize) -> String {
        let mut text = String::new();
        for (name, columns) in parts {
            let columns: Vec<usize> = columns.iter().copied().filter(|at| self.has_figures(*at)).collect();
            if columns.is_empty() {
                continue;
            }
            if !text.is_empty() {
                text += &format!("\n\n{name}\n");
            }
            text += &self.pieces(&columns, width);
        }
        text
    }

    fn has_figures(&self, at: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(at));
        cells.any(|cell| !["", "-", NOT_APPLICABLE].contains(&cell.trim()))
    }

    /// These columns in one table, or in as few as possible of at most `width`.
    fn pieces(&self, columns: &[usize], width: usize) -> String {
        let tables = self.groups(columns, width).into_iter().map(|group| self.table(&group));
        tables.collect::<Vec<_>>().join("\n")
    }

    /// Columns that stand in one table each: as few tables as can be, and none with one column left over where others
    /// have many.
    fn groups(&self, columns: &[usize], width: usize) -> Vec<Vec<usize>> {
        let fewest = self.filled(columns, width, columns.len()).len();
        let even = columns.len().div_ceil(fewest.max(1));
        let mut most = even..=columns.len();
        most.find_map(|most| Some(self.filled(columns, width, most)).filter(|groups| groups.len() <= fewest))
            .unwrap_or_default()
    }

    /// Columns that stand in one table each, `most` of them or as many as fit; one at least.
    fn filled(&self, columns: &[usize], width: usize, most: usize) -> Vec<Vec<usize>> {
        let mut groups = vec![Vec::new()];
        for &at in columns {
            let group = groups.last_mut().map_or(&[][..], |group| group);
            let with = [group, &[at]].concat();
            if !group.is_empty() && (with.len() > most || self.width_of(&with) > width) {
                groups.push(vec![at]);
            } else if let Some(group) = groups.last_mut() {
                group.push(at);
            }
        }
        groups
    }

    /// Characters of a line of a table of these columns.
    fn width_of(&self, columns: &[usize]) -> usize {
        let length = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let of_column = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| length(cell));
            // With the space between it and the next.
            cells.chain([length(&self.headings[at])]).max().unwrap_or(0) + 2
        };
        let all: usize = self.first().iter().chain(columns).map(|at| of_column(*at)).sum();
        all.saturating_sub(1)
    }

    fn table(&self, columns: &[usize]) -> String {
        let columns = [&self.first(), columns].concat();
        let pick = |row: &Vec<String>| -> Vec<String> {
            let cells = columns.iter();
            cells.map(|at| row.get(*at).cloned().unwrap_or_default()).collect()
        };
        let headings: Vec<String> = (0..columns.len()).map(|place| self.heading(&columns, place)).collect();
        let mut table = of_words(headings, self.rows.iter().map(pick));
        for (place, column) in table.column_iter_mut().enumerate() {
            if place < self.words {
                column.set_padding((0, 1));
            } else {
                column.set_padding((1, 0)).set_cell_alignment(CellAlignment::Right);
            }
        }
        let lines = table.lines();
        lines
            .map(|line| line.trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// A column's heading. One that continues a column in another table repeats its heading.
    fn heading(&self, columns: &[usize], place: usize) -> String {
        let own = &self.headings[columns[place]];
        let label = |at: usize| (0..=at).rev().find(|at| !self.headings[*at].starts_with('\n'));
        let mine = label(columns[place]);
        let is_adjacent = place > 0 && label(columns[place - 1]) == mine;
        if is_adjacent || !own.starts_with('\n') {
            return own.clone();
        }
        let label = mine.and_then(|at| self.headings[at].lines().next()).unwrap_or_default();
        format!("{label}{own}")
    }
}

fn texts(row: &Row) -> Vec<String> {
    row.cell_iter().map(comfy_table::Cell::content).collect()
}

/// Rows whose first column names what several of them are about, by turns or once: each name in a row of its own, and
/// the others, which have that column no more, below it.
pub(crate) fn under_names(rows: impl IntoIterator<Item = Vec<String>>) -> Vec<Vec<String>> {
    let mut named: Vec<Vec<String>> = Vec::new();
    let mut last = String::new();
    for mut row in rows {
        let name = row.remove(0);
        if !name.is_empty() && name != last {
            named.push(vec![name.clone()]);
            last = name;
        }
        if let Some(first) = row.first_mut() {
            first.insert_str(0, "  ");
        }
        named.push(row);
    }
    named
}

/// A cell of a table in which the best of each column can be seen.
#[derive(Clone)]
pub struct Marked {
    /// The text.
    pub text: String,
    /// It is the best of its column.
    pub best: bool,
}

/// Which figure of a column is the best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Best {
    Most,
    Least,
}

/// A column's cells: texts with the figures that they are ranked by, and those that have no meaning. Of one cell alone
/// nothing is said.
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

/// The texts of a row whose first `words` cells are words, with a star after the best.
pub(crate) fn starred(row: Vec<Marked>, words: usize) -> Vec<String> {
    // A space instead of the mark keeps digits aligned.
    let mark = |cell: Marked| format!("{}{}", cell.text, if cell.best { '*' } else { ' ' });
    let cells = row.into_iter().enumerate();
    cells
        .map(|(at, cell)| if at < words { cell.text } else { mark(cell) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Widths with a space: 6, 8, 6, 6, minus one.
    fn small() -> Figures {
        let headings = ["name", "hits\nmemory", "\ndisk", "time\nus"];
        Figures::new(headings, [["a", "1", "22", "333"]], 1)
    }

    #[test]
    fn a_table_that_is_too_wide_becomes_several() {
        let figures = small();
        let groups = |width| figures.groups(&[1, 2, 3], width);
        assert_eq!(groups(25), [vec![1, 2, 3]]);
        assert_eq!(groups(24), [vec![1, 2], vec![3]]);
        assert_eq!(groups(18), [vec![1], vec![2, 3]]);
        assert_eq!(groups(15), [vec![1], vec![2], vec![3]]);
        assert_eq!(groups(3).len(), 3, "as narrow as can be");
        assert_eq!(figures.heading(&[0, 2], 1), "hits\ndisk", "the label goes with it");
        assert_eq!(figures.heading(&[0, 1, 2], 2), "\ndisk");
    }

    /// One column alone below five is what nobody looks for there.
    #[test]
    fn columns_are_spread_evenly() {
        let figures = Figures::new(["codec", "a", "b", "c", "d", "e", "f"], [["lz4"; 7]], 1);
        assert_eq!(
            figures.groups(&[1, 2, 3, 4, 5, 6], 6 + 5 * 5),
            [vec![1, 2, 3], vec![4, 5, 6]]
        );
    }

    #[test]
    fn parts_are_tables_with_names() {
        let parts: [Part<'_>; 2] = [("", &[1, 3]), ("Elsewhere", &[2])];
        let text = small().parts(&parts, 120);
        let (first, second) = text.split_once("\n\nElsewhere\n").expect("two tables");
        assert!(first.contains("333") && !first.contains("22"), "{text}");
        assert!(second.contains("22") && second.contains("hits"), "{text}");
    }

    #[test]
    fn a_column_without_a_figure_is_left_out() {
        let rows = [["a", "-", "1"], ["b", "NA ", "2"]];
        let text = of_parts(["name", "disk", "memory"], rows, 1, &[("", &[1, 2])]);
        assert!(text.contains("memory") && !text.contains("disk"), "{text}");
    }

    #[test]
    fn rows_stand_under_the_names_of_what_they_are_about() {
        let rows = [
            ["4K", "lz4", "1"],
            ["", "zstd:1", "2"],
            ["8K", "lz4", "3"],
            ["8K", "zstd:1", "4"],
        ];
        let named = under_names(rows.map(|row| row.map(str::to_owned).to_vec()));
        let expected: [&[&str]; 6] = [
            &["4K"],
            &["  lz4", "1"],
            &["  zstd:1", "2"],
            &["8K"],
            &["  lz4", "3"],
            &["  zstd:1", "4"],
        ];
        assert_eq!(named, expected);
    }

    /// Of all reports that tests keep.
    #[test]
    fn no_table_is_wider_than_60_columns() {
        let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let (mut reports, mut wide) = (0, Vec::new());
        for module in std::fs::read_dir(sources).unwrap() {
            let golden = module.unwrap().path().join("golden");
            for file in std::fs::read_dir(golden).into_iter().flatten() {
                let path = file.unwrap().path();
                if path.extension().is_none_or(|extension| extension != "txt") {
                    continue;
                }
                reports += 1;
                let text = std::fs::read_to_string(&path).unwrap();
                // A rule is as wide as its table.
                let rules = text
                    .lines()
                    .filter(|line| line.starts_with('─') && line.chars().count() > 60);
                wide.extend(rules.map(|rule| format!("{}: {} columns", path.display(), rule.chars().count())));
            }
        }
        assert!(reports > 10, "{reports} reports");
        assert!(wide.is_empty(), "{wide:#?}");
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
