//! One measurement's orders, and what came of it.

use std::fs::File;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::Operation;
use super::request_order::Places;
use crate::core::LabError;
use crate::core::latency::{LONGEST_NS, histogram};

/// Parts of the time that are counted apart.
pub(super) const TENTHS: usize = 10;

/// A job of a probe.
pub(super) struct Job<'j> {
    pub(super) file: &'j File,
    pub(super) operation: Operation,
    pub(super) block_bytes: u64,
    pub(super) queue_depth: u32,
    pub(super) length: Duration,
    pub(super) places: Places,
    pub(super) seed: u64,
    pub(super) cancel: &'j AtomicBool,
}

/// A failure of a job: the place, and the system's error.
pub(super) struct Broken {
    pub(super) offset_bytes: u64,
    pub(super) source: io::Error,
}

/// Counts of a job.
pub(super) struct Tally {
    /// From handed over to seen ended, in nanoseconds.
    pub(super) latency: Histogram<u64>,
    /// Those at random places only.
    pub(super) random: Histogram<u64>,
    /// Time of the calls that hand requests over; `None` where they are one with the request.
    pub(super) submit: Option<Duration>,
    pub(super) tenths: [u64; TENTHS],
    /// From the first request to the end of the last.
    pub(super) elapsed: Duration,
}

impl Tally {
    pub(super) fn new() -> Result<Self, LabError> {
        Ok(Self {
            latency: histogram()?,
            random: histogram()?,
            submit: None,
            tenths: [0; TENTHS],
            elapsed: Duration::ZERO,
        })
    }

    /// A request took `latency` and ended `at` after the start of a job of some length.
    pub(super) fn record(&mut self, latency: Duration, random: bool, at: Duration, length: Duration) {
        let ns = (latency.as_nanos() as u64).clamp(1, LONGEST_NS);
        self.latency.saturating_record(ns);
        if random {
            self.random.saturating_record(ns);
        }
        let tenth = (at.as_secs_f64() / length.as_secs_f64() * TENTHS as f64) as usize;
        self.tenths[tenth.min(TENTHS - 1)] += 1;
    }

    /// Adds what another thread counted.
    pub(super) fn add(&mut self, other: &Self) {
        // Cannot fail: all histograms have the same bounds.
        let _ = self.latency.add(&other.latency);
        let _ = self.random.add(&other.random);
        for (mine, theirs) in self.tenths.iter_mut().zip(other.tenths) {
            *mine += theirs;
        }
    }
}
