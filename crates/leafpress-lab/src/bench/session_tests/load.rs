//! The load, and detection of its errors.

use super::*;
use crate::bench::Operation;

/// PiBench loads `records / threads` ids from each thread's first id on: of 100,001 records on two threads one is
/// loaded twice.
#[test]
fn the_remainder_of_the_load_is_loaded() {
    for (records, threads) in [(10_001, 2), (7, 3), (2, 5), (1, 1)] {
        let (index, report) = run_on(Faulty::default(), &options(records, 100, threads));
        let load = report.unwrap().outcomes.remove(0).load.unwrap();
        assert_eq!(load.records, records);
        assert!(load.verify_milliseconds.is_some());
        let format = KeyFormat::new(b"", 8);
        let map = index.map.lock().unwrap();
        assert_eq!(map.len() as u64, records);
        assert!((1..=records).all(|id| map.contains_key(&format.key(id))));
    }
}

/// The loaded records depend on the seed, not on the threads.
#[test]
fn the_load_is_the_same_on_any_number_of_threads() {
    let contents = |threads: usize| {
        let (index, report) = run_on(Faulty::default(), &options(500, 0, threads));
        report.unwrap();
        let map = index.map.lock().unwrap();
        map.clone()
    };
    assert_eq!(contents(1), contents(4));
}

#[test]
fn a_record_that_is_lost_is_named() {
    let index = Faulty {
        loses: Some(6),
        ..Faulty::default()
    };
    let (_, report) = run_on(index, &options(1000, 10, 1));
    let message = report.unwrap_err().to_string();
    let key = crate::bench::keys::readable(&KeyFormat::new(b"", 8).key(7));
    assert!(
        message.contains("1 of 1000 records") && message.contains(&key) && message.contains("id 7"),
        "{message}"
    );
}

#[test]
fn a_key_that_is_there_before_the_load_is_named() {
    let index = Faulty::default();
    let key = KeyFormat::new(b"", 8).key(3);
    index.map.lock().unwrap().insert(key, vec![0; 8]);
    let (_, report) = run_on(index, &options(10, 10, 1));
    let message = report.unwrap_err().to_string();
    assert!(message.contains("id 3") && message.contains("skip_load"), "{message}");
}

#[test]
fn a_skipped_load_is_none() {
    let mut options = options(10, 100, 1);
    options.skip_load = true;
    let outcome = outcome(&options);
    assert!(outcome.load.is_none());
    assert_eq!(outcome.of(Operation::Read).succeeded, 0);
}
