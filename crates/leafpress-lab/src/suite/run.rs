//! A suite: the data, the codecs, and passes of each setting by turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use leafpress::Codec;
use leafpress::codec::Engine;

use super::blocks::Blocks;
use super::method::{self, Method};
use super::outcome::{Measured, Setting};
use super::pass::{Pass, Room, pass};
use super::sample::Sample;
use super::{Absent, FileRows, Options, Report};
use crate::core::{Bytes, LabError};

/// How far a suite is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is being done, in a few words.
    pub what: String,
    /// How much of the time it will take is over, 0 to 1.
    pub share: f64,
    /// Seconds that are left, by what was measured so far; `None` before anything was.
    pub left_seconds: Option<f64>,
}

/// Runs a suite with the codecs that the options name. A suite that is cancelled keeps the rows that have a pass.
///
/// # Errors
/// [`LabError::Option`] for options out of bounds, codecs that are named and not available, and blocks longer than the data;
/// [`LabError::Data`] when no file can be read; [`LabError::Block`] when a codec fails or gives back a wrong byte;
/// [`LabError::Cancelled`] before anything was measured.
pub fn run(options: &Options, cancel: &AtomicBool, progress: &mut dyn FnMut(&Progress)) -> Result<Report, LabError> {
    options.validate()?;
    let (engines, absent) = method::open(options)?;
    if engines.is_empty() {
        return Err(LabError::option("codecs", "none is available here"));
    }
    Suite::new(options, &engines, absent).run(cancel, progress)
}

/// Runs a suite with engines of the caller's; [`Options::codecs`] is not looked at.
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

/// A method with a length of blocks and a number of threads, and its passes.
struct Series<'b, 's> {
    method: &'b Method,
    blocks: &'b Blocks<'s>,
    setting: Setting,
    passes: Vec<Pass>,
    /// Seconds that a pass takes, warm-up and comparison included.
    pass_seconds: f64,
}

impl<'o> Suite<'o> {
    fn new(options: &'o Options, engines: &[Arc<dyn Engine>], absent: Vec<Absent>) -> Self {
        let engines = engines.iter().map(|engine| Method::Engine(Arc::clone(engine)));
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
        let interrupted = self.measure(&sample, &mut all, cancel, progress)?;
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
                let rounds = blocks.rounds(threads);
                all.extend(self.methods.iter().map(|method| {
                    let ns_per_byte = guess_ns_per_byte(method);
                    let bytes = (blocks.raw_bytes() * rounds) as f64;
                    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
                    Series {
                        method,
                        blocks,
                        setting: Setting {
                            codec: method.name(),
                            block_bytes: blocks.block_bytes,
                            threads,
                            rounds,
                        },
                        passes: Vec::new(),
                        pass_seconds: bytes * ns_per_byte / 1e9 / threads.min(cores) as f64,
                    }
                }));
            }
        }
        all
    }

    /// Lets every setting do its passes, by turns: what disturbs the machine for a while does not fall on one setting alone.
    /// Whether it was cancelled.
    fn measure(
        &self,
        sample: &Sample,
        all: &mut [Series<'_, '_>],
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<bool, LabError> {
        let started = Instant::now();
        let mut room = Room::default();
        let name = |file: usize| sample.files[file].name.clone();
        let passes = self.options.passes;
        for number in 0..passes {
            for at in 0..all.len() {
                let left = left_seconds(all, passes);
                let elapsed = started.elapsed().as_secs_f64();
                let series = &mut all[at];
                let setting = &series.setting;
                progress(&Progress {
                    what: format!(
                        "pass {}/{passes}  {}  {}  {} thread{}",
                        number + 1,
                        setting.codec,
                        Bytes(setting.block_bytes as u64),
                        setting.threads,
                        if setting.threads == 1 { "" } else { "s" }
                    ),
                    share: elapsed / (elapsed + left).max(f64::MIN_POSITIVE),
                    left_seconds: Some(left),
                });
                let before = Instant::now();
                let threads = setting.threads;
                let files = (sample.files.len(), &name as &dyn Fn(usize) -> String);
                let done = pass(
                    series.method,
                    series.blocks,
                    (threads, number),
                    &mut room,
                    files,
                    cancel,
                )?;
                let Some(done) = done else {
                    return Ok(true);
                };
                series.pass_seconds = before.elapsed().as_secs_f64();
                series.passes.push(done);
            }
        }
        Ok(cancel.load(Ordering::Relaxed) && all.iter().any(|series| series.passes.len() < passes))
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
        let libraries = Codec::list();
        let codecs = self.methods.iter().filter_map(|method| match method {
            Method::Memcpy => None,
            Method::Engine(engine) => {
                let codec = engine.codec();
                let known = libraries.iter().find(|known| known.codec.family() == codec.family());
                Some(Measured {
                    codec: codec.to_string(),
                    engine: engine.engine_name(),
                    provided_by: known.and_then(|known| known.provided_by.clone()),
                })
            }
        });
        Report {
            options: self.options.clone(),
            host: crate::core::resources::host(),
            block_bytes,
            sample: sample.size,
            skipped: sample.skipped.clone(),
            codecs: codecs.collect(),
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

/// Seconds that the passes that are left will take.
fn left_seconds(all: &[Series<'_, '_>], passes: usize) -> f64 {
    let seconds = all
        .iter()
        .map(|series| (passes - series.passes.len()) as f64 * series.pass_seconds);
    seconds.sum()
}

/// What a pass is taken to cost before there is a measurement, compression, decompression and all the rest together.
fn guess_ns_per_byte(method: &Method) -> f64 {
    let family = match method {
        Method::Memcpy => return 1.0,
        Method::Engine(engine) => engine.codec().family(),
    };
    match family {
        "none" => 1.0,
        "lz4" => 4.0,
        "zstd" => 8.0,
        "deflate" => 16.0,
        _ => 30.0,
    }
}
