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

#[cfg(target_os = "linux")]
#[test]
fn what_it_says_it_holds_is_what_the_system_gave() {
    fn resident_bytes() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
    }
    let before = resident_bytes();
    let cache = VictimCache::builder(96 << 20)
        .codec("lz4".parse().unwrap())
        .build()
        .unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for key in 0..80_000_u64 {
        let text = format!("{:x}", random.u128(..)).repeat(random.usize(60..160));
        cache.insert(&key.to_be_bytes(), text.as_bytes());
        cache.insert(
            &(key + 1_000_000).to_be_bytes(),
            &(0..1500).map(|_| random.u8(..)).collect::<Vec<_>>(),
        );
    }
    let (held, grown) = (cache.stats().bytes_held as f64, (resident_bytes() - before) as f64);
    assert!(grown < held * 1.15, "{grown} bytes for {held}");
}
