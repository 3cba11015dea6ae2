//! The charts of a matrix: the white paper's figures 4, 5 and 7 in kind.

use leafpress_lab::LabError;
use leafpress_lab::report::draw::{Bars, bars};
use leafpress_lab::report::html::{figure, legend as legend_of, pair};
use leafpress_lab::report::scatter::{Point, Scatter, scatter};
use maud::{Markup, html};
use plotters::style::RGBColor;

use super::Matrix;
use crate::Compression;
use crate::study::{Access, BASELINE_HUE, Cell, Study, hues, shape_name};

/// Figures 5 and 7.
pub(super) fn over_all(matrix: &Matrix) -> Result<Markup, LabError> {
    type Of = fn(&Cell) -> Option<f64>;
    const CHARTS: [(&str, Of); 3] = [
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
    let compressions = matrix.compressions();
    let hues = hues(&compressions);
    let charts = CHARTS.map(|(title, of)| over_scenarios(matrix, &compressions, &hues, title, of));
    let charts = charts.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(html! {
        (legend(&compressions, &hues))
        @for chart in charts.iter().flatten() { (chart) }
    })
}

/// Draws names next to their colours.
fn legend(compressions: &[&Compression], hues: &[RGBColor]) -> Markup {
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

/// Figure 4 of a shape.
pub(super) fn scenario(study: &Study, matrix: &Matrix) -> Result<Markup, LabError> {
    let compressions = matrix.compressions();
    let mut charts = Vec::new();
    for access in &study.plan.accesses {
        let title = format!("Throughput against data size, {access} (figure 4)");
        let svg = trade_off(study, *access, false)?;
        charts.extend(svg.map(|svg| figure(&title, &svg)));
    }
    Ok(html! {
        h2 { (shape_name(&study.plan.shape)) }
        (legend(&compressions, &hues(&compressions)))
        (pair(&charts))
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
pub(crate) fn trade_off(study: &Study, access: Access, pareto: bool) -> Result<Option<String>, LabError> {
    let cells: Vec<&Cell> = study.cells(access).collect();
    let hues = hues(&cells.iter().map(|cell| &cell.compression).collect::<Vec<_>>());
    let baseline = &study.plan.baseline;
    let mut points = vec![Point {
        label: baseline.to_string(),
        colour: BASELINE_HUE,
        at: (1.0, 1.0),
        hollow: !baseline.is_leafpress(),
    }];
    for (cell, hue) in cells.iter().zip(hues) {
        if let (Some(size), Some(throughput)) = (cell.size_change_pct(), cell.throughput_change_pct()) {
            points.push(Point {
                label: label(&cell.compression),
                colour: hue,
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
