use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use rand_xoshiro::rand_core::SeedableRng;
use serde_json::{Value, json};

use super::*;

fn small() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/cache/workload/cachebench/small/config.json")
}

/// A file of one pool with the required fields, some of them changed.
fn file(changes: &[(&str, Value)]) -> (tempfile::TempDir, PathBuf) {
    let mut test = json!({
        "numKeys": 1000, "numOps": 10, "numThreads": 2, "enableLookaside": true, "getRatio": 1.0,
        "keySizeRange": [8, 16], "keySizeRangeProbability": [1],
        "valSizeRange": [10, 20], "valSizeRangeProbability": [1],
        "popularityBuckets": [1, 9], "popularityWeights": [1, 1],
    });
    for (field, value) in changes {
        test[field] = value.clone();
    }
    text(&json!({ "cache_config": { "cacheSizeMB": 64 }, "test_config": test }).to_string())
}

fn text(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.json");
    std::fs::write(&path, text).unwrap();
    (directory, path)
}

fn load(path: &Path, scale: f64) -> Result<CacheBench, String> {
    CacheBench::load(path, scale, 1).map_err(|e| e.to_string())
}

#[test]
fn a_cachebench_file_sets_defaults() {
    let defaults = cachebench_defaults(&small(), 0.1).unwrap();
    assert_eq!(
        defaults,
        CacheBenchDefaults {
            memory_bytes: Some(80 << 20),
            disk_bytes: Some(320 << 20),
            threads: Some(4),
            operations: Some(800_000),
        }
    );
    let (_directory, path) = file(&[("numOps", json!(0)), ("numThreads", Value::Null)]);
    let defaults = cachebench_defaults(&path, 1.0).unwrap();
    assert_eq!(
        (defaults.threads, defaults.operations, defaults.disk_bytes),
        (None, None, None)
    );
    // One instance in a list is one.
    let instances = std::fs::read_to_string(&path).unwrap();
    let (_directory, path) = text(&format!("[{instances}]"));
    assert!(cachebench_defaults(&path, 1.0).is_ok());
    let (_directory, path) = text(&format!("[{instances}, {instances}]"));
    let two = cachebench_defaults(&path, 1.0).unwrap_err().to_string();
    assert!(two.contains("2 instances"), "{two}");
}

#[test]
fn reports_unsupported_fields() {
    let cachebench = load(&small(), 0.1).unwrap();
    assert_eq!(
        cachebench.unused,
        [
            "pop.json: oneHits",
            "test_config.poolDistributions[1].chainedItemLengthRange",
            "test_config.opDelayNs",
            "cache_config.nvmCachePaths",
            "cache_config.poolRebalanceIntervalSec",
            "cache_config.poolSizes",
        ]
    );
    let description_text = cachebench.description.join("\n");
    for part in [
        // A quarter of 400,000, and the thousand objects of the other pool.
        "10,100 keys in 2 pools, all of them in one cache, 0.1 times 101,000",
        "of pool 0: 70.0% gets, 10.0% sets, 10.0% deletes, 10.0% gets of keys used only once; keys by 4 popularity \
         buckets",
        "of pool 1: 50.0% gets, 10.0% additions to a chain",
        "overwrites the key",
        "at least 8 bytes",
    ] {
        assert!(description_text.contains(part), "no `{part}` in\n{description_text}");
    }
}

#[test]
fn operations_keys_and_lengths_are_as_the_file_wants_them() {
    const DRAWS: u32 = 300_000;
    let cachebench = load(&small(), 0.1).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut place = Place::new(5);
    let mut counts: HashMap<(usize, Action, bool), u32> = HashMap::new();
    let (mut lone, mut hot) = (HashSet::new(), 0_u32);
    for _ in 0..DRAWS {
        let request = cachebench.next(&mut rng, &mut place);
        let pool = if request.is_lone {
            assert!(lone.insert(request.id), "a lone key twice");
            ((request.id ^ LONE) >> POOL_SHIFT) as usize
        } else {
            usize::from(request.id >= 10_000)
        };
        *counts.entry((pool, request.action, request.is_lone)).or_default() += 1;
        hot += u32::from(pool == 0 && request.id < 10);
        assert!(request.is_lone || request.id < cachebench.keys());
    }
    for (pool, action, is_lone, share) in [
        (0, Action::Read, false, 0.6 * 0.7),
        (0, Action::Write, false, 0.6 * 0.1),
        (0, Action::Remove, false, 0.6 * 0.1),
        (0, Action::Read, true, 0.6 * 0.1),
        (1, Action::Read, false, 0.4 * 0.5),
        (1, Action::Write, false, 0.4 * 0.1),
        (1, Action::Write, true, 0.4 * 0.1),
        (1, Action::Update, false, 0.4 * 0.2),
        (1, Action::Look, false, 0.4 * 0.1),
    ] {
        let got = f64::from(counts.remove(&(pool, action, is_lone)).unwrap_or(0)) / f64::from(DRAWS);
        assert!(
            (got - share).abs() < 0.004,
            "{pool} {action:?} {is_lone}: {got}, not {share}"
        );
    }
    assert!(counts.is_empty(), "{counts:?}");
    // 10 of 10,000 keys are the hottest object of 1,000: 40% of requests to pool 0 that are not for lone keys.
    let share = f64::from(hot) / f64::from(DRAWS);
    assert!((share - 0.6 * 0.9 * 0.4).abs() < 0.005, "{share}");
}

#[test]
fn keys_differ_and_lengths_follow_their_shares() {
    let cachebench = load(&small(), 0.1).unwrap();
    let (mut keys, mut lengths, mut short) = (HashSet::new(), HashMap::<usize, u32>::new(), 0);
    let (mut key, mut bytes) = (Vec::new(), (0, 0));
    for id in 0..cachebench.keys() {
        key.clear();
        cachebench.write_key(id, &mut key);
        let len = cachebench.value_bytes(id);
        assert!(key.iter().all(u8::is_ascii_lowercase) && len <= cachebench.longest_value());
        bytes = (bytes.0 + key.len(), bytes.1 + len);
        if id < 10_000 {
            assert!((8..64).contains(&key.len()));
            short += u32::from(key.len() == 8);
            *lengths.entry(len).or_default() += 1;
        } else {
            assert!((16..24).contains(&key.len()) && (1..400).contains(&len));
        }
        assert!(keys.insert(key.clone()), "key {id} twice");
    }
    for (len, share) in [(31, 0.5), (63, 0.25), (500, 0.25)] {
        let got = f64::from(lengths.remove(&len).unwrap_or(0)) / 1e4;
        assert!((got - share).abs() < 0.03, "{len}: {got}");
    }
    assert!(lengths.is_empty(), "{lengths:?}");
    // 1 to 8 bytes, which are 8 here, and the least of 8 to 64.
    assert!((f64::from(short) / 1e4 - (0.3 + 0.7 / 56.0)).abs() < 0.03, "{short}");
    let means = (bytes.0 as f64 / 10_100.0, bytes.1 as f64 / 10_100.0);
    assert_eq!(cachebench.mean_bytes, means);
    // A key that is requested once has digits, and a length of its pool.
    for at in 0..1000 {
        let id = LONE | (at % 2) << POOL_SHIFT | at;
        key.clear();
        cachebench.write_key(id, &mut key);
        assert!(key.len() == LONE_DIGITS && key.iter().all(u8::is_ascii_digit));
        assert!(keys.insert(key.clone()));
        assert!(at % 2 == 1 || [31, 63, 500].contains(&cachebench.value_bytes(id)));
    }
}

#[test]
fn without_look_aside_gets_insert_nothing_and_sets_may_leave_what_is_there() {
    let (_directory, path) = file(&[
        ("enableLookaside", json!(false)),
        ("onlySetIfMiss", json!(true)),
        ("setRatio", json!(1)),
        ("popularityBuckets", Value::Null),
        ("popularityWeights", Value::Null),
    ]);
    let cachebench = load(&path, 1.0).unwrap();
    let (mut rng, mut place) = (Xoshiro256PlusPlus::seed_from_u64(3), Place::new(0));
    let actions: Vec<_> = (0..100).map(|_| cachebench.next(&mut rng, &mut place).action).collect();
    assert!(
        actions
            .iter()
            .all(|action| [Action::Look, Action::Add].contains(action))
    );
    assert!(actions.contains(&Action::Look) && actions.contains(&Action::Add));
    assert!(cachebench.description.join("\n").contains("normal distribution"));
}

#[test]
fn what_is_wrong_with_a_file_is_one_line_that_names_it() {
    for (changes, parts) in [
        (vec![("getRatio", json!(-0.5))], &["getRatio", "-0.5"][..]),
        (vec![("getRatio", json!(0))], &["getRatio", "the workload is empty"]),
        (vec![("getRatio", json!("half"))], &["getRatio", "number"]),
        (vec![("numKeys", json!(0))], &["numKeys", "at least 1"]),
        (vec![("numKeys", Value::Null)], &["numKeys", "missing"]),
        (vec![("numKeys", json!(1.5))], &["numKeys", "whole"]),
        (vec![("numKeys", json!(1e300))], &["numKeys", "between"]),
        (
            vec![("numKeys", json!(10_000_000_000_u64))],
            &["scale", "10,000,000,000", "or less"],
        ),
        (vec![("numOps", json!(-1))], &["numOps"]),
        (vec![("numThreads", json!([1]))], &["numThreads"]),
        (
            vec![("enableLookaside", json!(1))],
            &["enableLookaside", "true or false"],
        ),
        (
            vec![("generator", json!("replay"))],
            &["generator", "replay", "--trace"],
        ),
        (
            vec![("keySizeRange", json!([8, 2000]))],
            &["keySizeRange", "2000", "1024"],
        ),
        (
            vec![("keySizeRange", json!([8, 9, 10]))],
            &["keySizeRangeProbability", "1 weights for 3"],
        ),
        (vec![("keySizeRange", Value::Null)], &["keySizeRange", "missing"]),
        (
            vec![("keySizeRangeProbability", json!([1, 2, 3]))],
            &["keySizeRangeProbability", "3 weights"],
        ),
        (vec![("valSizeRange", json!([]))], &["valSizeRangeProbability", "empty"]),
        (
            vec![("valSizeRange", json!([10, 1e12]))],
            &["valSizeRange", "at index 1"],
        ),
        (
            vec![("valSizeRange", json!([10, null]))],
            &["valSizeRange", "at index 1"],
        ),
        (
            vec![("valSizeRangeProbability", json!([0]))],
            &["valSizeRangeProbability", "no positive weight"],
        ),
        (
            vec![("valSizeDistFile", json!("none.json"))],
            &["none.json", "no such file"],
        ),
        (vec![("valSizeDistFile", json!("."))], &["directory"]),
        (
            vec![("popDistFile", json!("config.json"))],
            &["popularityBuckets", "missing"],
        ),
        (
            vec![("popularityBuckets", json!([])), ("popularityWeights", json!([]))],
            &["popularityBuckets", "empty"],
        ),
        (
            vec![("popularityWeights", json!([1]))],
            &["popularityWeights", "1 weights for 2"],
        ),
        (
            vec![("popularityWeights", json!([1, -1]))],
            &["popularityWeights", "-1"],
        ),
        (
            vec![("popularityWeights", json!([0, 0]))],
            &["popularityWeights", "no positive weight"],
        ),
        (
            vec![("popularityBuckets", json!([0, 1]))],
            &["popularityWeights", "without objects"],
        ),
        (
            vec![("popularityBuckets", Value::Null)],
            &["popularityBuckets", "missing"],
        ),
        (
            vec![("keyPoolDistribution", json!([0, 0]))],
            &["keyPoolDistribution", "no positive share"],
        ),
        (
            vec![("keyPoolDistribution", json!(vec![1; 300]))],
            &["keyPoolDistribution", "300"],
        ),
        (
            vec![("opPoolDistribution", json!([1, 1]))],
            &["opPoolDistribution", "2 pools"],
        ),
        (
            vec![("poolDistributions", json!([]))],
            &["poolDistributions", "list of one"],
        ),
        (
            vec![("poolDistributions", json!([1]))],
            &["poolDistributions[0]", "object"],
        ),
        (
            vec![("poolDistributions", json!([{}]))],
            &["poolDistributions[0].getRatio"],
        ),
    ] {
        let (_directory, path) = file(&changes);
        let error = load(&path, 1.0).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{changes:?}: no `{part}` in {error}");
        }
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    for (bytes, part) in [
        ("", "not valid JSON"),
        ("{\"test_config\": {", "not valid JSON"),
        ("3", "object"),
        ("[]", "0 instances"),
        ("{}", "test_config is missing"),
        ("{\"test_config\": 1}", "test_config must be an object"),
        (
            "{\"cache_config\": [], \"test_config\": {}}",
            "cache_config must be an object",
        ),
    ] {
        let (_directory, path) = text(bytes);
        let error = load(&path, 1.0).unwrap_err();
        assert!(
            error.contains(part) && error.contains("config.json") && error.lines().count() == 1,
            "{error}"
        );
    }
    let (_directory, path) = file(&[]);
    for scale in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(load(&path, scale).unwrap_err().contains("scale"), "{scale}");
    }
    assert_eq!(load(&path, 1e-9).unwrap().keys(), 1);
    assert!(
        load(Path::new("/no/such.json"), 1.0)
            .unwrap_err()
            .contains("no such file")
    );
}

#[test]
fn any_json_is_a_workload_or_an_error() {
    let words = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "1",
        "-1",
        "1e999",
        "\"test_config\"",
        "\"numKeys\"",
        "//",
        "\"",
        "\\",
        "\n",
        "/*",
    ];
    let mut seed = 1;
    for _ in 0..2000 {
        let bytes: String = (0..20)
            .map(|_| {
                seed = mix(seed + 1);
                words[(seed % words.len() as u64) as usize]
            })
            .collect();
        let (_directory, path) = text(&bytes);
        let _ = load(&path, 1.0);
    }
}
