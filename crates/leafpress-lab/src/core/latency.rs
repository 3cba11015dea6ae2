//! Latencies of one thread: an HDR histogram per kind of operation, over the whole timed window.

use hdrhistogram::Histogram;
use quanta::Clock;
use serde::{Deserialize, Serialize};

use crate::core::LabError;

/// Latencies of one kind of operation, in nanoseconds: quantiles of an HDR histogram with three significant digits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Operations measured.
    pub samples: u64,
    /// Mean.
    pub mean_ns: f64,
    /// The least.
    pub min_ns: u64,
    /// Half are at most this.
    pub p50_ns: u64,
    /// 90% are at most this.
    pub p90_ns: u64,
    /// 99% are at most this.
    pub p99_ns: u64,
    /// 99.9% are at most this.
    pub p999_ns: u64,
    /// 99.99% are at most this.
    pub p9999_ns: u64,
    /// 99.999% are at most this.
    #[serde(default)]
    pub p99999_ns: u64,
    /// The most.
    pub max_ns: u64,
}

/// A kind of operation with its own histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A point read.
    Read,
    /// A put.
    Write,
    /// A delete.
    Delete,
    /// A whole scan.
    Scan,
}

/// Number of kinds.
pub const KINDS: usize = 4;

/// Maximum recorded latency, in nanoseconds; longer ones count as this.
pub(crate) const LONGEST_NS: u64 = 600_000_000_000;

/// An empty histogram: 1 ns to 10 minutes, three significant digits.
///
/// # Errors
/// [`LabError::System`] when the histogram library refuses the bounds.
pub(crate) fn histogram() -> Result<Histogram<u64>, LabError> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).map_err(|e| LabError::System(format!("cannot make a histogram: {e}")))
}

/// The quantiles of a histogram, `None` when it has no sample.
pub(crate) fn summary(histogram: &Histogram<u64>) -> Option<Latency> {
    (!histogram.is_empty()).then(|| Latency {
        samples: histogram.len(),
        mean_ns: histogram.mean(),
        min_ns: histogram.min(),
        p50_ns: histogram.value_at_quantile(0.5),
        p90_ns: histogram.value_at_quantile(0.9),
        p99_ns: histogram.value_at_quantile(0.99),
        p999_ns: histogram.value_at_quantile(0.999),
        p9999_ns: histogram.value_at_quantile(0.9999),
        p99999_ns: histogram.value_at_quantile(0.99999),
        max_ns: histogram.max(),
    })
}

/// One histogram for each kind of operation: 1 ns to 10 minutes, three significant digits.
#[derive(Debug, Clone)]
pub struct Histograms([Histogram<u64>; KINDS]);

impl Histograms {
    /// Creates empty histograms.
    ///
    /// # Errors
    /// [`LabError::System`] when the histogram library refuses the bounds.
    pub fn new() -> Result<Self, LabError> {
        let one = histogram()?;
        Ok(Self(std::array::from_fn(|_| one.clone())))
    }

    /// Writes to all of their memory, so that it is the process's from now on and not growth that looks like something
    /// else's.
    #[cfg(feature = "pool")]
    pub(crate) fn touch(&mut self) {
        for histogram in &mut self.0 {
            histogram.reset();
        }
    }

    #[inline]
    fn record(&mut self, kind: Kind, nanoseconds: u64) {
        self.0[kind as usize].saturating_record(nanoseconds);
    }

    /// Adds another thread's histograms.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            // Cannot fail: all histograms have the same bounds.
            let _ = mine.add(theirs);
        }
    }

    /// Returns the quantiles of one kind, `None` when it has no sample.
    pub fn summary(&self, kind: Kind) -> Option<Latency> {
        summary(&self.0[kind as usize])
    }
}

/// Which operations are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// None.
    Off,
    /// Every one.
    All,
    /// About this many per thread, spread evenly over the whole timed window.
    Evenly(usize),
}

/// Measures one thread's operations.
///
/// Where operations follow each other directly, the end of one is the start of the next: one reading of the clock for
/// each. Samples are put into the histograms by [`Recorder::flush`], outside of what is measured.
#[derive(Debug)]
pub struct Recorder {
    clock: Clock,
    histograms: Histograms,
    sampling: Sampling,
    /// The end of the last measured operation, if nothing came in between.
    last_end: Option<u64>,
    /// Measured and not yet in a histogram, in the clock's ticks.
    pending: Vec<(Kind, u64)>,
    /// Ticks and operations added to histograms since the last call.
    recent: (u64, u64),
    spread: Spread,
}

impl Recorder {
    /// Creates a recorder that has measured nothing.
    pub fn new(clock: Clock, histograms: Histograms, sampling: Sampling) -> Self {
        let wanted = if let Sampling::Evenly(wanted) = sampling {
            wanted
        } else {
            0
        };
        Self {
            clock,
            histograms,
            sampling,
            last_end: None,
            pending: Vec::with_capacity(64),
            recent: (0, 0),
            spread: Spread::new(wanted),
        }
    }

    /// Chooses which operations are measured from now on.
    pub fn set_sampling(&mut self, sampling: Sampling) {
        self.sampling = sampling;
        self.last_end = None;
    }

    /// Begins an operation, and returns the clock's reading if it is measured.
    #[inline]
    pub fn start(&mut self) -> Option<u64> {
        match self.sampling {
            Sampling::All => Some(self.last_end.take().unwrap_or_else(|| self.clock.raw())),
            Sampling::Evenly(_) if self.spread.takes() => Some(self.clock.raw()),
            _ => None,
        }
    }

    /// Ends an operation that began at `start`.
    #[inline]
    pub fn end(&mut self, kind: Kind, start: Option<u64>) {
        let Some(start) = start else { return };
        let end = self.clock.raw();
        match self.sampling {
            Sampling::All => {
                self.pending.push((kind, end.saturating_sub(start)));
                self.last_end = Some(end);
            }
            _ => self.spread.push(kind, end.saturating_sub(start)),
        }
    }

    /// Ends `count` operations of a kind that were one call, begun at `start`: each waited for all of it.
    #[inline]
    pub fn end_all(&mut self, kind: Kind, start: Option<u64>, count: usize) {
        let Some(begun) = start else { return };
        self.end(kind, start);
        if let (Sampling::All, Some(end)) = (self.sampling, self.last_end) {
            let same = (kind, end.saturating_sub(begun));
            self.pending.extend(std::iter::repeat_n(same, count.saturating_sub(1)));
        }
    }

    /// Breaks the chain: the next operation does not start where the last one ended.
    #[inline]
    pub fn interrupt(&mut self) {
        self.last_end = None;
    }

    /// Puts what was measured into the histograms.
    #[inline]
    pub fn flush(&mut self) {
        for &(kind, ticks) in &self.pending {
            self.histograms.record(kind, self.clock.delta_as_nanos(0, ticks));
            self.recent.0 += ticks;
        }
        self.recent.1 += self.pending.len() as u64;
        self.pending.clear();
        self.last_end = None;
    }

    /// The mean of what was flushed since the last call, in nanoseconds, with [`Sampling::All`]; `None` where there was
    /// nothing.
    pub(crate) fn take_mean_ns(&mut self) -> Option<f64> {
        let (ticks, operations) = std::mem::take(&mut self.recent);
        (operations > 0).then(|| self.clock.delta_as_nanos(0, ticks) as f64 / operations as f64)
    }

    /// Returns the histograms of all that was measured.
    pub fn finish(mut self) -> Histograms {
        self.flush();
        for &(kind, ticks) in &self.spread.samples {
            self.histograms.record(kind, self.clock.delta_as_nanos(0, ticks));
        }
        self.histograms
    }
}

/// Samples spread evenly over a window of unknown length: every `stride`-th operation, where the stride doubles, and
/// every second sample is dropped, each time twice the samples wanted are there.
#[derive(Debug)]
struct Spread {
    wanted: usize,
    stride: u64,
    /// Operations until the next sample.
    wait: u64,
    samples: Vec<(Kind, u64)>,
}

impl Spread {
    fn new(wanted: usize) -> Self {
        // Written once, so that its memory is the process's from the start and not growth that looks like the map's.
        let mut samples = vec![(Kind::Scan, u64::MAX); 2 * wanted];
        samples.clear();
        Self {
            wanted,
            stride: 1,
            wait: 0,
            samples,
        }
    }

    #[inline]
    fn takes(&mut self) -> bool {
        if self.wait > 0 {
            self.wait -= 1;
            return false;
        }
        self.wait = self.stride - 1;
        true
    }

    fn push(&mut self, kind: Kind, nanoseconds: u64) {
        self.samples.push((kind, nanoseconds));
        if self.samples.len() >= 2 * self.wanted {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            // The last sample was dropped and is `stride` operations back: the next one kept is `stride` ahead.
            self.stride *= 2;
            self.wait = self.stride / 2 - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_samples_are_evenly_apart_over_the_whole_run() {
        for operations in [10_u64, 100, 1000, 12_345, 1_000_000] {
            let mut spread = Spread::new(100);
            for operation in 0..operations {
                if spread.takes() {
                    spread.push(Kind::Read, operation);
                }
            }
            let times: Vec<_> = spread.samples.iter().map(|&(_, at)| at).collect();
            let count = times.len() as u64;
            assert!(
                count <= 200 && count >= operations.min(100),
                "{count} samples of {operations}"
            );
            assert!(
                times.windows(2).all(|pair| pair[1] - pair[0] == spread.stride),
                "{operations}: {times:?}"
            );
            assert!(
                operations - times[times.len() - 1] <= 2 * spread.stride,
                "{operations}: the end is covered"
            );
        }
    }

    #[test]
    fn quantiles_come_from_all_threads() {
        let mut all = Histograms::new().unwrap();
        for thread in 0..2_u64 {
            let mut one = Histograms::new().unwrap();
            for i in 1..=500 {
                one.record(Kind::Read, (thread * 500 + i) * 100);
            }
            all.add(&one);
        }
        let summary = all.summary(Kind::Read).unwrap();
        assert_eq!(summary.samples, 1000);
        for (quantile, expected) in [
            (summary.p50_ns, 50_000),
            (summary.p99_ns, 99_000),
            (summary.max_ns, 100_000),
        ] {
            assert!(
                quantile.abs_diff(expected) <= expected / 500,
                "{quantile} for {expected}"
            );
        }
        assert_eq!(all.summary(Kind::Scan), None);
    }

    #[test]
    fn sampling_decides_what_is_measured() {
        for (sampling, expected) in [
            (Sampling::Off, 0),
            (Sampling::All, 1000),
            (Sampling::Evenly(1000), 1000),
        ] {
            let mut recorder = Recorder::new(Clock::new(), Histograms::new().unwrap(), sampling);
            for _ in 0..1000 {
                let start = recorder.start();
                recorder.end(Kind::Write, start);
            }
            let samples = recorder
                .finish()
                .summary(Kind::Write)
                .map_or(0, |latency| latency.samples);
            assert_eq!(samples, expected, "{sampling:?}");
        }
    }
}
