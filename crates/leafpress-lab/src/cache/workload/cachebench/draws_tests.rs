use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::*;

const DRAWS: u32 = 400_000;

fn rng() -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(7)
}

/// Pearson's statistic of what was counted against the shares that it should have, over its degrees of freedom: about
/// 1.
fn statistic(counts: &[u32], shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let all: u32 = counts.iter().sum();
    let terms = counts.iter().zip(shares).filter(|(_, share)| **share > 0.0);
    let terms: Vec<f64> = terms
        .map(|(count, share)| {
            let expected = f64::from(all) * share / sum;
            (f64::from(*count) - expected).powi(2) / expected
        })
        .collect();
    terms.iter().sum::<f64>() / (terms.len() as f64 - 1.0)
}

#[test]
fn places_are_drawn_by_their_weights() {
    let skewed: Vec<f64> = (1..=200).map(|rank| 1e6 / f64::from(rank).powf(0.9)).collect();
    for weights in [vec![1.0, 1.0], vec![5.0, 0.0, 1.0, 94.0], skewed] {
        let alias = Alias::new(&weights).unwrap();
        let (mut rng, mut counts) = (rng(), vec![0; weights.len()]);
        for _ in 0..DRAWS {
            counts[alias.draw(rng.next_u64())] += 1;
        }
        let statistic = statistic(&counts, &weights);
        // Fifteen standard deviations for the smallest, five for the largest.
        assert!(
            statistic < 11.0 && (weights.len() < 100 || statistic < 1.5),
            "{statistic}: {weights:?}"
        );
        for (count, weight) in counts.iter().zip(&weights) {
            assert!(*weight > 0.0 || *count == 0, "{weights:?}");
        }
    }
    assert_eq!(Alias::new(&[3.0]).unwrap().draw(u64::MAX), 0);
    for weights in [&[][..], &[0.0, 0.0], &[1.0, -1.0], &[f64::NAN], &[f64::INFINITY]] {
        assert!(Alias::new(weights).is_none(), "{weights:?}");
    }
}

#[test]
fn lengths_are_exact_or_of_ranges() {
    let exact = Sizes::new(&[10.0, 30.0, 70.0], &[0.5, 0.25, 0.25]).unwrap();
    let ranges = Sizes::new(&[1.0, 8.0, 64.0], &[0.3, 0.7]).unwrap();
    assert_eq!((exact.least, exact.most, ranges.least, ranges.most), (10, 70, 1, 64));
    let mut rng = rng();
    let (mut exactly, mut between) = ([0; 3], [0; 63]);
    for _ in 0..DRAWS {
        let length = exact.of(rng.next_u64());
        exactly[[10, 30, 70].iter().position(|known| *known == length).unwrap()] += 1;
        between[ranges.of(rng.next_u64()) - 1] += 1;
    }
    let shares: Vec<f64> = (1..64)
        .map(|length| if length < 8 { 0.3 / 7.0 } else { 0.7 / 56.0 })
        .collect();
    for statistic in [statistic(&exactly, &[2.0, 1.0, 1.0]), statistic(&between, &shares)] {
        assert!(statistic < 3.0, "{statistic}");
    }
    for (bounds, weights, part) in [
        (&[1.0, 2.0][..], &[0.0][..], "no positive weight"),
        (&[1.0], &[1.0, 1.0], "2 weights for 1 bounds"),
        (&[1.0, 2.0, 3.0], &[1.0], "1 weights for 3 bounds"),
        (&[2.0, 1.0], &[1.0], "ascend"),
        (&[], &[], "empty"),
    ] {
        let refused = Sizes::new(bounds, weights).unwrap_err();
        assert!(refused.contains(part), "{refused}");
    }
}

#[test]
fn a_share_of_the_keys_has_its_share_of_the_requests_in_any_number_of_keys() {
    // 1 object has 40% of the requests, 9 have 30%, 90 have 20%, 900 the rest.
    let (objects, weights) = ([1.0, 9.0, 90.0, 900.0], [4.0, 3.0, 2.0, 1.0]);
    for keys in [100_u64, 1000, 3000, 1_000_000] {
        let popularity = Popularity::buckets(&objects, &weights, keys).unwrap();
        let mut rng = rng();
        let (mut counts, mut first) = ([0; 4], 0);
        for _ in 0..DRAWS {
            let key = popularity.draw(&mut rng);
            assert!(key < keys);
            let object = (key as f64 + 0.5) * 1000.0 / keys as f64;
            counts[[1.0, 10.0, 100.0, 1000.0].iter().position(|end| object < *end).unwrap()] += 1;
            first += u32::from(key == 0);
        }
        if keys >= 1000 {
            assert!(statistic(&counts, &weights) < 5.0, "{keys}: {counts:?}");
        } else {
            // The ten hottest objects are one key, with the requests of all of them.
            let share = f64::from(first) / f64::from(DRAWS);
            assert!((share - 0.7).abs() < 0.005, "{share}");
        }
    }
    for (objects, weights, part) in [
        (&[1.0][..], &[1.0, 2.0][..], "2 weights for 1 buckets"),
        (&[0.0, 1.0], &[1.0, 1.0], "without objects"),
        (&[1.0, 1.0], &[0.0, 0.0], "no positive weight"),
    ] {
        let refused = Popularity::buckets(objects, weights, 10).unwrap_err();
        assert!(refused.contains(part), "{refused}");
    }
}

#[test]
fn without_buckets_keys_are_normal_about_the_middle() {
    let mut rng = rng();
    let popularity = Popularity::Normal { keys: 4001 };
    let (mut near, mut sum) = (0, 0.0);
    for _ in 0..DRAWS {
        let key = popularity.draw(&mut rng);
        assert!(key <= 4000);
        near += u32::from(key.abs_diff(2000) <= 1000);
        sum += key as f64;
    }
    // One deviation of the two that are kept: 68.27% of 95.45%.
    let share = f64::from(near) / f64::from(DRAWS);
    assert!((share - 0.7152).abs() < 0.005, "{share}");
    assert!((sum / f64::from(DRAWS) - 2000.0).abs() < 10.0, "{sum}");
    assert_eq!(Popularity::Normal { keys: 1 }.draw(&mut rng), 0);
}

#[test]
fn letters_are_even() {
    let mut key = Vec::new();
    for seed in 0..1000 {
        hashed_letters(mix(seed), 100, &mut key);
    }
    let mut counts = [0; 26];
    for letter in &key {
        counts[usize::from(letter - b'a')] += 1;
    }
    assert!(
        key.len() == 100_000 && statistic(&counts, &[1.0; 26]) < 2.5,
        "{counts:?}"
    );
}
