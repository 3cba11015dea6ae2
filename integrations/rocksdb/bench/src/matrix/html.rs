//! The page of a matrix, with the white paper's figures 4, 5 and 7 in kind.

use leafpress_lab::LabError;
use leafpress_lab::report::draw::{Bars, bars};
use leafpress_lab::report::html::{all, document, figure, legend as legend_of, lines, pair};
use leafpress_lab::report::scatter::{Point, Scatter, scatter};
use maud::{Markup, html};
use plotters::style::RGBColor;

use super::summary::{CAPTION, costs, grid, head};
use super::{Matrix, summary};
use crate::Compression;
use crate::report::html::{self, rocksdb_options, swatch};
use crate::study::{Access, Cell, Study, hues, shape_name};

/// Notes under every page of studies.
pub(crate) const NOTES: [&str; 6] = [
    "Each compression's databases are loaded once with <code>fillseq</code>; reads are measured on them as loaded, 80:20 on copies by hard links, so \
     that every run starts from the same files.",
    "A pair is a run of the baseline and one of the compression, directly one after the other, in turns first and second. A change is the \
     median over the pairs of the ratio within a pair: a machine that wanders slows both.",
    "Each run is a process of its own, its instances in it.",
    "Every read is looked at: its key must be there and its value of the right length.",
    "The page cache holds all files, so that the device does not matter, as in the white paper; there is no block cache by default.",
    "p99 is of gets, over the measured time, in HDR histograms with three significant digits. CPU is the process's, RocksDB's background \
     threads included.",
];

/// Returns the page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub fn page(matrix: &Matrix, command_line: &str) -> Result<String, LabError> {
    let title = "Leafpress in RocksDB: the white paper's matrix";
    let troubles: Vec<String> = matrix.studies.iter().flat_map(Study::troubles).collect();
    let compressions = matrix.compressions();
    let hues = hues(&compressions);
    let legend = legend(&compressions, &hues);
    let summary = grid(matrix);
    let hue_of = |name: &str| {
        let at = compressions
            .iter()
            .position(|compression| compression.to_string() == name)?;
        hues.get(at).copied()
    };
    let scenarios = matrix.studies.iter().map(|study| scenario(study, &legend));
    let scenarios = scenarios.collect::<Result<Vec<_>, _>>()?;
    let first = matrix.studies.first().and_then(|study| study.runs.first());
    let options = rocksdb_options(
        "RocksDB's options of the first run",
        first.map(|row| row.options.as_str()),
    );
    let body = html! {
        (html::head(title, &head(matrix), &troubles))
        h2 { "Against " (summary::baseline(matrix)) ", over all scenarios" }
        (summary.html(|row| swatch(summary.rows[row].first().and_then(|name| hue_of(name)))))
        p.faint { (CAPTION) }
        (legend)
        (all(&charts(matrix, &compressions, &hues)?))
        h3 { "Total cost of ownership" }
        p { (lines(&costs(matrix).join("\n"))) }
        (all(&scenarios))
        (html::how_measured(command_line, &options, &NOTES))
    };
    Ok(document(title, &body))
}

/// Figures 5 and 7.
fn charts(matrix: &Matrix, compressions: &[&Compression], hues: &[RGBColor]) -> Result<Vec<Markup>, LabError> {
    type Of = fn(&Cell) -> Option<f64>;
    let charts: [(&str, Of); 3] = [
        (
            "Throughput change over all scenarios (figure 5)",
            Cell::throughput_change_pct,
        ),
        (
            "p99 get latency change over all scenarios (figure 5)",
            Cell::p99_change_pct,
        ),
        ("CPU saved at the baseline's throughput (figure 7)", Cell::cpu_saved_pct),
    ];
    let mut drawn = Vec::new();
    for (title, of) in charts {
        drawn.extend(over_scenarios(matrix, compressions, hues, title, of)?);
    }
    Ok(drawn)
}

/// Draws names next to their colours.
pub(crate) fn legend(compressions: &[&Compression], hues: &[RGBColor]) -> Markup {
    let names: Vec<String> = compressions.iter().map(ToString::to_string).collect();
    legend_of(hues.iter().copied().zip(names.iter().map(String::as_str)))
}

/// Returns a group of bars for each scenario, a bar for each compression.
fn over_scenarios(
    matrix: &Matrix,
    compressions: &[&Compression],
    hues: &[RGBColor],
    title: &str,
    of: fn(&Cell) -> Option<f64>,
) -> Result<Option<Markup>, LabError> {
    let mut scenarios: Vec<(&Study, Access, String)> = Vec::new();
    for access in Access::ALL {
        for study in &matrix.studies {
            let shape = &study.plan.shape;
            let name = format!(
                "{access} {}/{}",
                leafpress_lab::Bytes(shape.block_bytes),
                shape.value_bytes
            );
            scenarios.push((study, access, name));
        }
    }
    let names: Vec<&str> = scenarios.iter().map(|(_, _, name)| name.as_str()).collect();
    let svg = bars(&Bars {
        name: "scenarios",
        size: (1080, 380),
        unit: "%",
        groups: &names,
        colours: hues,
        figure: &|group, bar| {
            let (study, access, _) = &scenarios[group];
            let mut cells = study.cells(*access);
            cells.find(|cell| cell.compression == *compressions[bar]).and_then(of)
        },
    })?;
    Ok(svg.map(|svg| figure(title, &svg)))
}

/// Returns a shape's tables, and throughput against size.
fn scenario(study: &Study, legend: &Markup) -> Result<Markup, LabError> {
    let (mut charts, mut tables) = (Vec::new(), Vec::new());
    for access in &study.plan.accesses {
        let grid = study.grid(*access);
        if grid.rows.is_empty() {
            continue;
        }
        let cells: Vec<&Cell> = study.cells(*access).collect();
        let compressions: Vec<&Compression> = cells.iter().map(|cell| &cell.compression).collect();
        let hues = hues(&compressions);
        tables.push(html! {
            h3 { (access) }
            (grid.html(|row| swatch(row.checked_sub(1).and_then(|row| hues.get(row).copied()))))
        });
        let title = format!("Throughput against data size, {access} (figure 4)");
        let svg = trade_off(&cells, &hues, &study.plan.baseline, false)?;
        charts.extend(svg.map(|svg| figure(&title, &svg)));
    }
    Ok(html! {
        h2 { (shape_name(&study.plan.shape)) }
        (legend)
        (pair(&charts))
        (all(&tables))
    })
}

/// Returns the short label of a compression, drawn next to its point.
fn label(compression: &Compression) -> String {
    let plain = compression.with_dictionary(0).to_string().replacen("leafpress:", "", 1);
    match compression.dictionary_bytes {
        0 => plain,
        _ => plain + " +dict",
    }
}

/// Throughput against data size, both over the baseline's.
pub(crate) fn trade_off(
    cells: &[&Cell],
    hues: &[RGBColor],
    baseline: &Compression,
    pareto: bool,
) -> Result<Option<String>, LabError> {
    let mut points = vec![Point {
        label: baseline.to_string(),
        colour: RGBColor(0xe8, 0x7a, 0x24),
        at: (1.0, 1.0),
        hollow: !baseline.is_leafpress(),
    }];
    for (cell, hue) in cells.iter().zip(hues) {
        if let (Some(size), Some(throughput)) = (cell.size_change_pct(), cell.throughput_change_pct()) {
            points.push(Point {
                label: label(&cell.compression),
                colour: *hue,
                at: (1.0 + size / 100.0, 1.0 + throughput / 100.0),
                hollow: !cell.compression.is_leafpress(),
            });
        }
    }
    if points.len() < 2 {
        return Ok(None);
    }
    scatter(&Scatter {
        name: "trade-off",
        size: if pareto { (1080, 560) } else { (530, 380) },
        x: "data size over the baseline's",
        y: "throughput over the baseline's",
        points: &points,
        pareto,
    })
}
