//! The advice for people: the recommendation first.

use std::fmt::Write;

use super::cautions::COMPUTED;
use super::narrative::{like, percent, reasons, sentence, us};
use super::run::Advice;
use super::verify::Verification;
use super::{tables, verify};
use crate::core::{Bytes, about};
use crate::model;
use crate::model::tco::Prices;
use crate::report::document::Document;
use crate::report::paragraph::wrapped;
use crate::suite;

/// Formats the whole advice.
pub fn text(advice: &Advice, verification: Option<&Verification>) -> String {
    let question = &advice.question;
    let mut text = wrapped(&sentence(&advice.recommendation), "", "") + "\n";
    text += &head(advice);
    text += "\nWhy\n";
    for reason in reasons(&advice.recommendation, question) {
        text += &wrapped(&reason, "- ", "  ");
    }
    text += "\nCaveats\n";
    let computed = verification.is_none().then_some(COMPUTED);
    for caution in advice.cautions.iter().map(String::as_str).chain(computed) {
        text += &wrapped(caution, "! ", "  ");
    }
    let _ = writeln!(text, "\nCandidates\n{}", tables::for_people(advice));
    if let (Some(saved), prices) = (&advice.recommendation.savings, question.prices.unwrap_or_default()) {
        text += &money(saved, &prices);
    }
    if let Some(verification) = verification {
        text += &verify::text(verification);
    }
    text
}

fn money(saved: &crate::model::tco::Savings, prices: &Prices) -> String {
    let mut document = Document::new("");
    model::costs(&mut document, std::slice::from_ref(saved), prices);
    document.text() + "\n"
}

/// The question, in lines.
pub(super) fn head(advice: &Advice) -> String {
    let (question, suite) = (&advice.question, &advice.suite);
    let raw = &advice.recommendation.raw;
    let asked = format!(
        "{} of data, {} of memory ({}%) · access {} of {} · {} worker{}\nDevice {} us per read of {} · sample {} in {} file{} · {}\n",
        like(question, question.data_bytes as f64),
        like(question, question.memory_bytes as f64),
        percent(question.memory_bytes as f64 / question.data_bytes.max(1) as f64, 2),
        question.access.name(),
        Bytes(question.access_bytes),
        question.workers,
        if question.workers == 1 { "" } else { "s" },
        us(raw.device_us),
        Bytes(raw.block_bytes),
        about(suite.sample.bytes as f64),
        suite.sample.files,
        if suite.sample.files == 1 { "" } else { "s" },
        suite.host
    );
    asked + &sampled(suite)
}

/// The sampled files, the largest first, and the number of skipped ones.
fn sampled(suite: &suite::Report) -> String {
    const NAMED: usize = 3;
    let mut files: Vec<_> = suite.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.file_bytes));
    let names: Vec<&str> = files.iter().take(NAMED).map(|file| file.file.as_str()).collect();
    let mut text = format!("Sampled: {}", names.join(", "));
    if files.len() > NAMED {
        text += &format!(" and {} more", files.len() - NAMED);
    }
    if !suite.skipped.is_empty() {
        let named = suite.skipped.iter().take(NAMED);
        let named: Vec<String> = named
            .map(|left_out| format!("{}: {}", left_out.file, left_out.reason))
            .collect();
        let more = if suite.skipped.len() > NAMED { "; ..." } else { "" };
        text += &format!("; skipped: {} ({}{more})", suite.skipped.len(), named.join("; "));
    }
    text + "\n"
}
