//! The miniatures alone.

use super::*;
use crate::tuner::costs::{CLASSES, Prices, SIZES};

/// Only misses have a cost.
const MISSES: Prices = Prices {
    read: [1e9; CLASSES],
    compress: [0.0; CLASSES],
    decompress: [0.0; CLASSES],
};

#[test]
fn have_the_misses_of_the_pool_in_full_size() {
    for policy in PolicyKind::ALL {
        for hot in [(0.0, 0.0), HOT] {
            let world = World { policy, hot, ..WORLD };
            let mut pool = FullSize::fixed(world, 0.5);
            let mut model = Model::new(policy, 8, world.budget_bytes, PAGE_BYTES).unwrap();
            // Sizes are set as by the pool.
            model.set_sizes([(65_536.0 / world.ratio) as u32; SIZES]);
            for page in 0..world.pages {
                if let (true, Some(stored)) = (hash(page) <= model.threshold(), pool.stored(page)) {
                    model.run(std::iter::once(Event::Sized {
                        hash: hash(page),
                        stored,
                    }));
                }
            }
            let mut run = |accesses: usize| {
                for _ in 0..accesses / 100 {
                    let pages: Vec<u32> = (0..100).map(|_| pool.draw()).collect();
                    let followed = pages
                        .iter()
                        .map(|&page| hash(page))
                        .filter(|&hash| hash <= model.threshold());
                    let events: Vec<Event> = followed
                        .map(|hash| Event::Accessed {
                            hash,
                            raw_bytes: PAGE_BYTES as u32,
                        })
                        .collect();
                    model.run(events.into_iter());
                }
                let costs = model.costs(&MISSES).unwrap();
                (costs, model.followed_accesses())
            };
            let (before, accesses_before) = run(30_000);
            let (after, accesses) = run(60_000);
            for (index, &share) in model.fractions().iter().enumerate() {
                let ratio = (after[index] - before[index]) / 1e9 / (accesses - accesses_before);
                let mut whole = FullSize::fixed(world, share);
                whole.run(10_000);
                let warm = whole.tally;
                whole.run(15_000);
                let tally = whole.tally.since(&warm);
                let exact = tally.misses as f64 / tally.accesses as f64;
                assert!(
                    (ratio - exact).abs() < 0.04,
                    "{policy} {hot:?} share {share}: {ratio} rather than {exact}"
                );
            }
        }
    }
}

#[test]
fn agree_with_themselves_whatever_happens() {
    for policy in PolicyKind::ALL {
        let mut random = fastrand::Rng::with_seed(11);
        let mut model = Model::new(policy, 3, 1 << 20, 4096).unwrap();
        for round in 0..400 {
            let events: Vec<Event> = (0..random.usize(0..400))
                .map(|_| {
                    let hash = hash(random.u32(0..3_000));
                    match random.u8(0..10) {
                        0 => Event::Removed { hash },
                        1 => Event::Sized {
                            hash,
                            stored: random.u32(0..9_000),
                        },
                        2 => Event::Sized {
                            hash,
                            stored: UNSHRINKABLE,
                        },
                        _ => Event::Accessed {
                            hash,
                            raw_bytes: [512, 4_096, 4_100, 65_536][random.usize(0..4)],
                        },
                    }
                })
                .collect();
            model.run(events.into_iter());
            match random.u8(0..40) {
                0 => model.follow_less(0.9),
                1 => model.resize(random.usize(500_000..2_000_000)),
                2 => model.resume(),
                _ => {}
            }
            model.look();
            model.validate();
            assert!(model.len() <= model.most_keys(), "round {round}: {}", model.len());
        }
    }
}

#[test]
fn follow_a_part_of_the_pages_and_fewer_when_they_are_too_many() {
    let mut model = Model::new(PolicyKind::Clock, 8, 64 << 20, 4096).unwrap();
    let before = model.threshold();
    assert!(before < u64::MAX / 4, "{before:x}");
    // Pages compress so well that the model has more of them than expected.
    for page in 0..400_000 {
        let (hash, followed) = (hash(page), hash(page) <= model.threshold());
        if followed {
            let events = [
                Event::Sized { hash, stored: 100 },
                Event::Accessed { hash, raw_bytes: 4096 },
            ];
            model.run(events.into_iter());
        }
    }
    assert!(model.threshold() < before);
    assert!(
        (model.most_keys() / 2..=model.most_keys()).contains(&model.len()),
        "{}",
        model.len()
    );
    model.validate();
}
