use super::super::fixtures::random;
use super::*;
use crate::core::keys::Distribution;
use crate::model::formulas::mass_of_hottest;

/// Hits of an LRU cache, played through.
fn played(trace: &[u64], room: usize) -> f64 {
    let (mut cached, mut hits) = (Vec::new(), 0);
    for page in trace {
        if let Some(at) = cached.iter().position(|other| other == page) {
            cached.remove(at);
            hits += 1;
        } else if cached.len() == room {
            cached.pop();
        }
        if room > 0 {
            cached.insert(0, *page);
        }
    }
    hits as f64 / trace.len() as f64
}

fn curve(trace: &[u64], rate: f64) -> ReuseCurve {
    let mut reuse = Reuse::new(rate);
    for page in trace {
        reuse.access(*page);
    }
    assert_eq!(reuse.accesses(), trace.len() as u64);
    reuse.curve()
}

/// Squares of evenly drawn numbers: low pages are hot.
fn skewed(accesses: usize, pages: u64) -> Vec<u64> {
    let mut state = 3;
    let draw = |_| {
        let at = random(&mut state, 1 << 20) as f64 / (1 << 20) as f64;
        (at * at * at * pages as f64) as u64
    };
    (0..accesses).map(draw).collect()
}

#[test]
fn hit_ratios_are_those_of_a_cache_that_is_played_through() {
    // More accesses than there are times at first, so that marks are moved together.
    let trace = skewed(20_000, 300);
    let curve = curve(&trace, 1.0);
    for room in [1, 2, 3, 10, 50, 100, 250, 300, 1000] {
        let exact = played(&trace, room);
        assert!(
            (curve.hit_ratio(room as f64) - exact).abs() < 1e-12,
            "{room} pages: {} is not {exact}",
            curve.hit_ratio(room as f64)
        );
    }
    assert_eq!(curve.hit_ratio(0.0), 0.0);
    assert_eq!(curve.hit_ratio(0.999), 0.0);
}

#[test]
fn a_loop_hits_nothing_until_all_of_it_fits() {
    let trace: Vec<u64> = (0..50_000).map(|access| access % 5_000).collect();
    let curve = curve(&trace, 1.0);
    assert_eq!(curve.hit_ratio(4999.0), 0.0);
    assert!((curve.hit_ratio(5000.0) - 0.9).abs() < 1e-12);
}

#[test]
fn distinguishes_pages_of_any_number() {
    let trace = [0, u64::MAX, 1 << 63, 0, u64::MAX, 0, 0];
    let curve = curve(&trace, 1.0);
    assert_eq!(curve.hit_ratio(1.0), 1.0 / 7.0);
    assert_eq!(curve.hit_ratio(2.0), 2.0 / 7.0);
    assert_eq!(curve.hit_ratio(3.0), 4.0 / 7.0);
}

#[test]
fn a_sample_is_near_the_whole() {
    let trace = skewed(400_000, 20_000);
    let (exact, sampled) = (curve(&trace, 1.0), curve(&trace, 0.1));
    for room in [500.0, 2_000.0, 5_000.0, 15_000.0] {
        let (exact, sampled) = (exact.hit_ratio(room), sampled.hit_ratio(room));
        assert!((exact - sampled).abs() < 0.03, "{room} pages: {sampled} is not {exact}");
    }
}

#[test]
fn a_uniform_trace_has_the_hits_of_the_formula() {
    let mut state = 5;
    let trace: Vec<u64> = (0..400_000).map(|_| random(&mut state, 2_000)).collect();
    let curve = curve(&trace, 1.0);
    for fits in [0.1, 0.5, 0.9] {
        let formula = mass_of_hottest(Distribution::Uniform, 2e3, fits);
        assert!((curve.hit_ratio(fits * 2e3) - formula).abs() < 0.01);
    }
}
