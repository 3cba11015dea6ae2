use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::*;

const IDS: u64 = 1000;
const DRAWS: u64 = 1_000_000;

/// How often each id was drawn; id i is at i - 1.
fn draw(chooser: &IdChooser) -> Vec<u64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1729);
    let mut hits = vec![0; chooser.ids() as usize];
    for _ in 0..DRAWS {
        // Ids are 1 to n: 0 and n + 1 would fail here.
        hits[(chooser.draw(&mut rng) - 1) as usize] += 1;
    }
    hits
}

/// Pearson's test against a distribution given by the probability that an id is at most i. Ids are grouped until 1000
/// hits are expected. The statistic has mean k and deviation sqrt(2k); the seed is fixed, and five deviations do not
/// occur by chance.
fn assert_law(name: &str, hits: &[u64], cumulative: impl Fn(u64) -> f64) {
    let (mut statistic, mut groups, mut seen, mut from) = (0.0, 0.0, 0, 0);
    for (at, hit) in hits.iter().enumerate() {
        seen += hit;
        let id = at as u64 + 1;
        let expected = (cumulative(id) - cumulative(from)) * DRAWS as f64;
        if expected >= 1000.0 {
            statistic += (seen as f64 - expected).powi(2) / expected;
            groups += 1.0;
            (seen, from) = (0, id);
        }
    }
    assert!(groups >= 10.0, "{name}: {groups} groups test nothing");
    let limit = groups + 5.0 * (2.0_f64 * groups).sqrt();
    assert!(
        statistic < limit,
        "{name}: chi-square {statistic:.0} over {groups} groups, limit {limit:.0}"
    );
}

fn chooser(law: Law, skew: f64, n: u64) -> IdChooser {
    IdChooser::new(law.with(skew, 20.0, 80.0).unwrap(), n)
}

fn zeta(n: u64, theta: f64) -> f64 {
    (1..=n).map(|i| (i as f64).powf(-theta)).sum()
}

/// The probability that Gray et al.'s generator gives a rank of at most i: its closed form solved for u, after the two
/// ranks it treats apart.
fn gray(n: u64, theta: f64) -> impl Fn(u64) -> f64 {
    let zeta_n = zeta(n, theta);
    let eta = (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - zeta(2, theta) / zeta_n);
    move |i| match i {
        0 => 0.0,
        1 => 1.0 / zeta_n,
        2 => zeta(2, theta) / zeta_n,
        // They get the closed form's share of the first two ranks.
        i => ((((i as f64 / n as f64).powf(1.0 - theta)) - 1.0) / eta + 1.0).max(zeta(2, theta) / zeta_n),
    }
}

#[test]
fn uniform() {
    assert_law("uniform", &draw(&chooser(Law::Uniform, 0.2, IDS)), |i| {
        i as f64 / IDS as f64
    });
}

/// P(id <= i) is (i / n)^(ln(1 - s) / ln s).
#[test]
fn self_similar() {
    for skew in [0.1, 0.2, 0.5] {
        let power = (1.0_f64 - skew).ln() / skew.ln();
        let cumulative = |i: u64| (i as f64 / IDS as f64).powf(power);
        let hits = draw(&chooser(Law::SelfSimilar, skew, IDS));
        assert_law(&format!("self-similar {skew}"), &hits, cumulative);
        let hot: u64 = hits[..(IDS as f64 * skew) as usize].iter().sum();
        let share = hot as f64 / DRAWS as f64;
        assert!((share - (1.0 - skew)).abs() < 0.005, "the first {skew} take {share}");
    }
}

#[test]
fn zipfian_is_grays_generator_and_near_the_law() {
    for theta in [0.0, 0.2, 0.5, 0.9, 0.99] {
        let hits = draw(&chooser(Law::Zipfian, theta, IDS));
        assert_law(&format!("zipfian {theta}"), &hits, gray(IDS, theta));
        for i in [1, 2, 10, 100, IDS] {
            let seen = hits[..i as usize].iter().sum::<u64>() as f64 / DRAWS as f64;
            let law = zeta(i, theta) / zeta(IDS, theta);
            assert!(
                (seen - law).abs() < 0.03,
                "zipfian {theta}: {seen} of the first {i}, the law says {law}"
            );
        }
    }
}

/// The newest id is the hottest.
#[test]
fn latest_is_zipfian_from_the_end() {
    let mut hits = draw(&chooser(Law::Latest, 0.99, IDS));
    hits.reverse();
    assert_law("latest", &hits, gray(IDS, 0.99));
}

#[test]
fn hot_set() {
    let cumulative = |i: u64| {
        let hot = IDS / 5;
        if i <= hot {
            0.8 * i as f64 / hot as f64
        } else {
            0.8 + 0.2 * (i - hot) as f64 / (IDS - hot) as f64
        }
    };
    assert_law("hot set", &draw(&chooser(Law::HotSet, 0.0, IDS)), cumulative);
}

/// A chooser that grew draws like one created at that size.
#[test]
fn growing_changes_nothing_but_the_number() {
    for (law, skew) in [
        (Law::Uniform, 0.2),
        (Law::SelfSimilar, 0.2),
        (Law::Zipfian, 0.99),
        (Law::Latest, 0.5),
        (Law::HotSet, 0.0),
    ] {
        let whole = chooser(law, skew, IDS);
        let mut grown = chooser(law, skew, 0);
        for n in [1, 2, 3, 10, 500, 400, IDS] {
            grown.grow(n);
        }
        assert_eq!(grown.ids(), IDS);
        assert_eq!(draw(&grown), draw(&whole), "{law:?}");
    }
}

#[test]
fn few_ids_are_all_drawn() {
    for law in [Law::Uniform, Law::SelfSimilar, Law::Zipfian, Law::Latest, Law::HotSet] {
        for n in [1, 2, 3] {
            let hits = draw(&chooser(law, 0.3, n));
            assert!(hits.iter().all(|hit| *hit > 0), "{law:?} of {n}: {hits:?}");
        }
    }
}

#[test]
fn names_are_pibenchs_in_any_case() {
    assert_eq!(Law::named("zipfian").unwrap(), Law::Zipfian);
    assert_eq!(Law::named("SelfSimilar").unwrap(), Law::SelfSimilar);
    let message = Law::named("normal").unwrap_err().to_string();
    assert!(message.contains("normal") && message.contains("ZIPFIAN"), "{message}");
}
