//! Predicted against measured: the page pool on the sample's pages, at a scale that fits, over a simulated device.
//!
//! The proportion of memory to data, the block size, the access distribution, workers and the device's latency are
//! those of the question. The prediction is the model's with the ratio of the suite; from the pool itself it takes only
//! the cost of a hit on a raw page. The simulated device, since a sleep lasts longer than requested, and the codec,
//! since other work on the machine comes and goes, are measured by separately before and after each run.
//!
//! With a fixed share the pool has no threads of its own, so that accesses wait for all compressions, as in the model.
//! It needs one to find the share. No access waits for that thread's compressions, but waking it and finding the share
//! take time too: together they cost about the same, and the prediction is equal.

mod measured;
mod setup;
mod table;
mod verdict;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use leafpress::Codec;
use serde::Serialize;

use self::setup::Setup;
pub(super) use self::table::{add, summary};
pub(super) use self::verdict::sentences;
use super::cold::Cold;
use super::run::{Advice, Event};
use crate::core::LabError;
use crate::model::{Access, Point};

/// Hit ratios that are further off than this, 0 to 1, are flagged.
pub const HIT_OFF: f64 = 0.02;
/// Relative error of microseconds per page from which a run is flagged.
pub const US_OFF: f64 = 0.15;
/// The runs to do.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifyOptions {
    /// Codecs; none is the best one of the advice, and the next one where the two are too close to call.
    pub codecs: Vec<Codec>,
    /// Percents of the memory for compressed pages; a run in which the pool finds the share comes on top.
    pub shares: Vec<u8>,
    /// Length of each measured run in seconds.
    pub seconds: f64,
    /// Most bytes of pages.
    pub max_bytes: u64,
    /// Where the file of pages is made; `None` is the system's directory for temporary files.
    pub scratch: Option<PathBuf>,
}

impl Default for VerifyOptions {
    /// The best codec at shares 0, 30, 60 and 90, four seconds each, on 64 MiB of pages.
    fn default() -> Self {
        Self {
            codecs: Vec::new(),
            shares: vec![0, 30, 60, 90],
            seconds: 4.0,
            max_bytes: 64 << 20,
            scratch: None,
        }
    }
}

/// A run of the pool and its prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The codec.
    pub codec: String,
    /// Percent of the memory for compressed pages; `None` where the pool found it.
    pub share_pct: Option<u8>,
    /// The share that the pool held on average, 0 to 1.
    pub share: f64,
    /// Read latency of the simulated device in microseconds, measured separately before and after the run.
    pub device_us: f64,
    /// Microseconds of the codec after a wait for the device, measured separately before and after the run.
    pub codec_us: Cold,
    /// The model's prediction at that share.
    pub predicted: Point,
    /// The hit ratio that was measured, 0 to 1.
    pub hit_ratio: f64,
    /// Measured microseconds per page.
    pub us_per_page: f64,
    /// Measured pages per second.
    pub pages_per_second: f64,
}

impl Comparison {
    /// Returns by how much the measured hit ratio is over the predicted one, in shares of the accesses.
    pub fn hit_off(&self) -> f64 {
        self.hit_ratio - self.predicted.hit_ratio
    }

    /// Returns the relative excess of the measured over the predicted microseconds per page.
    pub fn us_off(&self) -> f64 {
        self.us_per_page / self.predicted.us_per_page.max(1e-9) - 1.0
    }

    /// Returns whether it is further off than 2 points of hit ratio or 15% of the time.
    pub fn is_off(&self) -> bool {
        self.hit_off().abs() > HIT_OFF || self.us_off().abs() > US_OFF
    }
}

/// Predicted against measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verification {
    /// Pages.
    pub pages: u64,
    /// Their length in bytes.
    pub block_bytes: u64,
    /// Memory of the pool in bytes.
    pub memory_bytes: u64,
    /// Access distribution of pages.
    pub access: String,
    /// Configured microseconds per read of the simulated device.
    pub device_us: u64,
    /// Microseconds of a hit on a raw page, measured with all pages in memory.
    pub hit_us: f64,
    /// Length of each run in seconds.
    pub seconds: f64,
    /// The runs.
    pub comparisons: Vec<Comparison>,
    /// Runs that failed, and why.
    pub failures: Vec<String>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// Runs the pool.
///
/// # Errors
/// [`LabError::Option`] when the question is one that the pool cannot be asked, or a codec was not measured;
/// [`LabError::Io`] when no file of pages can be made; [`LabError::Cancelled`] before the first run ended.
pub fn verify(
    advice: &Advice,
    options: &VerifyOptions,
    cancel: &AtomicBool,
    events: &mut dyn FnMut(Event),
) -> Result<Verification, LabError> {
    let law = match &advice.question.access {
        Access::Distribution(law) => *law,
        _ => {
            return Err(LabError::option(
                "verify",
                "cannot be used with a trace: omit it, or give --distribution a distribution that resembles the trace",
            ));
        }
    };
    let scratch = match &options.scratch {
        Some(parent) => tempfile::tempdir_in(parent),
        None => tempfile::tempdir(),
    };
    let scratch = scratch.map_err(|e| LabError::io(options.scratch.clone().unwrap_or_else(std::env::temp_dir), e))?;
    let setup = Setup::new(advice, options, law, scratch.path(), cancel)?;
    setup.run(cancel, events)
}
