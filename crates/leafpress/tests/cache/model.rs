//! Model test: a cache may evict records, but every value that it returns is the one inserted last, and has not
//! expired.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{CacheBuilder, CacheUpdate, Clock, Disk, InsertOptions, ManualClock, Policy, RawShare};
use leafpress::codec::{Codec, TrialGoal};
use leafpress::store::{FaultyStore, MemoryStore, Operation};
use proptest::prelude::*;

use crate::{noise, small};

/// Keys of most operations.
const KEYS: u16 = 200;
const FLOOD_BYTES: usize = 500;

#[derive(Debug, Clone)]
pub enum Op {
    Insert {
        key: u16,
        len: u32,
        ttl: Option<u16>,
        to_idle: Option<u8>,
    },
    Get(u16),
    Load(u16, u32),
    Remove(u16),
    Swap(u16, u32),
    Take(u16),
    /// Replaces a value with the same remaining lifetime; removes one with a short lifetime.
    Update(u16, u32),
    /// With the current value, or another.
    CompareAndSwap(u16, u32, bool),
    Scan(u16, u16),
    /// Inserts all keys of a range, or removes them.
    PutRange(u16, u16),
    RemoveRange(u16, u16),
    /// Inserts many others, so that records are evicted.
    Flood(u16),
    Pass(u16),
    Memory(u8),
    Clear,
    Settle,
    /// Spills everything to the disk, if there is one.
    Spill,
}

pub fn op() -> impl Strategy<Value = Op> {
    let key = || 0..KEYS;
    let len = || prop_oneof![8 => 0_u32..300, 3 => 300_u32..5000, 1 => 5000_u32..200_000];
    let range = move || (key(), key()).prop_map(|(from, to)| (from.min(to), from.max(to)));
    prop_oneof![
        12 => (key(), len(), proptest::option::of(1_u16..100), proptest::option::weighted(0.3, 1_u8..20))
            .prop_map(|(key, len, ttl, to_idle)| Op::Insert { key, len, ttl, to_idle }),
        8 => key().prop_map(Op::Get),
        3 => (key(), len()).prop_map(|(key, len)| Op::Load(key, len)),
        4 => key().prop_map(Op::Remove),
        3 => (key(), len()).prop_map(|(key, len)| Op::Swap(key, len)),
        3 => key().prop_map(Op::Take),
        6 => (key(), len()).prop_map(|(key, len)| Op::Update(key, len)),
        4 => (key(), len(), any::<bool>()).prop_map(|(key, len, same)| Op::CompareAndSwap(key, len, same)),
        2 => range().prop_map(|(from, to)| Op::Scan(from, to)),
        2 => range().prop_map(|(from, to)| Op::PutRange(from, to)),
        1 => range().prop_map(|(from, to)| Op::RemoveRange(from, to)),
        2 => (100_u16..4000).prop_map(Op::Flood),
        2 => (1_u16..50).prop_map(Op::Pass),
        1 => (4_u8..20).prop_map(Op::Memory),
        1 => Just(Op::Settle),
        1 => Just(Op::Clear),
        2 => Just(Op::Spill),
    ]
}

fn name(key: u16) -> Vec<u8> {
    format!("key {key:05}").into_bytes()
}

fn flood_name(n: u64) -> Vec<u8> {
    format!("flood {n}").into_bytes()
}

/// What may be found.
struct Kept {
    value: Vec<u8>,
    times: Times,
    used: Duration,
}

/// When a record expires: at a moment, and if it is not used for this long.
#[derive(Clone, Copy, Default)]
struct Times {
    over: Option<Duration>,
    to_idle: Option<Duration>,
}

type Model = BTreeMap<Vec<u8>, Kept>;

/// The time to idle, in the models that have one.
const TO_IDLE: Duration = Duration::from_secs(9);

fn check(codec: Codec, ops: &[Op]) {
    check_cache(small().codec(codec), None, ops);
}

fn check_cache(builder: CacheBuilder, to_idle: Option<Duration>, ops: &[Op]) {
    check_cache_after(builder, to_idle, ops, || ());
}

/// Checks a cache for which `built` is called once it is built.
fn check_cache_after(builder: CacheBuilder, to_idle: Option<Duration>, ops: &[Op], built: impl FnOnce()) {
    let mut checked = Checked::new(to_idle);
    let cache = checked.build(builder);
    built();
    ops.iter().for_each(|op| checked.step(&cache, op));
    checked.look(&cache);
}

/// The history of a cache, and so its allowed results; includes reopened caches.
pub struct Checked {
    clock: Arc<ManualClock>,
    to_idle: Option<Duration>,
    model: Model,
    steps: u64,
    /// Keys of floods are numbered, with one value; those up to `cleared` are removed.
    flooded: u64,
    cleared: u64,
}

impl Checked {
    pub fn new(to_idle: Option<Duration>) -> Self {
        Self {
            clock: Arc::new(ManualClock::new(Duration::from_secs(1_900_000_000))),
            to_idle,
            model: Model::new(),
            steps: 0,
            flooded: 0,
            cleared: 0,
        }
    }

    pub fn build(&self, mut builder: CacheBuilder) -> Cache {
        if let Some(to_idle) = self.to_idle {
            builder = builder.time_to_idle(to_idle);
        }
        builder.clock(self.clock.clone()).build().unwrap()
    }

    fn may_be(&self, key: &[u8], found: &[u8]) {
        let there = self.model.get(key);
        let Kept { value, times, used } = there.unwrap_or_else(|| panic!("{} is not there", key.escape_ascii()));
        assert!(found == value, "{} has another value", key.escape_ascii());
        let now = self.clock.now();
        assert!(times.over.is_none_or(|over| now < over), "{key:?} has expired");
        assert!(
            times
                .to_idle
                .or(self.to_idle)
                .is_none_or(|to_idle| now < *used + to_idle),
            "{key:?} was not used"
        );
    }

    fn use_now(&mut self, key: &[u8]) {
        if let Some(kept) = self.model.get_mut(key) {
            kept.used = self.clock.now();
        }
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>, times: Times) {
        let used = self.clock.now();
        self.model.insert(key, Kept { value, times, used });
    }

    fn new_value(&self, len: u32) -> Vec<u8> {
        noise(self.steps, len as usize)
    }

    pub fn step(&mut self, cache: &Cache, op: &Op) {
        self.steps += 1;
        match *op {
            Op::Insert { key, len, ttl, to_idle } => self.insert(cache, name(key), len, ttl, to_idle),
            Op::Get(key) => self.get(cache, &name(key)),
            Op::Load(key, len) => self.load(cache, name(key), len),
            Op::Remove(key) => self.remove(cache, &name(key)),
            Op::PutRange(from, to) => (from..=to).for_each(|key| self.insert(cache, name(key), 40, None, None)),
            Op::RemoveRange(from, to) => (from..=to).for_each(|key| self.remove(cache, &name(key))),
            Op::Swap(key, len) => {
                let (key, value) = (name(key), self.new_value(len));
                if let Some(old) = cache.swap(&key, &value).unwrap() {
                    self.may_be(&key, &old);
                }
                self.put(key, value, Times::default());
            }
            Op::Take(key) => {
                if let Some(old) = cache.take(&name(key)).unwrap() {
                    self.may_be(&name(key), &old);
                }
                self.model.remove(&name(key));
            }
            Op::Update(key, len) => self.update(cache, name(key), len),
            Op::CompareAndSwap(key, len, is_same) => self.compare_and_swap(cache, name(key), len, is_same),
            Op::Scan(from, to) => self.scan(cache, from, to),
            Op::Flood(records) => {
                for _ in 0..records {
                    self.flooded += 1;
                    let value = noise(self.flooded, FLOOD_BYTES);
                    cache.insert(&flood_name(self.flooded), &value).unwrap();
                }
            }
            Op::Pass(seconds) => self.clock.advance(Duration::from_millis(u64::from(seconds) * 317)),
            Op::Memory(megabytes) => cache.set_memory(u64::from(megabytes) << 20).unwrap(),
            Op::Clear => {
                cache.clear().unwrap();
                self.model.clear();
                self.cleared = self.flooded;
            }
            Op::Settle => cache.settle().unwrap(),
            Op::Spill => cache.spill().unwrap(),
        }
    }

    fn remove(&mut self, cache: &Cache, key: &[u8]) {
        let was_there = cache.remove(key).unwrap();
        let removed = self.model.remove(key);
        let is_over = |over: Option<Duration>| over.is_some_and(|over| over <= self.clock.now());
        assert!(!was_there || removed.is_some_and(|kept| !is_over(kept.times.over)));
    }

    fn insert(&mut self, cache: &Cache, key: Vec<u8>, len: u32, ttl: Option<u16>, to_idle: Option<u8>) {
        let value = self.new_value(len);
        let ttl = ttl.map(|ttl| Duration::from_secs(ttl.into()));
        let mut entry = InsertOptions::default();
        entry.ttl = ttl;
        entry.time_to_idle = to_idle.map(|to_idle| Duration::from_secs(to_idle.into()));
        cache.insert_entry(&key, &value, entry).unwrap();
        let (over, to_idle) = (ttl.map(|ttl| self.clock.now() + ttl), entry.time_to_idle);
        self.put(key, value, Times { over, to_idle });
    }

    fn get(&mut self, cache: &Cache, key: &[u8]) {
        if let Some(found) = cache.get(key).unwrap() {
            self.may_be(key, &found);
            self.use_now(key);
        }
    }

    fn load(&mut self, cache: &Cache, key: Vec<u8>, len: u32) {
        let value = self.new_value(len);
        let mut loaded = false;
        let found = cache.get_or_insert_with(&key, || {
            loaded = true;
            value.clone()
        });
        let found = found.unwrap();
        if loaded {
            assert_eq!(found, value);
            self.put(key, value, Times::default());
        } else {
            self.may_be(&key, &found);
            self.use_now(&key);
        }
    }

    fn update(&mut self, cache: &Cache, key: Vec<u8>, len: u32) {
        let value = self.new_value(len);
        let mut times = Times::default();
        let answer = cache.update_with(&key, |old| {
            times = old.map_or_else(Times::default, |old| {
                self.may_be(&key, old);
                self.model[&key].times
            });
            match old {
                Some(old) if old.len() < 100 => CacheUpdate::Remove,
                _ => CacheUpdate::Put(value.as_slice()),
            }
        });
        match answer.unwrap() {
            CacheUpdate::Put(_) => self.put(key, value.clone(), times),
            _ => _ = self.model.remove(&key),
        }
    }

    fn compare_and_swap(&mut self, cache: &Cache, key: Vec<u8>, len: u32, is_same: bool) {
        let value = self.new_value(len);
        let mut expected = cache.get(&key).unwrap();
        self.use_now(&key);
        if !is_same {
            expected = expected.is_none().then(|| b"other".to_vec());
        }
        // The record may have been evicted since.
        if cache.compare_and_swap(&key, expected.as_deref(), Some(&value)).unwrap() {
            let times = expected.map_or_else(Times::default, |expected| {
                self.may_be(&key, &expected);
                self.model[&key].times
            });
            self.put(key, value, times);
        }
    }

    fn scan(&self, cache: &Cache, from: u16, to: u16) {
        let in_memory: Vec<_> = cache.range(name(from)..name(to)).map(Result::unwrap).collect();
        let all: Vec<_> = cache.scan(name(from)..name(to)).map(Result::unwrap).collect();
        for records in [&in_memory, &all] {
            assert!(records.is_sorted_by(|one, next| one.0 < next.0));
            records.iter().for_each(|(key, value)| self.may_be(key, value));
        }
        let mut backwards: Vec<_> = cache
            .scan(name(from)..name(to))
            .backwards()
            .map(Result::unwrap)
            .collect();
        backwards.reverse();
        backwards.iter().for_each(|(key, value)| self.may_be(key, value));
    }

    /// Looks up every key ever inserted, and returns how many are present.
    pub fn look(&mut self, cache: &Cache) -> usize {
        let mut there = 0;
        for key in (0..KEYS).map(name) {
            if let Some(found) = cache.get(&key).unwrap() {
                self.may_be(&key, &found);
                self.use_now(&key);
                there += 1;
            }
        }
        for n in 1..=self.flooded {
            let found = cache.get_with(&flood_name(n), |found| {
                assert!(n > self.cleared, "flood {n} was cleared");
                assert!(found == noise(n, FLOOD_BYTES), "flood {n} has another value");
            });
            there += usize::from(found.unwrap().is_some());
        }
        cache.validate().unwrap();
        there
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lz4(ops in proptest::collection::vec(op(), 1..150)) {
        check(Codec::Lz4 { acceleration: 1 }, &ops);
    }

    #[test]
    fn onpair(ops in proptest::collection::vec(op(), 1..150)) {
        check(Codec::OnPair { bits: 12 }, &ops);
    }

    #[test]
    fn trial(ops in proptest::collection::vec(op(), 1..150)) {
        check(Codec::Trial { goal: TrialGoal::Balance }, &ops);
    }

    #[test]
    fn with_copies(ops in proptest::collection::vec(op(), 1..150)) {
        check_cache(small().share(RawShare::Fixed { raw_percent: 30 }), None, &ops);
    }

    #[test]
    fn auto(ops in proptest::collection::vec(op(), 1..150)) {
        check(Codec::Auto { level: 1 }, &ops);
    }

    #[test]
    fn with_a_disk(ops in proptest::collection::vec(op(), 1..150)) {
        let store = Arc::new(MemoryStore::new(4096).unwrap());
        check_cache(small().disk(Disk::store(store, 4 << 20)), None, &ops);
    }

    #[test]
    fn with_a_time_to_idle(ops in proptest::collection::vec(op(), 1..150)) {
        check_cache(small(), Some(TO_IDLE), &ops);
    }

    #[test]
    fn with_a_time_to_idle_and_a_disk(ops in proptest::collection::vec(op(), 1..150)) {
        let store = Arc::new(MemoryStore::new(4096).unwrap());
        check_cache(small().disk(Disk::store(store, 4 << 20)), Some(TO_IDLE), &ops);
    }

    #[test]
    fn by_whole_leaves(ops in proptest::collection::vec(op(), 1..150)) {
        check_cache(small().policy(Policy::Page), None, &ops);
    }

    #[test]
    fn with_a_disk_that_fails(
        ops in proptest::collection::vec(op(), 1..150),
        reads in 0_u64..40,
        writes in 0_u64..400,
        torn: bool,
    ) {
        let store = Arc::new(FaultyStore::new(MemoryStore::new(4096).unwrap()));
        // The builder writes the superblock and returns the error of a device on which that fails.
        check_cache_after(small().disk(Disk::store(store.clone(), 4 << 20)), None, &ops, || {
            store.fail_every(Operation::Read, reads);
            store.fail_every(Operation::Write, writes);
            store.short_read_every(reads * 3);
            store.set_torn_writes(torn);
        });
    }

    #[test]
    fn none(ops in proptest::collection::vec(op(), 1..150)) {
        check(Codec::None, &ops);
    }
}
