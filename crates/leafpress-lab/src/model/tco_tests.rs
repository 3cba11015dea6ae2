use super::super::fixtures::published;
use super::*;

#[track_caller]
fn assert_near(one: f64, other: f64, by: f64) {
    assert!((one - other).abs() <= by, "{one} is not {other}");
}

/// White paper: 47% to 67% of cores saved, the same saving of compute cost, 9% to 15% of the total.
#[test]
fn the_white_papers_pairs_come_out_of_the_shares_they_imply() {
    for (cores, total) in [(0.47, 0.09), (0.67, 0.15)] {
        let share = total / cores;
        assert_near(total_saved(share, cores), total, 1e-12);
        assert!((0.19..0.225).contains(&share), "{share}");
    }
    assert_near(COMPUTE_SHARE, 0.2077, 5e-5);
    // Between the two: neither is met, both are near.
    assert_near(total_saved(COMPUTE_SHARE, 0.47), 0.09, 0.01);
    assert_near(total_saved(COMPUTE_SHARE, 0.67), 0.15, 0.012);
}

#[test]
fn no_one_share_of_compute_gives_both_of_its_figures() {
    let gives = |share: f64, cores: f64, total: f64| (total_saved(share, cores) * 100.0).round() == total;
    let shares = (0..=10_000).map(|share| f64::from(share) / 10_000.0);
    assert!(
        !shares
            .into_iter()
            .any(|share| gives(share, 0.47, 9.0) && gives(share, 0.67, 15.0))
    );
}

#[test]
fn cores_saved_and_service_gained_are_equivalent() {
    assert_near(cores_saved(100.0, 33.0), 0.67, 1e-12);
    assert_near(cores_saved(100.0, 150.0), -0.5, 1e-12);
    assert_eq!(cores_saved(0.0, 1.0), 0.0);
    assert_near(more_service(0.5), 1.0, 1e-12);
    assert_near(more_service(0.67), 2.03, 0.001);
}

#[test]
fn savings_follow_the_best_share() {
    let outcome = published();
    let prices = Prices {
        cores: Some(64.0),
        core_cost: Some(100.0),
        memory_gib_cost: Some(10.0),
        compute_share: 0.2,
        ..Prices::default()
    };
    let savings = savings(&outcome, &prices).unwrap();
    let zstd = &savings[1];
    let saved = 1.0 - 31.791 / 77.0;
    assert_near(zstd.worth.cores_saved, saved, 1e-4);
    assert_near(zstd.worth.total_saved, 0.2 * saved, 1e-4);
    assert_near(zstd.worth.cores.unwrap(), 64.0 * saved, 0.01);
    assert_near(zstd.worth.compute_cost.unwrap(), 6400.0 * saved, 1.0);
    assert_near(zstd.worth.total_cost.unwrap(), 6400.0 / 0.2 * 0.2 * saved, 1.0);
    // 31.791 us without compression is 71.1% of hits, for which 17.775% of the data has to fit.
    let hits: f64 = 1.0 - zstd_us() / 110.0;
    let needed = (hits / 0.8 * 0.2 * 200.0 - 15.0) * GIB;
    assert_near(zstd.memory_bytes.unwrap() / GIB, needed / GIB, 0.01);
    assert_near(zstd.memory_cost.unwrap(), needed / GIB * 10.0, 0.1);
}

fn zstd_us() -> f64 {
    published().codecs[1].best.us_per_page
}

#[test]
fn measured_cores_take_the_models_place() {
    let prices = Prices {
        cores_saved: Some(0.67),
        compute_share: 0.15 / 0.67,
        total_cost: Some(1e6),
        ..Prices::default()
    };
    for saved in savings(&published(), &prices).unwrap() {
        assert_near(saved.worth.total_cost.unwrap(), 150_000.0, 1e-6);
        assert_eq!(saved.worth.cores, None);
    }
}

#[test]
fn reports_invalid_prices() {
    let good = Prices::default();
    for (option, prices) in [
        (
            "compute-share-pct",
            Prices {
                compute_share: 0.0,
                ..good
            },
        ),
        (
            "total-cost",
            Prices {
                total_cost: Some(-1.0),
                ..good
            },
        ),
        (
            "cores-saved-pct",
            Prices {
                cores_saved: Some(1.0),
                ..good
            },
        ),
        (
            "core-cost",
            Prices {
                core_cost: Some(5.0),
                ..good
            },
        ),
        (
            "cores",
            Prices {
                cores: Some(5.0),
                ..good
            },
        ),
        (
            "total-cost",
            Prices {
                cores: Some(5.0),
                core_cost: Some(5.0),
                total_cost: Some(24.0),
                ..good
            },
        ),
    ] {
        let message = prices.validate().unwrap_err().to_string();
        assert!(message.starts_with(&format!("{option}: ")), "{message}");
    }
    let both = Prices {
        cores: Some(5.0),
        core_cost: Some(5.0),
        total_cost: Some(100.0),
        ..good
    };
    assert_eq!(both.share(), 0.25);
}
