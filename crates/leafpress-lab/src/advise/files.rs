//! What an advice leaves in a directory.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::narrative::{reasons, sentence};
use super::page::page;
use super::run::Advice;
use super::verify::Verification;
use super::{page_input, tables, verify};
use crate::core::LabError;
use crate::report::{json, write};

/// Files that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// A line for each codec and length of blocks.
    pub summary: PathBuf,
    /// A line for each run of the pool beside its prediction, where it ran.
    pub verify: Option<PathBuf>,
    /// Everything.
    pub json: PathBuf,
    /// A page to play what-if with.
    pub html: PathBuf,
}

/// What `results.json` holds beside what each has.
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

/// Writes `summary.tsv`, `results.json`, `report.html` and, after a verification, `verify.tsv` into `directory`, which exists.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written; [`LabError::Option`] when a figure is out of the bounds of the page's model.
pub fn write_files(
    advice: &Advice,
    verification: Option<&Verification>,
    command_line: &str,
    directory: &Path,
) -> Result<Files, LabError> {
    let files = Files {
        summary: directory.join("summary.tsv"),
        verify: verification.map(|_| directory.join("verify.tsv")),
        json: directory.join("results.json"),
        html: directory.join("report.html"),
    };
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
    write(&files.summary, &tables::summary(advice))?;
    if let (Some(path), Some(verification)) = (&files.verify, verification) {
        write(path, &verify::summary(verification))?;
    }
    write(&files.json, &json(command_line, &document)?)?;
    write(&files.html, &page(&page_input::of(advice, verification, command_line))?)?;
    Ok(files)
}
