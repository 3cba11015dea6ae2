//! What a comparison of caches came to, in a line for each of ours.

use super::engines::EngineSpec;
use super::outcome::{Line, Measured, Outcome};
use crate::report::numbers::percent;
use crate::report::verdict::{Noun, against, change, ratio};

/// Ours beside the other that answers most reads.
pub(super) fn verdicts(outcome: &Outcome) -> Vec<String> {
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
                charged.map(|ratio| format!("{} with misses charged", change(ratio, Noun::Number("of them")))),
            ],
        )
    };
    measured(true).filter_map(verdict).collect()
}
