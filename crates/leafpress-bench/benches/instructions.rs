//! One operation, over and over, for counting its instructions: `make instructions` runs it under callgrind.
//!
//! A count does not depend on the machine's load or clock, so that a change of a few per cent is seen at once. It says
//! nothing about cache misses. On its own, as in a plain `cargo bench`, it runs every operation once over to see that
//! it works.

use std::hint::black_box;

use leafpress::Codec;
use leafpress::store::MemoryStore;
use leafpress_bench::{Loaded, VALUE_BYTES, key};
use leafpress_pages::PagePool;
use leafpress_pages::pool::RawShare;
use leafpress_pages::victim::VictimCache;

/// Records in the tree, and operations counted.
const KEYS: u64 = 10_000;
const OPERATIONS: u64 = 2_000;

/// Pages in the pool, and blocks in the victim cache: they keep as many raw as their codec says.
const PAGES: u64 = 256;
const PAGE_BYTES: usize = 4096;

const OPERATION_NAMES: [&str; 12] = [
    "get_hit",
    "get_miss",
    "get_many",
    "put_overwrite",
    "put_new",
    "remove",
    "scan100",
    "range100",
    "compress",
    "pool_get",
    "victim_get",
    "victim_put",
];

/// What callgrind collects: it is configured with this function's name.
#[inline(never)]
fn counted(loaded: &mut Loaded, operation: &str, value: &mut Vec<u8>) {
    for _ in 0..OPERATIONS {
        let n = loaded.random();
        let tree = &loaded.tree;
        match operation {
            "get_hit" => assert!(tree.get_into(&key(2 * n), value).expect("get")),
            "get_miss" => assert!(!tree.get_into(&key(2 * n + 1), value).expect("get")),
            "get_many" => {
                black_box(loaded.read_many());
            }
            "put_overwrite" => assert!(!tree.insert(&key(2 * n), loaded.value(n + 1)).expect("put")),
            "put_new" => drop(black_box(tree.insert(&key(2 * n + 1), loaded.value(n)).expect("put"))),
            "remove" => drop(black_box(tree.remove(&key(2 * n)).expect("remove"))),
            "scan100" => {
                let mut bytes = 0;
                let scanned = tree
                    .range(&key(2 * n)..)
                    .limit(100)
                    .visit(|_, value| bytes += value.len());
                black_box((scanned.expect("scan"), bytes));
            }
            "compress" => loaded.compress(n, value),
            _ => {
                let records = tree.range(key(2 * n).as_slice()..).take(100);
                black_box(records.map(|record| record.expect("scan").1.len()).sum::<usize>());
            }
        }
    }
}

/// Returns a page, a third of it noise.
fn page(id: u64) -> Vec<u8> {
    let mut bytes = vec![id as u8; PAGE_BYTES];
    fastrand::Rng::with_seed(id).fill(&mut bytes[..PAGE_BYTES / 3]);
    bytes
}

/// Returns the share of a pool or a cache: nothing is kept raw that can be compressed.
fn share(codec: Codec) -> RawShare {
    RawShare::Fixed {
        raw_percent: if codec == Codec::None { 100 } else { 0 },
    }
}

/// Returns a pool in which all pages are.
fn pool(codec: Codec) -> PagePool {
    let pool = PagePool::builder(MemoryStore::from_pages((0..PAGES).map(page)).expect("pages"))
        .memory(PAGES as usize * (PAGE_BYTES + 512) + (1 << 20))
        .codec(codec)
        .share(share(codec))
        .promote_after_hits(63)
        .background_threads(0)
        .build()
        .expect("a pool");
    for id in 0..PAGES {
        pool.get(id).expect("a page");
    }
    pool
}

/// Returns a victim cache in which all pages are.
fn victim_cache(codec: Codec) -> VictimCache {
    let cache = VictimCache::builder()
        .memory(16 << 20)
        .codec(codec)
        .share(share(codec))
        .dictionary_bytes(0)
        .build()
        .expect("a cache");
    for id in 0..PAGES {
        cache.insert(&key(id), &page(id));
    }
    cache
}

/// Measures the page pool; a put does as much work as for a new page.
#[inline(never)]
fn counted_pages(pool: &PagePool, cache: &VictimCache, operation: &str, pages: &[Vec<u8>]) {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..OPERATIONS {
        let id = random.u64(0..PAGES);
        match operation {
            "pool_get" => drop(black_box(pool.get(id).expect("a page")[PAGE_BYTES / 2])),
            "victim_get" => drop(black_box(cache.get(&key(id)))),
            _ => drop(black_box(cache.insert(&key(id), &pages[id as usize]))),
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let (operations, codec) = match words.as_slice() {
        [operation, codec] if OPERATION_NAMES.contains(&operation.as_str()) => {
            let codec: Codec = codec.parse().expect("the second argument is a codec");
            (vec![operation.as_str()], codec)
        }
        _ => (OPERATION_NAMES.to_vec(), Codec::Lz4 { acceleration: 1 }),
    };
    for operation in operations {
        if operation.starts_with("pool") || operation.starts_with("victim") {
            let (pool, cache) = (pool(codec), victim_cache(codec));
            let pages: Vec<_> = (0..PAGES).map(page).collect();
            counted_pages(&pool, &cache, operation, &pages);
            cache.validate().expect("the cache is whole");
            assert_eq!(cache.stats().misses, 0, "all pages are there");
            continue;
        }
        let mut loaded = Loaded::new(codec, KEYS);
        if operation == "compress" {
            loaded.train();
        }
        let mut value = Vec::with_capacity(VALUE_BYTES);
        counted(&mut loaded, operation, &mut value);
        loaded.tree.validate().expect("the tree is whole");
    }
    println!("{OPERATIONS} operations each");
}
