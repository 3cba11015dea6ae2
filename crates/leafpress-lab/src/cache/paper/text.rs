//! A figure as text: what was run, the table, and what its figures are.

use super::super::{Length, Options};
use super::table::{papers, table};
use super::verdict::verdicts;
use super::{Figure, FigureOutcome};
use crate::core::Bytes;
use crate::report::numbers::thousands;
use crate::report::paragraph::wrapped;
use crate::report::verdict;

/// The source of the paper's results.
const THE_PAPERS: &str = "The paper's figures are from 16 threads on a machine with 384 GB and a drive with built-in compression (ScaleFlux CSD 3000), mostly \
     vs xcache, CacheLib and Kangaroo, which are not run here. They show the trend, not what this machine should reach.";
/// Explanation of the columns.
const NOTES: [&str; 3] = [
    "Read: all reads, hits and misses, with the backend's time for misses. Charged: operations per second if each miss had waited \
     for the backend too. A cache without a disk tier has only the memory.",
    "Every key is inserted once before the warm-up (up to three times the bytes of memory and disk). Memory is the growth of the process; \
     leafpress may exceed its budget by 5% and 8M, which is significant for a small one.",
    "Every hit was compared with the expected value. A star marks the best of its scenario.",
];

/// All of it.
pub fn report(figure: &FigureOutcome) -> String {
    let mut text = verdict::text(&verdicts(figure));
    text.extend(head(figure).iter().map(|line| wrapped(line, "", "  ")));
    for trouble in figure.troubles() {
        text += &wrapped(&trouble, "", "  ");
    }
    text += &format!("{}\n", table(figure));
    let papers = papers(figure);
    if !papers.is_empty() {
        text += "In the paper:\n";
    }
    for paper in &papers {
        text += &wrapped(paper, "  ", "    ");
    }
    for note in notes(figure) {
        text += &wrapped(&note, "", "");
    }
    text
}

/// Describes the run.
pub(super) fn head(figure: &FigureOutcome) -> Vec<String> {
    let options = &figure.options;
    let number = options.figure.number();
    let mut lines = vec![format!(
        "Figure {number} of the ZipCache paper. {}",
        options.figure.about()
    )];
    if let Some(result) = options.figure.result() {
        lines.push(format!("The paper's result: {result}."));
    }
    if let Some(assumed) = options.figure.assumed() {
        lines.push(format!(
            "Assumed, since the paper's notes do not specify it: {assumed}."
        ));
    }
    if let Some(first) = figure.scenarios.first() {
        lines.push(how(figure, &first.outcome.options));
        lines.push(first.outcome.host.clone());
    }
    lines
}

fn how(figure: &FigureOutcome, first: &Options) -> String {
    let (options, threads) = (&figure.options, figure.options.threads);
    let whose = match options.figure {
        Figure::Fig7 => "128 GB",
        _ => "DRAM",
    };
    let memory = Bytes((options.memory_bytes as f64 * options.scale) as u64);
    let measured = match first.length {
        Some(Length::Seconds(seconds)) => format!("{seconds} s"),
        Some(Length::Operations(operations)) => format!("{} operations", thousands(operations)),
        None => "once".into(),
    };
    let shift = first
        .shift_at
        .map_or_else(String::new, |at| format!(", hot set moved after {}", thousands(at)));
    let plural = if threads == 1 { "" } else { "s" };
    format!(
        "The paper's {whose}: {memory} ({} times --scale {}), {threads} thread{plural}; measured: {measured}{shift}; a miss costs {} us",
        Bytes(options.memory_bytes),
        options.scale,
        options.backend_us
    )
}

/// Explanation of the figures.
pub(super) fn notes(figure: &FigureOutcome) -> Vec<String> {
    let own = match figure.options.figure {
        Figure::Fig11 => Some("Written per byte: bytes written to the disk per byte of records evicted from memory."),
        Figure::Fig13 => {
            Some("Mean: of reads in intervals of operations, before the move, at worst after it, and at the end.")
        }
        Figure::Fig16 => Some("p50 of a length: of reads of values of that length."),
        _ => None,
    };
    let all = [THE_PAPERS].into_iter().chain(own).chain(NOTES);
    all.map(str::to_owned).collect()
}
