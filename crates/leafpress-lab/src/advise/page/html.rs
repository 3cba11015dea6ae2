//! The page as text: the template filled in, the script and the input embedded.

use maud::{PreEscaped, html};
use serde::Serialize;

use super::grid::{Grid, grid};
use super::start::Start;
use super::{PageInput, tables};
use crate::core::{Bytes, LabError, about, about_decimal};
use crate::model::{Access, MAX_COMPRESSED, Outcome, Point, WITHIN_ERROR};
use crate::report::html::{self, STYLE, escape};
use crate::report::numbers::brief;
use crate::report::palette::{colours, css};

const TEMPLATE: &str = include_str!("page.html");
const OWN_STYLE: &str = include_str!("page.css");
/// In dependency order. The first reads the grid.
pub(super) const SCRIPTS: [&str; 6] = [
    include_str!("model.js"),
    include_str!("chart.js"),
    include_str!("state.js"),
    include_str!("controls.js"),
    include_str!("draw.js"),
    include_str!("page.js"),
];

/// Tolerance of the page's microseconds: it interpolates linearly where the model bends.
pub(super) const US_OFF: f64 = 0.05;

/// The page may load nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// Input of the script.
#[derive(Serialize)]
struct Embedded<'i> {
    /// Version of this layout; incremented by changes that break the script.
    format: u32,
    #[serde(flatten)]
    input: &'i PageInput,
    /// The rule of [`crate::model`] by which shares and gains are judged.
    most_compressed: f64,
    within_error: f64,
    /// Whether the access is a trace.
    traced: bool,
    /// Possible access sizes, in bytes.
    wants: Vec<u64>,
    /// The initial figures.
    start: &'i Start,
    /// The evaluated model.
    grid: &'i Grid,
    /// A colour for each codec.
    hues: Vec<String>,
}

/// Renders the page.
///
/// # Errors
/// [`LabError::Option`] as in [`PageInput::options`]; [`LabError::System`] when the input cannot be written as JSON.
pub fn page(input: &PageInput) -> Result<String, LabError> {
    let options = input.options()?;
    let (start, _) = Start::of(input, &options)?;
    page_with(input, &grid(input, &options, &start)?)
}

/// The page of an input whose grid is known.
pub(super) fn page_with(input: &PageInput, grid: &Grid) -> Result<String, LabError> {
    let options = input.options()?;
    let (start, outcome) = Start::of(input, &options)?;
    let body = fill(TEMPLATE, |name| slot(name, input, &outcome, &start));
    let names = input.codecs.iter().map(|codec| Some(codec.name.as_str()));
    let embedded = Embedded {
        format: 5,
        input,
        most_compressed: MAX_COMPRESSED,
        within_error: WITHIN_ERROR,
        traced: matches!(input.access, Access::Trace(_)),
        wants: input.wants(),
        start: &start,
        grid,
        hues: colours(names).into_iter().map(css).collect(),
    };
    let json = serde_json::to_string(&embedded).map_err(|e| LabError::System(format!("the page's input: {e}")))?;
    let head = html! {
        meta http-equiv="Content-Security-Policy" content=(POLICY);
        style { (PreEscaped(STYLE)) (PreEscaped(OWN_STYLE)) }
    };
    let body = html! {
        (PreEscaped(body))
        script type="application/json" id="input" { (PreEscaped(inert(&json))) }
        (PreEscaped("\n"))
        script { (PreEscaped("\n\"use strict\";\n")) (PreEscaped(SCRIPTS.join("\n"))) }
    };
    Ok(html::page(&input.title, head, &body))
}

/// Escapes JSON so that it ends no script and begins no comment within HTML.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Replaces `{{names}}` in a template, without rescanning inserted text.
fn fill(template: &str, slot: impl Fn(&str) -> String) -> String {
    let mut pieces = template.split("{{");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once("}}") {
            Some((name, rest)) => {
                text += &slot(name);
                text += rest;
            }
            None => text += piece,
        }
    }
    text
}

fn slot(name: &str, input: &PageInput, outcome: &Outcome, start: &Start) -> String {
    let Start { raw, here, worth, .. } = start;
    let size = |bytes: f64| {
        if input.is_decimal {
            about_decimal(bytes)
        } else {
            about(bytes)
        }
    };
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    match name {
        "title" => escape(&input.title),
        "sentence" => escape(&input.sentence),
        "reasons" => list(&input.reasons),
        "cautions" => html::cautions(&input.cautions).into_string(),
        "host" => escape(&input.host),
        "device_note" => {
            let note = input.device_note.as_ref();
            note.map_or_else(String::new, |note| format!("<br>{}", escape(note)))
        }
        "hit_value" => here.hit_ratio.to_string(),
        "hit" => percent(here.hit_ratio),
        "hit_against" => format!("{} uncompressed", percent(raw.hit_ratio)),
        "us_value" => here.us_per_page.to_string(),
        "us" => brief(here.us_per_page),
        "us_against" => format!("{} uncompressed", brief(raw.us_per_page)),
        "pages_value" => here.pages_per_second.to_string(),
        "pages" => brief(here.pages_per_second),
        "pages_against" => format!("{} uncompressed", brief(raw.pages_per_second)),
        "worth_value" => worth.map_or_else(String::new, |bytes| bytes.to_string()),
        "worth" => worth.map_or_else(|| "none".to_owned(), size),
        "conclusion" => conclusion(input, here, raw),
        "values" => escape(&values(input)),
        "verify" => tables::verify(&input.verify, &input.verify_sentences).into_string(),
        "files" => tables::files(input).into_string(),
        "tables" => tables::all(input, outcome).into_string(),
        "off" => format!("{:.0}%", US_OFF * 100.0),
        "command_line" => escape(&input.command_line),
        // An unknown name is an error in the template, which a test would show.
        _ => format!("{{{{{name}}}}}"),
    }
}

fn list(reasons: &[String]) -> String {
    let list = html! { @if !reasons.is_empty() { ul { @for reason in reasons { li { (reason) } } } } };
    list.into_string()
}

fn conclusion(input: &PageInput, here: &Point, raw: &Point) -> String {
    match &input.choice {
        Some(choice) if choice.share_pct > 0.0 => format!(
            "{} on {}% of the memory: {} us per page, {} uncompressed.",
            escape(&choice.codec),
            brief(choice.share_pct),
            brief(here.us_per_page),
            brief(raw.us_per_page)
        ),
        _ => format!("No compression: {} us per page.", brief(raw.us_per_page)),
    }
}

/// The initial summary of the page.
fn values(input: &PageInput) -> String {
    let data = match &input.access {
        Access::Distribution(_) => input.data_bytes,
        Access::Trace(trace) => trace.pages.saturating_mul(input.page_bytes),
    };
    let wants = if input.access_bytes == input.page_bytes {
        String::new()
    } else {
        format!(" · an access needs {}", Bytes(input.access_bytes))
    };
    format!(
        "{} of memory for {} of data in pages of {}{wants} · access {} · device {} us per read · replacement {} · \
         {} worker{}",
        Bytes(input.memory_bytes),
        Bytes(data),
        Bytes(input.page_bytes),
        input.access.name(),
        brief(input.device_us),
        input.replacement,
        input.workers,
        if input.workers == 1 { "" } else { "s" }
    )
}
