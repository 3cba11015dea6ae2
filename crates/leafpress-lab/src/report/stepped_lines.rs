//! Lines over a few named steps, such as lengths of blocks that double.

use plotters::prelude::*;

use super::draw::{
    FONT_SIZE, below, brief, decades, draw, duration, duration_in_words, framed, headroom, on_axis, plain,
};
use super::words;
use crate::core::LabError;

/// A line: its colour, a figure for each step that has one, and whether it is dashed.
pub(crate) type LadderLine = (RGBColor, Vec<Option<f64>>, bool);

/// Figures over steps.
pub(crate) struct Ladder<'l> {
    /// The chart's name in errors.
    pub name: &'static str,
    /// Names of the steps, from left to right.
    pub steps: &'l [String],
    /// The steps.
    pub description: &'l str,
    /// The figures, with unit.
    pub unit: &'l str,
    /// Figures are microseconds, on a logarithmic axis.
    pub durations: bool,
    /// The lines.
    pub lines: &'l [LadderLine],
}

/// Draws figures over steps; `None` without a line of two points.
pub(crate) fn ladder(spec: &Ladder<'_>) -> Result<Option<String>, LabError> {
    let figures = || {
        spec.lines
            .iter()
            .flat_map(|(_, figures, _)| figures.iter().flatten().copied())
    };
    let (Some(least), Some(most)) = (figures().reduce(f64::min), figures().reduce(f64::max)) else {
        return Ok(None);
    };
    let is_point = |line: &LadderLine| line.1.iter().flatten().nth(1).is_none();
    if spec.lines.iter().all(is_point) {
        return Ok(None);
    }
    let end = spec.steps.len() as f64;
    let figure = |figure: f64| {
        if spec.durations {
            duration_in_words(figure)
        } else {
            brief(figure)
        }
    };
    let alt_text = words::lines(
        &format!("{} by {}", spec.unit, spec.description),
        spec.lines.iter().map(|(_, figures, _)| {
            let steps = spec.steps.iter().zip(figures);
            steps.filter_map(|(step, of)| Some((step.clone(), figure((*of)?))))
        }),
    );
    let svg = draw(spec.name, (530, 340), &alt_text, |root, _| {
        let mut builder = framed(root, 66, 50);
        // The two axes have different types, so this is written out twice by a macro and not by a function.
        macro_rules! paint {
            ($low:expr, $y:expr, $label:expr) => {{
                let mut chart = builder.build_cartesian_2d(0.0..end, $y)?;
                let mut mesh = chart.configure_mesh();
                mesh.disable_x_mesh().disable_x_axis().y_labels(8);
                plain(&mut mesh, spec.unit);
                mesh.y_label_formatter(&$label).draw()?;
                for (at, step) in spec.steps.iter().enumerate() {
                    let (x, y) = chart.backend_coord(&(at as f64 + 0.5, $low));
                    below(root, step, (x, y + 8), 12)?;
                }
                let (x, y) = chart.backend_coord(&(end / 2.0, $low));
                below(root, spec.description, (x, y + 28), FONT_SIZE)?;
                for (colour, figures, dashed) in spec.lines {
                    let points = figures.iter().enumerate();
                    let points = points.filter_map(|(at, figure)| Some((at as f64 + 0.5, (*figure)?.max($low))));
                    let points: Vec<(f64, f64)> = points.collect();
                    if *dashed {
                        let line = DashedLineSeries::new(points.iter().copied(), 6, 4, colour.stroke_width(2));
                        chart.draw_series(line)?;
                    } else {
                        chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
                    }
                    chart.draw_series(
                        points
                            .into_iter()
                            .map(|point| Circle::new(point, 3, colour.filled())),
                    )?;
                }
            }};
        }
        if spec.durations {
            let (low, high) = decades(least, most);
            paint!(low, (low..high).log_scale(), |us: &f64| duration(*us));
        } else {
            paint!(0.0, 0.0..headroom(most), on_axis(most));
        }
        Ok(())
    })?;
    Ok(Some(svg))
}
