//! Charts as SVG: grouped bars, lines over quantiles, lines over time.
//!
//! Ink, faint ink and grid are drawn in three colours nobody would choose; the page's style sheet replaces them by the
//! reader's light or dark ones. Legends belong to the page.

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::html::escape;
use super::words;
use crate::core::LabError;
use crate::core::latency::Latency;

/// Replaced by the page's text colour.
pub(crate) const INK: RGBColor = RGBColor(1, 1, 1);
/// Replaced by the page's grid colour.
pub(crate) const GRID: RGBColor = RGBColor(2, 2, 2);

const FONT: &str = "sans-serif";
pub(crate) const FONT_SIZE: u32 = 13;
/// Width of a chart on a narrow page, in pixels: what a page of 400 has room for.
const NARROW: u32 = 356;
/// Bars narrower than this, in pixels, have no figure on top; those narrower than the second have a short one.
const LABELLED_BAR: (f64, f64) = (15.0, 27.0);
/// Height of a figure on a bar, in pixels.
const LABEL_HEIGHT: i32 = 12;

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(crate) fn ink(size: u32) -> TextStyle<'static> {
    (FONT, size).into_font().color(&INK)
}

/// Draws a chart's grid and labels in the page's colours; `y` labels the axis of figures.
pub(crate) fn plain<'b, X: Ranged, Y: Ranged, DB: DrawingBackend>(mesh: &mut MeshStyle<'_, 'b, X, Y, DB>, y: &str) {
    mesh.y_desc(y)
        .axis_desc_style(ink(FONT_SIZE))
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(GRID)
        .x_label_style(ink(12))
        .y_label_style(ink(12));
}

/// Draws a chart twice: for wide pages and for phones. The style sheet shows one of them. `words` describe the chart
/// for screen readers.
pub(crate) fn draw(
    chart: &'static str,
    size: (u32, u32),
    words: &str,
    paint: impl Fn(&Area<'_>, (u32, u32)) -> Result<(), Box<dyn std::error::Error>>,
) -> Result<String, LabError> {
    let (width, height) = size;
    let narrow = (NARROW, (height * NARROW / width).clamp(240, 300));
    let mut both = String::new();
    for (class, size) in [("wide", size), ("narrow", narrow)] {
        let mut svg = String::new();
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let painted = paint(&root, size).and_then(|()| Ok(root.present()?));
        painted.map_err(|e| LabError::Chart {
            chart,
            reason: e.to_string(),
        })?;
        drop(root);
        let head = format!("<svg class=\"{class}\" role=\"img\" aria-label=\"{}\" ", escape(words));
        both += &svg.replacen("<svg ", &head, 1);
    }
    Ok(both)
}

/// Labels that an axis across has room for.
pub(crate) fn labels_across(width: u32) -> usize {
    (width as usize / 66).clamp(3, 11)
}

/// A chart with room for the labels of its axes: pixels on the left of it and below it.
pub(crate) fn framed<'a, 'b>(root: &'b Area<'a>, left: u32, bottom: u32) -> ChartBuilder<'b, 'b, SVGBackend<'a>> {
    let mut builder = ChartBuilder::on(root);
    builder
        .margin(8)
        .margin_right(16)
        .set_label_area_size(LabelAreaPosition::Left, left)
        .set_label_area_size(LabelAreaPosition::Bottom, bottom);
    builder
}

/// A label centred below a point of a chart's lower edge.
pub(crate) fn below(
    root: &Area<'_>,
    text: &str,
    (x, y): (i32, i32),
    size: u32,
) -> Result<(), Box<dyn std::error::Error>> {
    let style = ink(size).pos(Pos::new(HPos::Center, VPos::Top));
    Ok(root.draw(&Text::new(text, (x, y), style))?)
}

/// The lower end of an axis that shows figures down to `least`, with room for labels below those under 0.
fn footroom(least: f64, largest: f64) -> f64 {
    if least < 0.0 {
        least * 1.12 - largest.max(0.0) * 0.06
    } else {
        0.0
    }
}

/// The end of an axis that shows figures up to `largest`, with room for labels above.
pub(crate) fn headroom(largest: f64) -> f64 {
    if largest > 0.0 { largest * 1.12 } else { 1.0 }
}

/// A figure with as many digits as help.
pub(crate) fn brief(figure: f64) -> String {
    match figure {
        f if f < 0.0 => format!("-{}", brief(-f)),
        f if f >= 100.0 => format!("{f:.0}"),
        f if f >= 10.0 => format!("{f:.1}"),
        f if f >= 0.1 || f == 0.0 => format!("{f:.2}"),
        f if f >= 0.01 => format!("{f:.3}"),
        f => format!("{f:.4}"),
    }
}

/// More decimals are noise.
const MAX_DECIMALS: usize = 9;

/// How the figures of an axis up to `largest` are written, all with as many digits.
pub(crate) fn on_axis(largest: f64) -> impl Fn(&f64) -> String {
    let decimals = decimals(largest);
    move |figure| format!("{figure:.decimals$}")
}

/// The decimals that distinguish the labels of an axis from 0 to `end`, of which there are about eight.
pub(crate) fn decimals(end: f64) -> usize {
    if end > 0.0 {
        // Negative figures become 0.
        ((5.0 / end).log10().ceil() as usize).min(MAX_DECIMALS)
    } else {
        0
    }
}

/// A figure in few characters.
fn briefest(figure: f64) -> String {
    match figure {
        f if f < 0.0 => format!("-{}", briefest(-f)),
        f if f >= 9.95 => format!("{f:.0}"),
        f if f >= 0.095 => format!("{f:.1}"),
        0.0 => "0".to_owned(),
        f if f >= 0.0095 => format!("{f:.2}").trim_start_matches('0').to_owned(),
        f => format!("{f:.3}").trim_start_matches('0').to_owned(),
    }
}

/// A number of microseconds in the unit it is read in.
pub(crate) fn duration(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", us / 1e6),
        us if us >= 1e3 => format!("{} ms", us / 1e3),
        us if us >= 1.0 => format!("{us} us"),
        us => format!("{:.0} ns", us * 1e3),
    }
}

/// A figure with few digits.
pub(crate) fn duration_in_words(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", brief(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", brief(us / 1e3)),
        us => format!("{} us", brief(us)),
    }
}

/// Bars in groups; figures may be below 0.
pub struct Bars<'b> {
    /// The chart's name in errors.
    pub name: &'static str,
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// The unit of the figures.
    pub unit: &'b str,
    /// Names of the groups.
    pub groups: &'b [&'b str],
    /// Colours of a group's bars.
    pub colours: &'b [RGBColor],
    /// The figure of a bar, by group and bar.
    pub figure: &'b dyn Fn(usize, usize) -> Option<f64>,
}

/// Wraps a group's name to this many pixels, in at most three lines; the rest is cut.
fn broken(name: &str, pixels: f64) -> Vec<String> {
    let most = ((pixels / (f64::from(FONT_SIZE) * 0.58)) as usize).max(4);
    let mut lines = vec![String::new()];
    for word in name.split_inclusive(['_', ' ', '.', '-', '/', ':', ',']) {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + word.trim_end().chars().count() > most {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
    }
    lines.truncate(3);
    for line in &mut lines {
        if line.trim_end().chars().count() > most {
            *line = line.chars().take(most - 1).chain(['…']).collect();
        }
    }
    lines
}

/// Draws bars in groups; `None` for fewer than two figures: a single one is described in words.
///
/// # Errors
/// [`LabError::Chart`] when it cannot be drawn.
pub fn bars(spec: &Bars<'_>) -> Result<Option<String>, LabError> {
    let all = |group| (0..spec.colours.len()).filter_map(move |bar| (spec.figure)(group, bar));
    let figures = || (0..spec.groups.len()).flat_map(all);
    let (Some(least), Some(largest)) = (figures().reduce(f64::min), figures().reduce(f64::max)) else {
        return Ok(None);
    };
    if figures().nth(1).is_none() {
        return Ok(None);
    }
    let low = footroom(least, largest);
    let alt_text = words::groups(spec.unit, spec.groups, |group| all(group).map(brief).collect());
    let svg = draw(spec.name, spec.size, &alt_text, |root, (width, _)| {
        let slot = (f64::from(width) - 82.0) / spec.groups.len().max(1) as f64;
        let names: Vec<Vec<String>> = spec.groups.iter().map(|name| broken(name, slot)).collect();
        let lines = names.iter().map(Vec::len).max().unwrap_or(1) as u32;
        let mut chart = ChartBuilder::on(root)
            .margin(8)
            .set_label_area_size(LabelAreaPosition::Left, 58)
            .set_label_area_size(LabelAreaPosition::Bottom, 16 + 15 * lines)
            .build_cartesian_2d(0.0..spec.groups.len() as f64, low..headroom(largest))?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh().disable_x_axis().y_labels(6);
        plain(&mut mesh, spec.unit);
        mesh.y_label_formatter(&on_axis(largest.max(-low))).draw()?;
        let width = 0.84 / spec.colours.len() as f64;
        let (left_end, right_end) = (chart.backend_coord(&(0.0, 0.0)).0, chart.backend_coord(&(width, 0.0)).0);
        let pixels = f64::from(right_end - left_end);
        let mut last: Option<(i32, i32)> = None;
        for (group, name) in names.iter().enumerate() {
            for (bar, colour) in spec.colours.iter().enumerate() {
                let Some(figure) = (spec.figure)(group, bar) else {
                    continue;
                };
                let left = group as f64 + 0.08 + bar as f64 * width;
                let corners = [(left + width * 0.06, 0.0), (left + width * 0.94, figure)];
                chart.draw_series([Rectangle::new(corners, colour.filled())])?;
                if pixels >= LABELLED_BAR.0 {
                    let narrow = pixels < LABELLED_BAR.1;
                    let label = if narrow { briefest(figure) } else { brief(figure) };
                    let (x, y) = chart.backend_coord(&(left + width / 2.0, figure));
                    let (side, gap) = if figure < 0.0 {
                        (VPos::Top, 3)
                    } else {
                        (VPos::Bottom, -3)
                    };
                    let half = (label.len() as f64 * 11.0 * 0.29) as i32;
                    // Labels of nearly equal height would overlap: the second one moves up.
                    let runs_into =
                        last.is_some_and(|(right, at)| x - half < right + 2 && (y + gap - at).abs() < LABEL_HEIGHT);
                    let y = match last {
                        Some((_, at)) if runs_into => at - LABEL_HEIGHT,
                        _ => y + gap,
                    };
                    last = Some((x + half, y));
                    let style = ink(if narrow { 11 } else { 12 }).pos(Pos::new(HPos::Center, side));
                    root.draw(&Text::new(label, (x, y), style))?;
                }
            }
            let (x, y) = chart.backend_coord(&(group as f64 + 0.5, low));
            for (at, line) in name.iter().enumerate() {
                below(root, line, (x, y + 9 + 15 * at as i32), FONT_SIZE)?;
            }
        }
        if low < 0.0 {
            let ends = [(0.0, 0.0), (spec.groups.len() as f64, 0.0)];
            chart.draw_series(LineSeries::new(ends, INK.stroke_width(1)))?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

const QUANTILES: [&str; 6] = ["p50", "p90", "p99", "p99.9", "p99.99", "max"];

/// Returns a latency's figures at the quantiles of [`quantile_lines`], in microseconds.
pub fn microseconds(latency: &Latency) -> [f64; 6] {
    let l = latency;
    [l.p50_ns, l.p90_ns, l.p99_ns, l.p999_ns, l.p9999_ns, l.max_ns].map(|ns| ns as f64 / 1e3)
}

/// Whole decades around some figures, so that the grid's lines are round.
pub(crate) fn decades(least: f64, most: f64) -> (f64, f64) {
    let low = 10_f64.powf(least.max(1e-3).log10().floor());
    let high = 10_f64.powf(most.max(1e-3).log10().ceil());
    (low, if high > low { high } else { low * 10.0 })
}

/// Draws latency against the share of operations that took no longer; `None` without a line.
///
/// # Errors
/// [`LabError::Chart`] when it cannot be drawn.
pub fn quantile_lines(
    name: &'static str,
    description: &str,
    lines: &[(RGBColor, [f64; 6])],
) -> Result<Option<String>, LabError> {
    let figures = || lines.iter().flat_map(|(_, figures)| figures.iter().copied());
    let (Some(least), Some(most)) = (figures().reduce(f64::min), figures().reduce(f64::max)) else {
        return Ok(None);
    };
    let (low, high) = decades(least, most);
    let alt_text = words::lines(
        description,
        lines.iter().map(|(_, figures)| {
            QUANTILES
                .iter()
                .zip(figures)
                .map(|(quantile, us)| (quantile.to_string(), duration_in_words(*us)))
        }),
    );
    let svg = draw(name, (530, 340), &alt_text, |root, _| {
        let mut chart =
            framed(root, 66, 30).build_cartesian_2d(-0.2..QUANTILES.len() as f64 - 0.8, (low..high).log_scale())?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh().disable_x_axis();
        plain(&mut mesh, description);
        mesh.y_label_formatter(&|us| duration(*us)).draw()?;
        for (at, quantile) in QUANTILES.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(at as f64, low));
            below(root, quantile, (x, y + 8), 12)?;
        }
        for (colour, figures) in lines {
            let points: Vec<_> = figures
                .iter()
                .enumerate()
                .map(|(at, us)| (at as f64, us.max(low)))
                .collect();
            chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
            chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, colour.filled())))?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

/// A line of a [`curves`] chart.
pub(crate) struct Curve {
    /// Its colour.
    pub colour: RGBColor,
    /// Its points, by ascending x.
    pub points: Vec<(f64, f64)>,
    /// Dashed and without marks: not a measurement.
    pub dashed: bool,
    /// A mark at each point, where it is not dashed.
    pub marks: bool,
}

/// Figures against a quantity.
pub(crate) struct Curves<'c> {
    /// The chart's name in errors.
    pub name: &'static str,
    /// The x axis: its name with unit, and its ends.
    pub x: (&'c str, f64, f64),
    /// The figures, with unit.
    pub description: &'c str,
    /// The end of the axis of figures; `None` is a little over the largest.
    pub most: Option<f64>,
    /// The lines.
    pub curves: &'c [Curve],
    /// Constant figures, each a line across the chart with a mark at an x.
    pub levels: &'c [(RGBColor, (f64, f64))],
}

/// Draws figures against a quantity; `None` without a line of two points.
pub(crate) fn curves(spec: &Curves<'_>) -> Result<Option<String>, LabError> {
    let points = spec.curves.iter().flat_map(|curve| curve.points.iter());
    let figures = points
        .chain(spec.levels.iter().map(|(_, point)| point))
        .map(|(_, figure)| *figure);
    let Some(largest) = figures.reduce(f64::max) else {
        return Ok(None);
    };
    if spec.curves.iter().all(|curve| curve.points.len() < 2) {
        return Ok(None);
    }
    let (x_name, from, to) = spec.x;
    let measured = spec.curves.iter().filter(|curve| !curve.dashed);
    let alt_text = words::lines(
        &format!("{} against {x_name}", spec.description),
        measured.map(|curve| {
            curve
                .points
                .iter()
                .map(|(x, figure)| (format!("{x:.0}"), brief(*figure)))
        }),
    );
    let svg = draw(spec.name, (530, 340), &alt_text, |root, (width, _)| {
        let mut chart =
            framed(root, 66, 46).build_cartesian_2d(from..to, 0.0..spec.most.unwrap_or_else(|| headroom(largest)))?;
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(labels_across(width)).y_labels(6).x_desc(x_name);
        plain(&mut mesh, spec.description);
        mesh.x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&on_axis(largest))
            .draw()?;
        for (colour, (x, figure)) in spec.levels {
            let ends = [(from, *figure), (to, *figure)];
            chart.draw_series(DashedLineSeries::new(ends, 10, 5, colour.stroke_width(2)))?;
            chart.draw_series([TriangleMarker::new((*x, *figure), 8, colour.filled())])?;
        }
        for curve in spec.curves {
            let points = curve.points.iter().copied();
            if curve.dashed {
                chart.draw_series(DashedLineSeries::new(points, 2, 4, curve.colour.stroke_width(1)))?;
                continue;
            }
            chart.draw_series(LineSeries::new(points.clone(), curve.colour.stroke_width(2)))?;
            if curve.marks {
                // A point alone is one to be seen.
                let radius = if curve.points.len() == 1 { 5 } else { 3 };
                chart.draw_series(points.map(|point| Circle::new(point, radius, curve.colour.filled())))?;
            }
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
