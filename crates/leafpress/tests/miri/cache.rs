//! The cache: marks at the ends of leaves, eviction, and loads.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{InsertOptions, ManualClock};
use leafpress::codec::Codec;

#[test]
fn records_are_read_expire_and_are_loaded() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let cache = Cache::builder()
        .memory(4 << 20)
        .codec(Codec::None)
        .clock(clock.clone())
        .build()
        .unwrap();
    for n in 0..60_u8 {
        let entry = if n % 2 == 0 {
            InsertOptions::ttl(Duration::from_secs(5))
        } else {
            InsertOptions::default()
        };
        cache.insert_entry(&[n], &[n; 40], entry).unwrap();
    }
    for n in 0..60 {
        assert_eq!(cache.get(&[n]).unwrap(), Some(vec![n; 40]));
    }
    // Compaction copies the marks of records next to which others are inserted.
    for n in 60..90 {
        cache.insert(&[n], &[n; 40]).unwrap();
    }
    clock.advance(Duration::from_secs(6));
    cache.settle().unwrap();
    assert_eq!(cache.len(), 60);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for n in 0..6 {
                    let value = cache.get_or_insert_with(&[n], || [n; 40]).unwrap();
                    assert_eq!(value, [n; 40]);
                }
            });
        }
    });
    assert_eq!(cache.range(..).count(), 63);
    cache.validate().unwrap();
}
