//! The memory that the victim cache reports is what the system gave it.

use crate::resident_bytes;
use leafpress_pages::victim::VictimCache;

#[test]
fn reported_memory_matches_the_resident_memory() {
    crate::alone("victim::reported_memory_matches_the_resident_memory", measured);
}

fn measured() {
    let before = resident_bytes();
    let cache = VictimCache::builder()
        .memory(96 << 20)
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
