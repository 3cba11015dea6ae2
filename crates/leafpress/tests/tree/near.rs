//! Positions of keys, and the search for a key from a position on.

use leafpress::{ShardBy, Tree};

fn key(n: u32) -> [u8; 12] {
    let mut key = *b"key:....:end";
    key[4..8].copy_from_slice(&n.to_be_bytes());
    key
}

/// Returns a tree of `records` records in many leaves of different lengths, some with changes that are not merged yet.
fn tree(builder: leafpress::TreeBuilder, records: u32) -> Tree {
    let tree = builder.leaf_bytes(1024).build().unwrap();
    for n in 0..records {
        let n = n.wrapping_mul(7919) % records;
        tree.insert(&key(n), &vec![n as u8; 10 + n as usize % 90]).unwrap();
    }
    tree
}

#[test]
fn a_key_is_found_at_its_position() {
    const RECORDS: u32 = 20_000;
    let by_range = ShardBy::Range(vec![key(3000).to_vec(), key(11_000).to_vec()]);
    for builder in [
        Tree::builder(),
        Tree::builder().shards(3),
        Tree::builder().shards(3).shard_by(by_range),
    ] {
        let tree = tree(builder, RECORDS);
        for (from, to) in [(0, RECORDS), (500, 510), (4321, 17_000)] {
            let range = || key(from)..key(to);
            for n in (from..to).step_by(((to - from) / 10) as usize) {
                let position = tree.position_of(range(), key(n)).unwrap();
                assert!((0.0..=1.0).contains(&position), "{position}");
                // A leaf has fewer than a hundred records, and the position names it exactly.
                let mut visited = 0;
                let found = tree.find_near(range(), position, 1, |near| {
                    visited += 1;
                    near == key(n)
                });
                assert_eq!(
                    found.unwrap().as_deref(),
                    Some(&key(n)[..]),
                    "{n} of {from}..{to} at {position}"
                );
                assert!(visited < 200, "{visited}");
            }
        }
    }
}

#[test]
fn a_key_is_found_from_afar_within_the_limit() {
    let tree = tree(Tree::builder(), 20_000);
    for position in [0.0, 0.3, 1.0, -1.0, 7.5, f64::NAN] {
        let found = tree.find_near(.., position, usize::MAX, |near| near == key(12_345));
        assert_eq!(found.unwrap().as_deref(), Some(&key(12_345)[..]), "{position}");
    }
    let mut visited = 0;
    let found = tree.find_near(.., 0.5, 1000, |_| {
        visited += 1;
        false
    });
    assert_eq!(found.unwrap(), None);
    // The last leaves on both sides may exceed the limit.
    assert!((900..1400).contains(&visited), "{visited}");
}

#[test]
fn visits_only_present_keys_of_the_range() {
    let tree = tree(Tree::builder(), 3000);
    for n in (0..3000).step_by(3) {
        tree.remove(&key(n)).unwrap();
    }
    let mut visited = Vec::new();
    let outcome = tree.find_near(key(1000)..key(2000), 0.5, usize::MAX, |near| {
        visited.push(near.to_vec());
        false
    });
    assert_eq!(outcome.unwrap(), None);
    visited.sort_unstable();
    let expected: Vec<Vec<u8>> = (1000..2000).filter(|n| n % 3 != 0).map(|n| key(n).to_vec()).collect();
    assert_eq!(visited, expected);
}

#[test]
fn an_empty_range_has_positions_but_no_keys() {
    let tree = tree(Tree::builder(), 100);
    assert_eq!(tree.find_near("b".."a", 0.5, 10, |_| true).unwrap(), None);
    assert_eq!(tree.find_near("x".., 0.5, 10, |_| true).unwrap(), None);
    assert!((0.0..=1.0).contains(&tree.position_of("b".."a", "c").unwrap()));
    let empty = Tree::builder().build().unwrap();
    assert_eq!(empty.find_near(.., 0.5, 10, |_| true).unwrap(), None);
}
