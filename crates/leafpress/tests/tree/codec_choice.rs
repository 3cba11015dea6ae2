//! A tree with the codec `trial` finds the codec for its records, and every record stays readable meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use leafpress::codec::{DictionaryPool, TrialGoal};
use leafpress::{Codec, Tree, Upkeep};

const BALANCE: Codec = Codec::Trial {
    goal: TrialGoal::Balance,
};
const MEMORY: Codec = Codec::Trial {
    goal: TrialGoal::Memory,
};

/// Returns a document of some 150 bytes, like its neighbours in its words but not in its order of them.
fn document(n: u64) -> Vec<u8> {
    const WORDS: [&str; 8] = [
        "\"state\":\"active\"",
        "\"state\":\"suspended\"",
        "\"region\":\"eu-central-1\"",
        "\"region\":\"us-east-2\"",
        "\"plan\":\"professional\"",
        "\"plan\":\"enterprise\"",
        "\"language\":\"de-DE\"",
        "\"timezone\":\"Europe/Berlin\"",
    ];
    let mut rng = fastrand::Rng::with_seed(n);
    let words: Vec<&str> = (0..6).map(|_| WORDS[rng.usize(..WORDS.len())]).collect();
    format!("{{\"id\":{n},{}}}", words.join(",")).into_bytes()
}

fn noise(n: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(n);
    std::iter::repeat_with(|| rng.u8(..)).take(150).collect()
}

fn key(n: u64) -> String {
    format!("user:{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn is_onpair(codec: Codec) -> bool {
    codec.family() == "onpair"
}

/// Makes trees until one has chosen OnPair: the choice depends on measured times, which a busy machine distorts.
fn with_onpair(make: impl Fn() -> Tree) -> Tree {
    let mut reasons = Vec::new();
    for _ in 0..20 {
        let tree = make();
        let stats = tree.stats();
        if is_onpair(stats.codec) {
            return tree;
        }
        reasons.push(stats.limits_reason);
    }
    panic!("OnPair is never chosen: {reasons:#?}");
}

/// Checks that the tree has these records, in order.
fn check(tree: &Tree, records: &BTreeMap<String, Vec<u8>>) {
    tree.validate().unwrap();
    for (key, value) in records {
        assert_eq!(tree.get(key).unwrap().as_ref(), Some(value));
    }
    let found = tree.iter().map(Result::unwrap);
    let expected = records
        .iter()
        .map(|(key, value)| (key.as_bytes().to_vec(), value.clone()));
    assert!(found.eq(expected));
}

fn records(range: std::ops::Range<u64>, value: fn(u64) -> Vec<u8>) -> BTreeMap<String, Vec<u8>> {
    range.map(|n| (key(n), value(n))).collect()
}

#[test]
fn documents_are_compressed_one_by_one() {
    for (codec, upkeep) in [
        (BALANCE, Upkeep::Threads),
        (MEMORY, Upkeep::Threads),
        (BALANCE, Upkeep::Caller),
    ] {
        let records = records(0..40_000, document);
        let tree = with_onpair(|| {
            let tree = Tree::builder().codec(codec).upkeep(upkeep).build().unwrap();
            for (key, value) in &records {
                tree.insert(key, value).unwrap();
                if upkeep == Upkeep::Caller {
                    tree.run_upkeep(Duration::ZERO).unwrap();
                }
            }
            while upkeep == Upkeep::Caller && tree.run_upkeep(Duration::ZERO).unwrap() {}
            tree.settle().unwrap();
            tree
        });
        let stats = tree.stats();
        assert!(stats.limits_reason.contains("onpair"), "{}", stats.limits_reason);
        assert_eq!(stats.frames, stats.records, "{}", stats.limits_reason);
        let by_lz4 = Tree::builder().codec("lz4".parse().unwrap()).from_sorted(&records);
        let held_by_lz4 = by_lz4.unwrap().stats().held_per_user_byte();
        assert!(stats.held_per_user_byte() < held_by_lz4, "{stats:?}");
        check(&tree, &records);
    }
}

#[test]
fn a_bulk_load_chooses_before_it_compresses() {
    let records = records(0..40_000, document);
    let tree = with_onpair(|| Tree::builder().codec(BALANCE).from_sorted(&records).unwrap());
    check(&tree, &records);
}

#[test]
fn noise_is_stored_uncompressed() {
    for codec in [BALANCE, MEMORY] {
        let records = records(0..10_000, noise);
        let tree = Tree::builder().codec(codec).build().unwrap();
        for (key, value) in &records {
            tree.insert(key, value).unwrap();
        }
        tree.settle().unwrap();
        let stats = tree.stats();
        assert_eq!(stats.codec, codec.candidates()[0], "{}", stats.limits_reason);
        assert_eq!(stats.dictionary_id, 0);
        check(&tree, &records);
    }
}

/// Records replaced by others of another kind lead to another codec, while threads write and read.
#[test]
fn the_choice_follows_the_records() {
    let tree = Tree::builder().codec(BALANCE).build().unwrap();
    const RECORDS: u64 = 20_000;
    for n in 0..RECORDS {
        tree.insert(&key(n), &noise(n)).unwrap();
    }
    tree.settle().unwrap();
    assert!(!is_onpair(tree.stats().codec));
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let tree = &tree;
            scope.spawn(move || {
                for n in (writer..RECORDS).step_by(2) {
                    tree.insert(&key(n), &document(n)).unwrap();
                    let other = n / 2 * 2 + 1 - writer;
                    let found = tree.get(&key(other)).unwrap().unwrap();
                    assert!(found == noise(other) || found == document(other), "{other}");
                    if n % 4096 == writer {
                        tree.train().unwrap();
                    }
                }
            });
        }
    });
    for _ in 0..20 {
        tree.train().unwrap();
        tree.settle().unwrap();
        if is_onpair(tree.stats().codec) {
            break;
        }
    }
    let stats = tree.stats();
    assert!(is_onpair(stats.codec), "{}", stats.limits_reason);
    check(&tree, &records(0..RECORDS, document));
}

/// Values that are not stored in frames have no dictionary: the first candidate compresses them.
#[test]
fn large_values_are_compressed_whatever_the_choice() {
    let tree = with_onpair(|| {
        let builder = Tree::builder().codec(BALANCE);
        builder.from_sorted(records(0..20_000, document)).unwrap()
    });
    let large = document(1).repeat(2000);
    for n in 0..20 {
        tree.insert(&format!("zzz{n}"), &large).unwrap();
    }
    let stats = tree.stats();
    assert!(
        stats.bytes_held < 20_000 * 200 + 20 * large.len() as u64 / 4,
        "{stats:?}"
    );
    assert_eq!(tree.get("zzz7").unwrap().as_ref(), Some(&large));
}

#[test]
fn trees_share_the_dictionary_of_a_choice() {
    let pool = DictionaryPool::new();
    let tenant = || {
        let builder = Tree::builder().codec(BALANCE).dictionary_pool(pool.clone());
        builder.from_sorted(records(0..20_000, document)).unwrap()
    };
    let (one, other) = (with_onpair(tenant), with_onpair(tenant));
    assert_eq!(one.stats().codec, other.stats().codec);
    assert_eq!(one.stats().dictionary_id, other.stats().dictionary_id);
    assert_eq!(pool.len(), 1);
    check(&other, &records(0..20_000, document));
}

#[test]
fn keeps_configured_lengths_and_dictionaries() {
    let tree = Tree::builder().codec(BALANCE).frame_bytes(700).leaf_bytes(9000);
    let tree = tree.from_sorted(records(0..20_000, document)).unwrap();
    let stats = tree.stats();
    assert_eq!(stats.leaf_limit_bytes, 9000);
    let tree = Tree::builder()
        .codec(BALANCE)
        .from_sorted(records(0..20_000, document))
        .unwrap();
    let dictionary = tree.dictionary().unwrap().unwrap();
    let given = leafpress::DictionaryChoice::Given(dictionary.clone());
    let other = Tree::builder().codec(BALANCE).dictionary(given);
    let other = other.from_sorted(records(0..20_000, document)).unwrap();
    let stats = other.stats();
    assert_eq!(
        (stats.dictionary_id, Some(stats.codec)),
        (dictionary.id(), dictionary.codec())
    );
    check(&other, &records(0..20_000, document));
}
