//! Lengths of values, without the values.

use std::sync::Arc;

use crate::support::engine::RunLength;
use leafpress::Tree;
use leafpress::tree::DictionaryChoice;

#[test]
fn lengths_are_those_of_the_values() {
    let tree = Tree::builder().build().unwrap();
    let lens = [0, 1, 100, 2047, 2048, 2049, 65_536, 300_000];
    for (n, len) in lens.iter().enumerate() {
        tree.insert(&[n as u8], &vec![n as u8; *len]).unwrap();
    }
    for is_settled in [false, true] {
        for (n, len) in lens.iter().enumerate() {
            assert_eq!(tree.value_len(&[n as u8]).unwrap(), Some(*len), "{is_settled}");
        }
        assert_eq!(tree.value_len("absent").unwrap(), None);
        tree.settle().unwrap();
    }
    tree.remove(&[3]).unwrap();
    assert_eq!(tree.value_len(&[3]).unwrap(), None);
}

#[test]
fn the_length_of_a_long_value_needs_no_decoding() {
    let engine = Arc::new(RunLength::default());
    let builder = Tree::builder().codec("lz4".parse().unwrap());
    let builder = builder.engine(engine.clone()).dictionary(DictionaryChoice::Off);
    let tree = builder.build().unwrap();
    tree.insert("long", &vec![7; 100_000]).unwrap();
    tree.settle().unwrap();
    engine.faults.fail_decompress(0);
    assert!(tree.get("long").is_err());
    assert_eq!(tree.value_len("long").unwrap(), Some(100_000));
}
