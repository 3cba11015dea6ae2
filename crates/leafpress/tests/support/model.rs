//! Operations, and a runner that executes each on a tree and on a `BTreeMap` and compares the results.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use leafpress::Tree;
use leafpress::tree::Update;

use super::keys::KeyShape;
use super::values::Value;

/// One operation. Keys are numbers that a [`KeyShape`] turns into bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Put(u16, Value),
    InsertIfAbsent(u16, Value),
    UpdateIfPresent(u16, Value),
    /// Inserts or replaces, and gets the old value.
    Swap(u16, Value),
    /// Replaces a present or absent value: with a correct or wrong expectation, by a value or by nothing.
    CompareAndSwap {
        n: u16,
        is_expected: bool,
        new: Option<Value>,
    },
    /// Replaces a value of even length, removes another one, and inserts into an absent key if the new value has even
    /// length.
    UpdateWith(u16, Value),
    Get(u16),
    GetInto(u16),
    GetWith(u16),
    /// Reads `count` keys from the first on, with this distance, in one call.
    GetMany(u16, u8, u8),
    ContainsKey(u16),
    Remove(u16),
    /// Inserts `count` keys from the first on: grows the tree within one step of the sequence.
    PutRun(u16, u8, Value),
    /// Inserts `count` keys from number `n` on, with this distance, in one call; in key order if `sorted`.
    Extend {
        n: u16,
        count: u8,
        apart: u8,
        sorted: bool,
        value: Value,
    },
    /// Removes `count` keys from the first on: empties leaves.
    RemoveRun(u16, u8),
    /// Removes at most this many records of a range. The bounds may be inverted.
    RemoveRange(Bound<u16>, Bound<u16>, u8),
    /// Runs this many steps of upkeep, if the caller runs it.
    Upkeep(u8),
    RequestTraining,
    RequestCompaction,
    /// Scans; the bits of `turns`, used cyclically, select for each step whether it is taken from the back. The bounds
    /// may be inverted, which is an empty range.
    Range(Bound<u16>, Bound<u16>, u8),
    /// Scans everything, forward and backward, without concurrent operations.
    FullScan,
    Len,
    Clear,
    Compact,
    Settle,
    Validate,
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Runs `ops` on both and compares every result, then the whole contents, the invariants and the statistics.
pub fn check(tree: &Tree, shape: KeyShape, ops: &[Op]) {
    let mut map = Map::new();
    run(tree, &mut map, shape, ops);
    tree.validate().expect("validate at the end");
    same_contents(tree, &map, "at the end");
    same_statistics(tree, &map);
}

/// Runs `ops` on a tree and on a map with the same records, and compares every result.
pub fn run(tree: &Tree, map: &mut Map, shape: KeyShape, ops: &[Op]) {
    for (step, op) in ops.iter().enumerate() {
        apply(tree, map, shape, op, &format!("step {step}, {op:?}"));
    }
}

fn apply(tree: &Tree, map: &mut Map, shape: KeyShape, op: &Op, at: &str) {
    match *op {
        Op::Put(n, value) => put(tree, map, &shape.key(n), &value.bytes(), at),
        Op::InsertIfAbsent(n, value) => {
            let (key, value) = (shape.key(n), value.bytes());
            let absent = !map.contains_key(&key);
            if absent {
                map.insert(key.clone(), value.clone());
            }
            assert_eq!(tree.insert_if_absent(&key, &value).expect(at), absent, "{at}");
        }
        Op::UpdateIfPresent(n, value) => {
            let (key, value) = (shape.key(n), value.bytes());
            let present = map.contains_key(&key);
            if present {
                map.insert(key.clone(), value.clone());
            }
            assert_eq!(tree.replace(&key, &value).expect(at), present, "{at}");
        }
        Op::Swap(n, value) => {
            let (key, value) = (shape.key(n), value.bytes());
            let old = map.insert(key.clone(), value.clone());
            same_value(tree.swap(&key, &value).expect(at).as_deref(), old.as_ref(), at);
        }
        Op::CompareAndSwap { n, is_expected, new } => {
            let new = new.map(Value::bytes);
            compare_and_swap(tree, map, &shape.key(n), is_expected, new, at);
        }
        Op::UpdateWith(n, value) => update_with(tree, map, shape.key(n), value.bytes(), at),
        Op::Get(n) => {
            let key = shape.key(n);
            same_value(tree.get(&key).expect(at).as_deref(), map.get(&key), at);
        }
        Op::GetInto(n) => {
            let key = shape.key(n);
            let mut buffer = b"left from an earlier read".to_vec();
            let present = tree.get_into(&key, &mut buffer).expect(at);
            same_value(present.then_some(buffer.as_slice()), map.get(&key), at);
        }
        Op::GetWith(n) => {
            let key = shape.key(n);
            let read = tree.get_with(&key, <[u8]>::to_vec).expect(at);
            same_value(read.as_deref(), map.get(&key), at);
        }
        Op::GetMany(n, count, apart) => {
            let numbers = (0..u16::from(count)).map(|i| n.wrapping_add(i.wrapping_mul(apart.into())));
            let keys: Vec<_> = numbers.map(|n| shape.key(n)).collect();
            let values = tree.get_many(&keys).expect(at);
            assert_eq!(values.len(), keys.len(), "{at}");
            for (key, value) in keys.iter().zip(values) {
                same_value(value.as_deref(), map.get(key), at);
            }
        }
        Op::ContainsKey(n) => {
            let key = shape.key(n);
            assert_eq!(tree.contains_key(&key).expect(at), map.contains_key(&key), "{at}");
        }
        Op::Remove(n) => remove(tree, map, &shape.key(n), at),
        Op::PutRun(n, count, value) => {
            for i in 0..u16::from(count) {
                let value = Value {
                    seed: value.seed.wrapping_add(i),
                    ..value
                };
                put(tree, map, &shape.key(n.wrapping_add(i)), &value.bytes(), at);
            }
        }
        Op::Extend {
            n,
            count,
            apart,
            sorted,
            value,
        } => {
            let numbers = (0..u16::from(count)).map(|i| n.wrapping_add(i.wrapping_mul(apart.into())));
            let mut records: Vec<_> = numbers
                .map(|n| {
                    let seed = value.seed.wrapping_add(n);
                    (shape.key(n), Value { seed, ..value }.bytes())
                })
                .collect();
            if sorted {
                records.sort();
            }
            let before = map.len();
            map.extend(records.iter().cloned());
            assert_eq!(tree.extend(records).expect(at), (map.len() - before) as u64, "{at}");
        }
        Op::RemoveRun(n, count) => {
            for i in 0..u16::from(count) {
                remove(tree, map, &shape.key(n.wrapping_add(i)), at);
            }
        }
        Op::RemoveRange(low, high, limit) => {
            let bounds = (low.map(|n| shape.key(n)), high.map(|n| shape.key(n)));
            remove_range(tree, map, bounds, usize::from(limit), at);
        }
        Op::Upkeep(steps) => {
            for _ in 0..steps {
                tree.run_upkeep(Duration::ZERO).expect(at);
            }
        }
        Op::RequestTraining => _ = tree.request_training(),
        Op::RequestCompaction => _ = tree.request_compaction(),
        Op::Range(low, high, turns) => {
            same_range(
                tree,
                map,
                low.map(|n| shape.key(n)),
                high.map(|n| shape.key(n)),
                turns,
                at,
            );
        }
        Op::FullScan => same_contents(tree, map, at),
        Op::Len => {
            assert_eq!(tree.len(), map.len(), "{at}");
            assert_eq!(tree.is_empty(), map.is_empty(), "{at}");
        }
        Op::Clear => {
            tree.clear().expect(at);
            map.clear();
            assert!(tree.is_empty(), "{at}");
        }
        Op::Compact => tree.compact().expect(at),
        Op::Settle => tree.settle().unwrap(),
        Op::Validate => tree.validate().expect(at),
    }
}

fn put(tree: &Tree, map: &mut Map, key: &[u8], value: &[u8], at: &str) {
    let new = map.insert(key.to_vec(), value.to_vec()).is_none();
    assert_eq!(tree.insert(key, value).expect(at), new, "{at}");
}

fn remove(tree: &Tree, map: &mut Map, key: &[u8], at: &str) {
    assert_eq!(tree.remove(key).expect(at), map.remove(key).is_some(), "{at}");
}

fn compare_and_swap(tree: &Tree, map: &mut Map, key: &[u8], is_expected: bool, new: Option<Vec<u8>>, at: &str) {
    let old = map.get(key).cloned();
    // A wrong expectation has the same length.
    let expected = match old {
        old if is_expected => old,
        Some(mut old) if !old.is_empty() => {
            *old.last_mut().unwrap() ^= 1;
            Some(old)
        }
        Some(_) => None,
        None => Some(b"other".to_vec()),
    };
    let swapped = tree.compare_and_swap(key, expected.as_deref(), new.as_deref());
    assert_eq!(swapped.expect(at), is_expected, "{at}");
    if is_expected {
        match new {
            Some(new) => map.insert(key.to_vec(), new),
            None => map.remove(key),
        };
    }
}

fn update_with(tree: &Tree, map: &mut Map, key: Vec<u8>, value: Vec<u8>, at: &str) {
    let answer = |old: Option<&[u8]>| match old {
        Some(old) if old.len().is_multiple_of(2) => Update::Put(value.as_slice()),
        Some(_) => Update::Remove,
        None if value.len().is_multiple_of(2) => Update::Put(value.as_slice()),
        None => Update::Keep,
    };
    let old = map.get(&key).cloned();
    let done = tree.update_with(&key, |found| {
        same_value(found, old.as_ref(), at);
        answer(found)
    });
    let expected = answer(old.as_deref());
    assert!(done.expect(at) == expected, "{at}");
    match expected {
        Update::Put(value) => _ = map.insert(key, value.to_vec()),
        Update::Remove => _ = map.remove(&key),
        Update::Keep => {}
    }
}

/// Which records are removed is the tree's choice: of each shard the first ones.
fn remove_range(tree: &Tree, map: &mut Map, bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>), limit: usize, at: &str) {
    let is_inside = |key: &[u8]| {
        let above = match &bounds.0 {
            Bound::Included(low) => low.as_slice() <= key,
            Bound::Excluded(low) => low.as_slice() < key,
            Bound::Unbounded => true,
        };
        above
            && match &bounds.1 {
                Bound::Included(high) => key <= high.as_slice(),
                Bound::Excluded(high) => key < high.as_slice(),
                Bound::Unbounded => true,
            }
    };
    let inside = map.keys().filter(|key| is_inside(key)).count();
    let removed = tree.remove_range(bounds.clone(), limit).expect(at);
    assert_eq!(
        (removed.records as usize, removed.is_done),
        (inside.min(limit), inside <= limit),
        "{at}"
    );
    let (mut records, mut bytes) = (0, 0);
    map.retain(|key, value| {
        let stays = !is_inside(key) || tree.contains_key(key).expect(at);
        if !stays {
            records += 1;
            bytes += (key.len() + value.len()) as u64;
        }
        stays
    });
    assert_eq!((removed.records, removed.key_and_value_bytes), (records, bytes), "{at}");
}

fn same_value(tree: Option<&[u8]>, map: Option<&Vec<u8>>, at: &str) {
    // Not assert_eq: a value may be 100 KiB long.
    assert!(
        tree == map.map(Vec::as_slice),
        "{at}: the tree has {:?} bytes, the model {:?}",
        tree.map(<[u8]>::len),
        map.map(Vec::len)
    );
}

/// Compares a range scan, with its steps taken from front and back according to `turns`.
fn same_range(tree: &Tree, map: &Map, low: Bound<Vec<u8>>, high: Bound<Vec<u8>>, turns: u8, at: &str) {
    let bounds = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
    let mut got = tree.range(bounds);
    let empty = match (&low, &high) {
        (Bound::Included(l), Bound::Included(h)) => l > h,
        (Bound::Included(l) | Bound::Excluded(l), Bound::Included(h) | Bound::Excluded(h)) => l >= h,
        _ => false,
    };
    if empty {
        assert!(
            got.next().is_none() && got.next_back().is_none(),
            "{at}: an empty range has a record"
        );
        return;
    }
    // `low` and `high` are equal and both excluded only if `empty`: `BTreeMap::range` accepts the rest.
    if let Bound::Included(start) = &low {
        same_scan(tree, map, start, usize::from(turns) / 4, at);
    }
    let mut expected = map.range::<[u8], _>(bounds);
    for step in 0.. {
        let back = turns >> (step % 8) & 1 == 1;
        let (got, expected) = if back {
            (got.next_back(), expected.next_back())
        } else {
            (got.next(), expected.next())
        };
        let got = got.transpose().expect(at);
        assert!(
            got.as_ref().map(|(k, v)| (k, v)) == expected,
            "{at}: scan step {step} (from the {}): the tree has key {:02x?}, the model {:02x?}",
            if back { "back" } else { "front" },
            got.map(|(key, _)| key),
            expected.map(|(key, _)| key)
        );
        if expected.is_none() {
            break;
        }
    }
    // An exhausted scan stays exhausted, from both ends.
    assert!(
        got.next().is_none() && got.next_back().is_none(),
        "{at}: a record after the end"
    );
}

/// Compares a scan of up to `limit` records.
fn same_scan(tree: &Tree, map: &Map, start: &[u8], limit: usize, at: &str) {
    let mut expected = map
        .range::<[u8], _>((Bound::Included(start), Bound::Unbounded))
        .take(limit);
    let scanned = tree.range(start..).limit(limit).visit(|key, value| {
        let (wanted, wanted_value) = expected
            .next()
            .unwrap_or_else(|| panic!("{at}: a scan of {limit} goes on to {key:02x?}"));
        assert!(
            key == wanted.as_slice() && value == wanted_value.as_slice(),
            "{at}: a scan has {key:02x?} for {wanted:02x?}"
        );
    });
    let scanned = scanned.expect(at);
    assert!(
        expected.next().is_none(),
        "{at}: a scan of {limit} ends after {scanned}"
    );
}

pub fn same_contents(tree: &Tree, map: &Map, at: &str) {
    assert_eq!(tree.len(), map.len(), "{at}");
    same_range(tree, map, Bound::Unbounded, Bound::Unbounded, 0x00, at);
    same_range(tree, map, Bound::Unbounded, Bound::Unbounded, 0xff, at);
    for (key, value) in map {
        same_value(tree.get(key).expect(at).as_deref(), Some(value), at);
    }
}

pub fn same_statistics(tree: &Tree, map: &Map) {
    let stats = tree.stats();
    assert_eq!(stats.records, map.len() as u64);
    let user_bytes: usize = map.iter().map(|(key, value)| key.len() + value.len()).sum();
    assert_eq!(stats.user_bytes, user_bytes as u64);
    let parts = stats.leaf_bytes
        + stats.inner_bytes
        + stats.interpolation_bytes
        + stats.landing_bytes
        + stats.large_value_bytes
        + stats.hot_bytes
        + stats.dictionary_bytes
        + stats.retired_bytes
        + stats.free_bytes
        + stats.thread_bytes
        + stats.fixed_bytes;
    assert_eq!(stats.bytes_held, parts, "bytes held is the sum of its parts: {stats:?}");
}
