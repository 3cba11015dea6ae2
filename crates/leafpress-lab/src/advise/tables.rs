//! The candidates as tables: for people, and tab-separated for programs.

use super::candidates::Candidate;
use super::narrative::{percent, us};
use super::run::Advice;
use crate::core::Bytes;
use crate::report::NOT_APPLICABLE;
use crate::report::Part;
use crate::report::document::{Document, Table};
use crate::report::tsv;

/// Candidates in the table for people.
const MAX_ROWS: usize = 12;

const HEADINGS: [&str; 10] = [
    "codec",
    "block",
    "ratio",
    "compress\nus",
    "decode\nus",
    "read\nus",
    "compressed\n% of memory",
    "hit\n%",
    "us per\npage",
    "pages\nper sec",
];

/// The tables of [`HEADINGS`], after codec and block.
const PARTS: [Part<'_>; 2] = [("", &[6, 7, 8, 9]), ("Ratio and costs used", &[2, 3, 4, 5])];

fn costs(one: &Candidate) -> [String; 3] {
    match &one.codec {
        Some(codec) => [
            format!("{:.2}", codec.ratio),
            us(codec.compress_us),
            us(codec.decompress_us),
        ],
        None => ["-"; 3].map(str::to_owned),
    }
}

/// Adds the table for people: the best, and all that compress nothing.
pub(super) fn add(document: &mut Document<'_>, advice: &Advice) {
    let recommendation = &advice.recommendation;
    let mut rows = Vec::new();
    let (mut left_out, mut never_pay) = (0, 0);
    for (at, one) in recommendation.candidates.iter().enumerate() {
        let is_codec = one.codec.is_some();
        if is_codec && !one.is_compressing() && at > 0 && *one != recommendation.best {
            never_pay += 1;
            continue;
        }
        if is_codec && at >= MAX_ROWS {
            left_out += 1;
            continue;
        }
        let is_choice = std::ptr::eq(one, recommendation.choice()) || one == recommendation.choice();
        let mut cells = vec![one.name().to_owned(), Bytes(one.block_bytes).to_string()];
        cells.extend(costs(one));
        cells.push(us(one.device_us));
        cells.push(percent(one.best.share, 0));
        cells.push(percent(one.best.hit_ratio, 2));
        // A space instead of the mark keeps digits aligned.
        cells.push(format!(
            "{}{}",
            us(one.best.us_per_page),
            if is_choice { '*' } else { ' ' }
        ));
        cells.push(format!("{:.0}", one.best.pages_per_second));
        rows.push(cells);
    }
    document.table(Table {
        words: 2,
        ..Table::new(HEADINGS, rows).parts(&PARTS)
    });
    document.paragraph("* recommended. Each at its best share of the memory.");
    let mut more = String::new();
    if never_pay > 0 {
        more += &format!("{never_pay} that never beat uncompressed pages of their size are omitted");
    }
    if left_out > 0 {
        let and = if more.is_empty() { "" } else { ", and " };
        more += &format!("{and}{left_out} slower ones");
        more += if never_pay > 0 { "" } else { " are omitted" };
    }
    if !more.is_empty() {
        document.paragraph(more + "; --out writes all of them.");
    }
}

type Column = (&'static str, fn(&Advice, &Candidate) -> String);

/// The columns of `summary.tsv`, in order.
const COLUMNS: [Column; 19] = [
    ("codec", |_, c| c.name().to_owned()),
    ("block_bytes", |_, c| c.block_bytes.to_string()),
    ("data_bytes", |a, _| a.question.data_bytes.to_string()),
    ("memory_bytes", |a, _| a.question.memory_bytes.to_string()),
    ("access_bytes", |a, _| a.question.access_bytes.to_string()),
    ("access", |a, _| a.question.access.name()),
    ("workers", |a, _| a.question.workers.to_string()),
    ("ratio", |_, c| of_codec(c, |codec| codec.ratio)),
    ("compress_us", |_, c| of_codec(c, |codec| codec.compress_us)),
    ("decompress_us", |_, c| of_codec(c, |codec| codec.decompress_us)),
    ("device_us", |_, c| format!("{:.3}", c.device_us)),
    ("compressed_share_pct", |_, c| percent(c.best.share, 1)),
    ("fits_pct", |_, c| percent(c.best.fits, 4)),
    ("hit_pct", |_, c| percent(c.best.hit_ratio, 4)),
    ("hit_is_compressed_pct", |_, c| percent(c.best.chance_compressed, 4)),
    ("compressions_per_page", |_, c| format!("{:.6}", c.best.compressions)),
    ("us_per_page", |_, c| format!("{:.6}", c.best.us_per_page)),
    ("pages_per_second", |_, c| format!("{:.1}", c.best.pages_per_second)),
    ("recommended", |a, c| {
        u8::from(c == a.recommendation.choice()).to_string()
    }),
];

fn of_codec(one: &Candidate, figure: fn(&crate::model::CodecCosts) -> f64) -> String {
    let codec = one.codec.as_ref();
    codec.map_or_else(|| NOT_APPLICABLE.to_owned(), |codec| format!("{:.4}", figure(codec)))
}

/// Formats `summary.tsv`: a line per codec and block size, by ascending microseconds per page.
pub fn summary(advice: &Advice) -> String {
    let rows = &advice.recommendation.candidates;
    tsv::columns(COLUMNS, rows, |cell, one| cell(advice, one))
}
