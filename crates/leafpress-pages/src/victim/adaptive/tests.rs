//! The chosen share for given workloads, with given instead of measured costs.

use std::collections::HashMap;

use super::*;
use crate::tuner::Model as _;
use crate::tuner::controller::Controller;
use crate::tuner::costs::{CLASSES, Prices};
use crate::tuner::readiness::Readiness;

const BLOCK_BYTES: u32 = 4096;

/// A workload, and costs in nanoseconds.
struct World {
    blocks: u64,
    /// The exponent of the distribution of blocks: 1 is uniform, more is steeper.
    skew: f64,
    ratio: u32,
    miss_ns: f64,
    decode_ns: f64,
    compress_ns: f64,
}

/// 8 MiB for 32 MiB of blocks on a disk, and a codec as fast as zstd:1.
const DISK: World = World {
    blocks: 8192,
    skew: 2.5,
    ratio: 3,
    miss_ns: 80_000.0,
    decode_ns: 3_000.0,
    compress_ns: 15_000.0,
};

impl World {
    fn prices(&self) -> Prices {
        Prices {
            read: [self.miss_ns; CLASSES],
            compress: [self.compress_ns; CLASSES],
            decompress: [self.decode_ns; CLASSES],
        }
    }

    /// Returns the share after `lookups` in a cache with this budget, which begins with `share`.
    fn share(&self, budget_bytes: usize, share: f64, lookups: usize) -> f64 {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut model, mut controller) = (Model::new(budget_bytes).unwrap(), Controller::new(share));
        model.set_sizes([65536 / self.ratio; crate::tuner::costs::SIZES]);
        let mut frequency: HashMap<u64, u8> = HashMap::new();
        let prices = self.prices();
        for lookup in 0..lookups {
            let key = (random.f64().powf(self.skew) * self.blocks as f64) as u64;
            let hash = rapidhash::v3::rapidhash_v3(&key.to_le_bytes());
            let count = frequency.entry(hash).or_default();
            *count = count.saturating_add(1);
            if hash <= model.threshold() {
                // As behind a front cache of negligible size: each fetched block is inserted here at once.
                let events = [
                    Event::Looked {
                        hash,
                        found: 0,
                        frequency: *count,
                        on_hit: OnHit::Keep,
                    },
                    Event::Offered {
                        hash,
                        raw_bytes: BLOCK_BYTES,
                        frequency: *count,
                        force: false,
                    },
                ];
                assert_eq!(model.run(events.into_iter()), 1);
                if model.look() == Readiness::Enough {
                    controller.decide(model.fractions(), &model.costs(&prices).unwrap());
                }
            }
            if lookup % 50_000 == 49_999 {
                frequency.values_mut().for_each(|count| *count /= 2);
                model.validate();
            }
        }
        controller.fraction()
    }
}

#[test]
fn a_fast_codec_before_a_slow_device_compresses_nearly_everything() {
    for start in [0.0, 1.0] {
        let share = DISK.share(8 << 20, start, 400_000);
        assert!(share < 0.15, "{share}");
    }
}

#[test]
fn nothing_is_compressed_where_everything_fits() {
    // They take half of it, and a larger share would gain nothing.
    let share = DISK.share(64 << 20, 0.0, 400_000);
    assert!(share > 0.5, "{share}");
}

#[test]
fn nothing_is_compressed_where_a_miss_costs_as_little_as_the_codec() {
    let world = World {
        miss_ns: 5_000.0,
        decode_ns: 4_000.0,
        compress_ns: 20_000.0,
        ..DISK
    };
    assert_eq!(world.share(8 << 20, 0.0, 400_000), 1.0);
}

#[test]
fn an_expensive_codec_with_a_slow_device_keeps_the_hottest_raw() {
    let world = World {
        miss_ns: 150_000.0,
        decode_ns: 60_000.0,
        compress_ns: 30_000.0,
        ..DISK
    };
    let share = world.share(8 << 20, 0.0, 600_000);
    assert!((0.03..0.9).contains(&share), "{share}");
}

/// The additional cost of raw blocks beyond the miniature is not negligible.
#[test]
fn little_is_not_worth_raw_blocks() {
    let world = World {
        miss_ns: 95_000.0,
        decode_ns: 17_000.0,
        compress_ns: 60_000.0,
        ratio: 2,
        ..DISK
    };
    assert_eq!(world.share(8 << 20, 0.0, 600_000), 0.0);
}

#[test]
fn too_small_a_budget_decides_nothing_and_holds_little() {
    let adaptive = Adaptive::of_victim_cache(Arc::default());
    assert!(adaptive.resize_within(8 << 20) > 20_000);
    assert!(adaptive.follows(0) && adaptive.follows(1 << 40));
    assert!(adaptive.resize_within(1 << 20) < 10_000);
    assert!(!adaptive.follows(1 << 40));
    for hash in 0..10_000 {
        adaptive.looked(hash, 1, None, OnHit::Keep);
    }
    assert_eq!(adaptive.step(), None);
    assert_eq!(adaptive.fraction(), 0.0);
}
