//! The number of threads, and the CPU time, that a compression needs for the baseline's throughput: the white paper's
//! figure 6.

use serde::Serialize;

/// A number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rung {
    /// Threads of each instance.
    pub threads: usize,
    /// Throughput over the baseline's with all of its threads; the median of pairs.
    pub throughput: f64,
    /// Cores in use over those of the baseline with all of its threads; the median of pairs.
    pub cores: f64,
}

/// Threads raised until the throughput is the baseline's, or there are no more.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Ladder {
    /// The steps, by ascending threads.
    pub rungs: Vec<Rung>,
}

/// Numbers of threads below all of them that are tried: every one, then every second, every fourth..
pub(super) fn rungs(all: usize) -> Vec<usize> {
    let mut rungs = Vec::new();
    let (mut threads, mut step) = (1, 1);
    while threads < all {
        rungs.push(threads);
        if threads >= 4 * step {
            step *= 2;
        }
        threads += step;
    }
    rungs
}

impl Ladder {
    /// Returns whether the baseline's throughput is reached.
    pub fn reaches(&self) -> bool {
        self.rungs.last().is_some_and(|rung| rung.throughput >= 1.0)
    }

    /// Returns the share of the baseline's CPU that is saved at its throughput, interpolated between the two numbers of
    /// threads whose throughput encloses it. If it is not reached, extrapolates from the last number of threads: below
    /// 0.
    pub fn cpu_saved(&self) -> Option<f64> {
        let (mut below, mut last) = ((0.0, 0.0), None);
        for rung in &self.rungs {
            let here = (rung.throughput, rung.cores);
            if here.0 >= 1.0 {
                let part = (1.0 - below.0) / (here.0 - below.0);
                return Some(1.0 - (below.1 + part * (here.1 - below.1)));
            }
            below = here;
            last = Some(here);
        }
        let (throughput, cores) = last?;
        (throughput > 0.0).then(|| 1.0 - cores / throughput)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(rungs: &[(usize, f64, f64)]) -> Ladder {
        Ladder {
            rungs: rungs
                .iter()
                .map(|&(threads, throughput, cores)| Rung {
                    threads,
                    throughput,
                    cores,
                })
                .collect(),
        }
    }

    #[test]
    fn cpu_is_interpolated_at_the_baselines_throughput() {
        // The paper's figure 6 in kind: a third of the cores do.
        let saved = ladder(&[(1, 0.6, 0.25), (2, 1.2, 0.5)]).cpu_saved().unwrap();
        assert!((saved - (1.0 - 0.25 - 0.25 * 0.4 / 0.6)).abs() < 1e-9, "{saved}");
        let one = ladder(&[(1, 1.25, 0.5)]);
        assert!(one.reaches() && (one.cpu_saved().unwrap() - 0.6).abs() < 1e-9);
        let slower = ladder(&[(1, 0.4, 0.5), (2, 0.8, 1.0)]);
        assert!(!slower.reaches() && (slower.cpu_saved().unwrap() + 0.25).abs() < 1e-9);
        assert_eq!(ladder(&[]).cpu_saved(), None);
    }

    #[test]
    fn threads_are_raised_ever_faster() {
        assert_eq!(rungs(1), Vec::<usize>::new());
        assert_eq!(rungs(2), [1]);
        assert_eq!(rungs(25), [1, 2, 3, 4, 6, 8, 12, 16, 24]);
    }
}
