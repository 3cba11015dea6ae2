//! Tables of text, for a terminal and for a page.

use leafpress_lab::core::about;
use leafpress_lab::report::html::lines;
use leafpress_lab::report::numbers::{mops, three_digits};
use leafpress_lab::report::{Part, of_parts, under_names};
use maud::{Markup, html};

/// A table whose first columns are words and whose others are figures.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    /// Headings; a line break is one.
    pub headings: Vec<String>,
    /// Columns of words, on the left.
    pub words: usize,
    /// Rows of as many cells as there are headings.
    pub rows: Vec<Vec<String>>,
    /// The tables that a terminal shows, by name, and columns of each.
    pub parts: Vec<(&'static str, Vec<usize>)>,
}

impl Grid {
    /// Returns a table without a row.
    pub fn new(words: usize, headings: &[&str]) -> Self {
        Self {
            headings: headings.iter().map(|text| (*text).to_owned()).collect(),
            words,
            rows: Vec::new(),
            parts: vec![("", (words..headings.len()).collect())],
        }
    }

    /// With these tables on a terminal.
    pub fn in_parts(mut self, parts: &[Part<'static>]) -> Self {
        self.parts = parts.iter().map(|(name, columns)| (*name, columns.to_vec())).collect();
        self
    }

    /// For a terminal. Of two columns of words the first is a name above rows.
    pub fn text(&self) -> String {
        let names = self.words.saturating_sub(1);
        let rows = match names {
            0 => self.rows.clone(),
            _ => under_names(self.rows.iter().cloned()),
        };
        let columns = |columns: &Vec<usize>| columns.iter().map(|at| at - names).collect::<Vec<_>>();
        let parts: Vec<_> = self.parts.iter().map(|(name, of)| (*name, columns(of))).collect();
        let parts: Vec<Part<'_>> = parts.iter().map(|(name, of)| (*name, of.as_slice())).collect();
        of_parts(self.headings[names..].to_vec(), rows, self.words - names, &parts) + "\n"
    }

    /// For a page. `mark` gives what is put in front of a row's first cell.
    pub fn html(&self, mark: impl Fn(usize) -> Markup) -> Markup {
        let side = |column: usize| (column < self.words).then_some("text-align:left");
        html! {
            div.scroll {
                table {
                    thead {
                        tr {
                            @for (column, heading) in self.headings.iter().enumerate() {
                                th style=[side(column)] { (lines(heading)) }
                            }
                        }
                    }
                    tbody {
                        @for (number, row) in self.rows.iter().enumerate() {
                            tr {
                                @for (column, cell) in row.iter().enumerate() {
                                    @if column == 0 {
                                        th scope="row" { (mark(number)) (cell) }
                                    } @else {
                                        td style=[side(column)] { (cell) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns a figure with three digits; `NA` without one.
pub fn figure(figure: Option<f64>) -> String {
    figure.map_or_else(|| "NA".into(), three_digits)
}

/// Operations per second, in millions; `NA` without a figure.
pub fn throughput(per_second: Option<f64>) -> String {
    per_second.map_or_else(|| "NA".into(), mops)
}

/// Bytes, as `12.3M`; `NA` without a figure.
pub fn size(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| "NA".into(), about)
}

/// Returns a change in percent with its sign; `NA` without one.
pub fn change(percent: Option<f64>) -> String {
    percent.map_or_else(|| "NA".into(), |percent| format!("{percent:+.1}"))
}
