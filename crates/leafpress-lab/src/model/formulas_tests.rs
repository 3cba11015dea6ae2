use super::*;

#[track_caller]
fn assert_near(one: f64, other: f64, by: f64) {
    assert!((one - other).abs() <= by, "{one} is not {other}");
}

#[test]
fn harmonic_numbers_are_sums() {
    for theta in [0.2, 0.5, 0.99, 1.0, 1.4] {
        for ranks in [1_u32, 2, 31, 32, 33, 1000, 100_000] {
            let sum: f64 = (1..=ranks).map(|rank| f64::from(rank).powf(-theta)).sum();
            assert_near(harmonic(f64::from(ranks), theta), sum, sum * 2e-8);
        }
        assert_eq!(harmonic(0.0, theta), 0.0);
        assert_near(harmonic(0.5, theta), 0.5, 1e-12);
    }
}

#[test]
fn tiers_hold_all_pages_and_all_accesses() {
    for law in [
        Distribution::Uniform,
        Distribution::HotSet {
            keys_pct: 20.0,
            operations_pct: 80.0,
        },
        Distribution::HotSet {
            keys_pct: 60.0,
            operations_pct: 20.0,
        },
        Distribution::Zipfian { theta: 0.99 },
        Distribution::SelfSimilar { h: 0.2 },
    ] {
        for pages in [100.0, 12_345.6, 6e7] {
            let tiers = tiers(law, pages);
            assert_near(tiers.iter().map(|tier| tier.pages).sum(), pages, pages * 1e-9);
            assert_near(tiers.iter().map(|tier| tier.pages * tier.rate).sum(), 1.0, 1e-9);
            let falling = tiers.windows(2).all(|pair| pair[0].rate >= pair[1].rate * (1.0 - 1e-9));
            assert!(falling, "{law} over {pages}: the hottest is not first");
            for fits in [0.0, 0.1, 0.2, 0.5, 1.0] {
                let (of_tiers, of_law) = (mass_of_tiers(&tiers, fits * pages), mass_of_hottest(law, pages, fits));
                assert_near(of_tiers, of_law, 0.01);
            }
        }
    }
}

#[test]
fn the_rule_of_80_and_20_comes_out() {
    let law = Distribution::HotSet {
        keys_pct: 20.0,
        operations_pct: 80.0,
    };
    for (fits, hits) in [(0.0, 0.0), (0.075, 0.3), (0.2, 0.8), (0.22275, 0.805_687_5), (1.0, 1.0)] {
        assert_near(mass_of_hottest(law, 1e6, fits), hits, 1e-12);
    }
    assert_near(
        mass_of_hottest(Distribution::SelfSimilar { h: 0.2 }, 1e6, 0.2),
        0.8,
        1e-12,
    );
}

#[test]
fn a_device_bounds_pages_by_its_reads() {
    assert_near(pages_per_second(100.0, 4.0, 0.5, None), 40_000.0, 1e-6);
    assert_near(pages_per_second(100.0, 4.0, 0.5, Some(8_000.0)), 16_000.0, 1e-6);
    assert_near(pages_per_second(100.0, 4.0, 1.0, Some(8_000.0)), 40_000.0, 1e-6);
    assert_eq!(pages_per_second(0.0, 1.0, 1.0, None), f64::INFINITY);
}

#[test]
fn bisection_finds_rising_and_falling_zeros() {
    assert_near(bisect(|x| x - 0.3, 0.0, 1.0), 0.3, 1e-9);
    assert_near(bisect(|x| 0.3 - x, 0.0, 1.0), 0.3, 1e-9);
}
