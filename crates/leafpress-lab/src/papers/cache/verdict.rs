//! Verdict of a figure: a line for each of our caches, over all its scenarios.

use super::{FigureOutcome, ScenarioOutcome};
use crate::cache::EngineSpec;
use crate::cache::outcome::{Measured, Outcome};
use crate::report::numbers::percent;
use crate::report::verdict::{Noun, change, ratio};

fn is_ours(engine: &EngineSpec) -> bool {
    matches!(engine, EngineSpec::Leafpress(..))
}

/// Compares ours with the best competitor of each scenario, or with the first cache if all are ours.
pub(super) fn verdicts(figure: &FigureOutcome) -> Vec<String> {
    let engines = figure.options.engines();
    let all_ours = engines.iter().all(is_ours);
    let (mine, name) = match engines.first() {
        Some(first) if all_ours => (engines[1..].to_vec(), first.to_string()),
        _ => {
            let mine = engines.iter().filter(|engine| is_ours(engine)).cloned();
            (mine.collect(), "the best competitor".to_owned())
        }
    };
    let is_other = |engine: &EngineSpec| {
        if all_ours {
            Some(engine) == engines.first()
        } else {
            !is_ours(engine)
        }
    };
    mine.iter()
        .filter_map(|engine| verdict(figure, engine, &name, &is_other))
        .collect()
}

fn verdict(
    figure: &FigureOutcome,
    engine: &EngineSpec,
    name: &str,
    is_other: &dyn Fn(&EngineSpec) -> bool,
) -> Option<String> {
    let pairs = figure.scenarios.iter().filter_map(|one| pair(one, engine, is_other));
    let pairs: Vec<(&Outcome, &Measured, &Measured)> = pairs.collect();
    let hits = pairs
        .iter()
        .filter_map(|(_, mine, theirs)| Some((mine.hit_ratio()?, theirs.hit_ratio()?)));
    let (mine, theirs, count) = hits.fold((0.0, 0.0, 0.0_f64), |(mine, theirs, count), hits| {
        (mine + hits.0, theirs + hits.1, count + 1.0)
    });
    let speeds = pairs.iter().filter_map(|(outcome, mine, theirs)| {
        let charged = |measured: &Measured| measured.charged_throughput(&outcome.options);
        ratio(charged(mine), charged(theirs)).map(f64::ln)
    });
    let speeds: Vec<f64> = speeds.collect();
    let mean = speeds.iter().sum::<f64>() / speeds.len() as f64;
    let speed = (!speeds.is_empty()).then(|| change(mean.exp(), Noun::Number("operations per second with miss cost")));
    let hits = (count > 0.0).then(|| {
        let of = |sum: f64| percent(sum / count, 1);
        format!("hit ratio {}% vs {}%", of(mine), of(theirs))
    });
    let words: Vec<String> = hits.into_iter().chain(speed).collect();
    let scenarios = match pairs.len() {
        1 => String::new(),
        count => format!(" (mean of {count} scenarios)"),
    };
    (!words.is_empty()).then(|| format!("{engine} vs {name}{scenarios}: {}.", words.join(", ")))
}

/// A cache of a scenario, and its best competitor.
fn pair<'o>(
    one: &'o ScenarioOutcome,
    engine: &EngineSpec,
    is_other: &dyn Fn(&EngineSpec) -> bool,
) -> Option<(&'o Outcome, &'o Measured, &'o Measured)> {
    let lines = || {
        one.outcome
            .lines
            .iter()
            .filter_map(|line| Some((&line.engine, line.measured.as_ref()?)))
    };
    let hits = |measured: &Measured| measured.hit_ratio().unwrap_or(0.0);
    let (_, mine) = lines().find(|(of, _)| *of == engine)?;
    let others = lines().filter(|(of, _)| is_other(of));
    let (_, theirs) = others.max_by(|(_, one), (_, other)| hits(one).total_cmp(&hits(other)))?;
    Some((&one.outcome, mine, theirs))
}
