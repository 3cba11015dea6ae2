//! Training depends on the current number of leaves, not on the number of leaves ever created.

use leafpress::{Codec, Tree};

/// Leaves at which a tree is first trained.
const FIRST_TRAINING_LEAVES: u64 = 16;

/// Lengths are given: chosen ones depend on the records, and would change the number of leaves.
fn tree() -> Tree {
    Tree::builder()
        .codec(Codec::Lz4 { acceleration: 1 })
        .leaf_bytes(16 << 10)
        .frame_bytes(1)
        .dictionary_bytes(1024)
        .build()
        .unwrap()
}

/// Inserts records that have much in common, but nothing with those of another `kind`.
fn fill(tree: &Tree, records: u32, kind: &str) {
    for n in 0..records {
        let value = format!(
            "{kind}{:08x} leaves {kind}{:06} and frames {kind}",
            n.wrapping_mul(0x9e37_79b9),
            n % 977
        );
        tree.insert(&n.to_be_bytes(), value.as_bytes()).unwrap();
    }
    tree.settle().unwrap();
}

fn dictionary(tree: &Tree) -> u32 {
    tree.stats().dictionary_id
}

#[test]
fn leaves_that_were_merged_away_do_not_count() {
    let tree = tree();
    for _ in 0..6 {
        fill(&tree, 1200, "the press holds ");
        let leaves = tree.stats().leaves;
        assert!((6..FIRST_TRAINING_LEAVES).contains(&leaves), "{leaves} leaves");
        for n in 0..1200u32 {
            assert!(tree.remove(&n.to_be_bytes()).unwrap());
        }
        tree.settle().unwrap();
        assert_eq!(tree.stats().leaves, 1);
    }
    assert_eq!(dictionary(&tree), 0, "a tree of few leaves was trained");
    fill(&tree, 6000, "the press holds ");
    assert_ne!(
        dictionary(&tree),
        0,
        "a tree of {} leaves was not trained",
        tree.stats().leaves
    );
}

#[test]
fn a_tree_that_was_cleared_is_trained_again() {
    let tree = tree();
    fill(&tree, 6000, "the press holds ");
    let first = dictionary(&tree);
    assert_ne!(first, 0);
    tree.clear().unwrap();
    fill(&tree, 1200, "NOTHING OF THE KIND: ");
    assert_eq!(
        dictionary(&tree),
        first,
        "a tree of {} leaves was trained",
        tree.stats().leaves
    );
    fill(&tree, 4000, "NOTHING OF THE KIND: ");
    assert_ne!(
        dictionary(&tree),
        first,
        "a tree of {} leaves was not trained",
        tree.stats().leaves
    );
}

/// Inserts records of some sentences out of many: a larger dictionary, which holds more of them, is better.
fn insert_sentences(tree: &Tree, records: std::ops::Range<u64>) {
    let sentence = |n: u64| {
        let mut rng = fastrand::Rng::with_seed(n % 600);
        std::iter::repeat_with(move || rng.alphanumeric()).take(30)
    };
    for n in records {
        let mut rng = fastrand::Rng::with_seed(n);
        let value: String = (0..3).flat_map(|_| sentence(rng.u64(..))).collect();
        tree.insert(&n.to_be_bytes(), value.as_bytes()).unwrap();
    }
}

#[test]
fn a_tree_that_settles_has_a_dictionary_of_its_size() {
    let tree = Tree::builder().codec(Codec::Zstd { level: 1 }).build().unwrap();
    insert_sentences(&tree, 0..11_000);
    tree.settle().unwrap();
    let (small, bytes) = (dictionary(&tree), tree.stats().dictionary_bytes);
    insert_sentences(&tree, 11_000..24_000);
    tree.settle().unwrap();
    let (large, more_bytes) = (dictionary(&tree), tree.stats().dictionary_bytes);
    assert_ne!(small, large, "a tree of {} leaves was not trained", tree.stats().leaves);
    assert!(more_bytes > bytes, "{more_bytes} bytes after {bytes}");
    // A tree that has not grown is not trained again.
    for _ in 0..3 {
        tree.settle().unwrap();
        assert_eq!(dictionary(&tree), large);
    }
    tree.validate().unwrap();
}
