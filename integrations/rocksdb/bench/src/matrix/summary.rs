//! The matrix as text: a table for each scenario, the white paper's summary rows, and what saved cores are worth.

use std::fmt::Write;

use leafpress_lab::model::tco::{YEARS, of_cores};

use super::Matrix;
use crate::Compression;
use crate::report::grid::Grid;
use crate::report::tables;
use crate::report::text::shape;
use crate::study::{Access, Cell};

/// The description of the columns, under the tables.
pub(super) const CAPTION: &str = "\
%: change against the baseline, the median over pairs of runs made directly one after the other; data as loaded.
CPU saved: the part of the baseline's CPU that is not needed for the baseline's throughput, found by raising threads until \
it is reached; * where it is not reached with all threads, and extrapolated.
";

/// Everything for people.
pub fn text(matrix: &Matrix) -> String {
    let mut text = head(matrix).join("\n") + "\n";
    for study in &matrix.studies {
        for access in &study.plan.accesses {
            text += &study.titled(*access, &study.grid(*access));
        }
    }
    text += CAPTION;
    let _ = write!(
        text,
        "\nOver all scenarios, least..most, against {}\n{}",
        baseline(matrix),
        grid(matrix).text()
    );
    text += &costs(matrix).join("\n");
    text += "\n";
    for trouble in matrix.studies.iter().flat_map(|study| study.troubles()) {
        let _ = writeln!(text, "{trouble}");
    }
    text
}

pub(super) fn baseline(matrix: &Matrix) -> String {
    matrix
        .studies
        .first()
        .map_or_else(String::new, |study| study.plan.baseline.to_string())
}

/// Returns the description of the runs, in lines.
pub(super) fn head(matrix: &Matrix) -> Vec<String> {
    let mut lines = vec![matrix.host.clone()];
    if let Some(study) = matrix.studies.first() {
        let plan = &study.plan;
        lines.push(shape(&plan.shape).replace(
            &format!(" · blocks {}", leafpress_lab::Bytes(plan.shape.block_bytes)),
            "",
        ));
        lines.push(format!(
            "{} threads that read, {} that read and write, for each instance · {} pairs of {} s after {} s of warm-up · block cache {}",
            plan.threads(Access::ReadOnly),
            plan.threads(Access::Mixed),
            plan.rounds,
            plan.work.seconds,
            plan.work.warmup_seconds,
            plan.tuning.cache
        ));
    }
    lines
}

/// Returns the range of a figure over cells.
fn range<'c>(cells: impl Iterator<Item = &'c Cell>, of: impl Fn(&Cell) -> Option<f64>) -> Option<(f64, f64)> {
    let figures: Vec<f64> = cells.filter_map(of).collect();
    Some((
        figures.iter().copied().reduce(f64::min)?,
        figures.iter().copied().reduce(f64::max)?,
    ))
}

fn in_words(range: Option<(f64, f64)>) -> String {
    match range {
        None => "NA".into(),
        Some((least, most)) if (most - least).abs() < 0.05 => format!("{least:+.1}"),
        Some((least, most)) => format!("{least:+.1}..{most:+.1}"),
    }
}

/// Returns the summary rows.
pub(super) fn grid(matrix: &Matrix) -> Grid {
    let mut grid = Grid::new(
        2,
        &[
            "compression",
            "access",
            "throughput\n%",
            "p99 get latency\n%",
            "data size\n%",
            "CPU per op\n%",
            "CPU saved at its\nthroughput %",
        ],
    )
    .in_parts(&[
        ("", &[2, 4]),
        ("CPU of an operation, and saved at its throughput", &[5, 6]),
        ("p99 latency of gets", &[3]),
    ]);
    for compression in matrix.compressions() {
        for access in Access::ALL {
            let of = |figure: fn(&Cell) -> Option<f64>| in_words(range(matrix.cells(compression, access), figure));
            if matrix.cells(compression, access).next().is_some() {
                grid.rows.push(vec![
                    compression.to_string(),
                    access.to_string(),
                    of(Cell::throughput_change_pct),
                    of(Cell::p99_change_pct),
                    of(Cell::size_change_pct),
                    of(Cell::cpu_change_pct),
                    of(Cell::cpu_saved_pct),
                ]);
            }
        }
    }
    grid
}

/// Returns the value of saved cores, in lines.
pub(super) fn costs(matrix: &Matrix) -> Vec<String> {
    let prices = &matrix.prices;
    let mut lines = vec![format!(
        "Cost: compute is {:.1}% of the total cost of ownership over {YEARS} years (`leafpress model --tco` has the arithmetic)",
        prices.share() * 100.0
    )];
    for compression in matrix.compressions() {
        lines.extend(cost(matrix, compression));
    }
    lines
}

fn cost(matrix: &Matrix, compression: &Compression) -> Option<String> {
    let (least, most) = range(matrix.cells(compression, Access::Mixed), Cell::cpu_saved_pct)
        .or_else(|| range(matrix.cells(compression, Access::ReadOnly), Cell::cpu_saved_pct))?;
    let [least, most] = [least, most].map(|pct| of_cores(pct / 100.0, &matrix.prices));
    let both = |of: fn(&leafpress_lab::model::tco::CoreSavings) -> f64| {
        let [least, most] = [of(&least) * 100.0, of(&most) * 100.0].map(|pct| format!("{pct:.1}"));
        match least == most {
            true => format!("{least}%"),
            false => format!("{least}..{most}%"),
        }
    };
    let mut line = format!(
        "  {compression}: {} of the cores and of the cost of compute saved, {} of the total",
        both(|saved| saved.cores_saved),
        both(|saved| saved.total_saved)
    );
    for (name, least, most) in [
        ("cores", least.cores, most.cores),
        ("compute", least.compute_cost, most.compute_cost),
        ("total cost", least.total_cost, most.total_cost),
    ] {
        if let (Some(least), Some(most)) = (least, most) {
            let _ = write!(line, "; {name} {least:.2}..{most:.2}");
        }
    }
    Some(line)
}

/// `summary.tsv`: a line for each scenario and compression.
pub fn tables(matrix: &Matrix) -> String {
    let studies = matrix.studies.iter().enumerate();
    studies.map(|(number, study)| study.summary(number == 0)).collect()
}

/// `runs.tsv`: a line for each run, in order.
pub fn runs(matrix: &Matrix) -> String {
    tables::summary(matrix.studies.iter().flat_map(|study| &study.runs))
}
