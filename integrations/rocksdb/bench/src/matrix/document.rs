//! The report of a matrix: the white paper's summary rows, the value of saved cores, and a table for each scenario.

use std::fmt::Write;

use leafpress_lab::model::tco::{YEARS, of_cores};
use leafpress_lab::report::{Document, Table};

use super::{Matrix, charts};
use crate::Compression;
use crate::report::{options_of, shape, tables};
use crate::study::{Access, Cell, Study, hues, summary};

/// Notes under every page of studies.
pub(crate) const NOTES: [&str; 6] = [
    "Each compression's databases are loaded once with <code>fillseq</code>; reads are measured on them as loaded, \
     80:20 on copies by hard links, so that every run starts from the same files.",
    "A pair is a run of the baseline and one of the compression, directly one after the other, in turns first and \
     second. A change is the median over the pairs of the ratio within a pair: a machine that wanders slows both.",
    "Each run is a process of its own, its instances in it.",
    "Every read is looked at: its key must be there and its value of the right length.",
    "The page cache holds all files, so that the device does not matter, as in the white paper; there is no block \
     cache by default.",
    "p99 is of gets, over the measured time, in HDR histograms with three significant digits. CPU is the process's, \
     RocksDB's background threads included.",
];

/// The description of the columns, under the tables.
const CAPTION: &str = "%: change against the baseline, the median over pairs of runs made directly one after the \
     other; data as loaded. CPU saved: the part of the baseline's CPU that is not needed for the baseline's \
     throughput, found by raising threads until it is reached; * where it is not reached with all threads, and \
     extrapolated.";

/// Returns the report.
pub fn document(matrix: &Matrix) -> Document<'_> {
    let mut document = Document::new("Leafpress in RocksDB: the white paper's matrix");
    document.head = head(matrix);
    document.troubles = matrix.studies.iter().flat_map(Study::troubles).collect();
    let first = matrix.studies.first().and_then(|study| study.runs.first());
    document.terms = options_of("RocksDB's options of the first run", first);
    document.notes = NOTES.to_vec();
    document.table(table(matrix));
    document.caption(CAPTION);
    document.page_only(|| charts::over_all(matrix));
    document.heading("Total cost of ownership");
    for line in costs(matrix) {
        document.paragraph(line);
    }
    for study in &matrix.studies {
        document.page_only(|| charts::scenario(study, matrix));
        study.tables(&mut document, |_| Vec::new());
    }
    let runs = || tables::summary(matrix.studies.iter().flat_map(|study| &study.runs));
    document.tsv("summary", "summary.tsv", || summary(&matrix.studies));
    document.tsv("runs", "runs.tsv", runs);
    document.results(matrix);
    document
}

/// Returns the description of the runs, in lines.
fn head(matrix: &Matrix) -> Vec<String> {
    let mut lines = vec![matrix.host.clone()];
    if let Some(study) = matrix.studies.first() {
        let plan = &study.plan;
        lines.push(shape(&plan.shape).replace(
            &format!(" · blocks {}", leafpress_lab::Bytes(plan.shape.block_bytes)),
            "",
        ));
        lines.push(format!(
            "{} threads that read, {} that read and write, for each instance · {} pairs of {} s after {} s of warm-up \
             · block cache {}",
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
fn table(matrix: &Matrix) -> Table {
    let headings = [
        "compression",
        "access",
        "throughput\n%",
        "p99 get latency\n%",
        "data size\n%",
        "CPU per op\n%",
        "CPU saved at its\nthroughput %",
    ];
    let baseline = matrix.studies.first().map(|study| study.plan.baseline.to_string());
    let compressions = matrix.compressions();
    let mut table = Table {
        title: format!(
            "Over all scenarios, least..most, against {}",
            baseline.unwrap_or_default()
        ),
        is_grouped: true,
        ..Table::new(headings, [])
    };
    for (compression, hue) in compressions.iter().zip(hues(&compressions)) {
        for access in Access::ALL {
            let of = |figure: fn(&Cell) -> Option<f64>| in_words(range(matrix.cells(compression, access), figure));
            if matrix.cells(compression, access).next().is_some() {
                table.row([
                    compression.to_string(),
                    access.to_string(),
                    of(Cell::throughput_change_pct),
                    of(Cell::p99_change_pct),
                    of(Cell::size_change_pct),
                    of(Cell::cpu_change_pct),
                    of(Cell::cpu_saved_pct),
                ]);
                table.hues.push(hue);
            }
        }
    }
    table.parts(&[
        ("", &[1, 3]),
        ("CPU of an operation, and saved at its throughput", &[4, 5]),
        ("p99 latency of gets", &[2]),
    ])
}

/// Returns the value of saved cores, in lines.
fn costs(matrix: &Matrix) -> Vec<String> {
    let prices = &matrix.prices;
    let mut lines = vec![format!(
        "Cost: compute is {:.1}% of the total cost of ownership over {YEARS} years (`leafpress model --tco` has the \
         arithmetic)",
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
