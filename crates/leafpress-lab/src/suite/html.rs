//! The page of a suite: one file, readable without a network.

use plotters::style::RGBColor;

use super::{Report, Row, charts, text};
use crate::core::LabError;
use crate::report::html::{document, escape};
use crate::report::numbers::thousands;
use crate::report::palette::css;

const NOTES: [&str; 8] = [
    "Each block is compressed by itself, as a cache holds it: no block knows of another, and there is no dictionary.",
    "<b>Microseconds per block</b> are wall time, in which the blocks of a batch of 64 MiB go through the codec one after the other; each \
     has a buffer of its own. With several threads it is the time of blocks in bulk: \
     threads work side by side. <b>CPU</b> is the time of all threads.",
    "<b>Best</b> is the fastest pass, <b>median</b> the pass in the middle. Passes of all settings are done by turns; before each, every thread \
     warms up on half a mebibyte. A sample of less than 8 MiB for each thread is gone through several times in a pass.",
    "A short block at the end of a file is a block of its own; in microseconds per block it counts as the part of a block that it is.",
    "A block that does not shrink is stored raw: it counts as its raw bytes, and bringing it back is a copy.",
    "<b>Ratio</b> is raw bytes over stored bytes; over all files that is weighted by size. A stored block is what the library's codecs write: \
     without a frame's header, length or checksum.",
    "<b>memcpy</b> copies each block to where compressed blocks go, and back: the floor.",
    "After each pass every block is compared with what it was, outside of the time that is measured.",
];

/// The page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub fn page(report: &Report, command_line: &str) -> Result<String, LabError> {
    let title = "Leafpress compression suite";
    let mut body = head(title, report);
    let hues = charts::hues(report);
    let named = legend(hues.iter().map(|(name, hue)| (*name, *hue)));
    body += "<h2>All files</h2>\n";
    body += &named;
    let mut pair = charts::ratio(report)?;
    for &threads in &report.options.threads {
        pair += &charts::times(report, threads)?;
    }
    body += &format!("<div class=\"pair\">{pair}</div>\n");
    for &threads in &report.options.threads {
        let rows: Vec<&Row> = report.overall.iter().filter(|row| row.threads == threads).collect();
        if !rows.is_empty() {
            body += &format!(
                "<h3>{}</h3>\n{}",
                text::in_words(threads),
                table(&text::headings(), &text::all(&rows))
            );
        }
    }
    body += &by_file(report, &named)?;
    body += &how(command_line);
    Ok(document(title, &body))
}

fn swatch(hue: RGBColor) -> String {
    format!("<span class=\"swatch\" style=\"background:{}\"></span>", css(hue))
}

fn legend<'n>(entries: impl Iterator<Item = (&'n str, RGBColor)>) -> String {
    let entries: String = entries
        .map(|(name, hue)| format!("<span>{}{}</span>", swatch(hue), escape(name)))
        .collect();
    format!("<div class=\"legend\">{entries}</div>\n")
}

fn head(title: &str, report: &Report) -> String {
    let lines: Vec<_> = text::head(report).iter().map(|line| escape(line)).collect();
    let mut html = format!("<h1>{title}</h1>\n<p>{}</p>\n", lines.join("<br>"));
    let troubles: Vec<_> = text::troubles(report).iter().map(|line| escape(line)).collect();
    if !troubles.is_empty() {
        html += &format!("<p class=\"faint\">{}</p>\n", troubles.join("<br>"));
    }
    html
}

/// A table whose first cell in each row is its head.
fn table(headings: &[impl AsRef<str>], rows: &[Vec<String>]) -> String {
    let heading = |text: &str| format!("<th>{}</th>", escape(text).replace('\n', "<br>"));
    let header: String = headings.iter().map(|text| heading(text.as_ref())).collect();
    let mut body = String::new();
    for row in rows {
        let mut cells = row.iter();
        let first = cells.next().map_or("", String::as_str);
        body += &format!("<tr><th scope=\"row\">{}</th>", escape(first));
        body.extend(cells.map(|cell| format!("<td>{}</td>", escape(cell))));
        body += "</tr>\n";
    }
    format!("<div class=\"scroll\"><table><thead><tr>{header}</tr></thead><tbody>\n{body}</tbody></table></div>\n")
}

/// Files beside each other; nothing for one file, which is all files.
fn by_file(report: &Report, named: &str) -> Result<String, LabError> {
    let Some(setting) = text::common_setting(report).filter(|_| report.files.len() > 1) else {
        return Ok(String::new());
    };
    let mut html = format!("<h2>By file</h2>\n{named}{}", charts::by_file(report)?);
    for (name, cell, with_memcpy) in text::FIGURES {
        let codecs = text::codecs_of(report, with_memcpy);
        let mut headings = vec!["file", "bytes"];
        headings.extend(&codecs);
        let rows = report.files.iter().map(|file| {
            let bytes = file.rows.first().map_or(0, |row| row.raw_bytes);
            let mut cells = vec![file.file.clone(), thousands(bytes)];
            cells.extend(text::file_cells(file, &codecs, setting, cell));
            cells
        });
        html += &format!(
            "<h3>{name}; blocks of {}, {}</h3>\n{}",
            crate::core::Bytes(setting.0 as u64),
            text::in_words(setting.1),
            table(&headings, &rows.collect::<Vec<_>>())
        );
    }
    let (files, figures) = charts::ratio_by_file(report)?;
    if !figures.is_empty() {
        html += &legend(files.iter().map(|(name, hue)| (name.as_str(), *hue)));
        html += &format!("<div class=\"pair\">{figures}</div>\n");
    }
    Ok(html)
}

fn how(command_line: &str) -> String {
    let notes: String = NOTES.iter().map(|note| format!("<li>{note}</li>\n")).collect();
    format!(
        "<h2>How it was measured</h2>\n<pre>{}</pre>\n<p>leafpress {}</p>\n<ul>{notes}</ul>\n",
        escape(command_line),
        env!("CARGO_PKG_VERSION")
    )
}
