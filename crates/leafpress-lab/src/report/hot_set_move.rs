//! A move of the hot keys during a run: what reads took around it, in words and as a chart.

use plotters::style::RGBColor;

use super::draw::{Curve, Curves, INK, curves};
use super::numbers::thousands;
use crate::core::LabError;
use crate::harness::timeline::{Moment, around_move};

/// Charts end at this multiple of the operations before the move.
const SHOWN: u64 = 4;

/// The effect on `subject`, a line.
pub(crate) fn words(subject: &str, timeline: &[Moment], shift_at: u64) -> String {
    let Some(moved) = around_move(timeline, shift_at) else {
        return format!(
            "{subject}: the run ended before its hot set moved, at {} operations: use more --seconds or a lower \
             --shift-at\n",
            thousands(shift_at)
        );
    };
    let us = |ns: f64| format!("{:.2}", ns / 1e3);
    let back = match moved.back_after {
        Some(operations) => format!("back within a tenth after {} operations", thousands(operations)),
        None => "not back within a tenth by the end".to_owned(),
    };
    format!(
        "{subject}: mean read {} us before the hot set moved, at most {} after, {} at the end; {back}\n",
        us(moved.before_ns),
        us(moved.worst_ns),
        us(moved.end_ns)
    )
}

/// A chart of each interval.
pub(crate) struct Shown<'s> {
    /// The chart's name in errors.
    pub name: &'static str,
    /// The figures, with unit.
    pub description: &'s str,
    /// Operations before the move.
    pub shift_at: u64,
    /// A colour and the stretches of each line.
    pub lines: &'s [(RGBColor, &'s [Moment])],
    /// The figure, by line and stretch.
    pub figure: &'s dyn Fn(usize, &Moment) -> f64,
}

#[cfg(feature = "cache")]
/// Mean times of reads around a move of a cache's hot keys, if there was one.
pub(crate) fn mean_reads(shift_at: Option<u64>, lines: &[(RGBColor, &[Moment])]) -> Result<Option<String>, LabError> {
    let Some(shift_at) = shift_at else {
        return Ok(None);
    };
    chart(&Shown {
        name: "move of the hot keys",
        description: "mean read, us",
        shift_at,
        lines,
        figure: &|_, moment| moment.mean_ns / 1e3,
    })
}

/// Figures over operations, with the move marked; `None` without a line.
pub(crate) fn chart(shown: &Shown<'_>) -> Result<Option<String>, LabError> {
    let last = shown.lines.iter().filter_map(|(_, timeline)| timeline.last());
    let Some(last) = last.map(|moment| moment.operations).max() else {
        return Ok(None);
    };
    let end = last.min(shown.shift_at.saturating_mul(SHOWN));
    let lines = shown.lines.iter().enumerate();
    let mut drawn: Vec<Curve> = lines
        .map(|(line, (colour, timeline))| {
            let within = timeline.iter().take_while(|moment| moment.operations <= end);
            let points = within.map(|moment| (moment.operations as f64 / 1e3, (shown.figure)(line, moment)));
            Curve {
                colour: *colour,
                points: points.collect(),
                dashed: false,
                marks: false,
            }
        })
        .collect();
    let figures = drawn.iter().flat_map(|curve| &curve.points).map(|point| point.1);
    let most = figures.fold(0.0, f64::max);
    let at = shown.shift_at as f64 / 1e3;
    drawn.push(Curve {
        colour: INK,
        points: vec![(at, 0.0), (at, most)],
        dashed: true,
        marks: false,
    });
    curves(&Curves {
        name: shown.name,
        x: (
            "thousand operations; the hot set moves at the dashed line",
            0.0,
            end as f64 / 1e3,
        ),
        description: shown.description,
        most: None,
        curves: &drawn,
        levels: &[],
    })
}
