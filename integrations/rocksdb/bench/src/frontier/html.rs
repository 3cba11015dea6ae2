//! The page of a frontier.

use std::fmt::Write;

use leafpress_lab::LabError;
use leafpress_lab::report::html::{document, escape, figure};

use super::{CAPTION, Frontier, grid, head};
use crate::Compression;
use crate::matrix::{NOTES, trade_off};
use crate::report::html::{how_measured, swatch};
use crate::study::{Cell, hues};

/// The page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub fn page(frontier: &Frontier, command_line: &str) -> Result<String, LabError> {
    let title = "Leafpress in RocksDB: the frontier";
    let study = &frontier.study;
    let lines: Vec<_> = head(frontier).iter().map(|line| escape(line)).collect();
    let mut body = format!("<h1>{title}</h1>\n<p>{}</p>\n", lines.join("<br>"));
    let troubles: Vec<_> = study.troubles().iter().map(|line| escape(line)).collect();
    if !troubles.is_empty() {
        let _ = writeln!(body, "<p class=\"bad\">{}</p>", troubles.join("<br>"));
    }
    for access in &study.plan.accesses {
        let cells: Vec<&Cell> = study.cells(*access).collect();
        let compressions: Vec<&Compression> = cells.iter().map(|cell| &cell.compression).collect();
        let hues = hues(&compressions);
        let grid = grid(study, *access);
        if grid.rows.is_empty() {
            continue;
        }
        let _ = writeln!(body, "<h2>{access}</h2>");
        if let Some(svg) = trade_off(&cells, &hues, &study.plan.baseline, true)? {
            body += &figure(
                "Throughput against data size; filled: leafpress, rings: RocksDB's own; the dashed line joins what nothing beats",
                &svg,
            );
        }
        body += &grid.html(|row| swatch(row.checked_sub(1).and_then(|row| hues.get(row).copied())));
    }
    body += &format!("<p class=\"faint\">{}</p>\n", escape(CAPTION));
    body += &how_measured(command_line, "", &NOTES);
    Ok(document(title, &body))
}
