//! Unit tests of the table of hot records.

use std::sync::Arc;

use super::*;
use crate::tree::hash::hash;

const VALUE_BYTES: usize = 100;

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn value(n: u32) -> Vec<u8> {
    vec![n as u8; VALUE_BYTES]
}

struct Fixture {
    /// Nodes point to it, so it must not move.
    memory: Arc<NodeHeap>,
    hot: HotRecords,
}

impl Fixture {
    fn new(records: u64) -> Self {
        let this = Self {
            memory: Arc::new(NodeHeap::new(leafpress_base::reclaim::node_heap::Flush::InBatches)),
            hot: HotRecords::default(),
        };
        this.set_budget(records);
        this
    }

    fn set_budget(&self, records: u64) {
        let guard = self.memory.enter().unwrap();
        let bytes = records * (VALUE_BYTES + 4 + size_of::<EntryHeader>()) as u64;
        self.hot.set_budget(bytes, records, &self.memory, &guard).unwrap();
    }

    fn insert(&self, n: u32) -> bool {
        let guard = self.memory.enter().unwrap();
        let hash = hash(&key(n));
        self.hot.admits(hash, &self.memory, &guard)
            && self
                .hot
                .insert((&key(n), &value(n)), hash, Use::default(), &self.memory, &guard)
                .unwrap()
    }

    fn find(&self, n: u32) -> bool {
        let guard = self.memory.enter().unwrap();
        let found = self.hot.find(&key(n), hash(&key(n)), &guard);
        assert!(found.is_none_or(|found| found == value(n)), "{n}");
        found.is_some()
    }

    fn count(&self) -> u64 {
        let found = (0..2000).filter(|n| self.find(*n)).count() as u64;
        assert_eq!(found, self.hot.count(&self.memory));
        found
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // SAFETY: nothing else uses the memory.
        unsafe { self.hot.free(&self.memory.enter_alone()) };
        assert_eq!(self.memory.live_of(Kind::Hot), (0, 0));
    }
}

#[test]
fn without_a_budget_nothing_is_hot() {
    let hot = Fixture::new(0);
    assert!(!hot.insert(1) && !hot.find(1));
    assert_eq!(hot.count(), 0);
}

#[test]
fn what_is_put_in_is_found_until_it_is_taken_out() {
    let hot = Fixture::new(100);
    assert!((0..20).all(|n| hot.insert(n)));
    assert!(!hot.insert(7), "already present");
    assert_eq!(hot.count(), 20);
    let guard = hot.memory.enter().unwrap();
    assert!(hot.hot.remove(&key(7), hash(&key(7)), &guard).is_some());
    assert!(hot.hot.remove(&key(99), hash(&key(99)), &guard).is_none());
    assert!(!hot.find(7) && hot.find(8));
    assert_eq!(hot.count(), 19);
    assert!(hot.insert(7) && hot.find(7));
    hot.hot.suspend(&guard);
    hot.set_budget(100);
    assert!(!hot.insert(7));
    assert_eq!(hot.count(), 0);
    hot.hot.resume();
    hot.set_budget(100);
    assert!(hot.insert(7));
    assert_eq!(hot.count(), 1);
}

#[test]
fn records_hold_no_more_than_they_may() {
    let hot = Fixture::new(64);
    let table = hot.memory.live_of(Kind::Hot).1;
    let inserted = (0..1000).filter(|n| hot.insert(*n)).count();
    assert!(inserted > 100, "unused entries are evicted: {inserted}");
    let held = hot.memory.live_of(Kind::Hot).1 - table;
    // Sizes are rounded to cache lines.
    assert!(
        (30..=64).contains(&hot.count()) && held <= 64 * 192,
        "{} {held}",
        hot.count()
    );
}

#[test]
fn what_is_read_outlives_what_is_not() {
    let hot = Fixture::new(64);
    (0..16).for_each(|n| assert!(hot.insert(n)));
    for n in 16..400 {
        (0..16).filter(|n| hot.find(*n)).for_each(drop);
        hot.insert(n);
    }
    assert!((0..16).filter(|n| hot.find(*n)).count() >= 12);
    // Then other records are read.
    for _ in 0..20 {
        for n in 1000..1016 {
            if !hot.find(n) {
                hot.insert(n);
            }
        }
    }
    assert!((1000..1016).filter(|n| hot.find(*n)).count() >= 8);
}

#[test]
fn what_is_not_read_is_forgotten_in_time() {
    let hot = Fixture::new(64);
    (0..10).for_each(|n| assert!(hot.insert(n)));
    let guard = hot.memory.enter().unwrap();
    assert!(hot.find(3));
    assert!(hot.hot.age(&guard), "the entry that was read remains");
    assert_eq!(hot.hot.count(&hot.memory), 1);
    assert!(!hot.hot.age(&guard));
    assert_eq!(hot.hot.count(&hot.memory), 0);
}

#[test]
fn a_survey_counts_the_reads_of_the_less_read_half() {
    let hot = Fixture::new(64);
    let survey = |hot: &Fixture| hot.hot.survey(&hot.memory, &hot.memory.enter().unwrap()).unwrap();
    (0..20).for_each(|n| assert!(hot.insert(n)));
    assert_eq!(survey(&hot).mean_bytes, None, "all of them are new");
    for n in 0..20 {
        (0..=n).for_each(|_| assert!(hot.find(n)));
    }
    let found = survey(&hot);
    assert_eq!(found.least_reads, (1..=10).sum());
    assert_eq!(found.mean_bytes.unwrap() * 10, found.least_bytes);
    // Those that are not read leave in time.
    (0..8).for_each(|_| {
        assert!(hot.find(19));
        survey(&hot);
    });
    assert_eq!(hot.hot.count(&hot.memory), 1);
}

#[test]
fn a_record_that_returns_is_as_much_in_use_as_before() {
    let hot = Fixture::new(64);
    assert!(hot.insert(1));
    (0..10).for_each(|_| assert!(hot.find(1)));
    let guard = hot.memory.enter().unwrap();
    let used = hot.hot.remove(&key(1), hash(&key(1)), &guard).unwrap();
    let inserted = hot
        .hot
        .insert((&key(1), &value(1)), hash(&key(1)), used, &hot.memory, &guard);
    assert!(inserted.unwrap());
    assert_eq!(hot.hot.remove(&key(1), hash(&key(1)), &guard), Some(used));
}

#[test]
fn a_smaller_budget_keeps_the_most_used() {
    let hot = Fixture::new(100);
    (0..50).for_each(|n| assert!(hot.insert(n)));
    (0..10).for_each(|n| assert!(hot.find(n)));
    let held = hot.memory.live_of(Kind::Hot).1.cast_unsigned();
    let guard = hot.memory.enter().unwrap();
    hot.hot.set_budget(held / 2, 100, &hot.memory, &guard).unwrap();
    assert!(hot.memory.live_of(Kind::Hot).1.cast_unsigned() <= held / 2);
    assert!((0..10).all(|n| hot.find(n)));
}

#[test]
fn records_are_moved_and_a_table_is_exchanged() {
    let hot = Fixture::new(100);
    (0..50).for_each(|n| assert!(hot.insert(n)));
    hot.hot.relocate(&hot.memory, &hot.memory.enter().unwrap());
    assert_eq!(hot.count(), 50);
    hot.set_budget(120);
    assert_eq!(hot.count(), 50, "the table is still large enough");
    hot.set_budget(1000);
    assert_eq!(hot.count(), 0);
    assert!(hot.insert(1) && hot.find(1));
    hot.set_budget(0);
    assert!(!hot.find(1) && !hot.insert(1));
}

#[test]
fn readers_find_whole_values_while_others_come_and_go() {
    let hot = Fixture::new(32);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let hot = &hot;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..if cfg!(miri) { 100 } else { 20_000 } {
                    let n = random.u32(0..100);
                    match random.u32(0..10) {
                        // One thread at a time for each key, as under a latch.
                        0 if n % 3 == seed as u32 => _ = hot.insert(n),
                        1 if n % 3 == seed as u32 => {
                            let guard = hot.memory.enter().unwrap();
                            let _ = hot.hot.remove(&key(n), hash(&key(n)), &guard);
                            assert!(!hot.find(n));
                        }
                        2 if n == 0 => hot.hot.relocate(&hot.memory, &hot.memory.enter().unwrap()),
                        _ => _ = hot.find(n),
                    }
                }
            });
        }
    });
}
