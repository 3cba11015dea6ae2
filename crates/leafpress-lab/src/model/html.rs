//! The model's page: one file, readable without a network, with charts like the thesis's figures 10, 12 and 13.

use plotters::style::RGBColor;

use super::tco::Savings;
use super::{CodecOutcome, Outcome, Point, tables, text};
use crate::core::LabError;
use crate::report::draw::{Curve, Curves, curves};
use crate::report::html::{document, escape, figure};
use crate::report::palette::{colours, css};

const NOTES: [&str; 5] = [
    "These are <b>computed</b>, not measured: <code>leafpress pool</code> measures. docs/model.md has the formulas and what they assume.",
    "<b>Microseconds per page</b> is the mean time of getting a page, hits and misses alike. <b>Hit is compressed</b> is the chance that a hit \
     has to be decoded.",
    "<b>As published</b> charges every miss with a compression and takes every cached page for equally likely to be hit. <b>Corrected</b> \
     charges a compression for pages that are compressed, and lets hot pages be the raw ones.",
    "Times of codecs and of the device are inputs. A device has another latency under another load.",
    "No compression is the level across the charts, where the memory holds raw pages only.",
];

/// The page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub fn page(outcome: &Outcome, savings: Option<&[Savings]>, command_line: &str) -> Result<String, LabError> {
    let names: Vec<_> = outcome.codecs.iter().map(|codec| codec.codec.name.as_str()).collect();
    let hues = colours(std::iter::once(Some("none")).chain(names.iter().map(|name| Some(*name))));
    let head: Vec<_> = text::head(&outcome.options).lines().map(escape).collect();
    let mut body = format!("<h1>Leafpress model</h1>\n<p>{}</p>\n", head.join("<br>"));
    body += &format!("<p><b>{}</b></p>\n", escape(&text::conclusion(outcome)));
    body += &charts(outcome, &hues)?;
    for line in text::crossings(outcome) {
        body += &format!("<p>{}</p>\n", escape(&line));
    }
    for (codec, hue) in outcome.codecs.iter().zip(&hues[1..]) {
        body += &table(outcome, codec, *hue);
    }
    if let Some(savings) = savings {
        body += &costs(savings);
    }
    let notes: String = NOTES.iter().map(|note| format!("<li>{note}</li>\n")).collect();
    body += &format!(
        "<h2>How it was computed</h2>\n<pre>{}</pre>\n<ul>{notes}</ul>\n",
        escape(command_line)
    );
    Ok(document("Leafpress model", &body))
}

fn swatch(hue: RGBColor) -> String {
    format!("<span class=\"swatch\" style=\"background:{}\"></span>", css(hue))
}

fn charts(outcome: &Outcome, hues: &[RGBColor]) -> Result<String, LabError> {
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
        let lines: Vec<_> = outcome.codecs.iter().zip(&hues[1..]).map(curve).collect();
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
    let mut html = String::new();
    for (title, svg) in [
        ("Microseconds per page", time),
        ("Hit ratio", hits),
        ("Hits on compressed pages", compressed),
        ("Pages per second", pages),
    ] {
        html += &svg.map_or_else(String::new, |svg| figure(title, &svg));
    }
    let named = std::iter::once("no compression").chain(outcome.codecs.iter().map(|codec| codec.codec.name.as_str()));
    let legend: String = hues
        .iter()
        .zip(named)
        .map(|(hue, name)| format!("<span>{}{}</span>", swatch(*hue), escape(name)))
        .collect();
    Ok(format!(
        "<h2>Against the share</h2>\n<div class=\"legend\">{legend}</div>\n<div class=\"pair\">{html}</div>\n"
    ))
}

fn table(outcome: &Outcome, codec: &CodecOutcome, hue: RGBColor) -> String {
    let heading = |text: &&str| format!("<th>{}</th>", escape(text).replace('\n', "<br>"));
    let header: String = tables::HEADINGS.iter().map(heading).collect();
    let mut body = String::new();
    for (cells, best) in tables::rows(outcome, codec) {
        let class = if best { " class=\"best\"" } else { "" };
        let mut cells = cells.into_iter();
        let share = cells.next().unwrap_or_default();
        let cells: String = cells.map(|cell| format!("<td{class}>{cell}</td>")).collect();
        body += &format!("<tr><th scope=\"row\">{share}</th>{cells}</tr>\n");
    }
    format!(
        "<h3>{}{}</h3>\n<div class=\"scroll\"><table><thead><tr>{header}</tr></thead><tbody>\n{body}</tbody></table></div>\n<p>{}</p>\n",
        swatch(hue),
        escape(&text::codec_line(codec)),
        escape(&text::verdict(outcome, codec))
    )
}

fn costs(savings: &[Savings]) -> String {
    let lines: String = savings
        .iter()
        .map(|saved| {
            let money = |what: &str, cost: Option<f64>| {
                cost.map_or_else(String::new, |cost| format!(", {cost:.2} of {what}"))
            };
            format!(
                "<li><b>{}</b> at {}%: {}% of the cores and of the cost of compute, {}% of the total cost of ownership{}{}</li>\n",
                escape(&saved.codec),
                tables::percent(saved.share, 0),
                tables::percent(saved.cores_saved, 1),
                tables::percent(saved.total_saved, 1),
                money("the cost of compute", saved.compute_cost),
                money("the total cost", saved.total_cost),
            )
        })
        .collect();
    format!("<h2>Cost saved at equal throughput</h2>\n<ul>{lines}</ul>\n")
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
