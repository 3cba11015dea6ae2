//! A cache in front of a slow database: single-flight loading, time to live, and a memory limit.
//!
//! `cargo run --release -p leafpress --example cache`

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{CacheError, InsertOptions};

/// The slow backend: a call takes a millisecond, and is counted.
fn database(id: u64, calls: &AtomicU64) -> String {
    calls.fetch_add(1, Ordering::Relaxed);
    thread::sleep(Duration::from_millis(1));
    format!("{{\"id\":{id},\"name\":\"user {id}\",\"state\":\"active\",\"plan\":\"free\"}}")
}

fn main() -> Result<(), CacheError> {
    let cache = Cache::builder()
        .memory(8 << 20)
        .default_ttl(Duration::from_secs(3600))
        .build()?;
    let calls = AtomicU64::new(0);
    // Four threads request the same users: each is loaded once.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for id in 0..200 {
                    let user = cache.get_or_insert_with(&format!("user:{id:06}"), || database(id, &calls));
                    assert!(user.is_ok_and(|user| user.starts_with(b"{\"id\":")));
                }
            });
        }
    });
    println!("800 reads, {} loads", calls.into_inner());

    cache.insert_entry("session:17", "user 3", InsertOptions::ttl(Duration::from_secs(60)))?;
    cache.remove("user:000003")?;
    let first: Vec<_> = cache.prefix("user:").take(3).collect::<Result<_, _>>()?;
    for (key, value) in &first {
        println!("{} {}", String::from_utf8_lossy(key), String::from_utf8_lossy(value));
    }

    // Far more than fits: records that are not read are evicted.
    for id in 0..400_000_u64 {
        cache.insert(
            &format!("page:{id:08}"),
            &format!("page {id} of a large site ").repeat(8),
        )?;
    }
    let stats = cache.stats();
    println!(
        "{} records of {} bytes in {} of {} bytes; {} evicted",
        stats.records, stats.user_bytes, stats.bytes_held, stats.memory_bytes, stats.evicted
    );
    println!("at most {} bytes at a time", stats.peak_bytes);
    // Garbage that waits for readers, and holes while leaves are moved, may be added temporarily.
    assert!(stats.peak_bytes <= stats.memory_bytes + stats.memory_bytes / 20 + (2 << 20));
    Ok(())
}
