//! Point operations and short scans, by codec and size, on one thread.
//!
//! `cargo bench -p leafpress-bench --bench tree`, or a part of it: `... --bench tree -- 'get hit/.*lz4'`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use leafpress::Codec;
use leafpress_bench::{Loaded, key};

const CODECS: [Codec; 3] = [Codec::None, Codec::Lz4 { acceleration: 1 }, Codec::Zstd { level: 1 }];
const KEYS: [u64; 2] = [50_000, 1_000_000];

/// Operations timed together where each needs an untimed one to undo it.
const BATCH: u64 = 1000;

/// Times `done` on `iterations` distinct random keys, batch by batch, and calls `undo` on each untimed.
fn timed_and_undone(
    loaded: &mut Loaded,
    iterations: u64,
    done: impl Fn(&Loaded, u64),
    undo: impl Fn(&Loaded, u64),
) -> Duration {
    let mut elapsed = Duration::ZERO;
    let mut left = iterations;
    while left > 0 {
        // Consecutive multiples of a stride from a random start: distinct within a batch.
        let start = loaded.random();
        let batch: Vec<u64> = (0..left.min(BATCH))
            .map(|i| (start + i * 7_368_787) % loaded.keys)
            .collect();
        let begin = Instant::now();
        batch.iter().for_each(|&n| done(loaded, n));
        elapsed += begin.elapsed();
        batch.iter().for_each(|&n| undo(loaded, n));
        left -= batch.len() as u64;
    }
    elapsed
}

fn point_operations(criterion: &mut Criterion, loaded: &mut Loaded, codec: Codec) {
    let id = |operation: &str| BenchmarkId::new(operation, format!("{codec}/{}", loaded.keys));
    let ids = [
        "get hit",
        "get miss",
        "get many 8",
        "put overwrite",
        "put new",
        "remove",
        "scan 100",
    ]
    .map(id);
    let [hit, miss, many, overwrite, new, remove, scan] = ids;
    let mut group = criterion.benchmark_group("tree");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));

    let mut value = Vec::new();
    group.bench_function(hit, |b| {
        b.iter(|| {
            let n = loaded.random();
            assert!(loaded.tree.get_into(&key(2 * n), &mut value).expect("get"));
        });
    });
    group.bench_function(miss, |b| {
        b.iter(|| {
            let n = loaded.random();
            assert!(!loaded.tree.get_into(&key(2 * n + 1), &mut value).expect("get"));
        });
    });
    group.bench_function(many, |b| b.iter(|| loaded.read_many()));
    group.bench_function(scan, |b| {
        b.iter(|| {
            let n = loaded.random();
            let mut bytes = 0;
            let records = loaded.tree.range(&key(2 * n)..).limit(100);
            let scanned = records.visit(|_, value| bytes += value.len());
            black_box((scanned.expect("scan"), bytes))
        });
    });
    group.bench_function(overwrite, |b| {
        b.iter(|| {
            let (n, from) = (loaded.random(), loaded.random());
            assert!(!loaded.tree.insert(&key(2 * n), loaded.value(from)).expect("put"));
        });
    });
    let put_new = |loaded: &Loaded, n| assert!(loaded.tree.insert(&key(2 * n + 1), loaded.value(n)).expect("put"));
    let remove_new = |loaded: &Loaded, n| assert!(loaded.tree.remove(&key(2 * n + 1)).expect("remove"));
    group.bench_function(new, |b| {
        b.iter_custom(|iterations| timed_and_undone(loaded, iterations, put_new, remove_new));
    });
    let remove_old = |loaded: &Loaded, n| assert!(loaded.tree.remove(&key(2 * n)).expect("remove"));
    let put_old = |loaded: &Loaded, n| assert!(loaded.tree.insert(&key(2 * n), loaded.value(n)).expect("put"));
    group.bench_function(remove, |b| {
        b.iter_custom(|iterations| timed_and_undone(loaded, iterations, remove_old, put_old));
    });
    group.finish();
}

fn tree(criterion: &mut Criterion) {
    for keys in KEYS {
        for codec in CODECS {
            let mut loaded = Loaded::new(codec, keys);
            point_operations(criterion, &mut loaded, codec);
        }
    }
}

criterion_group!(benches, tree);
criterion_main!(benches);
