//! The report of an advice, the recommendation first.

use serde::Serialize;

use super::cautions::COMPUTED;
use super::narrative::{like, percent, reasons, sentence, us};
use super::page::page;
use super::run::Advice;
use super::verify::Verification;
use super::{page_input, tables, verify};
use crate::core::{Bytes, about};
use crate::model;
use crate::report::document::Document;
use crate::report::paragraph::wrapped;
use crate::suite;

/// The verification's file.
const VERIFY: &str = "verify.tsv";

/// Fields of `results.json`, in addition to the common ones.
#[derive(Serialize)]
struct Results<'d> {
    sentence: String,
    reasons: Vec<String>,
    data_bytes: u64,
    memory_bytes: u64,
    access_bytes: u64,
    access: String,
    workers: u32,
    #[serde(flatten)]
    advice: &'d Advice,
    verification: Option<&'d Verification>,
}

/// Builds the report. Its tables are `summary.tsv`, a line for each codec and length of blocks, and after a
/// verification `verify.tsv`, a line for each run with its prediction. Its page is interactive.
pub fn document<'r>(advice: &'r Advice, verification: Option<&'r Verification>) -> Document<'r> {
    let (question, recommendation) = (&advice.question, &advice.recommendation);
    let mut document = Document::new("Leafpress advise");
    document.verdicts = vec![sentence(recommendation)];
    document.cautions.clone_from(&advice.cautions);
    if verification.is_none() {
        document.cautions.push(COMPUTED.to_owned());
    }
    document.head = head(advice).lines().map(str::to_owned).collect();
    document.heading("Why");
    for reason in reasons(recommendation, question) {
        document.text_only(wrapped(&reason, "- ", "  "));
    }
    document.heading("Candidates");
    tables::add(&mut document, advice);
    if let Some(saved) = &recommendation.savings {
        let prices = question.prices.unwrap_or_default();
        model::costs(&mut document, std::slice::from_ref(saved), &prices);
    }
    document.tsv("summary", "summary.tsv", || tables::summary(advice));
    match verification {
        Some(verification) => {
            verify::add(&mut document, verification);
            document.tsv("verify", VERIFY, || verify::summary(verification));
        }
        None => document.absent(VERIFY),
    }
    document.results(Results {
        sentence: sentence(recommendation),
        reasons: reasons(recommendation, question),
        data_bytes: question.data_bytes,
        memory_bytes: question.memory_bytes,
        access_bytes: question.access_bytes,
        access: question.access.name(),
        workers: question.workers,
        advice,
        verification,
    });
    document.own_page(move |command_line| page(&page_input::of(advice, verification, command_line)));
    document
}

/// The question, in lines.
pub(super) fn head(advice: &Advice) -> String {
    let (question, suite) = (&advice.question, &advice.suite);
    let raw = &advice.recommendation.raw;
    let asked = format!(
        "{} of data, {} of memory ({}%) · access {} of {} · {} worker{}\nDevice {} us per read of {} · sample {} in \
         {} file{} · {}\n",
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
