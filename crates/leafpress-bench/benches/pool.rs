//! Hits of the page pool: raw pages on one thread and on two at once, by the pages there are, and compressed pages by
//! codec.
//!
//! `cargo bench -p leafpress-bench --bench pool`

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use leafpress::store::MemoryStore;
use leafpress_pages::PagePool;
use leafpress_pages::pool::RawShare;

const PAGE_BYTES: usize = 4096;
const PAGES: [u64; 3] = [1_000, 10_000, 100_000];

/// Returns a pool in which all pages are, raw or compressed as the share says, a third of them noise.
fn pool(pages: u64, codec: &str, raw_percent: u8) -> PagePool {
    let page = |id: u64| {
        let mut bytes = vec![id as u8; PAGE_BYTES];
        fastrand::Rng::with_seed(id).fill(&mut bytes[..PAGE_BYTES / 3]);
        bytes
    };
    let store = MemoryStore::from_pages((0..pages).map(page)).expect("pages");
    let pool = PagePool::builder(store)
        .memory(pages as usize * (PAGE_BYTES + 512) + (1 << 20))
        .codec(codec.parse().expect("a codec"))
        .share(RawShare::Fixed { raw_percent })
        .promote_after_hits(63)
        .background_threads(0)
        .build()
        .expect("a pool");
    for id in 0..pages {
        pool.get(id).expect("a page");
    }
    pool
}

/// Gets random pages, and reads a byte of each.
fn hits(pool: &PagePool, pages: u64, seed: u64, iterations: u64) -> Duration {
    let mut random = fastrand::Rng::with_seed(seed);
    let start = Instant::now();
    for _ in 0..iterations {
        let page = pool.get(random.u64(0..pages)).expect("a page");
        black_box(page[PAGE_BYTES / 2]);
    }
    start.elapsed()
}

fn raw_hits(c: &mut Criterion) {
    let mut group = c.benchmark_group("raw hit");
    for pages in PAGES {
        let pool = pool(pages, "none", 100);
        for threads in [1, 2] {
            let name = BenchmarkId::new(format!("{threads} threads"), pages);
            group.bench_function(name, |b| {
                b.iter_custom(|iterations| {
                    std::thread::scope(|scope| {
                        let run = |seed| {
                            scope.spawn({
                                let pool = &pool;
                                move || hits(pool, pages, seed, iterations)
                            })
                        };
                        let running: Vec<_> = (0..threads).map(run).collect();
                        let times = running.into_iter().map(|thread| thread.join().expect("no panic"));
                        times.max().unwrap_or_default()
                    })
                });
            });
        }
    }
    group.finish();
}

fn compressed_hits(c: &mut Criterion) {
    let mut group = c.benchmark_group("compressed hit");
    for codec in ["lz4", "zstd:1"] {
        let pages = 1_000;
        let pool = pool(pages, codec, 5);
        group.bench_function(codec, |b| b.iter_custom(|iterations| hits(&pool, pages, 1, iterations)));
    }
    group.finish();
}

criterion_group!(benches, raw_hits, compressed_hits);
criterion_main!(benches);
