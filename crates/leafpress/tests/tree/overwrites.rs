//! Values that are replaced by values of the same length, which a compaction may do without recompressing the leaf,
//! mixed with other changes.

use std::collections::BTreeMap;

use leafpress::tree::DictionaryChoice;
use leafpress::{Codec, Tree};

const KEYS: u64 = 1500;

/// Keys of one length, which are stored as numbers, or keys of several lengths, which are not.
fn key(n: u64, packed: bool) -> Vec<u8> {
    if packed {
        n.to_be_bytes().to_vec()
    } else {
        format!("record/{}", n * n).into_bytes()
    }
}

/// Most values of a key have one length; some of these are empty, others large, and occasionally one is longer.
fn value(n: u64, rng: &mut fastrand::Rng) -> Vec<u8> {
    let len = match n % 50 {
        0 => 0,
        1 => 2500,
        n => 20 + n as usize,
    };
    let longer = if rng.u8(..200) == 0 { rng.usize(..3000) } else { 0 };
    let byte = rng.u8(..);
    let mut bytes = vec![byte; len + longer];
    // Random contents compress to another length than the old value.
    if rng.bool() {
        bytes.iter_mut().step_by(3).for_each(|byte| *byte = rng.u8(..));
    }
    bytes
}

fn overwritten(codec: &str, packed: bool, landing_bytes: usize) {
    let tree = Tree::builder()
        .codec(codec.parse::<Codec>().unwrap())
        .dictionary(DictionaryChoice::Off)
        .frame_bytes(1)
        .leaf_bytes(4096)
        .landing_bytes(landing_bytes)
        .build()
        .unwrap();
    let mut rng = fastrand::Rng::with_seed(landing_bytes as u64);
    let mut map = BTreeMap::new();
    for step in 0..KEYS * 12 {
        let n = if step < KEYS { step } else { rng.u64(..KEYS) };
        let key = key(n, packed);
        if rng.u8(..250) == 0 {
            assert_eq!(tree.remove(&key).unwrap(), map.remove(&key).is_some());
        } else {
            let value = value(n, &mut rng);
            let new = tree.insert(&key, &value).unwrap();
            assert_eq!(new, map.insert(key, value).is_none(), "key {n}");
        }
    }
    tree.validate().unwrap();
    let user_bytes: usize = map.iter().map(|(key, value)| key.len() + value.len()).sum();
    let stats = tree.stats();
    assert_eq!((stats.user_bytes, tree.len()), (user_bytes as u64, map.len()));
    let mut scan = tree.range(..);
    for (key, value) in &map {
        assert!(tree.get(key).unwrap().as_ref() == Some(value), "{}", key.escape_ascii());
        let record = scan.next().unwrap().unwrap();
        assert!((&record.0, &record.1) == (key, value), "{}", key.escape_ascii());
    }
    assert!(scan.next().is_none());
}

#[test]
fn raw_values_of_packed_keys() {
    [0, 128, 512, 4096]
        .into_iter()
        .for_each(|landing_bytes| overwritten("none", true, landing_bytes));
}

#[test]
fn raw_values_of_other_keys() {
    [0, 128, 512, 4096]
        .into_iter()
        .for_each(|landing_bytes| overwritten("none", false, landing_bytes));
}

#[test]
fn compressed_values() {
    for codec in ["lz4", "zstd:1"] {
        overwritten(codec, true, 512);
        overwritten(codec, false, 128);
    }
}
