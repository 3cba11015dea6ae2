//! The pool compared with a plain map, over random operations with a store that occasionally fails.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::support::{TestStore, page, version_of};
use leafpress_pages::PagePool;
use leafpress_pages::pool::{PolicyKind, PoolError, RawShare};
use leafpress_pages::store::PageId;
use proptest::prelude::*;

const PAGES: PageId = 300;

#[derive(Debug, Clone)]
enum Operation {
    Get(PageId),
    /// Gets a page and holds it for this many operations.
    Hold(PageId, usize),
    Update(PageId, usize, usize),
    Remove(PageId),
    Prefetch(PageId, u64),
    Flush,
    Resize(usize),
    FailReads(bool),
    FailWrites(bool),
    FailRemoves(bool),
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::{FailReads, FailRemoves, FailWrites, Flush, Get, Hold, Prefetch, Remove, Resize, Update};
    // Half of the accesses to a tenth of the pages.
    let id = || prop_oneof![0..PAGES, 0..PAGES / 10];
    prop_oneof![
        40 => id().prop_map(Get),
        6 => (id(), 0..40_usize).prop_map(|(id, turns)| Hold(id, turns)),
        20 => (id(), 1..=100_usize, 0..=100_usize).prop_map(|(id, len, noise)| Update(id, len, noise)),
        4 => id().prop_map(Remove),
        4 => (id(), 0..100_u64).prop_map(|(id, count)| Prefetch(id, count)),
        1 => Just(Flush),
        1 => (140..600_usize).prop_map(|kib| Resize(kib << 10)),
        1 => any::<bool>().prop_map(FailReads),
        1 => any::<bool>().prop_map(FailWrites),
        1 => any::<bool>().prop_map(FailRemoves),
    ]
}

fn is_injected(error: &PoolError) -> bool {
    matches!(error, PoolError::Store { source, .. } if source.to_string() == "the device is gone")
}

fn run(
    codec: &str,
    share: RawShare,
    policy: PolicyKind,
    max_page_bytes: usize,
    one_length: bool,
    threads: usize,
    operations: &[Operation],
) {
    let len_of = |percent: usize| match one_length {
        true => max_page_bytes,
        false => (max_page_bytes * percent / 100).max(64),
    };
    let mut versions: HashMap<PageId, (u64, usize)> = HashMap::new();
    let first: Vec<Vec<u8>> = (0..PAGES)
        .map(|id| page(id, 0, len_of(1 + id as usize * 7 % 100), id as usize * 13 % 101))
        .collect();
    for (id, bytes) in (0..).zip(&first) {
        versions.insert(id, (0, bytes.len()));
    }
    let store = TestStore::new(first, max_page_bytes, one_length);
    let pool = PagePool::builder(store.clone())
        .memory(400 << 10)
        .codec(codec.parse().unwrap())
        .share(share)
        .policy(policy)
        .promote_after_hits(3)
        .background_threads(threads)
        .build()
        .unwrap();
    let mut held = Vec::new();
    let mut next_version = 1;
    let (mut fails_reads, mut fails_writes, mut fails_removes) = (false, false, false);
    let (mut budget, mut held_before) = (400 << 10, 0);
    for (turn, operation) in operations.iter().enumerate() {
        match *operation {
            Operation::Get(id) | Operation::Hold(id, _) => match (pool.get(id), versions.get(&id)) {
                (Ok(bytes), Some(&(version, len))) => {
                    assert_eq!(version_of(id, &bytes), version);
                    assert_eq!(bytes.len(), len);
                    if let Operation::Hold(_, turns) = *operation {
                        held.push((turn + turns, id, version, bytes));
                    }
                }
                (Err(PoolError::NotFound { page }), None) => assert_eq!(page, id),
                (Err(PoolError::PoolFull { .. }), _) if !held.is_empty() => {}
                (Err(error), _) => assert!((fails_reads || fails_writes) && is_injected(&error), "{error}"),
                (Ok(_), None) => panic!("page {id} was removed"),
            },
            Operation::Update(id, percent, noise) => {
                let bytes = page(id, next_version, len_of(percent), noise);
                match pool.write(id, &bytes) {
                    Ok(()) => {
                        versions.insert(id, (next_version, bytes.len()));
                    }
                    Err(PoolError::PoolFull { .. }) if !held.is_empty() => {}
                    Err(error) => assert!(fails_writes && is_injected(&error), "{error}"),
                }
                next_version += 1;
            }
            Operation::Remove(id) => match pool.remove(id) {
                Ok(()) => {
                    versions.remove(&id);
                }
                Err(error) => assert!(fails_removes && is_injected(&error), "{error}"),
            },
            Operation::Prefetch(id, count) => {
                let pages: Vec<PageId> = (id..id + count).collect();
                match pool.prefetch(&pages) {
                    Ok(read) => assert!(read <= pages.len()),
                    Err(PoolError::PoolFull { .. }) if !held.is_empty() => {}
                    Err(error) => assert!((fails_reads || fails_writes) && is_injected(&error), "{error}"),
                }
            }
            Operation::Flush => match pool.flush() {
                Ok(()) => {
                    for (&id, &(version, _)) in &versions {
                        assert_eq!(version_of(id, &store.page(id).unwrap()), version);
                    }
                }
                Err(error) => assert!(fails_writes && is_injected(&error), "{error}"),
            },
            Operation::Resize(bytes) => {
                pool.set_memory(bytes).unwrap();
                budget = bytes;
            }
            Operation::FailReads(fail) => {
                fails_reads = fail;
                store.fail_reads(fail);
            }
            Operation::FailWrites(fail) => {
                fails_writes = fail;
                store.fail_writes(fail);
            }
            Operation::FailRemoves(fail) => {
                fails_removes = fail;
                store.fail_removes(fail);
            }
        }
        held.retain(|(until, id, version, bytes)| {
            assert_eq!(version_of(*id, bytes), *version, "a page changed under a pin");
            *until > turn
        });
        assert_eq!(pool.stats().budget_bytes, budget);
        // Pinned and unwritable pages may exceed the budget after it shrank. Then only tables and ghosts may grow.
        let is_stuck = held_before > budget || fails_writes || !held.is_empty();
        let slack = if is_stuck { budget / 32 + (16 << 10) } else { 0 };
        let limit = budget.max(held_before) + slack;
        // A worker thread makes room for tables shortly after it let them grow.
        let patience = Instant::now() + Duration::from_secs(if threads > 0 { 30 } else { 0 });
        held_before = loop {
            let stats = pool.stats();
            let held = stats.bytes_held - stats.pinned_copy_bytes;
            if held <= limit {
                break held;
            }
            assert!(Instant::now() < patience, "after {operation:?}: {stats:?}");
            std::thread::yield_now();
        };
    }
    drop(held);
    store.fail_writes(false);
    store.fail_reads(false);
    assert_eq!(pool.stats().pinned_copy_bytes, 0);
    for id in 0..PAGES {
        match (pool.get(id), versions.get(&id)) {
            (Ok(bytes), Some(&(version, _))) => assert_eq!(version_of(id, &bytes), version),
            (Err(PoolError::NotFound { .. }), None) => {}
            (found, expected) => panic!("page {id}: {found:?}, {expected:?}"),
        }
    }
    // Dropping the pool writes dirty pages.
    drop(pool);
    for id in 0..PAGES {
        let stored = store.page(id).map(|bytes| version_of(id, &bytes));
        assert_eq!(stored, versions.get(&id).map(|&(version, _)| version), "page {id}");
    }
    assert_eq!(store.overlaps(), 0);
}

/// The table memory of a page stays allocated after a failed read: pages are evicted for it as for one that was read.
#[test]
fn reads_that_fail_stay_within_the_budget() {
    use Operation::{FailReads, Get, Prefetch, Resize, Update};
    let mut operations = vec![Prefetch(242, 43), Prefetch(155, 19), Prefetch(79, 76), Prefetch(12, 67)];
    operations.extend([0, 3, 4, 5, 8, 285].map(Get));
    operations.extend([0, 1, 2, 6, 7, 9, 164, 166, 174, 175, 176, 178, 286].map(|id| Update(id, 1, 0)));
    // Little more than what is held: the need of one more read exceeds it.
    operations.extend([FailReads(true), Resize(154_624), Prefetch(165, 49)]);
    run(
        "none",
        RawShare::Adaptive,
        PolicyKind::S3Fifo,
        512,
        true,
        0,
        &operations,
    );
}

fn share() -> impl Strategy<Value = RawShare> {
    let fixed = (0..=100_u8).prop_map(|raw_percent| RawShare::Fixed { raw_percent });
    prop_oneof![1 => Just(RawShare::Adaptive), 3 => fixed]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_of_one_length(
        share in share(),
        policy in prop::sample::select(&PolicyKind::ALL),
        codec in prop::sample::select(&["none", "lz4", "zstd:1"]),
        len in prop::sample::select(&[512_usize, 1000, 4096, 8192]),
        threads in 0..=1_usize,
        operations in prop::collection::vec(operation(), 1..1500),
    ) {
        run(codec, share, policy, len, true, threads, &operations);
    }

    #[test]
    fn pages_of_many_lengths(
        share in share(),
        policy in prop::sample::select(&PolicyKind::ALL),
        codec in prop::sample::select(&["none", "lz4", "zstd:1"]),
        threads in 0..=1_usize,
        operations in prop::collection::vec(operation(), 1..1500),
    ) {
        run(codec, share, policy, 5000, false, threads, &operations);
    }
}
