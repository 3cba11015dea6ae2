//! The page of a frontier.

use leafpress_lab::LabError;
use leafpress_lab::report::html::{all, document, figure};
use maud::{Markup, html};

use super::{CAPTION, Frontier, grid, head};
use crate::Compression;
use crate::matrix::{NOTES, trade_off};
use crate::report::html::{self, swatch};
use crate::study::{Cell, hues};

const TRADE_OFF: &str =
    "Throughput against data size; filled: leafpress, rings: RocksDB's own; the dashed line joins what nothing beats";

/// Returns the page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub fn page(frontier: &Frontier, command_line: &str) -> Result<String, LabError> {
    let title = "Leafpress in RocksDB: the frontier";
    let study = &frontier.study;
    let mut accesses = Vec::new();
    for access in &study.plan.accesses {
        let cells: Vec<&Cell> = study.cells(*access).collect();
        let compressions: Vec<&Compression> = cells.iter().map(|cell| &cell.compression).collect();
        let hues = hues(&compressions);
        let grid = grid(study, *access);
        if grid.rows.is_empty() {
            continue;
        }
        let svg = trade_off(&cells, &hues, &study.plan.baseline, true)?;
        accesses.push(html! {
            h2 { (access) }
            @if let Some(svg) = svg { (figure(TRADE_OFF, &svg)) }
            (grid.html(|row| swatch(row.checked_sub(1).and_then(|row| hues.get(row).copied()))))
        });
    }
    let body = html! {
        (html::head(title, &head(frontier), &study.troubles()))
        (all(&accesses))
        p.faint { (CAPTION) }
        (html::how_measured(command_line, &Markup::default(), &NOTES))
    };
    Ok(document(title, &body))
}
