//! The charts, drawn as SVG.
//!
//! Ink, faint ink and grid are drawn in three colours nobody would choose; the page's style sheet replaces them by the
//! reader's light or dark ones. Legends belong to the page.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::palette::colour;
use super::pivot::{Line, Pivot, Setting, held_per_user_byte};
use super::{labels, pivot};
use crate::result::Latency;
use crate::{LabError, Workload};

/// Replaced by the page's text colour.
const INK: RGBColor = RGBColor(1, 1, 1);
/// Replaced by the page's grid colour.
const GRID: RGBColor = RGBColor(2, 2, 2);

const FONT: &str = "sans-serif";
const FONT_SIZE: u32 = 13;
/// Bars narrower than this, in pixels, have no figure on top; those narrower than the second have a short one.
const LABELLED_BAR: (f64, f64) = (15.0, 27.0);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn ink(size: u32) -> TextStyle<'static> {
    (FONT, size).into_font().color(&INK)
}

fn draw(
    chart: &'static str,
    size: (u32, u32),
    paint: impl FnOnce(&Area<'_>) -> Result<(), Box<dyn std::error::Error>>,
) -> Result<String, LabError> {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let painted = paint(&root).and_then(|()| Ok(root.present()?));
    painted.map_err(|e| LabError::Chart {
        chart,
        reason: e.to_string(),
    })?;
    drop(root);
    Ok(svg)
}

/// The end of an axis that shows figures up to `largest`, with room for labels above.
fn headroom(largest: f64) -> f64 {
    if largest > 0.0 { largest * 1.12 } else { 1.0 }
}

/// A figure with as many digits as help.
fn brief(figure: f64) -> String {
    match figure {
        f if f >= 100.0 => format!("{f:.0}"),
        f if f >= 10.0 => format!("{f:.1}"),
        f => format!("{f:.2}"),
    }
}

/// A figure in as few characters as tell something.
fn briefest(figure: f64) -> String {
    match figure {
        f if f >= 9.95 => format!("{f:.0}"),
        f if f >= 0.095 => format!("{f:.1}"),
        f => format!("{f:.2}").trim_start_matches('0').to_owned(),
    }
}

/// A number of microseconds in the unit it is read in.
fn duration(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", us / 1e6),
        us if us >= 1e3 => format!("{} ms", us / 1e3),
        us if us >= 1.0 => format!("{us} us"),
        us => format!("{:.0} ns", us * 1e3),
    }
}

/// Throughput: a group of bars for each point workload, a bar for each codec. `None` when there is no point workload.
pub(super) fn throughput(pivot: &Pivot<'_>, setting: &Setting<'_>) -> Result<Option<String>, LabError> {
    let workloads: Vec<_> = setting
        .workloads
        .iter()
        .copied()
        .filter(|w| *w != Workload::Scan)
        .collect();
    let figures = || {
        setting
            .lines
            .iter()
            .flat_map(|line| workloads.iter().filter_map(|w| line.mops(*w)))
    };
    let Some(largest) = figures().reduce(f64::max) else {
        return Ok(None);
    };
    let svg = draw("throughput", (1080, 380), |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(8)
            .set_label_area_size(LabelAreaPosition::Left, 58)
            .set_label_area_size(LabelAreaPosition::Bottom, 30)
            .build_cartesian_2d(0.0..workloads.len() as f64, 0.0..headroom(largest))?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh()
            .disable_x_axis()
            .y_labels(6)
            .y_desc("Mops/s")
            .axis_desc_style(ink(FONT_SIZE));
        mesh.light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .y_label_style(ink(12));
        mesh.y_label_formatter(&|figure| format!("{figure:.1}")).draw()?;
        let bars = setting.lines.len() as f64;
        let width = 0.84 / bars;
        let (left_end, right_end) = (chart.backend_coord(&(0.0, 0.0)).0, chart.backend_coord(&(width, 0.0)).0);
        let pixels = f64::from(right_end - left_end);
        for (group, &workload) in workloads.iter().enumerate() {
            for (bar, line) in setting.lines.iter().enumerate() {
                let Some(figure) = line.mops(workload) else { continue };
                let left = group as f64 + 0.08 + bar as f64 * width;
                let colour = codec_colour(pivot, line);
                let corners = [(left + width * 0.06, 0.0), (left + width * 0.94, figure)];
                chart.draw_series([Rectangle::new(corners, colour.filled())])?;
                if pixels >= LABELLED_BAR.0 {
                    let narrow = pixels < LABELLED_BAR.1;
                    let label = if narrow { briefest(figure) } else { brief(figure) };
                    let (x, y) = chart.backend_coord(&(left + width / 2.0, figure));
                    let style = ink(if narrow { 10 } else { 11 }).pos(Pos::new(HPos::Center, VPos::Bottom));
                    root.draw(&Text::new(label, (x, y - 3), style))?;
                }
            }
            let (x, y) = chart.backend_coord(&(group as f64 + 0.5, 0.0));
            let style = ink(FONT_SIZE).pos(Pos::new(HPos::Center, VPos::Top));
            root.draw(&Text::new(workload.name(), (x, y + 9), style))?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

/// Throughput of `workload` against memory saved, a labelled point for each codec. `None` when nothing is known of its memory.
pub(super) fn trade_off(
    pivot: &Pivot<'_>,
    setting: &Setting<'_>,
    workload: Workload,
) -> Result<Option<String>, LabError> {
    let points: Vec<_> = setting
        .lines
        .iter()
        .filter_map(|line| {
            let saved = (1.0 - held_per_user_byte(line.row(workload)?)?) * 100.0;
            Some((line, saved, line.mops(workload)?))
        })
        .collect();
    if points.is_empty() {
        return Ok(None);
    }
    let (scale, unit) = if workload == Workload::Scan {
        (1e3, "Kops/s")
    } else {
        (1.0, "Mops/s")
    };
    let largest = points.iter().map(|point| point.2 * scale).fold(0.0, f64::max);
    let least_saved = points.iter().map(|point| point.1).fold(0.0, f64::min);
    let size = (530, 360);
    let svg = draw("trade-off", size, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(8)
            .margin_right(16)
            .set_label_area_size(LabelAreaPosition::Left, 58)
            .set_label_area_size(LabelAreaPosition::Bottom, 46)
            .build_cartesian_2d((least_saved * 1.1 - 4.0).floor()..100.0, 0.0..headroom(largest))?;
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(8)
            .y_labels(6)
            .x_desc("memory saved, % of user bytes")
            .y_desc(format!("{workload}, {unit}"));
        mesh.light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(GRID);
        mesh.x_label_style(ink(12))
            .y_label_style(ink(12))
            .axis_desc_style(ink(FONT_SIZE));
        mesh.x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| brief(*y))
            .draw()?;
        let pixels: Vec<_> = points
            .iter()
            .map(|(line, x, y)| (chart.backend_coord(&(*x, *y * scale)), line.codec.as_str()))
            .collect();
        let places = labels::place(&pixels, FONT_SIZE.into(), 6.0, size);
        for (((pixel, label), place), (line, ..)) in pixels.iter().zip(places).zip(&points) {
            root.draw(&Circle::new(*pixel, 6, codec_colour(pivot, line).filled()))?;
            root.draw(&Text::new(
                *label,
                place,
                ink(FONT_SIZE).pos(Pos::new(HPos::Left, VPos::Center)),
            ))?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

/// Which latencies a chart shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Side {
    Read,
    Write,
}

/// Latency against the share of operations that took no longer, a line for each codec. `None` when nothing was measured.
pub(super) fn latency(pivot: &Pivot<'_>, setting: &Setting<'_>, side: Side) -> Result<Option<String>, LabError> {
    let lines: Vec<(&Line<'_>, [f64; 6])> = setting
        .lines
        .iter()
        .filter_map(|line| {
            let latency = match side {
                Side::Read => line.read_latency(setting.read_workload()),
                Side::Write => line.write_latency(setting.write_workload()),
            };
            Some((line, microseconds(latency?)))
        })
        .collect();
    let figures = || lines.iter().flat_map(|(_, figures)| figures.iter().copied());
    let (Some(least), Some(most)) = (figures().reduce(f64::min), figures().reduce(f64::max)) else {
        return Ok(None);
    };
    // Whole decades, so that the grid's lines are round figures.
    let (low, high) = (
        10_f64.powf(least.max(1e-3).log10().floor()),
        10_f64.powf(most.max(1e-3).log10().ceil()),
    );
    let high = if high > low { high } else { low * 10.0 };
    let (name, workload) = match side {
        Side::Read => ("read", setting.read_workload()),
        Side::Write => ("write", setting.write_workload()),
    };
    let description = workload.map_or_else(String::new, |workload| format!("{name} latency in {workload}"));
    let svg = draw("latency", (530, 340), |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(8)
            .margin_right(16)
            .set_label_area_size(LabelAreaPosition::Left, 66)
            .set_label_area_size(LabelAreaPosition::Bottom, 30)
            .build_cartesian_2d(-0.2..QUANTILES.len() as f64 - 0.8, (low..high).log_scale())?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh()
            .disable_x_axis()
            .y_desc(description)
            .axis_desc_style(ink(FONT_SIZE));
        mesh.light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .y_label_style(ink(12));
        mesh.y_label_formatter(&|us| duration(*us)).draw()?;
        for (at, quantile) in QUANTILES.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(at as f64, low));
            let style = ink(12).pos(Pos::new(HPos::Center, VPos::Top));
            root.draw(&Text::new(*quantile, (x, y + 8), style))?;
        }
        for (line, figures) in &lines {
            let colour = codec_colour(pivot, line);
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

const QUANTILES: [&str; 6] = ["p50", "p90", "p99", "p99.9", "p99.99", "max"];

fn microseconds(latency: &Latency) -> [f64; 6] {
    let l = latency;
    [l.p50_ns, l.p90_ns, l.p99_ns, l.p999_ns, l.p9999_ns, l.max_ns].map(|ns| ns as f64 / 1e3)
}

fn codec_colour(pivot: &pivot::Pivot<'_>, line: &Line<'_>) -> RGBColor {
    let index = pivot.codecs.iter().position(|codec| *codec == line.codec);
    colour(&pivot.codecs, index.unwrap_or(0))
}
