//! The results of a compression compared with the baseline.

use serde::Serialize;

use super::Access;
use super::ladder::Ladder;
use crate::{Compression, Outcome};

/// The baseline and a compression, directly one after the other.
#[derive(Debug, Clone, Serialize)]
pub struct Pair {
    /// The baseline's results.
    pub baseline: Outcome,
    /// The compression's results.
    pub other: Outcome,
}

/// A compression in one access pattern.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// The compression.
    pub compression: Compression,
    /// The access pattern.
    pub access: Access,
    /// Its databases' SST bytes as loaded.
    pub loaded_bytes: u64,
    /// The baseline's.
    pub baseline_bytes: u64,
    /// Pairs with the baseline; of the baseline itself there are none.
    pub pairs: Vec<Pair>,
    /// Throughput over threads, where it was looked for.
    pub ladder: Option<Ladder>,
}

/// Returns the median; `None` of nothing. Of an even number the mean of the two in the middle.
pub fn median(figures: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut figures: Vec<f64> = figures.into_iter().filter(|figure| figure.is_finite()).collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => None,
        even if even % 2 == 0 => Some(f64::midpoint(figures[middle - 1], figures[middle])),
        _ => Some(figures[middle]),
    }
}

impl Cell {
    /// Returns the median over the pairs of a figure's ratio to the baseline's.
    pub fn ratio(&self, of: impl Fn(&Outcome) -> Option<f64>) -> Option<f64> {
        median(self.pairs.iter().filter_map(|pair| {
            let baseline = of(&pair.baseline).filter(|figure| *figure > 0.0)?;
            Some(of(&pair.other)? / baseline)
        }))
    }

    /// Returns the median of a figure of the compression.
    pub fn figure(&self, of: impl Fn(&Outcome) -> Option<f64>) -> Option<f64> {
        median(self.pairs.iter().filter_map(|pair| of(&pair.other)))
    }

    /// Change of throughput in percent.
    pub fn throughput_change_pct(&self) -> Option<f64> {
        self.ratio(|outcome| Some(outcome.throughput())).map(change)
    }

    /// Returns the range of the change of throughput over the pairs, in percent.
    pub fn throughput_range_pct(&self) -> Option<(f64, f64)> {
        let ratios = || {
            self.pairs
                .iter()
                .map(|pair| change(pair.other.throughput() / pair.baseline.throughput()))
                .filter(|ratio| ratio.is_finite())
        };
        Some((ratios().reduce(f64::min)?, ratios().reduce(f64::max)?))
    }

    /// Change of the 99th percentile of get latency in percent.
    pub fn p99_change_pct(&self) -> Option<f64> {
        self.ratio(Outcome::p99_us).map(change)
    }

    /// Change of the CPU time of an operation in percent.
    pub fn cpu_change_pct(&self) -> Option<f64> {
        self.ratio(|outcome| Some(outcome.cpu_us())).map(change)
    }

    /// Returns the change of the size of the data in percent, as loaded: after writes, a faster run has more files that
    /// wait for compaction.
    pub fn size_change_pct(&self) -> Option<f64> {
        (self.baseline_bytes > 0).then(|| change(self.loaded_bytes as f64 / self.baseline_bytes as f64))
    }

    /// Share of CPU saved at the baseline's throughput, in percent; below 0 more is needed.
    pub fn cpu_saved_pct(&self) -> Option<f64> {
        self.ladder.as_ref()?.cpu_saved().map(|saved| saved * 100.0)
    }
}

fn change(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_the_median_of_ratios_within_pairs() {
        let outcome = |operations, seconds| Outcome {
            operations,
            seconds,
            ..Outcome::default()
        };
        let pair = |baseline, other| Pair {
            baseline: outcome(baseline, 1.0),
            other: outcome(other, 1.0),
        };
        let cell = Cell {
            compression: Compression::NONE,
            access: Access::ReadOnly,
            loaded_bytes: 300,
            baseline_bytes: 200,
            // The machine was half as fast in the second round and disturbed in the third.
            pairs: vec![pair(100, 140), pair(50, 70), pair(100, 20)],
            ladder: None,
        };
        assert!((cell.throughput_change_pct().unwrap() - 40.0).abs() < 1e-9);
        assert!((cell.size_change_pct().unwrap() - 50.0).abs() < 1e-9);
        assert_eq!(cell.p99_change_pct(), None);
        assert_eq!(median([]), None);
        assert_eq!(median([4.0, 1.0]), Some(2.5));
    }
}
