//! Curves in the report's page: hits over memory on a logarithmic axis, with the caches that were run.

use maud::{Markup, PreEscaped, html};
use plotters::prelude::*;
use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::Options;
use super::curves::{Curve, HitCurves};
use super::table::{BY_HITS, BY_SIZE, PARTS, by_hits, by_size, notes, sentences};
use crate::core::{LabError, about};
use crate::report::document::{Document, Table};
use crate::report::draw::{FONT_SIZE, GRID, INK, below, draw, framed, ink, labels_across, plain};
use crate::report::html::figure;
use crate::report::palette::{colours, css};
use crate::report::scatter::Point;
use crate::report::{labels, words};

/// Width and height of the chart, in pixels.
const SIZE: (u32, u32) = (1080, 460);
/// Radius of a cache's point, in pixels.
const RADIUS: i32 = 6;

const NOTES: [&str; 3] = [
    "<b>LRU</b>: hit ratios of all sizes follow from reuse distances (SHARDS, on a sample of the keys). \
     <b>S3-FIFO</b>: hit ratios are those of miniature caches, each on a sample of the keys. The per-record eviction \
     of leafpress is closer to S3-FIFO.",
    "<b>Uncompressed</b>: memory is keys, values and the configured overhead per entry. Other overhead is not \
     included, so the points of measured caches lie to the right of their curve.",
    "<b>Compressed</b>: memory is that of leafpress per byte of keys and values, measured by filling it with records \
     of this workload.",
];

/// Adds the curves to a report; `points` are caches that were run, at bytes of memory and the share of the reads that
/// they answered from it.
pub(in super::super) fn add<'r>(
    document: &mut Document<'r>,
    curves: &'r HitCurves,
    options: &'r Options,
    points: impl Fn() -> Vec<Point> + 'r,
) {
    document.heading("Hit ratio by memory");
    document.page_only(move || {
        let points = points();
        Ok(html! {
            (legend(!points.is_empty()))
            @if let Some(svg) = chart(curves, options, &points)? { (figure("Hit ratio by cache size", &svg)) }
        })
    });
    notes(curves).into_iter().for_each(|note| document.caption(note));
    document.table(Table {
        words: 0,
        ..Table::new(BY_SIZE, by_size(curves, options))
    });
    let rows = by_hits(curves);
    if !rows.is_empty() {
        document.table(Table {
            title: "Memory by hit ratio".into(),
            words: 0,
            ..Table::new(BY_HITS, rows).parts(&PARTS)
        });
    }
    // Without a cache they are the verdict.
    if !options.engines.is_empty() {
        let sentences = sentences(curves, options);
        sentences.into_iter().for_each(|sentence| document.paragraph(sentence));
    }
    document.notes.extend(NOTES);
}

/// A curve's colour: grey uncompressed, ours compressed.
fn hue(curve: Curve) -> RGBColor {
    let hues = colours(["none", "auto"].map(Some));
    hues[usize::from(curve.is_compressed())]
}

fn is_dashed(curve: Curve) -> bool {
    matches!(curve, Curve::S3Fifo | Curve::S3FifoCompressed)
}

/// A sample stroke for a line's name in the legend.
fn legend(has_points: bool) -> Markup {
    html! {
        div.legend {
            @for curve in Curve::ALL {
                span {
                    (PreEscaped(format!(
                        "<svg width=\"34\" height=\"10\" \
                         style=\"display:inline-block;width:34px;vertical-align:middle;margin-right:5px\">\
                         <line x1=\"0\" y1=\"5\" x2=\"34\" y2=\"5\" stroke=\"{}\" stroke-width=\"3\"{}/></svg>",
                        css(hue(curve)),
                        if is_dashed(curve) { " stroke-dasharray=\"8 5\"" } else { "" }
                    )))
                    (curve.name())
                }
            }
            @if has_points { span.faint { "points: measured caches, at their peak RSS growth" } }
        }
    }
}

/// Where something is: the logarithm of its bytes of memory, and percent of the reads.
type At = (f64, f64);

fn at(bytes: f64, hit_ratio: f64) -> At {
    (bytes.max(1.0).log2(), hit_ratio * 100.0)
}

/// Hits over memory; `None` without a curve.
fn chart(curves: &HitCurves, options: &Options, points: &[Point]) -> Result<Option<String>, LabError> {
    if curves.points.is_empty() {
        return Ok(None);
    }
    let line = |curve| {
        curves
            .points
            .iter()
            .map(move |point| at(point.memory_bytes as f64, point.hits.of(curve)))
    };
    let caches: Vec<At> = points.iter().map(|point| at(point.at.0, point.at.1)).collect();
    let all = || Curve::ALL.into_iter().flat_map(line).chain(caches.iter().copied());
    let left = all().map(|(x, _)| x).fold(f64::INFINITY, f64::min);
    let right = all().map(|(x, _)| x).fold(left + 1.0, f64::max) + 0.05;
    let highest = all().map(|(_, y)| y).fold(0.0, f64::max);
    let top = ((highest / 10.0 + 0.2).ceil() * 10.0).min(100.0);
    let alt_text = words::lines(
        "hit ratio, %, by memory",
        Curve::ALL.into_iter().map(|curve| {
            let points = curves.points.iter();
            points.map(move |point| {
                (
                    about(point.memory_bytes as f64),
                    format!("{:.1}%", point.hits.of(curve) * 100.0),
                )
            })
        }),
    );
    let svg = draw("hits by memory", SIZE, &alt_text, |root, size| {
        let mut chart = framed(root, 62, 46).build_cartesian_2d(left..right, 0.0..top)?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh().disable_x_axis().y_labels(11);
        plain(&mut mesh, "hit ratio, %");
        mesh.y_label_formatter(&|hits| format!("{hits:.0}")).draw()?;
        let doublings = left.ceil() as i32..=right.floor() as i32;
        let step = doublings.clone().count().div_ceil(labels_across(size.0)).max(1);
        for bits in doublings.step_by(step) {
            let x = f64::from(bits);
            chart.draw_series(LineSeries::new([(x, 0.0), (x, top)], GRID.stroke_width(1)))?;
            let (x, y) = chart.backend_coord(&(x, 0.0));
            below(root, &about(f64::from(bits).exp2()), (x, y + 8), 12)?;
        }
        let (x, y) = chart.backend_coord(&((left + right) / 2.0, 0.0));
        below(root, "memory", (x, y + 26), FONT_SIZE)?;
        for curve in Curve::ALL {
            let style = hue(curve).stroke_width(if curve.is_compressed() { 3 } else { 2 });
            if is_dashed(curve) {
                chart.draw_series(DashedLineSeries::new(line(curve), 9, 6, style))?;
            } else {
                chart.draw_series(LineSeries::new(line(curve), style))?;
            }
        }
        if let Some((from, to)) = saving(curves, options) {
            chart.draw_series(DashedLineSeries::new([from, to], 3, 4, INK.stroke_width(1)))?;
            let (x, y) = chart.backend_coord(&((from.0 + to.0) / 2.0, to.1));
            let above = ink(12).pos(Pos::new(HPos::Center, VPos::Bottom));
            let times = (to.0 - from.0).exp2();
            root.draw(&Text::new(format!("{times:.1} times"), (x, y - 4), above))?;
        }
        let names = points.iter().map(|point| point.label.as_str());
        let pixels: Vec<_> = caches.iter().map(|at| chart.backend_coord(at)).zip(names).collect();
        let places = labels::place(&pixels, 12.0, RADIUS.into(), size);
        for ((point, (pixel, label)), place) in points.iter().zip(&pixels).zip(places) {
            root.draw(&Circle::new(*pixel, RADIUS, point.colour.filled()))?;
            let left = ink(12).pos(Pos::new(HPos::Left, VPos::Center));
            root.draw(&Text::new(*label, place, left))?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

/// Between LRU's curves, where the compressed one is at the memory that was given: both have the same hits there.
fn saving(curves: &HitCurves, options: &Options) -> Option<(At, At)> {
    let hits = curves.hit_ratio(Curve::LruCompressed, options.memory_bytes as f64);
    let compressed = curves.memory_for(Curve::LruCompressed, hits)?;
    let plain = curves.memory_for(Curve::Lru, hits)?;
    (plain > 1.2 * compressed).then(|| (at(compressed, hits), at(plain, hits)))
}
