//! Verdict of a comparison of caches: a line for each of ours.

use super::engines::EngineSpec;
use super::mrc;
use super::outcome::{Line, Measured, Outcome};
use crate::report::numbers::{mops, percent, thousands};
use crate::report::verdict::{Noun, against, change, ratio};

/// Compares ours with the best competitor; without one, reports each.
pub(super) fn verdicts(outcome: &Outcome) -> Vec<String> {
    let found = compared(outcome);
    if !found.is_empty() {
        return found;
    }
    let alone: Vec<String> = measured(outcome)
        .map(|(line, measured)| alone(outcome, line, measured))
        .collect();
    if !alone.is_empty() {
        return alone;
    }
    // Where no cache was run there are the curves.
    let curves = outcome.mrc.iter();
    curves
        .flat_map(|curves| mrc::sentences(curves, &outcome.options))
        .collect()
}

/// Caches that ended well.
fn measured(outcome: &Outcome) -> impl Iterator<Item = (&Line, &Measured)> {
    let lines = outcome.lines.iter();
    lines.filter_map(|line| Some((line, line.measured.as_ref()?)))
}

fn alone(outcome: &Outcome, line: &Line, measured: &Measured) -> String {
    let hits = measured
        .hit_ratio()
        .map_or_else(String::new, |ratio| format!("hit ratio {}%, ", percent(ratio, 1)));
    let charged = measured.charged_throughput(&outcome.options);
    let charged = charged.map_or_else(String::new, |charged| format!(" ({} with miss cost)", mops(charged)));
    format!(
        "{}: {hits}{} Mops/s{charged}, peak memory {:.2} times the budget.",
        line.engine,
        mops(measured.throughput()),
        measured.peak_over_memory(&outcome.options)
    )
}

/// Throughput relative to another cache's, each miss charged.
fn with_misses(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 2.0 => format!("{ratio:.1} times as many with miss cost"),
        ratio => change(ratio, Noun::Number("with miss cost")),
    }
}

/// The competitor of one of ours: one with the same tiers if there is one, of those the one that answers most of the
/// same reads, and of those that answer as many the fastest.
fn best_other<'o>(outcome: &'o Outcome, mine: &Measured) -> Option<(&'o Line, &'o Measured)> {
    let common = outcome.common_operations();
    let rank = |measured: &Measured| {
        let hits = common.and_then(|common| measured.hit_ratio_over(common));
        let same_tiers = measured.disk.is_some() == mine.disk.is_some();
        (same_tiers, hits.unwrap_or(0.0), measured.throughput())
    };
    let others = measured(outcome).filter(|(line, _)| !matches!(line.engine, EngineSpec::Leafpress(..)));
    others.max_by(|(_, one), (_, other)| {
        let (one, other) = (rank(one), rank(other));
        let by_tiers = one.0.cmp(&other.0);
        by_tiers.then(one.1.total_cmp(&other.1)).then(one.2.total_cmp(&other.2))
    })
}

fn compared(outcome: &Outcome) -> Vec<String> {
    let common = outcome.common_operations();
    let most = outcome.operations().map_or(0, |(_, most)| most);
    let verdict = |(line, mine): (&Line, &Measured)| {
        let (other, theirs) = best_other(outcome, mine)?;
        let hits = common.and_then(|common| mine.hit_ratio_over(common).zip(theirs.hit_ratio_over(common)));
        let hits = hits.map(|(mine, theirs)| {
            let over = match common {
                Some(common) if common < most => format!(" (first {} operations)", thousands(common)),
                _ => String::new(),
            };
            format!("hit ratio {}% vs {}%{over}", percent(mine, 1), percent(theirs, 1))
        });
        let speed = ratio(Some(mine.throughput()), Some(theirs.throughput()));
        let charged = common.and_then(|common| {
            ratio(
                mine.charged_throughput_over(common, &outcome.options),
                theirs.charged_throughput_over(common, &outcome.options),
            )
        });
        let tiers = match (mine.disk.is_some(), theirs.disk.is_some()) {
            (true, false) => ", no disk tier",
            (false, true) => ", with a disk tier",
            _ => "",
        };
        let name = format!("{} (best competitor{tiers})", other.engine);
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
    let ours = measured(outcome).filter(|(line, _)| matches!(line.engine, EngineSpec::Leafpress(..)));
    ours.filter_map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::super::outcome::{DiskFigures, Milestone};
    use super::*;

    fn edit(outcome: &mut Outcome, at: usize, edit: impl FnOnce(&mut Measured)) {
        edit(outcome.lines[at].measured.as_mut().unwrap());
    }

    /// From a cold start more operations mean more hits: only equal ones are compared.
    #[test]
    fn hits_are_compared_over_the_same_operations() {
        let mut outcome = fixtures::outcome();
        outcome.lines.truncate(2);
        let milestone = |hits| Milestone {
            operations: 64_000,
            hits,
            misses: 64_000 - hits,
        };
        edit(&mut outcome, 0, |one| {
            (one.hits, one.misses) = (20_000, 45_000);
            one.milestones = vec![milestone(19_200)];
        });
        edit(&mut outcome, 1, |other| {
            (other.hits, other.misses) = (360_000, 225_000);
            other.milestones = vec![milestone(18_560)];
        });
        let reported = verdicts(&outcome).concat();
        assert!(
            reported.contains("hit ratio 30.0% vs 29.0% (first 64,000 operations)"),
            "{reported}"
        );
        // Without a number of operations that both completed, hits are not compared.
        edit(&mut outcome, 0, |one| one.milestones.clear());
        let reported = verdicts(&outcome).concat();
        assert!(!reported.contains("hit ratio"), "{reported}");
        assert!(
            reported.contains("fewer operations per second") && !reported.contains("miss cost"),
            "{reported}"
        );
    }

    #[test]
    fn each_of_ours_is_reported_without_a_competitor() {
        let mut outcome = fixtures::outcome();
        outcome.lines.truncate(2);
        outcome.lines[1].engine = "leafpress:none".parse().unwrap();
        edit(&mut outcome, 1, |other| other.hits = 550_000);
        let reported = verdicts(&outcome);
        assert_eq!(reported.len(), 2, "{reported:?}");
        assert!(
            reported[0].starts_with("leafpress: hit ratio 55.0%") && reported[1].starts_with("leafpress:none: "),
            "{reported:?}"
        );
    }

    #[test]
    fn compares_with_the_faster_of_equals_and_reports_other_tiers() {
        let mut outcome = fixtures::outcome();
        outcome.lines.truncate(3);
        edit(&mut outcome, 1, |other| other.seconds = 1.0);
        edit(&mut outcome, 2, |other| {
            (other.hits, other.misses, other.writes) = (260_000, 740_000, 0)
        });
        let reported = verdicts(&outcome).concat();
        assert!(
            reported.contains("quick_cache+zstd:3 (best competitor): "),
            "{reported}"
        );
        edit(&mut outcome, 0, |one| one.disk = Some(DiskFigures::default()));
        let reported = verdicts(&outcome).concat();
        assert!(
            reported.contains("quick_cache+zstd:3 (best competitor, no disk tier): "),
            "{reported}"
        );
        edit(&mut outcome, 2, |other| {
            other.disk = Some(DiskFigures::default());
            (other.hits, other.misses) = (10_000, 990_000);
        });
        let reported = verdicts(&outcome).concat();
        assert!(reported.contains("moka (best competitor): "), "{reported}");
    }
}
