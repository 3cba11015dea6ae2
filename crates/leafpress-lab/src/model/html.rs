//! The model's page: one file, readable without a network, with charts like the thesis's figures 10, 12 and 13.

use maud::{Markup, html};
use plotters::style::RGBColor;

use super::tco::Savings;
use super::{CodecOutcome, Outcome, Point, tables, text};
use crate::core::LabError;
use crate::report::draw::{Curve, Curves, curves};
use crate::report::html::{self, cell, document, figure, legend_and, lines, pair, swatch};
use crate::report::numbers::{share_of_memory, thousands};
use crate::report::palette::colours;
use crate::report::verdict;

const NOTES: [&str; 5] = [
    "These are <b>computed</b>, not measured: <code>leafpress pool</code> measures. docs/commands/model.md describes the formulas and their assumptions.",
    "<b>Microseconds per page</b> is the mean time of getting a page, hits and misses alike. <b>Hit is compressed</b> is the probability that a hit \
     must be decoded.",
    "<b>As published</b> charges every miss with a compression and assumes that every cached page is equally likely to be hit. <b>Corrected</b> \
     charges only pages that are compressed, and keeps hot pages raw.",
    "Codec and device times are inputs. A device's latency depends on its load.",
    "No compression is the horizontal line across the charts, with raw pages only.",
];

/// The page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub fn page(outcome: &Outcome, savings: Option<&[Savings]>, command_line: &str) -> Result<String, LabError> {
    let names: Vec<_> = outcome.codecs.iter().map(|codec| codec.codec.name.as_str()).collect();
    let hues = colours(std::iter::once(Some("none")).chain(names.iter().map(|name| Some(*name))));
    let charts = charts(outcome, &hues)?;
    let body = html! {
        h1 { "Leafpress model" }
        (verdict::html(&[text::conclusion(outcome)]))
        p { (lines(&text::head(&outcome.options))) }
        (charts)
        @for line in text::crossings(outcome) { p { (line) } }
        @for (codec, hue) in outcome.codecs.iter().zip(&hues[1..]) { (table(outcome, codec, *hue)) }
        @if let Some(savings) = savings { (costs(savings)) }
        h2 { "How it was computed" }
        pre { (command_line) }
        (html::notes(&NOTES))
    };
    Ok(document("Leafpress model", &body))
}

fn charts(outcome: &Outcome, hues: &[RGBColor]) -> Result<Markup, LabError> {
    let chart = |name, description: &str, most, of: &dyn Fn(&Point) -> f64| {
        let curve = |(codec, colour): (&CodecOutcome, &RGBColor)| Curve {
            colour: *colour,
            points: codec
                .curve
                .iter()
                .map(|point| (point.share * 100.0, of(point)))
                .collect(),
            // A hundred computed points need no marks.
            marks: false,
            dashed: false,
        };
        let best = |(codec, colour): (&CodecOutcome, &RGBColor)| {
            let best = Some(codec.best).filter(|best| best.share > 0.0)?;
            Some(Curve {
                colour: *colour,
                points: vec![(best.share * 100.0, of(&best))],
                marks: true,
                dashed: false,
            })
        };
        let codecs = || outcome.codecs.iter().zip(&hues[1..]);
        let lines: Vec<_> = codecs().map(curve).chain(codecs().filter_map(best)).collect();
        curves(&Curves {
            name,
            x: ("% of the memory for compressed pages", 0.0, 100.0),
            description,
            most,
            curves: &lines,
            levels: &[(hues[0], (0.0, of(&outcome.raw)))],
        })
    };
    let time = chart("time", "us per page", None, &|point| point.us_per_page)?;
    let hits = chart("hit ratio", "hit ratio, %", Some(100.0), &|point| {
        point.hit_ratio * 100.0
    })?;
    let compressed = chart(
        "hit is compressed",
        "% of hits on compressed pages",
        Some(100.0),
        &|point| point.chance_compressed * 100.0,
    )?;
    let pages = chart("pages", "thousand pages per second", None, &|point| {
        point.pages_per_second / 1e3
    })?;
    let mut charts = Vec::new();
    for (title, svg) in [
        ("Microseconds per page", time),
        ("Hit ratio", hits),
        ("Hits on compressed pages", compressed),
        ("Pages per second", pages),
    ] {
        charts.extend(svg.map(|svg| figure(title, &svg)));
    }
    let named = std::iter::once("no compression").chain(outcome.codecs.iter().map(|codec| codec.codec.name.as_str()));
    Ok(html! {
        h2 { "By share" }
        (legend_and(hues.iter().copied().zip(named), "dots: the best share"))
        (pair(&charts))
    })
}

fn table(outcome: &Outcome, codec: &CodecOutcome, hue: RGBColor) -> Markup {
    let rows = tables::rows(codec).into_iter().map(|(cells, best)| {
        let cells = cells.into_iter().enumerate();
        cells.map(move |(at, text)| if at == 0 { html::head(&text) } else { cell(&text, best) })
    });
    html! {
        h3 { (swatch(hue)) (text::codec_line(codec)) }
        (html::table(tables::HEADINGS, rows))
        p { (text::verdict(outcome, codec)) }
    }
}

fn costs(savings: &[Savings]) -> Markup {
    let money = |cost: Option<f64>| {
        let sign = cost.filter(|cost| *cost < 0.0).map_or("", |_| "-");
        cost.map_or_else(String::new, |cost| {
            format!(
                "; {sign}{} in total, in the currency of the prices",
                thousands(cost.abs().round() as u64)
            )
        })
    };
    html! {
        h2 { "Cost saved at equal throughput" }
        ul {
            @for saved in savings {
                li {
                    b { (saved.codec) } " at " (share_of_memory(saved.share)) "%: " (tables::percent(saved.worth.cores_saved, 1))
                    "% of the cores and of the cost of compute, " (tables::percent(saved.worth.total_saved, 1))
                    "% of the total cost of ownership" (money(saved.worth.total_cost))
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
