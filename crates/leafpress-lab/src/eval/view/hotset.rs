//! The workload `hotset`: what a move of the hot keys costs, and how long.

use super::charts::codec_colour;
use super::pivot::{Line, Pivot, Setting};
use crate::core::LabError;
use crate::eval::Workload;
use crate::eval::result::Moment;
use crate::report::draw::{Curve, Curves, INK, curves};
use crate::report::numbers::thousands;

/// A mean this much over that before the move counts as back.
const BACK: f64 = 1.1;
/// Charts end at so many times the operations before the move.
const SHOWN: u64 = 4;

/// A run's latency around the move, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Move {
    before_ns: f64,
    /// The worst stretch after it.
    worst_ns: f64,
    /// The mean of the run's last stretches, as many as were taken for `before_ns`.
    end_ns: f64,
    /// Operations from the move to the first stretch that took at most a tenth longer than before; `None` where the run ended first.
    back_after: Option<u64>,
}

/// `None` where the run ended before its hot keys moved.
fn look(timeline: &[Moment], shift_at: u64) -> Option<Move> {
    let at = timeline.partition_point(|moment| moment.operations <= shift_at);
    let (before, after) = timeline.split_at(at);
    let mean = |moments: &[Moment]| {
        let sum: f64 = moments.iter().map(|moment| moment.mean_ns).sum();
        sum / moments.len() as f64
    };
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let window = (before.len() / 4).max(1);
    let before_ns = mean(&before[before.len() - window..]);
    // The median of three keeps one interrupted stretch from counting as the tree's.
    let calm = |at: usize| {
        let mut near = [at.saturating_sub(1), at, (at + 1).min(after.len() - 1)].map(|at| after[at].mean_ns);
        near.sort_by(f64::total_cmp);
        near[1]
    };
    let calmed: Vec<f64> = (0..after.len()).map(calm).collect();
    let back = calmed.iter().position(|mean_ns| *mean_ns <= before_ns * BACK);
    Some(Move {
        before_ns,
        worst_ns: calmed.iter().copied().fold(0.0, f64::max),
        end_ns: mean(&after[after.len() - window.min(after.len())..]),
        back_after: back.map(|at| after[at].operations - shift_at),
    })
}

fn moments<'r>(line: &Line<'r>) -> Option<(&'r [Moment], u64)> {
    let row = line.row(Workload::HotSet)?;
    Some((&row.result.timeline, row.spec.base.shift_at))
}

/// A line for each codec, for under the table; empty without the workload.
pub(super) fn text(setting: &Setting<'_>) -> String {
    let mut text = String::new();
    for line in &setting.lines {
        let Some((timeline, shift_at)) = moments(line) else {
            continue;
        };
        let codec = &line.codec;
        text += &match look(timeline, shift_at) {
            None => format!(
                "hotset: {codec}: the run ended before its hot keys moved, at {} operations: give more --seconds or a lower \
                 --shift-at\n",
                thousands(shift_at)
            ),
            Some(moved) => {
                let us = |ns: f64| format!("{:.2}", ns / 1e3);
                let back = match moved.back_after {
                    Some(operations) => format!("back within a tenth after {} operations", thousands(operations)),
                    None => "not back within a tenth when the run ended".to_owned(),
                };
                format!(
                    "hotset: {codec}: mean read {} us before other keys became hot, at most {} after, {} at the end; {back}\n",
                    us(moved.before_ns),
                    us(moved.worst_ns),
                    us(moved.end_ns)
                )
            }
        };
    }
    text
}

/// Mean latency, and memory held, over operations: a line for each codec. Without the workload there are none.
pub(super) fn charts(pivot: &Pivot<'_>, setting: &Setting<'_>) -> Result<Vec<(&'static str, String)>, LabError> {
    let lines: Vec<_> = setting
        .lines
        .iter()
        .filter_map(|line| Some((line, moments(line)?)))
        .collect();
    let Some(&(_, (_, shift_at))) = lines.first() else {
        return Ok(Vec::new());
    };
    let longest = lines.iter().filter_map(|(_, (timeline, _))| timeline.last());
    let end = longest
        .map(|moment| moment.operations)
        .max()
        .unwrap_or(0)
        .min(shift_at.saturating_mul(SHOWN));
    let draw = |name, description, figure: &dyn Fn(&Line<'_>, &Moment) -> f64| {
        let mut drawn: Vec<Curve> = lines
            .iter()
            .map(|(line, (timeline, _))| {
                let shown = timeline.iter().take_while(|moment| moment.operations <= end);
                let points = shown.map(|moment| (moment.operations as f64 / 1e3, figure(line, moment)));
                Curve {
                    colour: codec_colour(pivot, line),
                    points: points.collect(),
                    dashed: false,
                    marks: false,
                }
            })
            .collect();
        let most = drawn.iter().flat_map(|curve| &curve.points).map(|point| point.1);
        let most = most.fold(0.0, f64::max);
        let at = shift_at as f64 / 1e3;
        drawn.push(Curve {
            colour: INK,
            points: vec![(at, 0.0), (at, most)],
            dashed: true,
            marks: false,
        });
        curves(&Curves {
            name,
            x: (
                "thousand operations; other keys are hot from the dashed line on",
                0.0,
                end as f64 / 1e3,
            ),
            description,
            most: None,
            curves: &drawn,
            levels: &[],
        })
    };
    let latency = draw("hotset", "mean read latency, us", &|_, moment| moment.mean_ns / 1e3)?;
    let held = draw("hotset-held", "held per user byte", &|line, moment| {
        let user = line.row(Workload::HotSet).map_or(0, |row| row.result.loaded.user_bytes);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(means: &[f64]) -> Vec<Moment> {
        let moment = |(at, &mean_ns): (usize, &f64)| Moment {
            operations: 100 * (at as u64 + 1),
            mean_ns,
            bytes_held: 0,
        };
        means.iter().enumerate().map(moment).collect()
    }

    #[test]
    fn a_move_is_told_from_before_to_back() {
        let slow_start = [9.0, 5.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0];
        let after = [6.0, 6.0, 50.0, 4.0, 3.0, 2.1, 2.1, 2.0];
        let moved = look(&timeline(&[slow_start, after].concat()), 800).unwrap();
        assert_eq!(
            (moved.before_ns, moved.worst_ns),
            (2.0, 6.0),
            "one stretch alone is not the tree's"
        );
        assert_eq!(moved.back_after, Some(600));
        assert!((moved.end_ns - 2.05).abs() < 1e-9);
    }

    #[test]
    fn what_never_comes_back_and_what_never_moved_are_told() {
        let moved = look(&timeline(&[1.0, 1.0, 3.0, 3.0]), 200).unwrap();
        assert_eq!((moved.back_after, moved.end_ns), (None, 3.0));
        assert_eq!(look(&timeline(&[1.0, 1.0]), 200), None);
        assert_eq!(look(&[], 200), None);
    }
}
