//! Conformance checks for every cache, which panic on failure: for tests of this crate, and of programs that
//! [bring](super::add_engines) others.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::Engine;

/// Checks that values are returned as last put, short and long, until they are removed.
///
/// # Panics
/// When they do not.
pub fn values_come_back_as_they_were_put(name: &str, cache: &dyn Engine) {
    let mut value = b"old".to_vec();
    assert!(!cache.get(b"absent", &mut value).unwrap(), "{name}");
    for (at, len) in [0, 1, 64, 1000, 20_000].into_iter().enumerate() {
        let key = format!("key{at}");
        for byte in [b'a', at as u8] {
            // The second half does not compress.
            let half = (0..len).map(|i: usize| ((i * i * 7919) >> 5) as u8);
            let put: Vec<u8> = std::iter::repeat_n(byte, len).chain(half).collect();
            cache.insert(key.as_bytes(), &put).unwrap();
            assert!(cache.get(key.as_bytes(), &mut value).unwrap(), "{name} {len}");
            assert!(value == put, "{name} {len}");
        }
    }
    let records = cache.standing().records;
    assert!(records.is_none_or(|records| records == 5), "{name}: {records:?}");
    for _ in 0..2 {
        cache.remove(b"key3").unwrap();
        assert!(!cache.get(b"key3", &mut value).unwrap(), "{name}");
    }
    let records = cache.standing().records;
    assert!(records.is_none_or(|records| records == 4), "{name}: {records:?}");
}

/// Checks that an expired value is not found.
///
/// # Panics
/// When it is.
pub fn a_record_expires(name: &str, cache: &dyn Engine, ttl: Duration) {
    let mut value = Vec::new();
    cache.insert(b"key", b"value").unwrap();
    // A machine may be slow.
    let there = cache.get(b"key", &mut value).unwrap();
    assert!(!there || value == b"value", "{name}");
    std::thread::sleep(ttl + Duration::from_millis(50));
    assert!(!cache.get(b"key", &mut value).unwrap(), "{name}");
}

/// Checks that while one thread puts more than the cache holds, and counts up the versions of a key as it goes, no
/// other reads an older version of that key than one that was there, or another key's value.
///
/// # Panics
/// When one does.
pub fn readers_never_go_back(name: &str, cache: &dyn Engine, records: u32) {
    let put = AtomicU32::new(0);
    let started = Instant::now();
    let filler = |number: u32| format!("{number:>12}").repeat(20);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in 1..=records {
                cache.insert(b"counter", &version.to_le_bytes()).unwrap();
                put.store(version, Ordering::Release);
                cache
                    .insert(&version.to_be_bytes(), filler(version).as_bytes())
                    .unwrap();
            }
        });
        for offset in 1..=2_u32 {
            let put = &put;
            scope.spawn(move || {
                let mut value = Vec::new();
                let mut number = offset;
                loop {
                    let before = put.load(Ordering::Acquire);
                    if cache.get(b"counter", &mut value).unwrap() {
                        let version = u32::from_le_bytes(value[..].try_into().unwrap());
                        assert!(version >= before, "{name}: {version} when {before} was there");
                    }
                    number = number.wrapping_mul(2_654_435_761) % records + 1;
                    if cache.get(&number.to_be_bytes(), &mut value).unwrap() {
                        assert!(value == filler(number).as_bytes(), "{name}: {number}");
                    }
                    assert!(
                        started.elapsed() < Duration::from_secs(300),
                        "{name}: {before} were put"
                    );
                    if before == records {
                        return;
                    }
                }
            });
        }
    });
}
