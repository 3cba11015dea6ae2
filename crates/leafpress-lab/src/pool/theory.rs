//! The hit ratio a pool should have, by the formulas of Harper, "Viability of Time-Memory Trade-Offs in Large Data
//! Sets" (2018), chapter 4: how much of the data fits, and how many accesses go to that part.

use crate::core::keys::Distribution;
use crate::model::mass_of_hottest;
pub use crate::model::share_that_fits;

/// Computes the hit ratio, 0 to 1, when the hottest share `fits` of the pages is in the pool; `None` for a distribution
/// without a closed form.
///
/// See [`mass_of_hottest`]. A pool that cannot know which pages are hot stays below it where pages differ.
pub fn hit_ratio(law: Distribution, fits: f64) -> Option<f64> {
    match law {
        Distribution::Uniform | Distribution::HotSet { .. } | Distribution::SelfSimilar { .. } => {
            // These distributions depend on shares of the pages, not on their number.
            Some(mass_of_hottest(law, 1.0, fits))
        }
        Distribution::Zipfian { .. } | Distribution::Latest { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARETO: Distribution = Distribution::HotSet {
        keys_pct: 20.0,
        operations_pct: 80.0,
    };

    #[track_caller]
    fn assert_percent(ratio: Option<f64>, percent: f64) {
        let ratio = ratio.unwrap() * 100.0;
        assert!((ratio - percent).abs() < 0.06, "{ratio} is not {percent}");
    }

    /// The thesis's figures 10a and 10b: 15 GB of memory, 200 and 500 GB of data, lz4 (2.13) and zstd (2.97), all
    /// compressed or none.
    #[test]
    fn the_theses_figures_come_out() {
        for (data, ratio, even, pareto) in [
            (200.0, 1.0, 7.5, 30.0),
            (200.0, 2.13, 16.0, 63.9),
            (200.0, 2.97, 22.3, 80.6),
            (500.0, 1.0, 3.0, 12.0),
            (500.0, 2.13, 6.4, 25.6),
            (500.0, 2.97, 8.9, 35.6),
        ] {
            let fits = share_that_fits(15.0, 1.0, ratio, data);
            assert_percent(hit_ratio(Distribution::Uniform, fits), even);
            assert_percent(hit_ratio(PARETO, fits), pareto);
        }
    }

    #[test]
    fn raw_and_compressed_shares_add_up() {
        // Half of the memory at twice the density: one and a half times as much.
        assert_eq!(share_that_fits(10.0, 0.5, 2.0, 100.0), 0.15);
        assert_eq!(share_that_fits(10.0, 0.0, 2.0, 100.0), 0.1);
        assert_eq!(
            share_that_fits(200.0, 0.0, 2.0, 100.0),
            1.0,
            "more than everything does not fit"
        );
        assert_eq!(share_that_fits(10.0, 0.0, 2.0, 0.0), 1.0);
    }

    #[test]
    fn everything_is_hit_when_everything_fits_and_nothing_when_nothing_does() {
        let cold = Distribution::HotSet {
            keys_pct: 60.0,
            operations_pct: 20.0,
        };
        for law in [
            Distribution::Uniform,
            PARETO,
            cold,
            Distribution::SelfSimilar { h: 0.2 },
        ] {
            assert_eq!(hit_ratio(law, 0.0), Some(0.0), "{law}");
            assert!((hit_ratio(law, 1.0).unwrap() - 1.0).abs() < 1e-12, "{law}");
        }
        assert_percent(hit_ratio(cold, 0.4), 80.0);
        assert_percent(hit_ratio(Distribution::SelfSimilar { h: 0.2 }, 0.2), 80.0);
        assert_eq!(hit_ratio(Distribution::Zipfian { theta: 0.99 }, 0.5), None);
    }
}
