//! Measurements around a run and by it, in figures that other work on the machine affects little.

use crate::advise::cold::Cold;
use crate::core::statistics::upper_median;
use crate::pool::{Outcome, Sample};

/// Current cost of the device and a codec, measured separately.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    pub device_us: f64,
    pub codec_us: Cold,
}

impl Standing {
    /// The mean of two.
    pub(super) fn with(self, other: Self) -> Self {
        let (one, two) = (self.codec_us, other.codec_us);
        Self {
            device_us: f64::midpoint(self.device_us, other.device_us),
            codec_us: Cold {
                compress_us: f64::midpoint(one.compress_us, two.compress_us),
                decompress_us: f64::midpoint(one.decompress_us, two.decompress_us),
            },
        }
    }
}

/// Microseconds per page: the median of the run's windows, which other work on the machine that stops everything for a
/// while does not touch.
pub(super) fn us_per_page(outcome: &Outcome, workers: usize) -> Option<f64> {
    let of = |sample: &Sample| sample.length_seconds * 1e6 * workers as f64 / sample.acquisitions as f64;
    let windows = outcome
        .samples
        .iter()
        .filter(|sample| sample.measured && sample.acquisitions > 0);
    upper_median(windows.map(of).collect()).or_else(|| outcome.us_per_page())
}

/// The share of the memory for pages that compressed ones took, 0 to 1: the mean over the measured time. Where the pool
/// finds the share, what it is meant to be and what it is differ for a while.
pub(super) fn held_share(outcome: &Outcome) -> f64 {
    let held = outcome.samples.iter().filter(|sample| sample.measured).map(|sample| {
        let (raw, compressed) = (sample.held.raw_space_bytes, sample.held.compressed_space_bytes);
        (
            sample.length_seconds,
            compressed as f64 / (raw + compressed).max(1) as f64,
        )
    });
    let (seconds, sum) = held.fold((0.0, 0.0), |(seconds, sum), (length, share)| {
        (seconds + length, sum + length * share)
    });
    if seconds > 0.0 { sum / seconds } else { 0.0 }
}
