//! A figure's page: one file, readable without a network.

use maud::html;

use super::charts::{charts, hues, is_wide};
use super::table::{headings, papers, rows};
use super::{FigureOutcome, text};
use crate::core::LabError;
use crate::report::html::{self, all, cell, document, legend, notes, pair};
use crate::report::verdict;

/// The page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub(in super::super) fn page(figure: &FigureOutcome, command_line: &str) -> Result<String, LabError> {
    let engines = figure.options.engines();
    let names: Vec<String> = engines.iter().map(ToString::to_string).collect();
    let key = hues(&engines).into_iter().zip(names.iter().map(String::as_str));
    let charts = charts(figure)?;
    let rows = rows(figure);
    let told = text::notes(figure);
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    let title = format!(
        "Figure {} of the ZipCache paper, on this machine",
        figure.options.figure.number()
    );
    let body = html! {
        h1 { (title) }
        (verdict::html(&super::verdict::verdicts(figure)))
        @for line in text::head(figure) { p { (line) } }
        @for trouble in figure.troubles() { p.bad { (trouble) } }
        (html::table(headings(figure), rows.iter().map(|row| {
            let cells = row.iter().enumerate();
            cells.map(|(at, one)| match at {
                0 => html::head(&one.text),
                _ => cell(&one.text, one.best),
            })
        })))
        @let papers = papers(figure);
        @if !papers.is_empty() {
            p { "In the paper:" }
            ul { @for paper in &papers { li { (paper) } } }
        }
        @if !charts.is_empty() {
            h2 { "By scenario" }
            (legend(key))
            @if is_wide(figure) { (all(&charts)) } @else { (pair(&charts)) }
        }
        h2 { "How it was measured" }
        pre { (command_line) }
        (notes(&told))
    };
    Ok(document(&title, &body))
}
