//! The chosen share, compared with the best one for a pool simulated in full size.

use super::full_size::Tally;
use super::*;

/// Steady-state accesses of pools with fixed shares: each tenth, and instead of none the minimum share of an adaptive
/// pool.
fn fixed(world: World) -> Vec<Tally> {
    let least = least_raw_fraction(world.budget_bytes, PAGE_BYTES);
    let shares = (0..=10).map(|tenth| (f64::from(tenth) / 10.0).max(least));
    let tallies = shares.map(|share| {
        let mut pool = FullSize::fixed(world, share);
        pool.run(10_000);
        let before = pool.tally;
        pool.run(15_000);
        pool.tally.since(&before)
    });
    tallies.collect()
}

/// The least cost per access.
fn best(tallies: &[Tally], world: &World) -> f64 {
    tallies
        .iter()
        .map(|tally| tally.cost(world))
        .fold(f64::INFINITY, f64::min)
}

/// Read, compress and decode, in nanoseconds, and initial fractions.
const MACHINES: [(u64, u64, u64, &[f64]); 4] = [
    (20_000, 5_000, 1_000, &[0.0, 1.0]),
    (20_000, 30_000, 6_000, &[0.5]),
    (110_000, 12_000, 3_000, &[0.0, 0.5, 1.0]),
    (500_000, 12_000, 3_000, &[0.5]),
];

fn ends_near_the_best(world: World) {
    let tallies = fixed(world);
    for (read_ns, compress_ns, decompress_ns, starts) in MACHINES {
        let world = World {
            read_ns,
            compress_ns,
            decompress_ns,
            ..world
        };
        let best = best(&tallies, &world);
        for &start in starts {
            let mut pool = FullSize::adaptive(world, start);
            pool.run(70_000);
            let cost = pool.run(15_000);
            assert!(
                cost < best * 1.05,
                "{world:?} from {start}: at {} {cost} ns rather than {best}",
                pool.share
            );
        }
    }
}

#[test]
fn uniform_access_of_pages_that_hardly_shrink() {
    ends_near_the_best(World { ratio: 1.0, ..WORLD });
}

#[test]
fn uniform_access_of_pages_that_shrink() {
    ends_near_the_best(WORLD);
}

#[test]
fn uniform_access_of_pages_that_shrink_a_lot() {
    ends_near_the_best(World { ratio: 6.0, ..WORLD });
}

#[test]
fn hot_pages_that_hardly_shrink() {
    ends_near_the_best(World {
        ratio: 1.0,
        hot: HOT,
        ..WORLD
    });
}

#[test]
fn hot_pages_that_shrink() {
    ends_near_the_best(World { hot: HOT, ..WORLD });
}

#[test]
fn hot_pages_that_shrink_a_lot() {
    ends_near_the_best(World {
        ratio: 6.0,
        hot: HOT,
        ..WORLD
    });
}

#[test]
fn another_hot_set_is_followed_under_every_policy() {
    for policy in PolicyKind::ALL {
        let world = World {
            policy,
            hot: HOT,
            ..WORLD
        };
        let best = best(&fixed(world), &world);
        let mut pool = FullSize::adaptive(world, 0.5);
        pool.run(60_000);
        pool.switch_hot_set();
        // At these costs, accesses of about a second.
        pool.run(40_000);
        let cost = pool.run(15_000);
        assert!(
            cost < best * 1.05,
            "{policy}: at {} {cost} ns rather than {best}",
            pool.share
        );
    }
}

#[test]
fn does_not_wander() {
    for (ratio, hot) in [(2.8, HOT), (2.8, (0.0, 0.0)), (6.0, HOT), (0.9, HOT)] {
        let mut pool = FullSize::adaptive(World { ratio, hot, ..WORLD }, 0.5);
        pool.run(80_000);
        let settled = pool.share;
        for _ in 0..20 {
            pool.run(5_000);
            assert!(
                (pool.share - settled).abs() <= 0.1,
                "ratio {ratio}, hot {hot:?}: {settled} to {}",
                pool.share
            );
        }
    }
}

#[test]
fn nothing_is_compressed_where_it_does_not_pay() {
    let incompressible = World {
        ratio: 0.9,
        hot: HOT,
        ..WORLD
    };
    let as_fast_as_decoding = World {
        read_ns: 3_000,
        hot: HOT,
        ..WORLD
    };
    for world in [incompressible, as_fast_as_decoding] {
        for start in [0.0, 0.5, 1.0] {
            let mut pool = FullSize::adaptive(world, start);
            pool.run(80_000);
            assert_eq!(pool.share, 1.0, "{world:?} from {start}");
        }
    }
}

#[test]
fn compresses_again_when_it_pays_again() {
    let fast = World {
        read_ns: 2_000,
        ..WORLD
    };
    let mut pool = FullSize::adaptive(fast, 0.5);
    pool.run(60_000);
    assert_eq!(pool.share, 1.0);
    // From here on the store is slow.
    pool.world = WORLD;
    pool.run(80_000);
    let (cost, best) = (pool.run(15_000), best(&fixed(WORLD), &WORLD));
    assert!(cost < best * 1.05, "at {} {cost} ns rather than {best}", pool.share);
}

#[test]
fn what_fits_in_memory_stays_raw() {
    let world = World { pages: 400, ..WORLD };
    let mut pool = FullSize::adaptive(world, 0.2);
    pool.run(100_000);
    let cost = pool.run(10_000);
    assert!(cost < 200.0, "at {} {cost} ns", pool.share);
}

#[test]
fn a_followed_page_with_half_of_all_accesses_changes_nothing() {
    let world = World { hot: HOT, ..WORLD };
    let best = best(&fixed(world), &world);
    let mut pool = FullSize::adaptive(world, 1.0);
    let hottest = (0..world.pages).min_by_key(|&page| hash(page)).unwrap_or(0);
    for _ in 0..160 {
        pool.run(500);
        for _ in 0..500 {
            pool.get(hottest);
        }
    }
    let cost = pool.run(15_000);
    assert!(cost < best * 1.05, "at {} {cost} ns rather than {best}", pool.share);
}

#[test]
fn a_small_pool_finds_its_share() {
    // Tyche's experiment: 140 pages of 8 KB, memory for 87.
    let world = World {
        pages: 270,
        budget_bytes: 700_000,
        hot: HOT,
        ..WORLD
    };
    let best = best(&fixed(world), &world);
    let mut pool = FullSize::adaptive(world, 1.0);
    pool.run(60_000);
    let cost = pool.run(15_000);
    assert!(
        cost < best * 1.05 + 150.0,
        "at {} {cost} ns rather than {best}",
        pool.share
    );
}
