//! Several runs in turn, each in its own process: one for each share of the memory, and one in which the pool
//! finds it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use leafpress::Codec;
use leafpress_pages::pool::RawShare;
use serde::Serialize;

use super::{Options, Report};
use crate::core::LabError;
use crate::harness::Phase;
use crate::harness::child::{Job, Launcher};

/// One of several runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// The options of the run.
    pub options: Options,
    /// Its results; `None` when it failed.
    pub report: Option<Report>,
    /// Why it failed, in a line.
    pub failure: Option<String>,
}

/// Several runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// The runs in order.
    pub lines: Vec<Line>,
    /// Whether it was cancelled before the last one.
    pub cancelled: bool,
}

/// Progress of a sweep.
#[derive(Debug)]
pub enum Step<'s> {
    /// The run of this number, from 0, starts.
    Started(usize, &'s Options),
    /// The phase of the run in progress, and its progress, 0 to 1.
    Progress(Phase, f64),
    /// The run ended, well or not.
    Finished(&'s Line),
}

/// Runs `options` in turn. Output of the processes goes to files in `logs`. A failed run is not an error but a [`Line`]
/// that says so.
///
/// # Errors
/// [`LabError::System`] when this executable cannot be found, [`LabError::Io`] when a log cannot be written.
pub fn sweep(
    options: &[Options],
    logs: &Path,
    cancel: &AtomicBool,
    steps: &mut dyn FnMut(Step<'_>),
) -> Result<Sweep, LabError> {
    sweep_with(&Launcher::current_exe()?, options, logs, cancel, steps)
}

/// Runs as [`sweep`] does, with processes of the caller's own.
///
/// # Errors
/// As [`sweep`].
pub fn sweep_with(
    launcher: &Launcher,
    options: &[Options],
    logs: &Path,
    cancel: &AtomicBool,
    steps: &mut dyn FnMut(Step<'_>),
) -> Result<Sweep, LabError> {
    let mut sweep = Sweep {
        lines: Vec::with_capacity(options.len()),
        cancelled: false,
    };
    for (number, run) in options.iter().enumerate() {
        steps(Step::Started(number, run));
        let request = Job {
            name: super::RUN,
            request: run,
        };
        let log = logs.join(format!("run-{number}.log"));
        let answer = launcher.call(&request, None, &log, cancel, &mut |phase, done| {
            steps(Step::Progress(phase, done));
        });
        let (report, failure) = match answer {
            Ok(report) => (Some(report), None),
            Err(LabError::Cancelled) => {
                sweep.cancelled = true;
                break;
            }
            Err(e @ LabError::Io { .. }) => return Err(e),
            Err(e) => (None, Some(e.to_string())),
        };
        let line = Line {
            options: run.clone(),
            report,
            failure,
        };
        steps(Step::Finished(&line));
        sweep.lines.push(line);
    }
    Ok(sweep)
}

impl Line {
    /// Returns the percent of the memory that is for compressed pages, when that is fixed.
    pub fn compressed_percent(&self) -> Option<u8> {
        match (self.options.codec, self.options.share) {
            (Codec::None, _) => Some(0),
            (_, RawShare::Fixed { raw_percent }) => Some(100_u8.saturating_sub(raw_percent)),
            _ => None,
        }
    }

    /// Returns the setting that distinguishes this run from the others of its codec.
    pub fn share_name(&self) -> String {
        match self.compressed_percent() {
            Some(percent) => format!("{percent}%"),
            None => "adaptive".into(),
        }
    }

    /// Returns the mean microseconds of getting a page.
    pub fn us_per_page(&self) -> Option<f64> {
        self.report.as_ref()?.outcome.us_per_page()
    }
}

impl Sweep {
    /// Creates a sweep of one run.
    pub fn of(report: Report) -> Self {
        Self {
            lines: vec![Line {
                options: report.options.clone(),
                report: Some(report),
                failure: None,
            }],
            cancelled: false,
        }
    }

    /// Returns the codecs, each once.
    pub fn codecs(&self) -> Vec<Codec> {
        let mut codecs = Vec::new();
        for line in &self.lines {
            if !codecs.contains(&line.options.codec) {
                codecs.push(line.options.codec);
            }
        }
        codecs
    }

    /// Returns the runs of a codec.
    pub fn of_codec(&self, codec: Codec) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.options.codec == codec)
    }

    /// Returns the run of a codec in which the pool found the share.
    pub fn adaptive(&self, codec: Codec) -> Option<&Line> {
        self.of_codec(codec).find(|line| line.compressed_percent().is_none())
    }

    /// Returns the fixed share of a codec with the least microseconds per page.
    pub fn best_fixed(&self, codec: Codec) -> Option<&Line> {
        let fixed = self.of_codec(codec).filter(|line| line.compressed_percent().is_some());
        fixed
            .filter_map(|line| Some((line, line.us_per_page()?)))
            .min_by(|(_, one), (_, other)| one.total_cmp(other))
            .map(|(line, _)| line)
    }

    /// Returns by how many percent the adaptive run's microseconds per page are over the best fixed share's.
    pub fn adaptive_over_best_pct(&self, codec: Codec) -> Option<f64> {
        let (adaptive, best) = (self.adaptive(codec)?, self.best_fixed(codec)?);
        Some((adaptive.us_per_page()? / best.us_per_page()? - 1.0) * 100.0)
    }

    /// Returns problems to report before the figures: failures, wrong bytes, a cancellation.
    pub fn troubles(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        for line in &self.lines {
            let name = format!("{} {}", line.options.codec, line.share_name());
            if let Some(failure) = &line.failure {
                troubles.push(format!("failed: {name}: {failure}"));
            }
            let Some(outcome) = line.report.as_ref().map(|report| &report.outcome) else {
                continue;
            };
            if outcome.checks.wrong > 0 {
                let example = outcome.checks.examples.first().map_or("", String::as_str);
                troubles.push(format!(
                    "WRONG BYTES: {name}: {} pages ({example})",
                    outcome.checks.wrong
                ));
            }
            if outcome.counters.write_errors > 0 {
                let errors = outcome.counters.write_errors;
                troubles.push(format!("write errors: {name}: the store refused {errors} writes"));
            }
            if outcome.interrupted {
                troubles.push(format!("interrupted: {name} ended after {:.1} s", outcome.seconds));
            }
        }
        if self.cancelled {
            troubles.push("cancelled: only finished runs are included".into());
        }
        troubles
    }
}

/// Parses shares of the memory for compressed pages, in percent: numbers separated by commas, where `..` goes on in
/// steps as before it, as in `0,10,..,90`.
///
/// # Errors
/// [`LabError::Option`] of `sweep-share`.
pub fn shares(text: &str) -> Result<Vec<u8>, LabError> {
    let refuse = |reason: &str| {
        LabError::option(
            "sweep-share",
            format!(
                "`{text}`: {reason}; use percentages of the memory for compressed pages, 0 to 100, as in 0,10,..,90"
            ),
        )
    };
    let mut shares: Vec<u8> = Vec::new();
    let mut words = text.split(',').map(str::trim);
    let number = |word: &str| match word.parse() {
        Ok(percent @ 0..=100_u8) => Ok(percent),
        _ => Err(refuse(&format!("{word} is not a percentage"))),
    };
    while let Some(word) = words.next() {
        if word != ".." {
            shares.push(number(word)?);
            continue;
        }
        let [.., before, last] = shares[..] else {
            return Err(refuse(".. must follow two numbers"));
        };
        let end = number(words.next().ok_or_else(|| refuse(".. must precede a number"))?)?;
        if last <= before || end < last || !(end - last).is_multiple_of(last - before) {
            return Err(refuse("the steps do not reach the number after .."));
        }
        let step = usize::from(last - before);
        shares.extend((last..=end).step_by(step).skip(1));
    }
    let mut sorted = shares.clone();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() < shares.len() {
        return Err(refuse("a share is listed twice"));
    }
    Ok(sorted)
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
