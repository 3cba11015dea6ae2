//! A cache may forget, and never lies: every value that it returns is the one that was put in last, and its time is not over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leafpress::cache::{Builder, CacheUpdate, Clock, Disk, Entry, ManualClock, Policy};
use leafpress::codec::Codec;
use leafpress::pool::{FaultyStore, MemoryStore, Operation};
use proptest::prelude::*;

use crate::{noise, small};

#[derive(Debug, Clone)]
enum Op {
    Insert {
        key: u16,
        len: u32,
        ttl: Option<u16>,
    },
    Get(u16),
    Load(u16, u32),
    Remove(u16),
    Swap(u16, u32),
    Take(u16),
    /// Puts, in the place of an old value for as long as that had; removes what has a short one.
    Update(u16, u32),
    /// With the value that is there, or another.
    CompareAndSwap(u16, u32, bool),
    Scan(u16, u16),
    /// Many others, so that room has to be made.
    Flood(u16),
    Pass(u16),
    Memory(u8),
    Clear,
    Settle,
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0_u16..200;
    let len = || prop_oneof![8 => 0_u32..300, 3 => 300_u32..5000, 1 => 5000_u32..200_000];
    prop_oneof![
        12 => (key(), len(), proptest::option::of(1_u16..100)).prop_map(|(key, len, ttl)| Op::Insert { key, len, ttl }),
        8 => key().prop_map(Op::Get),
        3 => (key(), len()).prop_map(|(key, len)| Op::Load(key, len)),
        4 => key().prop_map(Op::Remove),
        3 => (key(), len()).prop_map(|(key, len)| Op::Swap(key, len)),
        3 => key().prop_map(Op::Take),
        6 => (key(), len()).prop_map(|(key, len)| Op::Update(key, len)),
        4 => (key(), len(), any::<bool>()).prop_map(|(key, len, same)| Op::CompareAndSwap(key, len, same)),
        2 => (key(), key()).prop_map(|(from, to)| Op::Scan(from.min(to), from.max(to))),
        2 => (100_u16..4000).prop_map(Op::Flood),
        2 => (1_u16..50).prop_map(Op::Pass),
        1 => (4_u8..20).prop_map(Op::Memory),
        1 => Just(Op::Settle),
        1 => Just(Op::Clear),
    ]
}

fn name(key: u16) -> Vec<u8> {
    format!("key {key:05}").into_bytes()
}

/// What may be found: the value, when it is over, and when it was last used.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<Duration>, Duration)>;

/// How long a record lives unused, in the models that have such a time.
const TO_IDLE: Duration = Duration::from_secs(9);

fn check(codec: Codec, ops: &[Op]) {
    check_cache(small().codec(codec), None, ops);
}

fn check_cache(mut builder: Builder, to_idle: Option<Duration>, ops: &[Op]) {
    if let Some(to_idle) = to_idle {
        builder = builder.time_to_idle(to_idle);
    }
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_900_000_000)));
    let cache = builder.clock(clock.clone()).build().unwrap();
    let mut model = Model::new();
    let may_be = |model: &Model, key: &[u8], found: &[u8]| {
        let (value, over, used) = model.get(key).unwrap_or_else(|| panic!("{key:?} is not there"));
        assert_eq!(found, value);
        assert!(over.is_none_or(|over| clock.now() < over), "{key:?} is over");
        assert!(
            to_idle.is_none_or(|to_idle| clock.now() < *used + to_idle),
            "{key:?} was not used"
        );
    };
    let uses = |model: &mut Model, key: &[u8]| {
        if let Some((_, _, used)) = model.get_mut(key) {
            *used = clock.now();
        }
    };
    let mut flooded = 0;
    for (step, op) in ops.iter().enumerate() {
        match *op {
            Op::Insert { key, len, ttl } => {
                let (key, value) = (name(key), noise(step as u64, len as usize));
                let ttl = ttl.map(|ttl| Duration::from_secs(ttl.into()));
                let mut entry = Entry::default();
                entry.ttl = ttl;
                cache.insert_with(&key, &value, entry).unwrap();
                model.insert(key, (value, ttl.map(|ttl| clock.now() + ttl), clock.now()));
            }
            Op::Get(key) => {
                if let Some(found) = cache.get(&name(key)).unwrap() {
                    may_be(&model, &name(key), &found);
                    uses(&mut model, &name(key));
                }
            }
            Op::Load(key, len) => {
                let value = noise(step as u64, len as usize);
                let mut loaded = false;
                let found = cache.get_or_insert_with(&name(key), || {
                    loaded = true;
                    value.clone()
                });
                let found = found.unwrap();
                if loaded {
                    assert_eq!(found, value);
                    model.insert(name(key), (value, None, clock.now()));
                } else {
                    may_be(&model, &name(key), &found);
                    uses(&mut model, &name(key));
                }
            }
            Op::Remove(key) => {
                let was_there = cache.remove(&name(key)).unwrap();
                let removed = model.remove(&name(key));
                assert!(!was_there || removed.is_some_and(|(_, over, _)| over.is_none_or(|over| clock.now() < over)));
            }
            Op::Swap(key, len) => {
                let (key, value) = (name(key), noise(step as u64, len as usize));
                if let Some(old) = cache.swap(&key, &value).unwrap() {
                    may_be(&model, &key, &old);
                }
                model.insert(key, (value, None, clock.now()));
            }
            Op::Take(key) => {
                if let Some(old) = cache.take(&name(key)).unwrap() {
                    may_be(&model, &name(key), &old);
                }
                model.remove(&name(key));
            }
            Op::Update(key, len) => {
                let (key, value) = (name(key), noise(step as u64, len as usize));
                let mut over = None;
                let answer = cache.update_with(&key, |old| {
                    over = old.and_then(|old| {
                        may_be(&model, &key, old);
                        model[&key].1
                    });
                    match old {
                        Some(old) if old.len() < 100 => CacheUpdate::Remove,
                        _ => CacheUpdate::Put(value.as_slice()),
                    }
                });
                match answer.unwrap() {
                    CacheUpdate::Put(_) => _ = model.insert(key, (value.clone(), over, clock.now())),
                    _ => _ = model.remove(&key),
                }
            }
            Op::CompareAndSwap(key, len, is_same) => {
                let (key, value) = (name(key), noise(step as u64, len as usize));
                let mut expected = cache.get(&key).unwrap();
                uses(&mut model, &key);
                if !is_same {
                    expected = expected.is_none().then(|| b"other".to_vec());
                }
                // What was there may have left since.
                if cache.compare_and_swap(&key, expected.as_deref(), Some(&value)).unwrap() {
                    let over = expected.and_then(|expected| {
                        may_be(&model, &key, &expected);
                        model[&key].1
                    });
                    model.insert(key, (value, over, clock.now()));
                }
            }
            Op::Scan(from, to) => {
                let mut last = None;
                for record in cache.range(name(from)..name(to)) {
                    let (key, value) = record.unwrap();
                    may_be(&model, &key, &value);
                    assert!(last.is_none_or(|last| last < key));
                    last = Some(key);
                }
            }
            Op::Flood(records) => {
                for _ in 0..records {
                    flooded += 1;
                    let (key, value) = (format!("flood {flooded}").into_bytes(), noise(flooded, 500));
                    cache.insert(&key, &value).unwrap();
                }
            }
            Op::Pass(seconds) => clock.advance(Duration::from_millis(u64::from(seconds) * 317)),
            Op::Memory(megabytes) => cache.set_memory(u64::from(megabytes) << 20).unwrap(),
            Op::Clear => {
                cache.clear().unwrap();
                model.clear();
            }
            Op::Settle => cache.settle().unwrap(),
        }
    }
    for key in model.keys() {
        if let Some(found) = cache.get(key).unwrap() {
            may_be(&model, key, &found);
        }
    }
    for n in 1..=flooded {
        let key = format!("flood {n}");
        cache.get_with(&key, |found| assert_eq!(found, noise(n, 500))).unwrap();
    }
    cache.validate().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lz4(ops in proptest::collection::vec(op(), 1..150)) {
        check(Codec::Lz4 { acceleration: 1 }, &ops);
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
    fn by_other_policies(ops in proptest::collection::vec(op(), 1..150), policy in 0..Policy::ALL.len()) {
        check_cache(small().policy(Policy::ALL[policy]), None, &ops);
    }

    #[test]
    fn with_a_disk_that_fails(ops in proptest::collection::vec(op(), 1..150), reads in 0_u64..40, writes in 0_u64..400, torn: bool) {
        let store = Arc::new(FaultyStore::new(MemoryStore::new(4096).unwrap()));
        store.fail_every(Operation::Read, reads);
        store.fail_every(Operation::Write, writes);
        store.short_read_every(reads * 3);
        store.set_torn_writes(torn);
        check_cache(small().disk(Disk::store(store, 4 << 20)), None, &ops);
    }

    #[test]
    fn none(ops in proptest::collection::vec(op(), 1..150)) {
        check(Codec::None, &ops);
    }
}
