//! Lines over a duration on a logarithmic axis, and what nothing beats among their points.

use plotters::prelude::*;
use plotters::style::RGBColor;

use super::draw::{
    INK, brief, decades, draw, duration, duration_in_words, framed, headroom, ink, labels_across, on_axis, plain,
};
use super::scatter::pareto;
use super::words;
use crate::core::LabError;

/// One thing in several settings.
pub(crate) struct Line {
    /// Its colour.
    pub colour: RGBColor,
    /// Where it is in each setting: microseconds, of which fewer are better, and a figure, of which more is.
    pub points: Vec<(f64, f64)>,
    /// Drawn dashed, with rings: a variant of the line of the same colour.
    pub variant: bool,
}

/// Figures against durations.
pub(crate) struct TradeOff<'t> {
    /// The chart's name in errors.
    pub name: &'static str,
    /// The x axis: a time.
    pub x: &'t str,
    /// The figures.
    pub y: &'t str,
    /// The lines.
    pub lines: &'t [Line],
    /// A figure that none gets past, across the chart, with its name.
    pub limit: Option<(f64, &'t str)>,
}

/// Draws figures against durations; what nothing beats is joined. `None` without two points.
///
/// # Errors
/// [`LabError::Chart`] when it cannot be drawn.
pub(crate) fn trade_off(spec: &TradeOff<'_>) -> Result<Option<String>, LabError> {
    let all: Vec<(f64, f64)> = spec.lines.iter().flat_map(|line| line.points.iter().copied()).collect();
    let times = || all.iter().map(|(us, _)| *us);
    let (Some(least), Some(most)) = (times().reduce(f64::min), times().reduce(f64::max)) else {
        return Ok(None);
    };
    if all.len() < 2 {
        return Ok(None);
    }
    let figures = all.iter().map(|(_, figure)| *figure);
    let largest = figures.chain(spec.limit.map(|(figure, _)| figure)).fold(0.0, f64::max);
    let (left, right) = decades(least, most);
    let alt_text = words::lines(
        &format!("{} against {}", spec.y, spec.x),
        spec.lines.iter().map(|line| {
            let points = line.points.iter();
            points.map(|(us, figure)| (duration_in_words(*us), brief(*figure)))
        }),
    );
    let svg = draw(spec.name, (1080, 460), &alt_text, |root, size| {
        let mut chart = framed(root, 62, 46).build_cartesian_2d((left..right).log_scale(), 0.0..headroom(largest))?;
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(labels_across(size.0)).y_labels(8).x_desc(spec.x);
        plain(&mut mesh, spec.y);
        mesh.x_label_formatter(&|us| duration(*us))
            .y_label_formatter(&on_axis(largest))
            .draw()?;
        if let Some((figure, name)) = spec.limit {
            let ends = [(left, figure), (right, figure)];
            chart.draw_series(DashedLineSeries::new(ends, 2, 4, INK.stroke_width(1)))?;
            let (x, y) = chart.backend_coord(&(left, figure));
            root.draw(&Text::new(name, (x + 6, y - 16), ink(12)))?;
        }
        let best = pareto(&all).into_iter().map(|point| all[point]);
        chart.draw_series(LineSeries::new(best, INK.mix(0.35).stroke_width(5)))?;
        for line in spec.lines {
            let points = line.points.iter().copied();
            let mark = if line.variant {
                chart.draw_series(DashedLineSeries::new(points.clone(), 6, 4, line.colour.stroke_width(2)))?;
                line.colour.stroke_width(2)
            } else {
                chart.draw_series(LineSeries::new(points.clone(), line.colour.stroke_width(2)))?;
                line.colour.filled()
            };
            chart.draw_series(points.map(|point| Circle::new(point, 4, mark)))?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}
