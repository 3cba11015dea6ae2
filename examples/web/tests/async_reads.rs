//! Reads of the disk tier by tasks of tokio, on one thread and on several.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use leafpress::Cache;
use leafpress::cache::{CacheError, Disk};
use tokio::runtime::Builder;
use tokio::task::{JoinSet, yield_now};

const RECORDS: u64 = 20_000;

fn key(n: u64) -> String {
    format!("object:{n:08}")
}

/// Incompressible bytes that identify their key.
fn value(n: u64) -> Vec<u8> {
    let mut word = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let words = std::iter::repeat_with(|| {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word.to_le_bytes()
    });
    words.take(50).flatten().collect()
}

/// A cache most of whose records are on disk.
fn filled(directory: &tempfile::TempDir) -> Cache {
    let disk = Disk::file(directory.path().join("cache"), 32 << 20);
    let cache = Cache::builder().memory(4 << 20).disk(disk).build().unwrap();
    for n in 0..RECORDS {
        cache.insert(&key(n), &value(n)).unwrap();
    }
    cache.settle().unwrap();
    cache
}

/// A thousand tasks read records all over the cache, others than with another `round`; meanwhile another task runs
/// again and again.
async fn check(cache: Cache, round: u64) {
    let is_done = Arc::new(AtomicBool::new(false));
    let turns = Arc::new(AtomicU64::new(0));
    let other = tokio::spawn({
        let (is_done, turns) = (Arc::clone(&is_done), Arc::clone(&turns));
        async move {
            while !is_done.load(Ordering::SeqCst) {
                turns.fetch_add(1, Ordering::SeqCst);
                yield_now().await;
            }
        }
    });
    let before = cache.stats();
    let mut tasks = JoinSet::new();
    for n in 0..1000 {
        let (cache, n) = (cache.clone(), (round * 1000 + n) * 7919 % RECORDS);
        tasks.spawn(async move {
            let found = match n % 3 {
                0 => cache.get_async(&key(n)).await?,
                1 => cache.get_many_async(&[key(n)]).await?.pop().flatten(),
                _ => cache.get_with_async(&key(n), <[u8]>::to_vec).await?,
            };
            // The device may have been too slow for some records.
            assert!(found.is_none_or(|found| found == value(n)), "{n}");
            Ok::<_, CacheError>(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap().unwrap();
    }
    is_done.store(true, Ordering::SeqCst);
    other.await.unwrap();
    let after = cache.stats();
    assert_eq!(after.hits + after.misses - before.hits - before.misses, 1000);
    assert!(after.disk_hits > before.disk_hits, "{after}");
    assert!(turns.load(Ordering::SeqCst) > 1);
    // A read that a timeout drops, and the same again.
    let soon = std::time::Duration::from_nanos(1);
    for n in 0..100 {
        let (n, name) = (n * 127 + 5, key(n * 127 + 5));
        let _ = tokio::time::timeout(soon, cache.get_async(&name)).await;
        assert!(
            cache
                .get_async(&name)
                .await
                .unwrap()
                .is_none_or(|found| found == value(n)),
            "{n}"
        );
    }
}

#[test]
fn on_one_thread_and_on_several() {
    let directory = tempfile::tempdir().unwrap();
    let cache = filled(&directory);
    let one = Builder::new_current_thread().enable_time().build().unwrap();
    one.block_on(check(cache.clone(), 0));
    let several = Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .unwrap();
    several.block_on(check(cache.clone(), 1));
    cache.close().unwrap();
}
