use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;
use crate::core::keys::below;

const ORDERED: [&str; 7] = [
    "leafpress:none",
    "leafpress:lz4",
    "leafpress:zstd:1",
    "btreemap",
    "skiplist",
    "treeindex",
    "masstree",
];

fn options(name: &str, key_size: usize, value_size: usize) -> Options {
    let mut options = Options::new(name.parse().unwrap());
    (options.key_prefix, options.key_size, options.value_size) = ("p/".into(), key_size, value_size);
    options
}

#[test]
fn maps_name_how_they_hold_values() {
    for name in ["btreemap", "skiplist", "treeindex", "masstree", "hashmap"] {
        for (value_size, how) in [
            (8, "(inline values)"),
            (128, "(inline values)"),
            (100, "(boxed values)"),
        ] {
            let options = options(name, 6, value_size);
            let described = options.input.open(&options, None).unwrap().name();
            assert!(described.ends_with(how), "{described}");
        }
    }
}

/// Each index does what a map of the standard library does, for keys and values of all the ways they are stored.
#[test]
fn every_index_is_a_map() {
    for name in ORDERED.into_iter().chain(["hashmap"]) {
        for (key_size, value_size) in [(6, 8), (2, 20), (20, 128), (60, 300)] {
            let options = options(name, key_size, value_size);
            let index = options.input.open(&options, None).unwrap();
            check_against_a_map(name, &options, index.as_ref());
        }
    }
}

fn check_against_a_map(name: &str, options: &Options, index: &dyn Index) {
    let format = super::super::KeyFormat::new(options.key_prefix.as_bytes(), options.key_size);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut map = BTreeMap::<Vec<u8>, Vec<u8>>::new();
    let mut found = vec![0; options.value_size + 16];
    let mut records = Vec::new();
    for step in 0..4000 {
        let key = format.key(1 + below(rng.next_u64(), 200));
        let mut value = vec![0; options.value_size];
        rng.fill_bytes(&mut value);
        let what = format!("{name}, keys of {}, step {step}", options.key_size);
        match below(rng.next_u64(), 5) {
            0 => {
                let is_there = index.find(&key, &mut found).unwrap();
                assert_eq!(
                    is_there.then(|| &found[..options.value_size]),
                    map.get(&key).map(Vec::as_slice),
                    "{what}"
                );
            }
            1 => {
                let new = !map.contains_key(&key);
                assert_eq!(index.insert(&key, &value).unwrap(), new, "{what}: insert");
                map.entry(key).or_insert(value);
            }
            2 => {
                let known = map.get_mut(&key);
                assert_eq!(index.update(&key, &value).unwrap(), known.is_some(), "{what}: update");
                if let Some(old) = known {
                    *old = value;
                }
            }
            3 => assert_eq!(
                index.remove(&key).unwrap(),
                map.remove(&key).is_some(),
                "{what}: remove"
            ),
            _ if index.scans() => {
                let requested = 1 + below(rng.next_u64(), 30) as usize;
                let expected: Vec<u8> = map
                    .range(key.clone()..)
                    .take(requested)
                    .flat_map(|(k, v)| [k.clone(), v.clone()].concat())
                    .collect();
                let scanned = index.scan(&key, requested, &mut records).unwrap();
                assert_eq!(
                    scanned * (options.key_bytes() + options.value_size),
                    records.len(),
                    "{what}: scan"
                );
                assert_eq!(records, expected, "{what}: scan of {requested}");
            }
            _ => assert!(index.scan(&key, 1, &mut records).is_err()),
        }
    }
}

#[test]
fn the_dummy_reports_success() {
    let options = options("dummy", 8, 8);
    let index = options.input.open(&options, None).unwrap();
    assert!(index.find(b"k", &mut []).unwrap() && index.insert(b"k", b"v").unwrap() && !index.stores());
}

#[test]
fn names_round_trip() {
    for name in ORDERED.into_iter().chain(["hashmap", "dummy"]) {
        assert_eq!(name.parse::<Builtin>().unwrap().to_string(), name);
    }
    assert_eq!("leafpress".parse::<Builtin>().unwrap().to_string(), "leafpress:trial");
    for (name, words) in [
        ("btree", "skiplist"),
        ("masstree:x", "built-in"),
        ("leafpress:zip", "zstd"),
        ("", "built-in"),
    ] {
        let message = name.parse::<Builtin>().unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn our_tree_gives_its_own_account() {
    let mut options = options("leafpress:lz4", 8, 8);
    options.tree = "shards=2".parse().unwrap();
    let index = options.input.open(&options, None).unwrap();
    assert!(index.held_bytes().is_some());
    assert_eq!(index.name(), "leafpress:lz4 (shards=2)");
}
