//! When a dictionary is trained follows from the leaves a tree has, not from those it ever had.

use leafpress::{Codec, Tree};

/// Leaves at which a tree is first trained.
const FIRST_TRAINING_LEAVES: u64 = 16;

fn tree() -> Tree {
    Tree::builder()
        .codec(Codec::Lz4 { acceleration: 1 })
        .dictionary_bytes(1024)
        .build()
        .unwrap()
}

/// Puts records that have much in common, and with `kind` nothing with those of another.
fn fill(tree: &Tree, records: u32, kind: &str) {
    for n in 0..records {
        let value = format!(
            "{kind}{:08x} leaves {kind}{:06} and frames {kind}",
            n.wrapping_mul(0x9e37_79b9),
            n % 977
        );
        tree.put(&n.to_be_bytes(), value.as_bytes()).unwrap();
    }
    tree.settle();
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
        tree.settle();
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
fn a_tree_that_was_cleared_is_trained_anew() {
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
