//! Random samples of the records of a range.

use std::collections::BTreeMap;

use leafpress::Tree;

fn tree(shards: usize, records: u32) -> Tree {
    tree_of("trial", shards, records)
}

fn tree_of(codec: &str, shards: usize, records: u32) -> Tree {
    let builder = Tree::builder().codec(codec.parse().unwrap()).leaf_bytes(1024);
    let tree = builder.shards(shards).build().unwrap();
    // Inserted out of order, so that leaves have different sizes; and some have large landing buffers.
    for n in 0..records {
        let n = n.wrapping_mul(7919) % records;
        tree.insert(&n.to_be_bytes(), &vec![n as u8; 10 + n as usize % 90])
            .unwrap();
    }
    tree
}

/// Returns how often each of `parts` equal parts of the numbers from `from` to `to` was drawn.
fn drawn(tree: &Tree, from: u32, to: u32, parts: u32, draws: usize) -> Vec<usize> {
    let mut counts = vec![0; parts as usize];
    let sampled = tree
        .sample_range(from.to_be_bytes()..to.to_be_bytes(), draws, 42)
        .unwrap();
    assert_eq!(sampled.len(), draws);
    for (key, value) in sampled {
        let n = u32::from_be_bytes(key.try_into().unwrap());
        assert!((from..to).contains(&n));
        assert_eq!(value, vec![n as u8; 10 + n as usize % 90]);
        counts[(u64::from(n - from) * u64::from(parts) / u64::from(to - from)) as usize] += 1;
    }
    counts
}

#[test]
fn all_parts_of_a_range_come_about_as_often() {
    for (codec, shards) in [("trial", 1), ("trial", 3), ("none", 1), ("zstd:1", 1), ("onpair", 1)] {
        let tree = tree_of(codec, shards, 30_000);
        // A part of a leaf, some leaves, and most of them.
        for (from, to) in [(1000, 1016), (5003, 6011), (77, 29_900)] {
            let counts = drawn(&tree, from, to, 8, 16_000);
            assert!(
                counts.iter().all(|count| (1700..2300).contains(count)),
                "{codec}, {from}..{to}: {counts:?}"
            );
        }
    }
}

#[test]
fn removed_records_are_not_drawn_and_the_others_as_often_as_before() {
    // As many leaves as are drawn from exactly.
    let tree = tree(1, 3000);
    // One in twenty stays of the first half, in leaves and landing buffers that have mostly removed ones.
    for n in (0..1500_u32).filter(|n| n % 20 != 0) {
        tree.remove(&n.to_be_bytes()).unwrap();
    }
    for n in (1500..3000_u32).step_by(3) {
        tree.insert(&n.to_be_bytes(), b"replaced").unwrap();
    }
    let sampled = tree.sample_range(.., 16_000, 42).unwrap();
    assert_eq!(sampled.len(), 16_000);
    let numbers = sampled
        .iter()
        .map(|(key, _)| u32::from_be_bytes(key.as_slice().try_into().unwrap()));
    let first: Vec<u32> = numbers.filter(|n| *n < 1500).collect();
    assert!(first.iter().all(|n| n % 20 == 0));
    // 75 records of 1,575.
    assert!((600..950).contains(&first.len()), "{}", first.len());
}

#[test]
fn a_seed_determines_the_sample() {
    let tree = tree(1, 5000);
    let sample = |seed| tree.sample_range(.., 50, seed).unwrap();
    assert_eq!(sample(1), sample(1));
    assert_ne!(sample(1), sample(2));
}

#[test]
fn concurrent_removals_and_insertions_do_not_disturb_samples() {
    let tree = tree(1, 20_000);
    for n in 0..20_000_u32 {
        if n % 10 > 0 {
            tree.remove(&n.to_be_bytes()).unwrap();
        }
    }
    tree.insert("z", "last").unwrap();
    let sampled = tree.sample_range(.., 3000, 9).unwrap();
    assert_eq!(sampled.len(), 3000);
    let all: BTreeMap<_, _> = tree.iter().map(Result::unwrap).collect();
    assert!(sampled.iter().all(|(key, value)| all.get(key) == Some(value)));
    let one = tree.sample_range("z".., 3, 1).unwrap();
    assert_eq!(one, vec![(b"z".to_vec(), b"last".to_vec()); 3]);
    for empty in [
        tree.sample_range("zz".., 5, 1),
        tree.sample_range("b".."a", 5, 1),
        tree.sample_range(.., 0, 1),
    ] {
        assert!(empty.unwrap().is_empty());
    }
    tree.clear().unwrap();
    assert!(tree.sample_range(.., 5, 1).unwrap().is_empty());
}
