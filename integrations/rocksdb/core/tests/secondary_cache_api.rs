//! The secondary cache behind RocksDB's own block caches, one call at a time.

mod driver;

use driver::{Driver, FAIL_CREATE, FAIL_CREATE_SILENTLY, FAIL_SAVETO, faults, live_objects};

fn block(n: u64) -> Vec<u8> {
    let fields = (0..160).map(|field| format!("{:06}:row {n};", (n * 7919 + field) % 1_000_003));
    let mut bytes = fields.collect::<String>().into_bytes();
    bytes.resize(4096, b' ');
    bytes
}

const OPTIONS: &str = "leafpress_secondary_cache://capacity=8MiB;codec=lz4";

#[test]
fn what_a_block_cache_evicts_is_found_again() {
    for clock in [false, true] {
        for as_multi_get in [false, true] {
            let driver = Driver::new(OPTIONS, 64 << 10, clock).unwrap();
            for n in 0..500 {
                assert!(driver.insert(n, &block(n)));
            }
            for _ in 0..3 {
                for n in 0..500 {
                    assert!(driver.lookup(n, as_multi_get) == Some(block(n)), "{n} clock {clock}");
                }
            }
            assert!(driver.lookup(9999, as_multi_get).is_none());
            assert!(driver.ticker("hits") > 1_000);
            assert_eq!(driver.ticker("corrupt"), 0);
            assert!(driver.ticker("held.bytes") <= driver.ticker("capacity.bytes"));
            assert!(driver.ticker("stored.bytes") * 2 < driver.ticker("raw.bytes"));
        }
    }
}

#[test]
fn a_block_that_rocksdb_keeps_is_not_kept_twice() {
    let driver = Driver::new(OPTIONS, 1 << 20, false).unwrap();
    assert!(driver.secondary_insert(1, &block(1), false));
    // The first hit is for one reader only, the second one is for good.
    assert!(driver.lookup(1, false).is_some());
    assert_eq!((driver.ticker("entries"), driver.ticker("taken")), (1, 0));
    assert!(driver.lookup(1, false).is_some());
    assert_eq!((driver.ticker("entries"), driver.ticker("taken")), (1, 1));
    assert!(driver.lookup(1, false).is_some(), "it is in the block cache");
    assert_eq!(driver.ticker("lookups"), 2);
    // Until there is need for its room it costs nothing to have it back.
    assert!(driver.secondary_insert(1, &block(1), false));
    assert_eq!((driver.ticker("inserts"), driver.ticker("returned")), (1, 1));
}

#[test]
fn the_share_of_raw_blocks_is_kept() {
    for (share, least, most) in [("0", 0, 0), ("50", 3 << 20, 4 << 20)] {
        let options = format!("{OPTIONS};dictionary=off;share={share}");
        let driver = Driver::new(&options, 64 << 10, false).unwrap();
        for n in 0..4_000 {
            assert!(driver.secondary_insert(n, &block(n), true));
        }
        assert!((least..=most).contains(&driver.ticker("kept_raw.bytes")), "{share}");
        assert_eq!(driver.ticker("share.raw.pct").to_string(), share);
        for n in 0..4_000 {
            let found = driver.lookup(n, false);
            assert!(found.is_none_or(|found| found == block(n)));
        }
        assert_eq!(driver.ticker("hits.raw") > 0, share != "0");
        assert!(driver.ticker("hits.compressed") > 0);
        assert_eq!(driver.ticker("corrupt"), 0);
    }
}

#[test]
fn without_exclusive_it_stays_and_is_not_compressed_again() {
    let options = "leafpress_secondary_cache://capacity=8MiB;codec=lz4;exclusive=false";
    let driver = Driver::new(options, 64 << 10, false).unwrap();
    assert!(driver.secondary_insert(1, &block(1), false));
    assert!(driver.secondary_lookup(1, true).unwrap().kept);
    driver.lookup(1, false);
    driver.lookup(1, false);
    assert_eq!(driver.ticker("entries"), 1);
    for n in 100..200 {
        driver.insert(n, &block(n));
    }
    assert_eq!(driver.ticker("inserts.replaced"), 0);
    assert!(driver.lookup(1, false) == Some(block(1)));
}

#[test]
fn the_calls_keep_their_promises() {
    let driver = Driver::new(OPTIONS, 64 << 10, false).unwrap();
    assert!(driver.secondary_lookup(1, false).is_none());
    assert!(driver.secondary_insert(1, &block(1), true));
    let found = driver.secondary_lookup(1, false).unwrap();
    assert!(found.bytes == block(1) && found.kept);
    assert_eq!((found.compression_type, found.tier), (0, 0));
    let found = driver.secondary_lookup(1, true).unwrap();
    assert!(found.bytes == block(1) && !found.kept);
    // It was advised to be erased: it is when there is need for its room, and until then it is here.
    assert!(driver.secondary_lookup(1, false).unwrap().bytes == block(1));
    driver.secondary_insert(2, &block(2), true);
    driver.secondary_erase(2);
    assert!(driver.secondary_lookup(2, false).is_none());
    // Compressed by a table's codec: it comes back as it was, with its type.
    let zstd = 7;
    assert!(driver.secondary_insert_saved(3, b"as if compressed", zstd));
    let found = driver.secondary_lookup(3, false).unwrap();
    assert_eq!(
        (found.bytes.as_slice(), found.compression_type, found.tier),
        (b"as if compressed".as_slice(), zstd, 0)
    );
    // A block takes the place of another with its key.
    driver.secondary_insert(4, &block(4), true);
    driver.secondary_insert(4, &block(5), true);
    assert!(driver.secondary_lookup(4, false).unwrap().bytes == block(5));
}

#[test]
fn callbacks_that_fail_are_misses_and_leak_nothing() {
    let before = live_objects();
    {
        let driver = Driver::new(OPTIONS, 64 << 10, false).unwrap();
        faults(FAIL_SAVETO);
        assert!(!driver.secondary_insert(1, &block(1), true));
        faults(0);
        assert!(driver.secondary_lookup(1, false).is_none());
        assert_eq!(driver.ticker("rejected.failed"), 1);
        for (n, fault) in [(2, FAIL_CREATE), (3, FAIL_CREATE_SILENTLY)] {
            driver.secondary_insert(n, &block(n), true);
            faults(fault);
            assert!(driver.lookup(n, false).is_none());
            faults(0);
            assert!(
                driver.lookup(n, false).is_none(),
                "a block that cannot be used is dropped"
            );
        }
        assert_eq!(
            (
                driver.ticker("hits.failed"),
                driver.ticker("hits"),
                driver.ticker("entries")
            ),
            (2, 0, 0)
        );
        // Evictions while saving fails.
        faults(FAIL_SAVETO);
        for n in 0..100 {
            driver.insert(n, &block(n));
        }
        faults(0);
        assert_eq!(driver.ticker("entries"), 0);
    }
    assert_eq!(live_objects(), before);
}

#[test]
fn the_capacity_can_be_changed_and_taken_away_for_a_while() {
    let driver = Driver::new("leafpress_secondary_cache://capacity=16MiB;codec=none", 64 << 10, false).unwrap();
    assert_eq!(driver.capacity(), 16 << 20);
    (0..3_000).for_each(|n| assert!(driver.secondary_insert(n, &block(n), true)));
    let held = |driver: &Driver| driver.ticker("held.bytes") as usize;
    assert!(held(&driver) > 11 << 20);
    driver.deflate(8 << 20);
    assert_eq!(driver.capacity(), 16 << 20);
    assert!(held(&driver) <= 8 << 20);
    driver.inflate(8 << 20);
    (0..3_000).for_each(|n| assert!(driver.secondary_insert(n, &block(n), true)));
    assert!(held(&driver) > 11 << 20);
    driver.set_capacity(0);
    assert!(held(&driver) < 16 << 10 && driver.ticker("entries") == 0);
    assert!(driver.secondary_lookup(1, false).is_none());
    driver.set_capacity(4 << 20);
    (0..3_000).for_each(|n| assert!(driver.secondary_insert(n, &block(n), true)));
    let statistics = driver.option("statistics").unwrap();
    assert!(
        held(&driver) <= 4 << 20 && driver.ticker("entries") > 700,
        "{statistics}"
    );
    assert!((0..3_000).all(|n| {
        driver
            .secondary_lookup(n, false)
            .is_none_or(|found| found.bytes == block(n))
    }));
}

#[test]
fn threads_read_and_write_while_the_capacity_changes() {
    for clock in [false, true] {
        let driver = Driver::new(
            "leafpress_secondary_cache://capacity=4MiB;codec=zstd:1;dictionary=4K",
            256 << 10,
            clock,
        )
        .unwrap();
        std::thread::scope(|scope| {
            for thread in 0..3_u64 {
                let driver = &driver;
                scope.spawn(move || {
                    let mut state = thread + 1;
                    for _ in 0..4_000 {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        let n = (state >> 33) % 2_000;
                        match driver.lookup(n, state >> 63 == 0) {
                            Some(found) => assert!(found == block(n)),
                            None => assert!(driver.insert(n, &block(n))),
                        }
                    }
                });
            }
            let driver = &driver;
            scope.spawn(move || {
                for step in 0..60_usize {
                    driver.set_capacity(if step % 4 == 3 { 0 } else { (step % 5) << 20 });
                    driver.deflate(1 << 20);
                    driver.inflate(1 << 20);
                    // The cache's own few kilobytes, and buffers that other threads' calls have in hand, go when those
                    // end.
                    let (held, capacity) = (driver.ticker("held.bytes"), driver.ticker("capacity.bytes"));
                    assert!(held <= capacity.max(24 << 10) + 3 * (512 << 10), "{held} of {capacity}");
                }
                driver.set_capacity(4 << 20);
            });
        });
        assert!(driver.ticker("hits") > 0);
        assert_eq!(driver.ticker("corrupt"), 0);
    }
}
