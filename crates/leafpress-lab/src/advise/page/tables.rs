//! The page's tables, which need no script.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::html::brief;
use super::{PageInput, VerifyRow};
use crate::core::Bytes;
use crate::model::{BreakEven, Outcome};
use crate::report::html::escape;
use crate::report::numbers::thousands;
use crate::report::palette::{colours, css};

/// Files in a table; more are no reading.
const MOST_FILES: usize = 50;

/// A table of cells that are HTML already; the first column heads its row.
fn table(caption: &str, head: &[String], rows: &[Vec<String>]) -> String {
    let heads: String = head
        .iter()
        .map(|cell| format!("<th scope=\"col\">{cell}</th>"))
        .collect();
    let mut html =
        format!("<div class=\"scroll\"><table><caption>{caption}</caption><thead><tr>{heads}</tr></thead><tbody>\n");
    for row in rows {
        let cells = row.iter().enumerate().map(|(at, cell)| match at {
            0 => format!("<th scope=\"row\">{cell}</th>"),
            _ if cell.starts_with("<td") => cell.clone(),
            _ => format!("<td>{cell}</td>"),
        });
        let _ = writeln!(html, "<tr>{}</tr>", cells.collect::<String>());
    }
    html + "</tbody></table></div>\n"
}

fn heads<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// The tables that stand at the end, folded away.
pub(super) fn all(input: &PageInput, outcome: &Outcome) -> String {
    format!(
        "<section>\n<h2>Tables</h2>\n<details open><summary>Predicted, as the command computed it</summary>\n{}</details>\n\
         <details><summary>Measured: codecs</summary>\n{}</details>\n{}</section>\n",
        predicted(outcome),
        codecs(input),
        device(input)
    )
}

fn predicted(outcome: &Outcome) -> String {
    let mut head = heads(["% of memory compressed"]);
    for codec in &outcome.codecs {
        let name = escape(&codec.codec.name);
        head.push(format!("{name}<br>hit %"));
        head.push(format!("{name}<br>us per page"));
    }
    let shares = outcome.options.shares.iter().enumerate();
    let rows: Vec<_> = shares
        .map(|(at, share)| {
            let mut row = vec![share.to_string()];
            for point in outcome.codecs.iter().filter_map(|codec| codec.points.get(at)) {
                row.push(format!("{:.2}", point.hit_ratio * 100.0));
                row.push(brief(point.us_per_page));
            }
            row
        })
        .collect();
    let mut html = table("Hit ratio and microseconds per page", &head, &rows);
    let rows: Vec<_> = outcome
        .codecs
        .iter()
        .map(|codec| {
            let pays = match codec.break_even {
                BreakEven::AtOnce => "at once".to_owned(),
                BreakEven::Share(share) => format!("{:.2}%", share * 100.0),
                BreakEven::Never => "never".to_owned(),
            };
            vec![
                escape(&codec.codec.name),
                pays,
                format!("{:.0}%", codec.best.share * 100.0),
                brief(codec.best.us_per_page),
            ]
        })
        .collect();
    let caption = format!(
        "Where it pays: without compression a page takes {} us, {:.2}% are hits",
        brief(outcome.raw.us_per_page),
        outcome.raw.hit_ratio * 100.0
    );
    html += &table(
        &caption,
        &heads(["codec", "pays from", "best share", "us per page there"]),
        &rows,
    );
    html
}

fn codecs(input: &PageInput) -> String {
    let mut rows = Vec::new();
    for codec in &input.codecs {
        for block in &codec.blocks {
            rows.push(vec![
                escape(&codec.name),
                Bytes(block.block_bytes).to_string(),
                block.threads.to_string(),
                format!("{:.3}", block.ratio),
                brief(block.compress_us),
                brief(block.decompress_us),
            ]);
        }
    }
    for copy in &input.memcpy {
        let nothing = String::new;
        rows.push(vec![
            "memcpy".to_owned(),
            Bytes(copy.block_bytes).to_string(),
            nothing(),
            nothing(),
            brief(copy.us),
            brief(copy.us),
        ]);
    }
    let head = heads(["codec", "block", "threads", "ratio", "compress us", "decompress us"]);
    table("Ratio and microseconds a block", &head, &rows)
}

fn device(input: &PageInput) -> String {
    if input.device.is_empty() {
        return String::new();
    }
    let quantile = |us: Option<f64>| us.map_or_else(String::new, brief);
    let rows: Vec<_> = input
        .device
        .iter()
        .map(|row| {
            vec![
                Bytes(row.block_bytes).to_string(),
                brief(row.iops),
                brief(row.mb_per_s),
                brief(row.mean_us),
                quantile(row.p50_us),
                quantile(row.p99_us),
            ]
        })
        .collect();
    let head = heads(["block", "reads/s", "MB/s", "mean us", "p50 us", "p99 us"]);
    let table = table("The device by length of blocks", &head, &rows);
    format!("<details><summary>Measured: device</summary>\n{table}</details>\n")
}

/// What was predicted beside what was measured.
pub(super) fn verify(rows: &[VerifyRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            vec![
                escape(&row.setting),
                escape(&row.codec),
                escape(&row.share),
                format!("{:.2}", row.predicted_hit_pct),
                format!("{:.2}", row.measured_hit_pct),
                brief(row.predicted_us),
                brief(row.measured_us),
                format!("{:+.1}", (row.predicted_us / row.measured_us - 1.0) * 100.0),
            ]
        })
        .collect();
    let head = heads([
        "run",
        "codec",
        "% of memory<br>compressed",
        "hit %,<br>predicted",
        "<br>measured",
        "us per page,<br>predicted",
        "<br>measured",
        "off by %",
    ]);
    format!(
        "<h2>Checked against a running pool</h2>\n{}",
        table("Predicted and measured", &head, &rows)
    )
}

/// Each file's ratios with blocks of a page, the same blocks that the model takes.
pub(super) fn files(input: &PageInput) -> String {
    if input.files.is_empty() {
        return String::new();
    }
    let hues = colours(input.codecs.iter().map(|codec| Some(codec.name.as_str())));
    let all = input.files.iter().flat_map(|file| &file.ratios);
    let most = all.map(|ratio| ratio.ratio).fold(1.0, f64::max);
    let mut lengths: BTreeMap<u64, Vec<Vec<String>>> = BTreeMap::new();
    for file in input.files.iter().take(MOST_FILES) {
        let measured: std::collections::BTreeSet<u64> = file.ratios.iter().map(|ratio| ratio.block_bytes).collect();
        for length in measured {
            let mut row = vec![escape(&file.name), Bytes(file.bytes).to_string()];
            for (codec, hue) in input.codecs.iter().zip(&hues) {
                let mut ratios = file.ratios.iter();
                let found = ratios.find(|ratio| ratio.codec == codec.name && ratio.block_bytes == length);
                row.push(found.map_or_else(String::new, |found| {
                    let part = (found.ratio / most * 100.0).clamp(0.0, 100.0);
                    let hue = css(*hue);
                    format!(
                        "<td class=\"bar\" style=\"--hue:{hue};--part:{part:.1}%\">{:.2}</td>",
                        found.ratio
                    )
                }));
            }
            lengths.entry(length).or_default().push(row);
        }
    }
    let mut head = heads(["file", "bytes"]);
    head.extend(input.codecs.iter().map(|codec| escape(&codec.name)));
    let mut html = String::from("<h2>Ratio of each file</h2>\n<div class=\"files\">\n");
    if input.files.len() > MOST_FILES {
        let _ = writeln!(
            html,
            "<p class=\"faint\">The first {MOST_FILES} of {} files.</p>",
            thousands(input.files.len() as u64)
        );
    }
    for (length, rows) in lengths {
        let open = if length == input.page_bytes { " open" } else { "" };
        let _ = writeln!(
            html,
            "<details{open}><summary>Blocks of {}</summary>\n{}</details>",
            Bytes(length),
            table("Raw bytes over stored ones", &head, &rows)
        );
    }
    html + "</div>\n"
}
