//! A trace: page numbers in the order of requests, in a file.
//!
//! As text it has a number a line; empty lines and those that begin with `#` are none. In binary it is numbers of 8
//! bytes, little-endian.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use super::formulas::Tier;
use super::reuse::{Reuse, ReuseCurve};
use crate::core::LabError;
use crate::core::corpus::without_mark;
use crate::core::words::words;

/// How a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceFormat {
    /// A decimal number a line.
    #[default]
    Text,
    /// Numbers of 8 bytes, little-endian.
    U64Le,
}

words!(
    TraceFormat, "trace-format",
    "`{}`: must be text (one page number per line) or u64le (8 bytes per page number, little-endian)":
    Text "text", U64Le "u64le"
);

/// The sampling of a trace's pages.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Sampling {
    /// All of them in files up to 512 MiB, fewer in larger ones.
    #[default]
    Auto,
    /// This share of the pages, over 0 to 1.
    Rate(f64),
}

impl FromStr for Sampling {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        match text.parse() {
            Ok(rate) if rate > 0.0 && rate <= 1.0 => Ok(Self::Rate(rate)),
            _ => Err(LabError::option(
                "trace-sample",
                format!("`{text}`: must be auto, or a share of the pages greater than 0 and at most 1, as in 0.01"),
            )),
        }
    }
}

/// Handling of lines that are not page numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Junk {
    /// The first one is an error.
    #[default]
    Refuse,
    /// They are skipped and counted. More than 1% of junk lines are an error: the file is not a trace.
    Skip,
}

/// How a trace is read.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TraceOptions {
    /// How it is written.
    pub format: TraceFormat,
    /// The sampling of pages.
    pub sampling: Sampling,
    /// Handling of lines that are not page numbers.
    pub junk: Junk,
}

/// Statistics of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trace {
    /// Where it was.
    pub name: String,
    /// Accesses in it.
    pub accesses: u64,
    /// Distinct pages; with a sample, an estimate.
    pub pages: u64,
    /// The sampled share of the pages; 1 is exact.
    pub rate: f64,
    /// The share of the accesses that are the first to their page, which no cache hits.
    pub first_accesses: f64,
    /// Lines that were skipped.
    pub skipped_lines: u64,
    /// The hit ratio of an LRU cache for every size.
    #[serde(skip)]
    pub curve: ReuseCurve,
    /// Pages by request count, the most frequent first.
    #[serde(skip)]
    pub tiers: Vec<Tier>,
}

/// Maximum bytes of a file whose pages are not sampled.
const EXACT_BYTES: u64 = 512 << 20;
/// Minimum number of pages in a sample.
const MIN_SAMPLED_PAGES: usize = 100;
/// Maximum length of a line: a page number has 20 digits.
const MAX_LINE_BYTES: u64 = 4096;
/// Accesses between checks for cancellation.
const LOOK_EVERY: u64 = 1 << 16;

/// Reads a trace. `progress` receives the share of the file that is read.
///
/// # Errors
/// [`LabError::Io`] when the file cannot be read, [`LabError::Data`] when it is not a trace, with the number of the
/// line at fault, [`LabError::Cancelled`].
pub fn read_trace(
    path: &Path,
    options: TraceOptions,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Trace, LabError> {
    let io = |e| LabError::io(path, e);
    let file = File::open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    if metadata.is_dir() {
        return Err(LabError::data(
            path.display().to_string(),
            "is a directory; a trace is a file of page numbers",
        ));
    }
    let bytes = metadata.len();
    let rate = match options.sampling {
        Sampling::Rate(rate) => rate,
        Sampling::Auto => (EXACT_BYTES as f64 / bytes.max(1) as f64).min(1.0),
    };
    let mut reading = Reading {
        path,
        reuse: Reuse::new(rate),
        cancel,
        progress,
        bytes,
        read: 0,
        skipped: 0,
    };
    let mut reader = BufReader::with_capacity(1 << 18, file);
    match options.format {
        TraceFormat::Text => reading.text(&mut reader, options.junk)?,
        TraceFormat::U64Le => reading.binary(&mut reader)?,
    }
    let Reading { reuse, skipped, .. } = reading;
    learnt(path, &reuse, rate, skipped)
}

struct Reading<'r> {
    path: &'r Path,
    reuse: Reuse,
    cancel: &'r AtomicBool,
    progress: &'r mut dyn FnMut(f64),
    bytes: u64,
    read: u64,
    skipped: u64,
}

impl Reading<'_> {
    fn refuse(&self, reason: impl Into<String>) -> LabError {
        LabError::data(self.path.display().to_string(), reason)
    }

    fn access(&mut self, page: u64) -> Result<(), LabError> {
        self.reuse.access(page);
        if self.reuse.accesses().is_multiple_of(LOOK_EVERY) {
            if self.cancel.load(Relaxed) {
                return Err(LabError::Cancelled);
            }
            (self.progress)(self.read as f64 / self.bytes.max(1) as f64);
        }
        Ok(())
    }

    fn text(&mut self, reader: &mut impl BufRead, junk: Junk) -> Result<(), LabError> {
        let (mut line, mut number) = (Vec::new(), 0_u64);
        loop {
            line.clear();
            let read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
            let read = read.map_err(|e| LabError::io(self.path, e))?;
            if read == 0 {
                break;
            }
            number += 1;
            self.read += read as u64;
            if line.last() != Some(&b'\n') && read as u64 == MAX_LINE_BYTES {
                return Err(self.refuse(format!(
                    "line {number} is longer than {MAX_LINE_BYTES} bytes, so this is not a text trace; if it has 8 \
                     bytes per page number, use --trace-format u64le"
                )));
            }
            let text = if number == 1 { without_mark(&line) } else { &line };
            let text = text.trim_ascii();
            if text.is_empty() || text.starts_with(b"#") {
                continue;
            }
            match std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok()) {
                Some(page) => self.access(page)?,
                None if junk == Junk::Skip => self.skipped += 1,
                None if !std::str::from_utf8(text)
                    .is_ok_and(|text| text.chars().all(|c| c == '\t' || !c.is_control())) =>
                {
                    return Err(self.refuse(format!(
                        "line {number} is not text; for 8 bytes per page number use --trace-format u64le, and for a \
                         trace of a cache's requests (libCacheSim's, ARC's, Twitter's) `leafpress advise --trace FILE`"
                    )));
                }
                None => {
                    let shown: String = String::from_utf8_lossy(text).chars().take(40).collect();
                    return Err(self.refuse(format!(
                        "line {number} is not a page number: `{}`; expected one decimal number from 0 to {}; \
                         --skip-junk skips such lines",
                        shown.escape_default(),
                        u64::MAX
                    )));
                }
            }
        }
        if self.skipped > 0 && self.skipped * 100 > self.skipped + self.reuse.accesses() {
            return Err(self.refuse(format!(
                "{} of {} lines are not page numbers, which is more than 1%: this is not a trace",
                self.skipped,
                self.skipped + self.reuse.accesses()
            )));
        }
        Ok(())
    }

    fn binary(&mut self, reader: &mut impl BufRead) -> Result<(), LabError> {
        let mut number = [0; 8];
        loop {
            let mut filled = 0;
            while filled < number.len() {
                match reader.read(&mut number[filled..]) {
                    Ok(0) => break,
                    Ok(read) => filled += read,
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(LabError::io(self.path, e)),
                }
            }
            self.read += filled as u64;
            match filled {
                0 => return Ok(()),
                8 => self.access(u64::from_le_bytes(number))?,
                rest => {
                    return Err(self.refuse(format!(
                        "{rest} bytes are left at its end: page numbers have 8 bytes each; if it is text, use \
                         --trace-format text"
                    )));
                }
            }
        }
    }
}

fn learnt(path: &Path, reuse: &Reuse, rate: f64, skipped_lines: u64) -> Result<Trace, LabError> {
    let name = path.display().to_string();
    let sampled = reuse.sampled_pages();
    if reuse.accesses() == 0 {
        return Err(LabError::data(name, "contains no page numbers"));
    }
    if rate < 1.0 && sampled < MIN_SAMPLED_PAGES {
        return Err(LabError::data(
            name,
            format!(
                "a sample of {rate} has only {sampled} pages, and at least {MIN_SAMPLED_PAGES} are needed; use a \
                 larger --trace-sample"
            ),
        ));
    }
    let mut counts: Vec<u64> = reuse.counts().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let all = counts.iter().sum::<u64>() as f64;
    let mut tiers: Vec<Tier> = Vec::new();
    for same in counts.chunk_by(|one, other| one == other) {
        tiers.push(Tier {
            pages: same.len() as f64 / rate,
            // The sample's accesses are all there are, scaled down as its pages are.
            rate: same[0] as f64 / all * rate,
        });
    }
    Ok(Trace {
        name,
        accesses: reuse.accesses(),
        pages: (sampled as f64 / rate).round() as u64,
        rate,
        first_accesses: (sampled as f64 / rate / reuse.accesses() as f64).min(1.0),
        skipped_lines,
        curve: reuse.curve(),
        tiers,
    })
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
