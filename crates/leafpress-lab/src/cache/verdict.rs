//! What a comparison of caches came to, in a line for each of ours.

use super::engines::EngineSpec;
use super::mrc;
use super::outcome::{Line, Measured, Outcome};
use crate::report::numbers::{mops, percent};
use crate::report::verdict::{Noun, against, change, ratio};

/// Ours beside the other that answers most reads; where there is nothing to compare with, what the one with most hits does.
pub(super) fn verdicts(outcome: &Outcome) -> Vec<String> {
    let hits = |measured: &Measured| measured.hit_ratio().unwrap_or(0.0);
    let found = compared(outcome);
    if !found.is_empty() {
        return found;
    }
    let lines = outcome.lines.iter();
    let measured = lines.filter_map(|line| Some((line, line.measured.as_ref()?)));
    let best = measured.max_by(|(_, one), (_, other)| hits(one).total_cmp(&hits(other)));
    let alone = best.map(|(line, measured)| alone(outcome, line, measured));
    // Where no cache was run there are the curves.
    let curves = outcome.mrc.iter().filter(|_| alone.is_none());
    let curves: Vec<String> = curves
        .flat_map(|curves| mrc::sentences(curves, &outcome.options))
        .collect();
    alone.into_iter().chain(curves).collect()
}

fn alone(outcome: &Outcome, line: &Line, measured: &Measured) -> String {
    let hits = measured.hit_ratio().map_or_else(String::new, |ratio| {
        format!("{}% of the reads hit, ", percent(ratio, 1))
    });
    let charged = measured.charged_throughput(&outcome.options);
    let charged = charged.map_or_else(String::new, |charged| {
        format!(" ({} with misses charged)", mops(charged))
    });
    format!(
        "{}: {hits}{} Mops/s{charged}, {:.2} times the memory at most.",
        line.engine,
        mops(measured.throughput()),
        measured.peak_over_memory(&outcome.options)
    )
}

/// Operations beside another's, each miss charged.
fn with_misses(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 2.0 => format!("{ratio:.1} times as many with misses charged"),
        ratio => change(ratio, Noun::Number("with misses charged")),
    }
}

fn compared(outcome: &Outcome) -> Vec<String> {
    let measured = |is_ours: bool| {
        let lines = outcome.lines.iter();
        let lines = lines.filter(move |line| matches!(line.engine, EngineSpec::Leafpress(..)) == is_ours);
        lines.filter_map(|line| Some((line, line.measured.as_ref()?)))
    };
    let hits = |measured: &Measured| measured.hit_ratio().unwrap_or(0.0);
    let other = measured(false).max_by(|(_, one), (_, other)| hits(one).total_cmp(&hits(other)));
    let Some((other, theirs)) = other else {
        return Vec::new();
    };
    let verdict = |(line, mine): (&Line, &Measured)| {
        let hits = mine.hit_ratio().zip(theirs.hit_ratio());
        let hits =
            hits.map(|(mine, theirs)| format!("{}% of the reads hit, {}% there", percent(mine, 1), percent(theirs, 1)));
        let speed = ratio(Some(mine.throughput()), Some(theirs.throughput()));
        let charged = ratio(
            mine.charged_throughput(&outcome.options),
            theirs.charged_throughput(&outcome.options),
        );
        let name = format!("{}, the other with most hits", other.engine);
        against(
            &line.engine.to_string(),
            &name,
            [
                hits,
                speed.map(|ratio| change(ratio, Noun::Number("operations per second"))),
                charged.map(with_misses),
            ],
        )
    };
    measured(true).filter_map(verdict).collect()
}
