//! A verification as a table: for people, and tab-separated for programs.

use super::{Comparison, HIT_OFF, US_OFF, Verification};
use crate::advise::narrative::{percent, us};
use crate::core::{Bytes, about};
use crate::report::Part;
use crate::report::document::{Document, Table};
use crate::report::numbers::thousands;
use crate::report::tsv::{self, word};

/// Adds the table, and its explanation.
pub(in crate::advise) fn add(document: &mut Document<'_>, verification: &Verification) {
    const HEADINGS: [&str; 9] = [
        "codec",
        "compressed\n% of memory",
        "device\nus",
        "hit %\npredicted",
        "\nmeasured",
        "\nerror, pts",
        "us per page\npredicted",
        "\nmeasured",
        "\n% off",
    ];
    const PARTS: [Part<'_>; 2] = [
        ("", &[1, 6, 7, 8]),
        ("Hits, and the device's time of a read", &[1, 3, 4, 5, 2]),
    ];
    let rows = verification.comparisons.iter().map(|one| {
        let share = match one.share_pct {
            Some(percent) => format!("{percent} "),
            None => format!("{}a", percent(one.share, 0)),
        };
        let flag = |is_off: bool| if is_off { '!' } else { ' ' };
        vec![
            one.codec.clone(),
            share,
            us(one.device_us),
            percent(one.predicted.hit_ratio, 2),
            percent(one.hit_ratio, 2),
            format!("{:+.2}{}", one.hit_off() * 100.0, flag(one.hit_off().abs() > HIT_OFF)),
            us(one.predicted.us_per_page),
            us(one.us_per_page),
            format!("{:+.1}{}", one.us_off() * 100.0, flag(one.us_off().abs() > US_OFF)),
        ]
    });
    let off = verification.comparisons.iter().filter(|one| one.is_off()).count();
    let about = format!(
        "{} pages of {} from the sample, {} of memory, {} access, a simulated device of {} us, {} s per run",
        thousands(verification.pages),
        Bytes(verification.block_bytes),
        about(verification.memory_bytes as f64),
        verification.access,
        verification.device_us,
        verification.seconds
    );
    document.heading("Predicted and measured");
    document.paragraph(about);
    document.table(Table::new(HEADINGS, rows).parts(&PARTS));
    let notes = [
        format!(
            "Predicted by the model from the suite's ratio, the device and codec times measured separately around each \
             run, and {} us for a raw hit.",
            us(verification.hit_us)
        ),
        "a: adaptive share, with a background thread that compresses; predicted for the mean share.".to_owned(),
        format!(
            "Error: measured over predicted, + is slower. !: more than {} points or {}%: {off} of {}.",
            percent(HIT_OFF, 0),
            percent(US_OFF, 0),
            verification.comparisons.len()
        ),
    ];
    for line in notes.into_iter().chain(super::sentences(verification)) {
        document.paragraph(line);
    }
    let failures = verification.failures.iter();
    document
        .troubles
        .extend(failures.map(|failure| format!("FAILED: {failure}")));
    if verification.interrupted {
        document
            .troubles
            .push("INTERRUPTED: only finished runs are shown.".into());
    }
}

type Column = (&'static str, fn(&Comparison) -> String);

const COLUMNS: [Column; 13] = [
    ("codec", |c| c.codec.clone()),
    ("compressed_share_pct", |c| {
        c.share_pct
            .map_or_else(|| "adaptive".to_owned(), |percent| percent.to_string())
    }),
    ("held_share_pct", |c| percent(c.share, 2)),
    ("device_us", |c| format!("{:.3}", c.device_us)),
    ("compress_us", |c| format!("{:.3}", c.codec_us.compress_us)),
    ("decompress_us", |c| format!("{:.3}", c.codec_us.decompress_us)),
    ("predicted_hit_pct", |c| percent(c.predicted.hit_ratio, 4)),
    ("hit_pct", |c| percent(c.hit_ratio, 4)),
    ("hit_off_points", |c| percent(c.hit_off(), 4)),
    ("predicted_us_per_page", |c| format!("{:.4}", c.predicted.us_per_page)),
    ("us_per_page", |c| format!("{:.4}", c.us_per_page)),
    ("us_off_pct", |c| percent(c.us_off(), 3)),
    ("is_off", |c| u8::from(c.is_off()).to_string()),
];

/// `verify.tsv`: a line for each run.
pub(in crate::advise) fn summary(verification: &Verification) -> String {
    let rows = verification.comparisons.iter();
    let rows = rows.map(|one| COLUMNS.iter().map(|(_, cell)| word(cell(one))).collect());
    let failed = verification.failures.iter().map(|failure| {
        let mut row = vec![word(failure.split(':').next().unwrap_or(failure))];
        row.resize(COLUMNS.len(), None);
        row
    });
    tsv::table(COLUMNS.map(|(name, _)| name), rows.chain(failed))
}
