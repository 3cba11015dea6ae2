//! Files of an advice.

use std::path::Path;

use serde::Serialize;

use super::narrative::{reasons, sentence};
use super::page::page;
use super::run::Advice;
use super::verify::Verification;
use super::{page_input, tables, verify};
use crate::core::LabError;
use crate::report::{Written, json, write_all};

/// The verification's file.
const VERIFY: &str = "verify.tsv";

/// Fields of `results.json`, in addition to the common ones.
#[derive(Serialize)]
struct Document<'d> {
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

/// Writes `summary.tsv`, a line for each codec and length of blocks, after a verification `verify.tsv`, a line for each
/// run with its prediction (without a verification an old one is removed), `results.json` and `report.html`, an
/// interactive page, into the existing `directory`.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written; [`LabError::Option`] when a figure is out of the bounds of the
/// page's model.
pub fn write_files(
    advice: &Advice,
    verification: Option<&Verification>,
    command_line: &str,
    directory: &Path,
) -> Result<Written, LabError> {
    let question = &advice.question;
    let document = Document {
        sentence: sentence(&advice.recommendation),
        reasons: reasons(&advice.recommendation, question),
        data_bytes: question.data_bytes,
        memory_bytes: question.memory_bytes,
        access_bytes: question.access_bytes,
        access: question.access.name(),
        workers: question.workers,
        advice,
        verification,
    };
    let page = page(&page_input::of(advice, verification, command_line))?;
    if verification.is_none() {
        // One of an earlier advice would pass for this one's.
        let old = directory.join(VERIFY);
        match std::fs::remove_file(&old) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(LabError::io(old, e)),
            _ => {}
        }
    }
    let mut files = vec![("summary", "summary.tsv", tables::summary(advice))];
    files.extend(verification.map(|of| ("verify", VERIFY, verify::summary(of))));
    files.extend([
        ("json", "results.json", json(command_line, &document)?),
        ("report", "report.html", page),
    ]);
    write_all(directory, files)
}
