//! Databases over the secondary cache.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use leafpress_rocksdb::{
    BlockCache, BlockCacheOptions, PrimaryCache, SecondaryCacheOptions, SecondaryCacheStatistics,
    secondary_cache_statistics,
};
use rocksdb::{DB, IteratorMode, Options};

fn cache(name: &str, primary: PrimaryCache, primary_bytes: usize, secondary_bytes: usize, codec: &str) -> BlockCache {
    leafpress_rocksdb::register();
    let mut secondary = SecondaryCacheOptions::new(secondary_bytes);
    secondary.codec = codec.parse().unwrap();
    secondary.name = name.to_owned();
    let mut options = BlockCacheOptions::new(primary_bytes).secondary(&secondary);
    options.primary = primary;
    options.shard_bits = Some(0);
    BlockCache::new(&options).unwrap()
}

fn statistics(name: &str) -> SecondaryCacheStatistics {
    secondary_cache_statistics()
        .into_iter()
        .find(|each| each.name == name)
        .unwrap()
}

fn options(cache: &BlockCache, table: &str) -> Options {
    let table = format!("block_size=4096;filter_policy=bloomfilter:10:false;{table}");
    let mut options = Options::default()
        .get_options_from_string(cache.table_options(&table))
        .unwrap();
    options.create_if_missing(true);
    options.set_write_buffer_size(1 << 20);
    options
}

fn key(n: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[8..].copy_from_slice(&n.to_be_bytes());
    key
}

fn value(n: u64, version: u64) -> Vec<u8> {
    let mut value = format!("{n}:{version}:").into_bytes();
    let words = (0..12).map(|word| format!("field-{:04};", (n * 31 + version * 17 + word) % 4999));
    value.extend_from_slice(words.collect::<String>().as_bytes());
    value
}

/// Returns a generator that needs no crate.
fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn values_are_right_under_writes_compactions_and_changes_of_capacity() {
    const KEYS: u64 = 20_000;
    for (name, primary, codec) in [
        ("race_lru", PrimaryCache::Lru, "zstd:1"),
        ("race_clock", PrimaryCache::HyperClock, "lz4"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(name, primary, 256 << 10, 4 << 20, codec);
        let db = DB::open(&options(&cache, "cache_index_and_filter_blocks=true"), directory.path()).unwrap();
        for n in 0..KEYS {
            db.put(key(n), value(n, 0)).unwrap();
        }
        db.flush().unwrap();
        // A key is written by one thread alone, which publishes a version before it writes it and after.
        let begun: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        let done: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (db, begun, done, stop, cache) = (&db, &begun, &done, &stop, &cache);
            let readers: Vec<_> = (0..2_u64)
                .map(|thread| {
                    scope.spawn(move || {
                        let mut state = thread + 7;
                        for _ in 0..30_000 {
                            let n = next(&mut state) % KEYS;
                            let oldest = done[n as usize].load(SeqCst);
                            let found = db.get(key(n)).unwrap().unwrap_or_else(|| panic!("{n} is lost"));
                            let text = String::from_utf8(found).unwrap();
                            let version: u64 = text.split(':').nth(1).unwrap().parse().unwrap();
                            assert!(
                                (oldest..=begun[n as usize].load(SeqCst)).contains(&version),
                                "{n}: {version}, {oldest}"
                            );
                            assert_eq!(text.as_bytes(), value(n, version));
                        }
                    })
                })
                .collect();
            scope.spawn(move || {
                let mut state = 99;
                while !stop.load(SeqCst) {
                    let n = next(&mut state) % KEYS;
                    let version = begun[n as usize].fetch_add(1, SeqCst) + 1;
                    db.put(key(n), value(n, version)).unwrap();
                    done[n as usize].store(version, SeqCst);
                }
            });
            scope.spawn(move || {
                let mut step = 0_usize;
                while !stop.load(SeqCst) {
                    assert!(cache.set_secondary_capacity([4 << 20, 1 << 20, 0, 2 << 20][step % 4]));
                    let stats = statistics(name).stats;
                    // Buffers that other threads' calls have in hand go when those end.
                    let held = stats.bytes_held - stats.buffer_bytes;
                    assert!(held <= stats.budget_bytes.max(24 << 10), "{stats:?}");
                    if step % 8 == 5 {
                        db.compact_range::<&[u8], &[u8]>(None, None);
                    }
                    step += 1;
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                cache.set_secondary_capacity(4 << 20);
            });
            let ended: Vec<_> = readers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            stop.store(true, SeqCst);
            assert!(ended.iter().all(Result::is_ok));
        });
        for n in 0..KEYS {
            assert_eq!(
                db.get(key(n)).unwrap().unwrap(),
                value(n, done[n as usize].load(SeqCst))
            );
        }
        let stats = statistics(name).stats;
        assert!(
            stats.hits > 100 && stats.corrupt == 0 && stats.failed_hits == 0,
            "{stats:?}"
        );
    }
}

#[test]
fn a_full_scan_leaves_the_hot_set_in_memory() {
    const KEYS: u64 = 120_000;
    let directory = tempfile::tempdir().unwrap();
    let cache = cache("scan", PrimaryCache::Lru, 512 << 10, 4 << 20, "lz4");
    let db = DB::open(&options(&cache, ""), directory.path()).unwrap();
    for n in 0..KEYS {
        db.put(key(n), value(n, 0)).unwrap();
    }
    db.flush().unwrap();
    db.compact_range::<&[u8], &[u8]>(None, None);
    // One key in eight of the first part is hot: some 1000 blocks.
    let hot = || (0..KEYS / 4).step_by(24);
    let misses = || {
        let before = statistics("scan").stats;
        hot().for_each(|n| assert_eq!(db.get(key(n)).unwrap().unwrap(), value(n, 0)));
        let after = statistics("scan").stats;
        (after.misses - before.misses) as f64 / hot().count() as f64
    };
    for _ in 0..10 {
        misses();
    }
    let before = misses();
    assert!(before < 0.05, "{before}");
    assert_eq!(db.iterator(IteratorMode::Start).count() as u64, KEYS);
    let after = misses();
    assert!(after < 0.15, "{after} after {before}");
    assert!(statistics("scan").stats.rejected > 1000);
}
