use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::super::zipf::zeta_between;
use super::*;

const KEYS: u64 = 1000;
const DRAWS: u64 = 1_000_000;

/// How often each rank was read; rank r is the key that `scatter` puts at r's place.
fn draw(distribution: &str) -> Vec<u64> {
    let distribution: Distribution = distribution.parse().unwrap();
    let chooser = Chooser::new(distribution, KEYS, 3);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut hits = vec![0; KEYS as usize];
    for _ in 0..DRAWS {
        hits[chooser.read(&mut rng) as usize] += 1;
    }
    let key = |rank| match &chooser.order {
        Order::Scattered { scatter, .. } => scatter.apply(rank),
        Order::Plain | Order::Latest { .. } => rank,
    };
    (0..KEYS).map(|rank| hits[key(rank) as usize]).collect()
}

/// Pearson's statistic over groups of ranks that are each expected to be hit at least 1000 times, and the number of
/// groups.
fn chi_square(hits: &[u64], probability: impl Fn(usize) -> f64) -> (f64, usize) {
    let (mut statistic, mut groups) = (0.0, 0);
    let (mut expected, mut seen) = (0.0, 0.0);
    for (rank, &hit) in hits.iter().enumerate() {
        expected += probability(rank) * DRAWS as f64;
        seen += hit as f64;
        if expected >= 1000.0 {
            statistic += (seen - expected).powi(2) / expected;
            groups += 1;
            (expected, seen) = (0.0, 0.0);
        }
    }
    (statistic, groups)
}

/// The mean of chi-square is its degrees of freedom k, its deviation sqrt(2k): six deviations are never met by chance.
fn assert_law(name: &str, probability: impl Fn(usize) -> f64) {
    let (statistic, groups) = chi_square(&draw(name), probability);
    let limit = groups as f64 + 6.0 * (2.0 * groups as f64).sqrt();
    assert!(
        statistic < limit,
        "{name}: chi-square {statistic:.0} over {groups} groups, limit {limit:.0}"
    );
}

#[test]
fn uniform_is_flat() {
    assert_law("uniform", |_| 1.0 / KEYS as f64);
}

#[test]
fn hot_set_takes_its_share_evenly() {
    assert_law(
        "hotset:10:90",
        |rank| if rank < 100 { 0.9 / 100.0 } else { 0.1 / 900.0 },
    );
}

#[test]
fn self_similar_follows_its_power() {
    let cumulative = |rank: usize| (rank as f64 / KEYS as f64).powf((1.0_f64 - 0.2).ln() / 0.2_f64.ln());
    assert!((cumulative(200) - 0.8).abs() < 1e-9);
    assert_law("self-similar", |rank| cumulative(rank + 1) - cumulative(rank));
}

/// Gray's closed form is approximate past the second rank, so its tail is compared by shares, not by chi-square.
#[test]
fn zipfian_approaches_its_law() {
    for (name, theta) in [("zipfian", 0.99), ("zipfian:0.5", 0.5)] {
        let hits = draw(name);
        let all = zeta(KEYS, theta);
        for ranks in [1, 2, 10, 100, 500, KEYS] {
            let seen = hits[..ranks as usize].iter().sum::<u64>() as f64 / DRAWS as f64;
            let expected = zeta(ranks, theta) / all;
            assert!(
                (seen - expected).abs() < 0.03,
                "{name}: {ranks} ranks take {seen:.3}, not {expected:.3}"
            );
        }
        let first = hits[0] as f64 / DRAWS as f64 * all;
        assert!(
            (first - 1.0).abs() < 0.02,
            "{name}: the first rank is exact, {first:.3}"
        );
    }
}

/// Rejection-inversion is exact.
#[test]
fn zipfian_has_its_law_from_a_theta_of_one_on() {
    for theta in [1.0, 1.0 + 1e-9, 1.2, 2.0, 5.0] {
        let all = zeta(KEYS, theta);
        assert_law(&format!("zipfian:{theta}"), |rank| {
            ((rank + 1) as f64).powf(-theta) / all
        });
    }
    // So steep a distribution puts everything on one key.
    assert_eq!(draw("zipfian:1000")[0], DRAWS);
}

fn zeta(n: u64, theta: f64) -> f64 {
    zeta_between(0, n, theta)
}

#[test]
fn zeta_tail_agrees_with_the_sum() {
    let n = 3_000_000;
    for theta in [0.2, 0.5, 0.99, 1.0, 1.3] {
        let exact: f64 = (1..=n).map(|i| (i as f64).powf(-theta)).sum();
        assert!((zeta(n, theta) / exact - 1.0).abs() < 1e-11);
    }
}

#[test]
fn latest_reads_near_what_was_written() {
    let chooser = Chooser::new("latest".parse().unwrap(), KEYS, 3);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let near = |newest: u64, rng: &mut _| {
        (0..10_000)
            .filter(|_| (newest + KEYS - chooser.read(rng)) % KEYS < 100)
            .count()
    };
    assert!(
        near(KEYS - 1, &mut rng) > 6_000,
        "after loading, the last key is the newest"
    );
    for expected in 0..500 {
        assert_eq!(
            chooser.clone().write(&mut rng),
            expected,
            "writes go round in order, over all clones"
        );
    }
    assert!(near(499, &mut rng) > 6_000);
}

#[test]
fn one_key_is_always_chosen() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    for name in [
        "uniform",
        "zipfian",
        "zipfian:1",
        "zipfian:1.5",
        "self-similar",
        "latest",
        "hotset",
    ] {
        let chooser = Chooser::new(name.parse().unwrap(), 1, 1);
        for _ in 0..100 {
            assert_eq!(chooser.read(&mut rng), 0, "{name}");
            assert_eq!(chooser.write(&mut rng), 0, "{name}");
        }
    }
}

#[test]
fn names_round_trip_and_bad_ones_are_reported() {
    for name in [
        "uniform",
        "zipfian:0.5",
        "zipfian:1",
        "self-similar:0.1",
        "latest:1.4",
        "hotset:10:90",
    ] {
        assert_eq!(name.parse::<Distribution>().unwrap().to_string(), name);
    }
    for (name, law) in [
        ("even", "uniform"),
        ("ZIPFIAN", "zipfian:0.99"),
        ("zipf:0.5", "zipfian:0.5"),
        ("SELFSIMILAR", "self-similar:0.2"),
        ("10, 90", "hotset:10:90"),
    ] {
        assert_eq!(name.parse::<Distribution>().unwrap().to_string(), law);
    }
    for name in [
        "zip",
        "20,80,1",
        "0,80",
        "zipfian:0",
        "zipfian:inf",
        "zipfian:x",
        "self-similar:0.5",
        "hotset:10",
        "hotset:0:10",
        "latest:-1",
        "zipfian:NaN",
    ] {
        let message = name.parse::<Distribution>().unwrap_err().to_string();
        assert!(
            message.starts_with("distribution: ") && !message.contains('\n'),
            "{message}"
        );
    }
}
