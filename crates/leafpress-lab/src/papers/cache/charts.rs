//! A figure's charts: bars by scenario and cache.

use maud::Markup;
use plotters::style::RGBColor;

use super::{Figure, FigureOutcome, ScenarioOutcome};
use crate::cache::EngineSpec;
use crate::cache::outcome::{Measured, Outcome};
use crate::core::LabError;
use crate::report::draw::{Bars, bars};
use crate::report::hot_set_move;
use crate::report::html::figure as titled;
use crate::report::palette::colours;

/// Width of a group of bars, and of the axis, in pixels; and bounds of a chart's.
const GROUP: (u32, u32) = (70, 90);
const WIDTH: (u32, u32) = (530, 1200);

/// The caches with their colours.
pub(super) fn hues(engines: &[EngineSpec]) -> Vec<RGBColor> {
    let codecs: Vec<_> = engines.iter().map(EngineSpec::hue).collect();
    colours(codecs.iter().map(Option::as_deref))
}

fn width(scenarios: usize) -> u32 {
    (scenarios as u32 * GROUP.0 + GROUP.1).clamp(WIDTH.0, WIDTH.1)
}

/// Whether only one chart per row fits.
pub(super) fn is_wide(figure: &FigureOutcome) -> bool {
    width(figure.scenarios.len()) > WIDTH.0
}

/// All of them; those without a figure are left out.
pub(super) fn charts(figure: &FigureOutcome) -> Result<Vec<Markup>, LabError> {
    let engines = figure.options.engines();
    let hues = hues(&engines);
    let draw = |name, unit, of: &dyn Fn(&Outcome, &Measured) -> Option<f64>| {
        let has_it = |one: &&ScenarioOutcome| {
            let mut measured = one.outcome.lines.iter().filter_map(|line| line.measured.as_ref());
            measured.any(|measured| of(&one.outcome, measured).is_some())
        };
        let scenarios: Vec<&ScenarioOutcome> = figure.scenarios.iter().filter(has_it).collect();
        let names: Vec<&str> = scenarios.iter().map(|one| one.name.as_str()).collect();
        bars(&Bars {
            name,
            size: (width(scenarios.len()), 300),
            unit,
            groups: &names,
            colours: &hues,
            figure: &|scenario, cache| {
                let outcome = &scenarios[scenario].outcome;
                let line = outcome.lines.iter().find(|line| line.engine == engines[cache])?;
                of(outcome, line.measured.as_ref()?)
            },
        })
    };
    let mut drawn = vec![
        (
            "Hit ratio of the memory",
            draw("hits in memory", "hit ratio, %", &|_, m| {
                Some(m.memory_hit_ratio()? * 100.0)
            })?,
        ),
        (
            "Throughput with miss cost",
            draw("charged", "Mops/s", &|outcome, m| {
                m.read_latency.as_ref()?;
                Some(m.charged_throughput(&outcome.options)? / 1e6)
            })?,
        ),
        (
            "Throughput of writes alone",
            draw("writes alone", "Mops/s", &|_, m| {
                m.read_latency.is_none().then(|| m.throughput() / 1e6)
            })?,
        ),
        (
            "Reads: p90",
            draw("p90 of reads", "us", &|_, m| {
                Some(m.read_latency.as_ref()?.p90_ns as f64 / 1e3)
            })?,
        ),
    ];
    if figure.options.figure == Figure::Fig11 {
        let written = draw("written", "bytes per byte evicted from memory", &|_, m| {
            m.written_per_evicted()
        })?;
        drawn.push(("Bytes written to the disk", written));
    }
    for one in &figure.scenarios {
        drawn.push((
            "Mean of reads while the hot keys move",
            around_move(&one.outcome, &hues)?,
        ));
    }
    let drawn = drawn.into_iter();
    Ok(drawn.filter_map(|(title, svg)| Some(titled(title, &svg?))).collect())
}

fn around_move(outcome: &Outcome, hues: &[RGBColor]) -> Result<Option<String>, LabError> {
    let lines = outcome.lines.iter().zip(hues);
    let lines = lines.filter_map(|(line, hue)| Some((*hue, line.measured.as_ref()?.timeline.as_slice())));
    hot_set_move::mean_reads(outcome.options.shift_at, &lines.collect::<Vec<_>>())
}
