//! Runs a suite: the data, the codecs, and interleaved passes of each setting.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use leafpress::codec::Engine;

use super::blocks::Blocks;
use super::interleave::{self, Progress, Series};
use super::method::{self, Method};
use super::phrases::in_words;
use super::sample::Sample;
use super::{Absent, FileRows, Options, Report, compresses};
use crate::core::{Bytes, LabError};

/// Runs a suite with the codecs that the options name. A suite that is cancelled keeps the rows that have a pass.
///
/// # Errors
/// [`LabError::Option`] for options out of bounds, codecs that are named and not available, and blocks longer than the
/// data; [`LabError::Data`] when no file can be read; [`LabError::Block`] when a codec fails or gives back a wrong
/// byte; [`LabError::Cancelled`] before anything was measured.
pub fn run(options: &Options, cancel: &AtomicBool, progress: &mut dyn FnMut(&Progress)) -> Result<Report, LabError> {
    options.validate()?;
    let (mut engines, absent) = method::open(options.codecs.as_deref())?;
    if options.codecs.is_none() {
        // Blocks have no dictionary.
        engines.retain(|engine| compresses(&engine.codec().to_string()));
    }
    Suite::new(options, &engines, absent).run(cancel, progress)
}

/// Runs a suite with the caller's engines; [`Options::codecs`] is ignored.
///
/// # Errors
/// As [`run`].
pub fn run_engines(
    options: &Options,
    engines: &[Arc<dyn Engine>],
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report, LabError> {
    options.validate()?;
    Suite::new(options, engines, Vec::new()).run(cancel, progress)
}

struct Suite<'o> {
    options: &'o Options,
    methods: Vec<Method>,
    absent: Vec<Absent>,
}

impl<'o> Suite<'o> {
    fn new(options: &'o Options, engines: &[Arc<dyn Engine>], absent: Vec<Absent>) -> Self {
        let engines = engines.iter().map(|engine| Method::Engine(Arc::clone(engine), None));
        Self {
            options,
            methods: [Method::Memcpy].into_iter().chain(engines).collect(),
            absent,
        }
    }

    fn run(&self, cancel: &AtomicBool, progress: &mut dyn FnMut(&Progress)) -> Result<Report, LabError> {
        let mut reading = |share: f64| {
            progress(&Progress {
                what: format!("reading, {:.0}%", share * 100.0),
                share: 0.0,
                left_seconds: None,
            });
        };
        reading(0.0);
        let sample = Sample::load(self.options, cancel, &mut reading)?;
        let cut: Vec<Blocks<'_>> = sample
            .block_bytes
            .iter()
            .map(|&block_bytes| Blocks::new(&sample, block_bytes))
            .collect();
        let mut all = self.series(&cut);
        let names = |file: usize| sample.files[file].name.clone();
        let files = (sample.files.len(), &names as &dyn Fn(usize) -> String);
        let interrupted = interleave::measure(&mut all, self.options.passes, files, cancel, progress)?;
        all.retain(|series| !series.passes.is_empty());
        if all.is_empty() {
            return Err(LabError::Cancelled);
        }
        Ok(self.report(sample.block_bytes.clone(), &sample, &all, interrupted))
    }

    /// All settings: by threads, then blocks, then methods.
    fn series<'b, 's>(&'b self, cut: &'b [Blocks<'s>]) -> Vec<Series<'b, 's>> {
        let mut all = Vec::new();
        for &threads in &self.options.threads {
            for blocks in cut {
                let length = Bytes(blocks.block_bytes as u64);
                let series = |method: &'b Method| {
                    let what = format!("{}  {length}  {}", method.name(), in_words(threads));
                    Series::new(method, blocks, threads, what)
                };
                all.extend(self.methods.iter().map(series));
            }
        }
        all
    }

    fn report(&self, block_bytes: Vec<usize>, sample: &Sample, all: &[Series<'_, '_>], interrupted: bool) -> Report {
        let files = sample.files.iter().enumerate().map(|(at, file)| FileRows {
            file: file.name.clone(),
            file_bytes: file.bytes,
            rows: all
                .iter()
                .map(|series| series.setting.row(&series.passes, |pass| &pass.files[at]))
                .collect(),
        });
        let engines = self.methods.iter().filter_map(|method| match method {
            Method::Memcpy => None,
            Method::Engine(engine, _) => Some(engine),
        });
        Report {
            options: self.options.clone(),
            host: crate::core::resources::host(),
            block_bytes,
            sample: sample.size,
            skipped: sample.skipped.clone(),
            codecs: method::measured(engines),
            absent: self.absent.clone(),
            passes: all.iter().map(|series| series.passes.len()).min().unwrap_or(0),
            interrupted,
            overall: all
                .iter()
                .map(|series| series.setting.row(&series.passes, |pass| &pass.all))
                .collect(),
            files: files.collect(),
        }
    }
}
