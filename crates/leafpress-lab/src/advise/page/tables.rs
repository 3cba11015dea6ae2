//! The page's tables, which need no script.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::{PageInput, VerifyRow};
use crate::advise::verify::{HIT_OFF, US_OFF};
use crate::core::{Bytes, about};
use crate::model::{BreakEven, Outcome};
use crate::report::html::{cell, lines, row, scrolled};
use crate::report::numbers::{brief, thousands};
use crate::report::palette::{colours, css};

/// Maximum number of files in a table.
const MAX_FILES: usize = 50;

/// A table under its caption.
fn table(caption: &str, head: &[impl AsRef<str>], rows: &[Vec<Markup>]) -> Markup {
    scrolled(html! {
        table {
            caption { (caption) }
            thead { tr { @for heading in head { th scope="col" { (lines(heading.as_ref())) } } } }
            tbody { @for row in rows { tr { @for cell in row { (cell) } } } }
        }
    })
}

fn details(is_open: bool, summary: &str, content: &Markup) -> Markup {
    html! { details open[is_open] { summary { (summary) } (content) } }
}

/// Collapsed tables at the end.
pub(super) fn all(input: &PageInput, outcome: &Outcome) -> Markup {
    html! {
        section {
            h2 { "Tables" }
            (details(true, "Predicted, as the command computed it", &predicted(outcome)))
            (details(false, "Measured: codecs", &codecs(input)))
            @if !input.device.is_empty() { (details(false, "Measured: device", &device(input))) }
        }
    }
}

fn predicted(outcome: &Outcome) -> Markup {
    let mut head = vec!["% of memory compressed".to_owned()];
    for codec in &outcome.codecs {
        let name = &codec.codec.name;
        head.extend([format!("{name}\nhit %"), format!("{name}\nus per page")]);
    }
    let shares = outcome.options.shares.iter().enumerate();
    let rows: Vec<_> = shares
        .map(|(at, share)| {
            let mut cells = vec![share.to_string()];
            for point in outcome.codecs.iter().filter_map(|codec| codec.points.get(at)) {
                cells.extend([format!("{:.2}", point.hit_ratio * 100.0), brief(point.us_per_page)]);
            }
            row(&cells)
        })
        .collect();
    let pays: Vec<_> = outcome
        .codecs
        .iter()
        .map(|codec| {
            let pays = match codec.break_even {
                BreakEven::AtOnce => "at once".to_owned(),
                BreakEven::Share(share) => format!("{:.2}%", share * 100.0),
                BreakEven::Never => "never".to_owned(),
            };
            let best = [
                format!("{:.0}%", codec.best.share * 100.0),
                brief(codec.best.us_per_page),
            ];
            let [share, us] = best;
            row(&[codec.codec.name.clone(), pays, share, us])
        })
        .collect();
    let caption = format!(
        "Where it pays: uncompressed, {} us per page, {:.2}% hits",
        brief(outcome.raw.us_per_page),
        outcome.raw.hit_ratio * 100.0
    );
    html! {
        (table("Hit ratio and microseconds per page", &head, &rows))
        (table(&caption, &["codec", "pays from", "best share", "us per page there"], &pays))
    }
}

fn codecs(input: &PageInput) -> Markup {
    let measured = input.codecs.iter().flat_map(|codec| {
        let blocks = codec.blocks.iter();
        blocks.map(|block| {
            row(&[
                codec.name.clone(),
                Bytes(block.block_bytes).to_string(),
                block.threads.to_string(),
                format!("{:.3}", block.ratio),
                brief(block.compress_us),
                brief(block.decompress_us),
            ])
        })
    });
    let copies = input.memcpy.iter().map(|copy| {
        let length = Bytes(copy.block_bytes).to_string();
        row(&["memcpy", &length, "", "", &brief(copy.us), &brief(copy.us)])
    });
    let head = ["codec", "block", "threads", "ratio", "compress us", "decompress us"];
    table(
        "Ratio and microseconds per block",
        &head,
        &measured.chain(copies).collect::<Vec<_>>(),
    )
}

fn device(input: &PageInput) -> Markup {
    let quantile = |us: Option<f64>| us.map_or_else(String::new, brief);
    let rows = input.device.iter().map(|of| {
        row(&[
            Bytes(of.block_bytes).to_string(),
            brief(of.iops),
            brief(of.mb_per_s),
            brief(of.mean_us),
            quantile(of.p50_us),
            quantile(of.p99_us),
        ])
    });
    let head = ["block", "reads/s", "MB/s", "mean us", "p50 us", "p99 us"];
    table("The device by block size", &head, &rows.collect::<Vec<_>>())
}

/// Predictions and measurements.
pub(super) fn verify(rows: &[VerifyRow], sentences: &[String]) -> Markup {
    let cells = rows.iter().map(|one| {
        row(&[
            one.setting.clone(),
            one.codec.clone(),
            one.share.clone(),
            format!("{:.2}", one.predicted_hit_pct),
            format!("{:.2}", one.measured_hit_pct),
            brief(one.predicted_us),
            brief(one.measured_us),
            format!("{:+.2}", one.hit_off_points),
            format!("{:+.1}{}", one.us_off_pct, if one.is_off { " !" } else { "" }),
        ])
    });
    let head = [
        "run",
        "codec",
        "% of memory\ncompressed",
        "hit %,\npredicted",
        "\nmeasured",
        "us per page,\npredicted",
        "\nmeasured",
        "hit error,\npoints",
        "us, % off",
    ];
    html! {
        @if !rows.is_empty() {
            h2 { "Checked against a running pool" }
            @for sentence in sentences { p { b { (sentence) } } }
            (table("Predicted and measured", &head, &cells.collect::<Vec<_>>()))
            p.faint {
                "Error: measured over predicted, + is slower. !: more than " (format!("{:.0}", HIT_OFF * 100.0))
                " points or "
                (format!("{:.0}", US_OFF * 100.0)) "% off."
            }
        }
    }
}

/// Each file's ratios, a table for each length of blocks.
pub(super) fn files(input: &PageInput) -> Markup {
    let hues = colours(input.codecs.iter().map(|codec| Some(codec.name.as_str())));
    let all = input.files.iter().flat_map(|file| &file.ratios);
    let most = all.map(|ratio| ratio.ratio).fold(1.0, f64::max);
    let mut lengths: BTreeMap<u64, Vec<Vec<Markup>>> = BTreeMap::new();
    for file in input.files.iter().take(MAX_FILES) {
        let measured: BTreeSet<u64> = file.ratios.iter().map(|ratio| ratio.block_bytes).collect();
        for length in measured {
            let mut cells = row(&[file.name.clone(), about(file.bytes as f64)]);
            for (codec, hue) in input.codecs.iter().zip(&hues) {
                let mut ratios = file.ratios.iter();
                let found = ratios.find(|ratio| ratio.codec == codec.name && ratio.block_bytes == length);
                cells.push(found.map_or_else(
                    || cell("", false),
                    |found| {
                        let part = (found.ratio / most * 100.0).clamp(0.0, 100.0);
                        let style = format!("--hue:{};--part:{part:.1}%", css(*hue));
                        html! { td.bar style=(style) { (format!("{:.2}", found.ratio)) } }
                    },
                ));
            }
            lengths.entry(length).or_default().push(cells);
        }
    }
    let mut head = vec!["file", "size"];
    head.extend(input.codecs.iter().map(|codec| codec.name.as_str()));
    html! {
        @if !input.files.is_empty() {
            h2 { "Ratio of each file" }
            div.files {
                @if input.files.len() > MAX_FILES {
                    p.faint { "The first " (MAX_FILES) " of " (thousands(input.files.len() as u64)) " files." }
                }
                @for (length, rows) in &lengths {
                    (details(
                        *length == input.page_bytes,
                        &format!("Blocks of {}", Bytes(*length)),
                        &table("Raw bytes over stored bytes", &head, rows),
                    ))
                }
            }
        }
    }
}
