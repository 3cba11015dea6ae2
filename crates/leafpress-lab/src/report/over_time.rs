//! Lines over the time of a run.

use plotters::prelude::*;

use super::draw::{
    brief, decades, decimals, draw, duration, duration_in_words, framed, headroom, labels_across, on_axis, plain,
};
use super::words;
use crate::core::LabError;

/// Figures over time.
pub(crate) struct OverTime<'t> {
    /// The chart's name in errors.
    pub name: &'static str,
    /// The figures, with unit.
    pub description: &'t str,
    /// Figures are microseconds, on a logarithmic axis.
    pub latency: bool,
    /// A colour, and seconds with their figures.
    pub lines: &'t [(RGBColor, Vec<(f64, f64)>)],
}

/// Draws figures over time; `None` unless each line has two points: one that is in the legend and not in the chart
/// misleads.
pub(crate) fn over_time(spec: &OverTime<'_>) -> Result<Option<String>, LabError> {
    let points = || spec.lines.iter().flat_map(|(_, points)| points.iter().copied());
    let figures = || points().map(|(_, figure)| figure);
    let (Some(least), Some(most)) = (figures().reduce(f64::min), figures().reduce(f64::max)) else {
        return Ok(None);
    };
    let Some(end) = points().map(|(at, _)| at).reduce(f64::max).filter(|end| *end > 0.0) else {
        return Ok(None);
    };
    if spec.lines.iter().any(|(_, points)| points.len() < 2) {
        return Ok(None);
    }
    let digits = decimals(end);
    let figure = |figure: f64| {
        if spec.latency {
            duration_in_words(figure)
        } else {
            brief(figure)
        }
    };
    let alt_text = words::lines(
        &format!("{} over seconds", spec.description),
        spec.lines
            .iter()
            .map(|(_, points)| points.iter().map(|(at, of)| (format!("{at:.digits$}"), figure(*of)))),
    );
    let svg = draw(spec.name, (530, 300), &alt_text, |root, (width, _)| {
        let mut builder = framed(root, 66, 46);
        // The two axes have different types, so this is written out twice by a macro and not by a function.
        macro_rules! paint {
            ($y:expr, $label:expr) => {{
                let mut chart = builder.build_cartesian_2d(0.0..end, $y)?;
                let mut mesh = chart.configure_mesh();
                mesh.x_labels(labels_across(width)).y_labels(6).x_desc("seconds");
                plain(&mut mesh, spec.description);
                mesh.x_label_formatter(&|x| format!("{x:.digits$}"))
                    .y_label_formatter(&$label)
                    .draw()?;
                for (colour, points) in spec.lines {
                    chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
                }
            }};
        }
        if spec.latency {
            let (low, high) = decades(least, most);
            paint!((low..high).log_scale(), |us: &f64| duration(*us));
        } else {
            paint!(0.0..headroom(most), on_axis(most));
        }
        Ok(())
    })?;
    Ok(Some(svg))
}
