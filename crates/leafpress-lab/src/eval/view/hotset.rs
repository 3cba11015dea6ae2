//! The workload `hotset`: what a move of the hot keys costs, and how long.

use plotters::style::RGBColor;

use super::charts::codec_colour;
use super::pivot::{Line, Pivot, Setting};
use crate::core::LabError;
use crate::eval::Workload;
use crate::harness::timeline::Moment;
use crate::report::hot_set_move::{self, Shown};

fn moments<'r>(line: &Line<'r>) -> Option<(&'r [Moment], u64)> {
    let row = line.row(Workload::HotSet)?;
    Some((&row.result.timeline, row.spec.base.shift_at))
}

/// A line for each codec, for under the table; empty without the workload.
pub(super) fn text(setting: &Setting<'_>) -> String {
    let lines = setting.lines.iter().filter_map(|line| {
        let (timeline, shift_at) = moments(line)?;
        Some(hot_set_move::words(
            &format!("hotset: {}", line.codec),
            timeline,
            shift_at,
        ))
    });
    lines.collect()
}

/// Mean latency, and memory held, over operations: a line for each codec. Without the workload there are none.
pub(super) fn charts(pivot: &Pivot<'_>, setting: &Setting<'_>) -> Result<Vec<(&'static str, String)>, LabError> {
    let found: Vec<_> = setting
        .lines
        .iter()
        .filter_map(|line| Some((line, moments(line)?)))
        .collect();
    let Some(&(_, (_, shift_at))) = found.first() else {
        return Ok(Vec::new());
    };
    let lines: Vec<(RGBColor, &[Moment])> = found
        .iter()
        .map(|(line, (timeline, _))| (codec_colour(pivot, line), *timeline))
        .collect();
    let draw = |name, description, figure: &dyn Fn(usize, &Moment) -> f64| {
        hot_set_move::chart(&Shown {
            name,
            description,
            shift_at,
            lines: &lines,
            figure,
        })
    };
    let latency = draw("hotset", "mean read latency, us", &|_, moment| moment.mean_ns / 1e3)?;
    let held = draw("hotset-held", "held per user byte", &|at, moment| {
        let row = found[at].0.row(Workload::HotSet);
        let user = row.map_or(0, |row| row.result.loaded.user_bytes);
        moment.bytes_held as f64 / (user as f64).max(1.0)
    })?;
    Ok([
        ("Mean read latency while the hot keys move", latency),
        ("Memory held while the hot keys move", held),
    ]
    .into_iter()
    .filter_map(|(title, svg)| Some((title, svg?)))
    .collect())
}
