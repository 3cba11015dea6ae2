//! One operation, over and over, for counting its instructions: `make instructions` runs it under callgrind.
//!
//! A count does not depend on the machine's load or clock, so that a change of a few per cent is seen at once. It says nothing
//! about cache misses. On its own, as in a plain `cargo bench`, it runs every operation once over to see that it works.

use std::hint::black_box;

use leafpress::Codec;
use leafpress_bench::{Loaded, VALUE_BYTES, key};

/// Records in the tree, and operations counted.
const KEYS: u64 = 10_000;
const OPERATIONS: u64 = 2_000;

const OPERATION_NAMES: [&str; 9] = [
    "get_hit",
    "get_miss",
    "get_many",
    "put_overwrite",
    "put_new",
    "remove",
    "scan100",
    "range100",
    "compress",
];

/// What callgrind collects: it is told this function's name.
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
                let scanned = tree.scan(&key(2 * n), 100, |_, value| bytes += value.len());
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
