//! Labelled points over two quantities, and their Pareto frontier.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::draw::{INK, brief, draw, framed, headroom, ink, labels_across, on_axis, plain};
use super::{labels, words};
use crate::core::LabError;

/// Radius of a point in pixels.
const RADIUS: i32 = 6;

/// A point.
#[derive(Debug, Clone)]
pub struct Point {
    /// Its label.
    pub label: String,
    /// Its colour.
    pub colour: RGBColor,
    /// Where it is.
    pub at: (f64, f64),
    /// Drawn as a ring: a variant of a point of the same colour.
    pub hollow: bool,
}

/// Points over two quantities, of which less is better of the one across and more of the one upwards.
pub struct Scatter<'s> {
    /// The chart's name in errors.
    pub name: &'static str,
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// The x axis, with unit.
    pub x: &'s str,
    /// The y axis, with unit.
    pub y: &'s str,
    /// The points.
    pub points: &'s [Point],
    /// Whether the points that no other beats in both are joined.
    pub pareto: bool,
}

/// Returns the points, by number and ascending x, that no other beats: none has as much y at as little x.
pub fn pareto(points: &[(f64, f64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| {
        let ((ax, ay), (bx, by)) = (points[a], points[b]);
        ax.total_cmp(&bx).then(by.total_cmp(&ay))
    });
    let mut best = f64::NEG_INFINITY;
    order.retain(|&at| {
        let better = points[at].1 > best;
        best = best.max(points[at].1);
        better
    });
    order
}

/// Draws labelled points; `None` for fewer than two: a single one is described in words.
///
/// # Errors
/// [`LabError::Chart`] when it cannot be drawn.
pub fn scatter(spec: &Scatter<'_>) -> Result<Option<String>, LabError> {
    let xs = || spec.points.iter().map(|point| point.at.0);
    let (Some(left), Some(right)) = (xs().reduce(f64::min), xs().reduce(f64::max)) else {
        return Ok(None);
    };
    if spec.points.len() < 2 {
        return Ok(None);
    }
    let largest = spec.points.iter().map(|point| point.at.1).fold(0.0, f64::max);
    let margin = ((right - left) * 0.16).max(right.abs() * 0.01).max(1e-9);
    let alt_text = words::all(
        &format!("{} against {}", spec.y, spec.x),
        spec.points
            .iter()
            .map(|point| format!("{} {} at {}", point.label, brief(point.at.1), brief(point.at.0))),
    );
    // Where no figure is below 0, the axis is not either.
    let from = if left < 0.0 {
        left - margin
    } else {
        (left - margin).max(0.0)
    };
    let svg = draw(spec.name, spec.size, &alt_text, |root, size| {
        let mut chart = framed(root, 62, 46).build_cartesian_2d(from..right + margin, 0.0..headroom(largest))?;
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(labels_across(size.0)).y_labels(6).x_desc(spec.x);
        plain(&mut mesh, spec.y);
        mesh.x_label_formatter(&on_axis(right))
            .y_label_formatter(&on_axis(largest))
            .draw()?;
        if spec.pareto {
            let at: Vec<(f64, f64)> = spec.points.iter().map(|point| point.at).collect();
            let line = pareto(&at).into_iter().map(|number| at[number]);
            chart.draw_series(DashedLineSeries::new(line, 6, 4, INK.stroke_width(1)))?;
        }
        let pixels: Vec<_> = spec
            .points
            .iter()
            .map(|point| (chart.backend_coord(&point.at), point.label.as_str()))
            .collect();
        // Labels keep off those of the axes.
        let (left, floor) = (
            chart.plotting_area().get_pixel_range().0.start,
            chart.plotting_area().get_pixel_range().1.end,
        );
        let inside: Vec<_> = pixels.iter().map(|((x, y), label)| ((x - left, *y), *label)).collect();
        let room = (size.0.saturating_sub(left.max(0) as u32), floor.max(0) as u32);
        let places = labels::place(&inside, 12.0, RADIUS.into(), room)
            .into_iter()
            .map(|(x, y)| (x + left, y));
        for ((point, (pixel, label)), place) in spec.points.iter().zip(&pixels).zip(places) {
            let style = if point.hollow {
                point.colour.stroke_width(2)
            } else {
                point.colour.filled()
            };
            root.draw(&Circle::new(*pixel, RADIUS, style))?;
            root.draw(&Text::new(
                *label,
                place,
                ink(12).pos(Pos::new(HPos::Left, VPos::Center)),
            ))?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pareto_line_has_what_nothing_beats() {
        let points = [(3.0, 9.0), (1.0, 4.0), (2.0, 3.0), (1.0, 5.0), (2.5, 5.0), (4.0, 9.0)];
        assert_eq!(pareto(&points), [3, 0]);
        assert_eq!(pareto(&[]), Vec::<usize>::new());
    }
}
