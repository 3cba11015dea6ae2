//! Interleaves passes of several settings, so that a disturbance does not affect a single setting only.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::blocks::Blocks;
use super::method::Method;
use super::outcome::Setting;
use super::pass::{Pass, Room, pass};
use crate::core::LabError;

/// How far a suite is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The current step, in a few words.
    pub what: String,
    /// The elapsed part of the estimated time, 0 to 1.
    pub share: f64,
    /// Estimated remaining seconds; `None` before the first measurement.
    pub left_seconds: Option<f64>,
}

/// A method with blocks and a number of threads, and its passes.
pub(super) struct Series<'b, 's> {
    method: &'b Method,
    blocks: &'b Blocks<'s>,
    /// The step shown while it is measured.
    what: String,
    pub setting: Setting,
    pub passes: Vec<Pass>,
    /// Seconds that a pass takes, warm-up and comparison included.
    pass_seconds: f64,
}

impl<'b, 's> Series<'b, 's> {
    pub(super) fn new(method: &'b Method, blocks: &'b Blocks<'s>, threads: usize, what: String) -> Self {
        let rounds = blocks.rounds(threads);
        let bytes = (blocks.raw_bytes() * rounds) as f64;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            method,
            blocks,
            what,
            setting: Setting {
                codec: method.name(),
                block_bytes: blocks.block_bytes,
                threads,
                rounds,
            },
            passes: Vec::new(),
            pass_seconds: bytes * method.guess_ns_per_byte() / 1e9 / threads.min(cores) as f64,
        }
    }
}

/// Lets every setting do its passes. `files` is how many files the blocks are of, and their names. Whether it was
/// cancelled.
///
/// # Errors
/// As [`pass`].
pub(super) fn measure(
    all: &mut [Series<'_, '_>],
    passes: usize,
    files: (usize, &dyn Fn(usize) -> String),
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<bool, LabError> {
    let started = Instant::now();
    let mut room = Room::default();
    for number in 0..passes {
        for at in 0..all.len() {
            let left = left_seconds(all, passes);
            let elapsed = started.elapsed().as_secs_f64();
            let series = &mut all[at];
            progress(&Progress {
                what: format!("pass {}/{passes}  {}", number + 1, series.what),
                share: elapsed / (elapsed + left).max(f64::MIN_POSITIVE),
                left_seconds: Some(left),
            });
            let before = Instant::now();
            let turn = (series.setting.threads, number);
            let Some(done) = pass(series.method, series.blocks, turn, &mut room, files, cancel)? else {
                return Ok(true);
            };
            series.pass_seconds = before.elapsed().as_secs_f64();
            series.passes.push(done);
        }
    }
    Ok(cancel.load(Ordering::Relaxed) && all.iter().any(|series| series.passes.len() < passes))
}

/// Seconds that the passes that are left will take.
fn left_seconds(all: &[Series<'_, '_>], passes: usize) -> f64 {
    let seconds = all
        .iter()
        .map(|series| (passes - series.passes.len()) as f64 * series.pass_seconds);
    seconds.sum()
}
