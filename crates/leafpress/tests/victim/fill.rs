//! How much of its memory the victim cache uses for blocks.

use leafpress::victim::VictimCache;

fn used(lengths: impl Fn(&mut fastrand::Rng) -> usize) -> f64 {
    let cache = VictimCache::builder(8 << 20)
        .codec("none".parse().unwrap())
        .admission(false)
        .build()
        .unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for key in 0..20_000_u64 {
        let len = lengths(&mut random);
        cache.insert(&key.to_be_bytes(), &vec![key as u8; len]);
    }
    cache.validate().unwrap();
    let stats = cache.stats();
    assert!(stats.bytes_held <= stats.capacity_bytes);
    stats.stored_bytes as f64 / stats.capacity_bytes as f64
}

#[test]
fn blocks_of_one_length_fill_it() {
    for len in [1000, 1500, 4096, 4176, 5000, 16_384, 20_000] {
        let share = used(|_| len);
        assert!(share > 0.80, "{len}: {share}");
    }
}

#[test]
fn blocks_of_many_lengths_fill_it() {
    let share = used(|random| random.usize(800..2600));
    assert!(share > 0.78, "{share}");
    let share = used(|random| random.usize(3000..9000));
    assert!(share > 0.74, "{share}");
}
