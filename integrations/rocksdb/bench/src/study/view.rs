//! A study for people and programs.

use leafpress_lab::Bytes;
use leafpress_lab::report::palette::colours;
use plotters::style::RGBColor;

use super::{Access, Cell, Study, median};
use crate::report::grid::{Grid, change, figure, size, throughput};
use crate::report::tables::{NOT_APPLICABLE, decimals, line};
use crate::{Compression, Outcome, Shape};

/// Returns a shape in few words: `16K blocks, 256 B values`.
pub fn shape_name(shape: &Shape) -> String {
    format!("{} blocks, {} B values", Bytes(shape.block_bytes), shape.value_bytes)
}

/// Colours of compressions in order: the codec decides, so that one looks the same in every chart.
pub fn hues(compressions: &[&Compression]) -> Vec<RGBColor> {
    let mut codecs: Vec<String> = Vec::new();
    for compression in compressions {
        let codec = compression.codec();
        if !codecs.contains(&codec) {
            codecs.push(codec);
        }
    }
    let hues = colours(codecs.iter().map(|name| Some(name.as_str())));
    let hue = |compression: &&Compression| {
        codecs
            .iter()
            .position(|codec| *codec == compression.codec())
            .and_then(|at| hues.get(at))
    };
    compressions
        .iter()
        .filter_map(|compression| hue(compression).copied())
        .collect()
}

/// Returns the figures of the baseline in an access pattern: medians over all pairs.
fn baseline(study: &Study, access: Access, of: impl Fn(&Outcome) -> Option<f64>) -> Option<f64> {
    let cells = study.cells.iter().filter(|cell| cell.access == access);
    median(
        cells
            .flat_map(|cell| cell.pairs.iter())
            .filter_map(|pair| of(&pair.baseline)),
    )
}

impl Study {
    /// Returns the cells of an access pattern that measured something.
    pub fn cells(&self, access: Access) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(move |cell| cell.access == access && !cell.pairs.is_empty())
    }

    /// Returns the table of an access pattern, the baseline first.
    pub fn grid(&self, access: Access) -> Grid {
        let mut headings = vec![
            "compression",
            "Mops/s",
            "throughput\n%",
            "least..most\n%",
            "p99\nus",
            "p99\n%",
            "data",
            "data\n%",
            "bytes\nper key",
            "CPU us\nper op",
            "CPU per\nop %",
        ];
        if self.plan.ladder {
            headings.push("CPU saved at its\nthroughput %");
        }
        let mut grid = Grid::new(1, &headings).in_parts(&[
            ("", &[1, 2, 7]),
            ("Latency, and CPU of an operation", &[4, 5, 9, 10]),
            ("Range of the throughput, CPU saved", &[3, 11]),
            ("Bytes of files", &[6, 8]),
        ]);
        if self.cells(access).next().is_none() {
            return grid;
        }
        grid.rows.push(self.baseline_row(access));
        let keys = self.plan.shape.keys().max(1) as f64;
        for cell in self.cells(access) {
            let range = cell.throughput_range_pct();
            let mut row = vec![
                cell.compression.to_string(),
                throughput(cell.figure(|outcome| Some(outcome.throughput()))),
                change(cell.throughput_change_pct()),
                range.map_or_else(String::new, |(least, most)| format!("{least:+.0}..{most:+.0}")),
                figure(cell.figure(Outcome::p99_us)),
                change(cell.p99_change_pct()),
                size(Some(cell.loaded_bytes as f64)),
                change(cell.size_change_pct()),
                format!("{:.1}", cell.loaded_bytes as f64 / keys),
                figure(cell.figure(|outcome| Some(outcome.cpu_us()))),
                change(cell.cpu_change_pct()),
            ];
            if self.plan.ladder {
                let sign = cell.ladder.as_ref().is_some_and(|ladder| !ladder.reaches());
                let saved = cell.cpu_saved_pct().map(|saved| format!("{saved:.1}"));
                row.push(match (saved, sign) {
                    (None, _) => "NA".into(),
                    (Some(saved), false) => saved,
                    (Some(saved), true) => format!("{saved} *"),
                });
            }
            grid.rows.push(row);
        }
        grid
    }

    /// Returns a table of an access pattern under what it is of, for a terminal; nothing if it has no row.
    pub fn titled(&self, access: Access, grid: &Grid) -> String {
        if grid.rows.is_empty() {
            return String::new();
        }
        format!("\n{}, {access}\n{}", shape_name(&self.plan.shape), grid.text())
    }

    /// Returns the first row of the table.
    fn baseline_row(&self, access: Access) -> Vec<String> {
        let keys = self.plan.shape.keys().max(1) as f64;
        let of_baseline = |of: fn(&Outcome) -> Option<f64>| baseline(self, access, of);
        let bytes = self.cells(access).map(|cell| cell.baseline_bytes).next().unwrap_or(0);
        let mut row = vec![
            self.plan.baseline.to_string(),
            throughput(of_baseline(|outcome| Some(outcome.throughput()))),
            "0".into(),
            String::new(),
            figure(of_baseline(Outcome::p99_us)),
            "0".into(),
            size(Some(bytes as f64)),
            "0".into(),
            format!("{:.1}", bytes as f64 / keys),
            figure(of_baseline(|outcome| Some(outcome.cpu_us()))),
            "0".into(),
        ];
        if self.plan.ladder {
            row.push("0".into());
        }
        row
    }

    /// Tab-separated lines, one for each compression and access pattern; with the names of the columns where `header`.
    pub fn summary(&self, header: bool) -> String {
        let shape = &self.plan.shape;
        let number = |figure: Option<f64>| figure.map_or_else(|| NOT_APPLICABLE.to_owned(), decimals);
        let mut table = match header {
            true => line(COLUMNS.map(str::to_owned)),
            false => String::new(),
        };
        for cell in self.cells.iter().filter(|cell| !cell.pairs.is_empty()) {
            let range = cell.throughput_range_pct();
            table += &line([
                cell.access.to_string(),
                shape.block_bytes.to_string(),
                shape.value_bytes.to_string(),
                cell.compression.to_string(),
                self.plan.baseline.to_string(),
                shape.instances.to_string(),
                self.plan.threads(cell.access).to_string(),
                shape.keys().to_string(),
                cell.pairs.len().to_string(),
                number(cell.figure(|outcome| Some(outcome.throughput()))),
                number(cell.throughput_change_pct()),
                number(range.map(|(least, _)| least)),
                number(range.map(|(_, most)| most)),
                number(cell.figure(Outcome::p99_us)),
                number(cell.p99_change_pct()),
                cell.loaded_bytes.to_string(),
                number(cell.size_change_pct()),
                number(cell.figure(|outcome| Some(outcome.cpu_us()))),
                number(cell.cpu_change_pct()),
                number(cell.cpu_saved_pct()),
                cell.pairs
                    .iter()
                    .map(|pair| pair.other.mismatches + pair.baseline.mismatches)
                    .sum::<u64>()
                    .to_string(),
            ]);
        }
        table
    }

    /// Reads that did not return what their keys hold, in all runs.
    pub fn mismatches(&self) -> u64 {
        self.runs.iter().map(|row| row.outcome.mismatches).sum()
    }

    /// Returns the caveats, in lines.
    pub fn troubles(&self) -> Vec<String> {
        let name = shape_name(&self.plan.shape);
        let failed = self
            .failures
            .iter()
            .map(|(compression, reason)| format!("failed: {name}, {compression}: {reason}"));
        let wrong = self.runs.iter().filter(|row| row.outcome.mismatches > 0).map(|row| {
            format!(
                "WRONG ANSWERS: {name}, {} {}: {} ({})",
                row.run.workload,
                row.run.shape.compression,
                row.outcome.mismatches,
                row.outcome.mismatch_examples.first().map_or("", String::as_str)
            )
        });
        failed.chain(wrong).collect()
    }
}

/// The columns of a study's table, in order.
const COLUMNS: [&str; 21] = [
    "access",
    "block_bytes",
    "value_bytes",
    "compression",
    "baseline",
    "instances",
    "threads_per_instance",
    "keys",
    "pairs",
    "ops_per_second",
    "throughput_change_pct",
    "throughput_change_least_pct",
    "throughput_change_most_pct",
    "read_p99_us",
    "read_p99_change_pct",
    "sst_bytes",
    "size_change_pct",
    "cpu_us_per_op",
    "cpu_per_op_change_pct",
    "cpu_saved_at_baseline_throughput_pct",
    "mismatches",
];
