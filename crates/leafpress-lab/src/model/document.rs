//! The report of the model: the options, a table for each codec, the conclusions, and charts like the thesis's figures
//! 10, 12 and 13.

use maud::{Markup, html};
use plotters::style::RGBColor;
use serde::Serialize;

use super::choice::{MAX_COMPRESSED, WITHIN_ERROR, gain};
use super::tco::{Prices, Savings, YEARS};
use super::{Access, BreakEven, CodecOutcome, Method, Options, Outcome, Overhead, Point, Replacement, Trace, tables};
use crate::core::{Bytes, LabError, about};
use crate::report::document::{Document, Table};
use crate::report::draw::{Curve, Curves, curves};
use crate::report::html::{figure, legend_and, pair};
use crate::report::numbers::{share_of_memory, thousands};
use crate::report::palette::colours;
use crate::report::{self, Part};

const NOTES: [&str; 5] = [
    "These are <b>computed</b>, not measured: <code>leafpress pool</code> measures. docs/commands/model.md describes \
     the formulas and their assumptions.",
    "<b>Microseconds per page</b> is the mean time of getting a page, hits and misses alike. <b>Hit is compressed</b> \
     is the probability that a hit must be decoded.",
    "<b>As published</b> charges every miss with a compression and assumes that every cached page is equally likely to \
     be hit. <b>Corrected</b> charges only pages that are compressed, and keeps hot pages raw.",
    "Codec and device times are inputs. A device's latency depends on its load.",
    "No compression is the horizontal line across the charts, with raw pages only.",
];

/// Fields of `results.json`, in addition to the common ones.
#[derive(Serialize)]
struct Results<'d> {
    #[serde(flatten)]
    outcome: &'d Outcome,
    savings: Option<&'d [Savings]>,
}

/// Formats `results.json`.
///
/// # Errors
/// [`LabError::System`] when it cannot be written as JSON.
pub fn json(outcome: &Outcome, savings: Option<&[Savings]>, command_line: &str) -> Result<String, LabError> {
    report::json(command_line, &Results { outcome, savings })
}

/// Builds the report. Its table for programs is `summary.tsv`, a line for each codec and share.
pub fn document<'r>(outcome: &'r Outcome, savings: Option<(&'r [Savings], &'r Prices)>) -> Document<'r> {
    let mut document = Document::new("Leafpress model");
    document.how = "computed";
    document.verdicts = vec![conclusion(outcome)];
    document.head = head(&outcome.options).lines().map(str::to_owned).collect();
    document.notes.extend(NOTES);
    let raw = &outcome.raw;
    document.paragraph(format!(
        "Without compression: {}% of the data cached, {}% hits, {} us per page, {} pages per second",
        tables::percent(raw.fits, 2),
        tables::percent(raw.hit_ratio, 2),
        tables::us(raw.us_per_page),
        tables::pages(raw.pages_per_second, 0)
    ));
    document.page_only(|| charts(outcome, &hues(outcome)));
    for (codec, hue) in outcome.codecs.iter().zip(&hues(outcome)[1..]) {
        document.table(Table {
            title: codec_line(codec),
            hue: Some(*hue),
            words: 0,
            ..Table::marked(tables::HEADINGS, tables::rows(codec))
        });
        document.paragraph(verdict(outcome, codec));
    }
    if !outcome.crossings.is_empty() {
        document.text_only("\n");
    }
    crossings(outcome).into_iter().for_each(|line| document.paragraph(line));
    if let Some((savings, prices)) = savings {
        costs(&mut document, savings, prices);
    }
    document.tsv("summary", "summary.tsv", || tables::summary(outcome));
    document.results(Results {
        outcome,
        savings: savings.map(|(savings, _)| savings),
    });
    document
}

/// No compression, and the codecs.
fn hues(outcome: &Outcome) -> Vec<RGBColor> {
    let names = outcome.codecs.iter().map(|codec| Some(codec.codec.name.as_str()));
    colours([Some("none")].into_iter().chain(names))
}

/// Describes the options, in lines.
fn head(options: &Options) -> String {
    let data = match &options.access {
        Access::Distribution(_) => format!(
            "{} of data in pages of {}",
            Bytes(options.data_bytes),
            Bytes(options.page_bytes)
        ),
        Access::Trace(trace) => trace_line(trace, options),
    };
    let wants = match (options.access_bytes(), options.pages_an_access()) {
        (wants, _) if wants == options.page_bytes => String::new(),
        (wants, 1) => format!(" of {}, each reads a whole page", Bytes(wants)),
        (wants, pages) => format!(" of {}, {pages} pages each", Bytes(wants)),
    };
    let memory = 100.0 * options.memory_bytes as f64 / options.data_bytes().max(1.0);
    let mut text = format!(
        "{data}, {} of memory ({memory:.2}%)\nAccess {}{wants} · device {} us per read · {} worker{}\n",
        Bytes(options.memory_bytes),
        options.access.name(),
        brief(options.device_us),
        options.workers,
        if options.workers == 1 { "" } else { "s" }
    );
    text += &match options.method {
        Method::AsPublished => "Formulas as published: Harper 2018, chapter 4\n".to_owned(),
        Method::Corrected => {
            let overhead = match options.overhead {
                Overhead::Pool => "memory less the pool's overhead",
                Overhead::None => "all memory for pages",
            };
            let background = match options.background_pct {
                0.0 => String::new(),
                pct => format!(" · {pct}% of compressions in the background"),
            };
            let iops = options
                .device_iops
                .map_or_else(String::new, |iops| format!(" · at most {iops} reads/s"));
            format!(
                "Corrected formulas · replacement {} · {overhead} · {} us per hit{background}{iops} · a sixteenth \
                 stays raw for pages in transit: the best share is at most {}%\n",
                replacement(options),
                brief(options.hit_us),
                tables::percent(MAX_COMPRESSED, 1)
            )
        }
    };
    text
}

fn replacement(options: &Options) -> String {
    match options.replacement {
        Replacement::Clock => format!("clock (raw again after {} hits)", options.promote_after_hits),
        other => other.to_string(),
    }
}

fn trace_line(trace: &Trace, options: &Options) -> String {
    let sample = if trace.rate < 1.0 {
        format!(", estimated from {} of the pages", tables::percent(trace.rate, 3) + "%")
    } else {
        String::new()
    };
    let skipped = match trace.skipped_lines {
        0 => String::new(),
        lines => format!("; {} lines skipped as junk", thousands(lines)),
    };
    format!(
        "{} accesses to {} pages of {}{sample}; {}% are first accesses, which always miss{skipped}\nTotal",
        thousands(trace.accesses),
        thousands(trace.pages),
        Bytes(options.page_bytes),
        tables::percent(trace.first_accesses, 2)
    )
}

/// A figure without zeros at its end, two decimals at most.
fn brief(figure: f64) -> String {
    let text = format!("{figure:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A codec and its costs.
fn codec_line(codec: &CodecOutcome) -> String {
    let costs = &codec.codec;
    format!(
        "{}: ratio {}, {} us to compress a page, {} us to decode one",
        costs.name, costs.ratio, costs.compress_us, costs.decompress_us
    )
}

/// Break-even and best share of a codec, in a sentence.
fn verdict(outcome: &Outcome, codec: &CodecOutcome) -> String {
    let pays = match codec.break_even {
        BreakEven::AtOnce => "pays from the smallest share".to_owned(),
        BreakEven::Share(share) => format!("pays from {}% of the memory", tables::percent(share, 2)),
        BreakEven::Never => {
            return format!(
                "{} does not pay at any share: uncompressed, {} us per page.",
                codec.codec.name,
                tables::us(outcome.raw.us_per_page)
            );
        }
    };
    let until = match codec.pays_until {
        1.0 => "on".to_owned(),
        share => format!("to {}%", tables::percent(share, 2)),
    };
    format!(
        "{} {pays} {until}; best at {}%: {} us per page, {:.1}% less than uncompressed.",
        codec.codec.name,
        share_of_memory(codec.best.share),
        tables::us(codec.best.us_per_page),
        100.0 * gain(&outcome.raw, &codec.best)
    )
}

/// Where codecs change places, a line each.
fn crossings(outcome: &Outcome) -> Vec<String> {
    let lines = outcome.crossings.iter().map(|crossing| {
        format!(
            "From {}%, {} is faster than {} ({} us at that share).",
            tables::percent(crossing.share, 2),
            crossing.faster,
            crossing.slower,
            tables::us(crossing.us_per_page)
        )
    });
    lines.collect()
}

/// All of it in one sentence.
fn conclusion(outcome: &Outcome) -> String {
    let raw = &outcome.raw;
    match (outcome.recommended(), outcome.best()) {
        (Some(best), _) => format!(
            "Give {}% of the memory to pages compressed by {}: hit ratio {}% vs {}% uncompressed, time per page {} us \
             vs {} us, {:.2} times the throughput.",
            share_of_memory(best.best.share),
            best.codec.name,
            tables::percent(best.best.hit_ratio, 1),
            tables::percent(raw.hit_ratio, 1),
            tables::us(best.best.us_per_page),
            tables::us(raw.us_per_page),
            best.best.pages_per_second / raw.pages_per_second
        ),
        (None, Some(best)) => format!(
            "Compress nothing: {} at {}% would take {:.1}% less time per page, which is within the error of the \
             computation ({}%): {} us vs {} us.",
            best.codec.name,
            share_of_memory(best.best.share),
            100.0 * gain(raw, &best.best),
            tables::percent(WITHIN_ERROR, 0),
            tables::us(best.best.us_per_page),
            tables::us(raw.us_per_page)
        ),
        (None, None) => format!(
            "Compress nothing: {} us per page is the minimum, with a hit ratio of {}%.",
            tables::us(raw.us_per_page),
            tables::percent(raw.hit_ratio, 1)
        ),
    }
}

/// Adds the savings and their value to a report.
pub(crate) fn costs(document: &mut Document<'_>, savings: &[Savings], prices: &Prices) {
    const HEADINGS: [&str; 9] = [
        "codec",
        "compressed\n% of memory",
        "cores, compute\nsaved %",
        "total cost\nsaved %",
        "cores\nsaved",
        "compute\nsaved",
        "total\nsaved",
        "raw memory\nsaved",
        "its\ncost",
    ];
    const PARTS: [Part<'_>; 2] = [
        ("", &[1, 2, 3, 7]),
        ("Saved, in the currency of the prices", &[4, 5, 6, 8]),
    ];
    let money = |cost: Option<f64>| cost.map_or_else(|| "NA".into(), |cost| format!("{cost:.2}"));
    let rows = savings.iter().map(|saved| {
        vec![
            saved.codec.clone(),
            share_of_memory(saved.share),
            tables::percent(saved.worth.cores_saved, 1),
            tables::percent(saved.worth.total_saved, 1),
            money(saved.worth.cores),
            money(saved.worth.compute_cost),
            money(saved.worth.total_cost),
            saved.memory_bytes.map_or_else(|| "any".into(), about),
            money(saved.memory_cost),
        ]
    });
    let source = match prices.cores_saved {
        Some(_) => "Cores saved as given.",
        None => {
            "Cores saved at equal throughput, by the model; a worker that waits for the device counts as a core in \
             use. With asynchronous reads, pass the measured figure with --cores-saved-pct."
        }
    };
    let share = tables::percent(prices.share(), 1);
    let notes = [
        source.to_owned(),
        format!(
            "Total saved = {share}% x compute saved. Raw memory saved: the additional memory of an uncompressed cache \
             with the same microseconds per page. Items without a price are not included."
        ),
    ];
    document.table(Table {
        title: format!("Cost: compute is {share}% of the total cost of ownership over {YEARS} years"),
        ..Table::new(HEADINGS, rows).parts(&PARTS)
    });
    notes.into_iter().for_each(|note| document.caption(note));
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

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
