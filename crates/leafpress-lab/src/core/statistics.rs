//! Figures of several figures.

/// The figure in the middle; between the two in the middle when their number is even. `None` of none.
#[cfg(any(feature = "peers", feature = "suite"))]
pub(crate) fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => None,
        len if len.is_multiple_of(2) => Some(f64::midpoint(figures[middle - 1], figures[middle])),
        _ => Some(figures[middle]),
    }
}

/// The figure in the middle; the greater of the two in the middle when their number is even. `None` of none.
#[cfg(feature = "device")]
pub(crate) fn upper_median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

#[cfg(all(test, feature = "peers"))]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0, 4.0]), Some(3.0));
    }
}
