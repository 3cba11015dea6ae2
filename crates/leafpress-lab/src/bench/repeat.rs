//! Repetitions: the median and the spread.

use serde::{Deserialize, Serialize};

use crate::core::statistics::median;

/// Median and range of a figure over the repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Half are at most this; the mean of the middle two of an even number.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Spread {
    /// Computes the spread of some figures; `None` without any.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let figures: Vec<_> = figures.into_iter().collect();
        Some(Self {
            least: figures.iter().copied().reduce(f64::min)?,
            most: figures.iter().copied().reduce(f64::max)?,
            median: median(figures)?,
        })
    }

    /// Returns the distance from the least to the most, in percent of the median.
    pub fn range_pct(&self) -> f64 {
        if self.median > 0.0 {
            (self.most - self.least) / self.median * 100.0
        } else {
            0.0
        }
    }
}

/// Returns the item whose figure is the median; of an even number, the lower of the middle two.
pub fn median_of<T>(items: &[T], figure: impl Fn(&T) -> f64) -> Option<&T> {
    let mut sorted: Vec<_> = items.iter().collect();
    sorted.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ranges() {
        assert_eq!(Spread::of([]), None);
        let odd = Spread::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!(
            (odd.median, odd.least, odd.most, odd.range_pct()),
            (2.0, 1.0, 3.0, 100.0)
        );
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(median_of(&[30, 10, 20], |n| f64::from(*n)), Some(&20));
        assert_eq!(median_of(&[40, 10, 20, 30], |n| f64::from(*n)), Some(&20));
        assert_eq!(median_of(&[0; 0], |n: &i32| f64::from(*n)), None);
    }
}
