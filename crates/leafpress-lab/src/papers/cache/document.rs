//! A figure's report: what was run, the table, the paper's results, and what its figures are.

use maud::html;

use super::charts::{charts, hues, is_wide};
use super::table::{papers, table};
use super::verdict::verdicts;
use super::{Figure, FigureOutcome, over_time, summary};
use crate::cache::{Length, Options};
use crate::core::Bytes;
use crate::report::document::Document;
use crate::report::html::{all, legend, pair};
use crate::report::numbers::thousands;

/// The source of the paper's results.
const THE_PAPERS: &str = "The paper's figures are from 16 threads on a machine with 384 GB and a drive with built-in \
     compression (ScaleFlux CSD 3000), mostly vs xcache, CacheLib and Kangaroo, which are not run here. They show the \
     trend, not what this machine should reach.";
/// Explanation of the columns.
const NOTES: [&str; 3] = [
    "Read: all reads, hits and misses, with the backend's time for misses. Charged: operations per second if each miss \
     had waited for the backend too. A cache without a disk tier has only the memory.",
    "Every key is inserted once before the warm-up (up to three times the bytes of memory and disk). Memory is the \
     growth of the process; leafpress may exceed its budget by 5% and 8M, which is significant for a small one.",
    "Every hit was compared with the expected value. A star marks the best of its scenario.",
];

/// Builds the report. Its tables are those of a comparison, with the scenario of each line.
pub fn document(figure: &FigureOutcome) -> Document<'_> {
    let number = figure.options.figure.number();
    let mut document = Document::new(format!("Figure {number} of the ZipCache paper, on this machine"));
    document.verdicts = verdicts(figure);
    document.head = head(figure);
    document.troubles = figure.troubles();
    document.table(table(figure));
    let papers = papers(figure);
    if !papers.is_empty() {
        document.paragraph("In the paper:");
    }
    papers
        .into_iter()
        .for_each(|paper| document.paragraph(format!("  {paper}")));
    notes(figure).into_iter().for_each(|note| document.caption(note));
    document.page_only(|| {
        let engines = figure.options.engines();
        let names: Vec<String> = engines.iter().map(ToString::to_string).collect();
        let charts = charts(figure)?;
        Ok(html! {
            @if !charts.is_empty() {
                h2 { "By scenario" }
                (legend(hues(&engines).into_iter().zip(names.iter().map(String::as_str))))
                @if is_wide(figure) { (all(&charts)) } @else { (pair(&charts)) }
            }
        })
    });
    document.tsv("summary", "summary.tsv", || summary(figure));
    document.tsv("over time", "over_time.tsv", || over_time(figure));
    document.results(figure);
    document
}

/// Describes the run.
fn head(figure: &FigureOutcome) -> Vec<String> {
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
        "The paper's {whose}: {memory} ({} times --scale {}), {threads} thread{plural}; measured: {measured}{shift}; a \
         miss costs {} us",
        Bytes(options.memory_bytes),
        options.scale,
        options.backend_us
    )
}

/// Explanation of the figures.
fn notes(figure: &FigureOutcome) -> Vec<&'static str> {
    let own = match figure.options.figure {
        Figure::Fig11 => Some("Written per byte: bytes written to the disk per byte of records evicted from memory."),
        Figure::Fig13 => {
            Some("Mean: of reads in intervals of operations, before the move, at worst after it, and at the end.")
        }
        Figure::Fig16 => Some("p50 of a length: of reads of values of that length."),
        _ => None,
    };
    [THE_PAPERS].into_iter().chain(own).chain(NOTES).collect()
}
