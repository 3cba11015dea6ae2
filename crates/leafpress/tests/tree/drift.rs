//! Records that become others, while their number stays the same, are compressed as well as in a fresh structure.

use std::time::{Duration, Instant};

use leafpress::{Cache, DictionaryChoice, Tree, Upkeep};

use crate::support::keys::mix;

const RECORDS: u64 = 20_000;
const STEPS: u64 = 10;

/// Returns a document of a kind that shares its words with no other kind.
fn document(kind: u64, n: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(mix(kind << 32 | n));
    let word = |number: u64| {
        let mut rng = fastrand::Rng::with_seed(kind << 16 | number);
        (0..rng.usize(4..12)).map(|_| rng.lowercase()).collect::<String>()
    };
    let mut text = format!("{{\"{}\":{n}", word(1000));
    while text.len() < 140 {
        // Some words are much more frequent than others.
        let number = rng.u64(..=rng.clone().u64(..200));
        text += &format!(",\"{}\":\"{}\"", word(number % 8), word(number));
    }
    text.into_bytes()
}

fn key(n: u64) -> Vec<u8> {
    format!("user:{:016x}", mix(n)).into_bytes()
}

/// Fails if the tree, all of whose records are of the second kind, needs 5% more bytes than a fresh one. The latter has
/// the codec and lengths that the tree chose, which depend on measured times.
fn check(what: &str, tree: &Tree, keys: std::ops::Range<u64>) {
    let stats = tree.stats();
    let fresh = Tree::builder()
        .codec(stats.codec)
        .frame_bytes(stats.frame_limit_bytes as usize)
        .leaf_bytes(stats.leaf_limit_bytes as usize)
        .build()
        .unwrap();
    for n in keys {
        fresh.insert(&key(n), &document(2, n)).unwrap();
        assert_eq!(tree.get(&key(n)).unwrap(), Some(document(2, n)), "{what}");
    }
    fresh.settle().unwrap();
    let (drifted, fresh) = (stats.held_per_user_byte(), fresh.stats().held_per_user_byte());
    assert!(
        drifted <= fresh * 1.05,
        "{what}: {drifted:.4} bytes per user byte, fresh {fresh:.4}, {stats:?}"
    );
    tree.validate().unwrap();
}

fn filled(codec: &str, upkeep: Upkeep, records: u64) -> Tree {
    let tree = Tree::builder()
        .codec(codec.parse().unwrap())
        .upkeep(upkeep)
        .build()
        .unwrap();
    (0..records).for_each(|n| _ = tree.insert(&key(n), &document(1, n)).unwrap());
    tree.settle().unwrap();
    assert_ne!(tree.stats().dictionary_id, 0);
    tree
}

#[test]
fn records_are_overwritten_in_steps() {
    for (codec, upkeep) in [
        ("onpair", Upkeep::Threads),
        ("trial", Upkeep::Threads),
        ("onpair", Upkeep::Caller),
    ] {
        let tree = filled(codec, upkeep, RECORDS);
        for step in 0..STEPS {
            for n in (step..RECORDS).step_by(STEPS as usize) {
                tree.insert(&key(n), &document(2, n)).unwrap();
            }
            tree.settle().unwrap();
        }
        check(&format!("{codec}, {upkeep:?}"), &tree, 0..RECORDS);
    }
}

#[test]
fn records_are_removed_as_others_come() {
    for codec in ["onpair", "trial"] {
        let tree = filled(codec, Upkeep::Threads, RECORDS);
        for step in 0..STEPS {
            for n in (step..RECORDS).step_by(STEPS as usize) {
                tree.insert(&key(RECORDS + n), &document(2, RECORDS + n)).unwrap();
                assert!(tree.remove(&key(n)).unwrap());
            }
            tree.settle().unwrap();
        }
        check(codec, &tree, RECORDS..2 * RECORDS);
    }
}

#[test]
fn an_initial_dictionary_compresses_the_first_records_and_gives_way_to_a_better_one() {
    for (codec, upkeep) in [
        ("onpair", Upkeep::Threads),
        ("trial", Upkeep::Threads),
        ("onpair", Upkeep::Caller),
    ] {
        let old = filled("onpair", Upkeep::Threads, RECORDS);
        let dictionary = old.dictionary().unwrap().unwrap();
        let begun = |choice| {
            let builder = Tree::builder().codec(codec.parse().unwrap()).upkeep(upkeep);
            let tree = builder.dictionary(choice).build().unwrap();
            for n in 0..200 {
                tree.insert(&key(n), &document(1, RECORDS + n)).unwrap();
            }
            tree.settle().unwrap();
            tree
        };
        let (tree, other) = (
            begun(DictionaryChoice::Initial(dictionary.clone())),
            begun(DictionaryChoice::Auto),
        );
        let (stats, others) = (tree.stats(), other.stats());
        assert_eq!(
            (stats.dictionary_id, others.dictionary_id),
            (dictionary.id(), 0),
            "{codec}"
        );
        assert!(
            stats.leaf_bytes * 3 < others.leaf_bytes * 2,
            "{codec}: {stats:?}\nwithout it {others:?}"
        );
        // Records that have nothing in common with those that it was trained from.
        (0..RECORDS).for_each(|n| _ = tree.insert(&key(n), &document(2, n)).unwrap());
        tree.settle().unwrap();
        assert_ne!(tree.stats().dictionary_id, dictionary.id(), "{codec}");
        check(codec, &tree, 0..RECORDS);
    }
}

/// A training that is due does not wait for `settle`.
#[test]
fn writes_alone_lead_to_a_training() {
    let tree = filled("onpair", Upkeep::Threads, RECORDS / 4);
    let first = tree.stats().dictionary_id;
    let start = Instant::now();
    while tree.stats().dictionary_id == first {
        assert!(start.elapsed() < Duration::from_secs(600), "{:?}", tree.stats());
        (0..RECORDS / 4).for_each(|n| _ = tree.insert(&key(n), &document(2, n)).unwrap());
    }
    tree.validate().unwrap();
}

/// Inserts many times the records that fit.
fn fill(cache: &Cache, kind: u64, records: u64) {
    for n in 0..records {
        cache.insert(&key(kind << 32 | n), &document(kind, n)).unwrap();
        if n % RECORDS == 0 {
            cache.settle().unwrap();
        }
    }
    cache.settle().unwrap();
    cache.validate().unwrap();
}

#[test]
fn records_of_a_cache_are_evicted() {
    let of_codec = |codec| Cache::builder().memory(4 << 20).codec(codec).build().unwrap();
    let drifted = of_codec("trial:memory".parse().unwrap());
    fill(&drifted, 1, 4 * RECORDS);
    // A few records of the first kind stay for long, and take more room than others.
    fill(&drifted, 2, 12 * RECORDS);
    let stats = drifted.stats();
    assert!(stats.evicted > 10 * RECORDS, "{stats:?}");
    // With the codec that was chosen, since the choice depends on measured times.
    let fresh = of_codec(stats.tree.codec);
    fill(&fresh, 2, 6 * RECORDS);
    let per_user_byte = |cache: &Cache| {
        let stats = cache.stats();
        stats.bytes_held as f64 / stats.user_bytes as f64
    };
    let (drifted, fresh) = (per_user_byte(&drifted), per_user_byte(&fresh));
    assert!(
        drifted <= fresh * 1.05,
        "{drifted:.4} bytes per user byte, fresh {fresh:.4}, {stats:?}"
    );
}
