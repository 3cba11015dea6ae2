use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use quanta::Mock;

use super::*;
use crate::bench::{Latencies, Law, Ratios, mock_cost};

/// Records the requested keys, by operation.
#[derive(Default)]
struct Recording {
    keys: Mutex<Vec<(Operation, Vec<u8>)>>,
}

impl Recording {
    fn note(&self, operation: Operation, key: &[u8]) -> Result<bool, IndexError> {
        self.keys.lock().unwrap().push((operation, key.to_vec()));
        Ok(true)
    }
}

impl Index for Recording {
    fn find(&self, key: &[u8], _: &mut [u8]) -> Result<bool, IndexError> {
        self.note(Operation::Read, key)
    }
    fn insert(&self, key: &[u8], _: &[u8]) -> Result<bool, IndexError> {
        self.note(Operation::Insert, key)
    }
    fn update(&self, key: &[u8], _: &[u8]) -> Result<bool, IndexError> {
        self.note(Operation::Update, key)
    }
    fn remove(&self, key: &[u8]) -> Result<bool, IndexError> {
        self.note(Operation::Remove, key)
    }
    fn scan(&self, key: &[u8], _: usize, _: &mut Vec<u8>) -> Result<usize, IndexError> {
        self.note(Operation::Scan, key)?;
        Ok(0)
    }
    fn name(&self) -> String {
        "recording".into()
    }
    fn stores(&self) -> bool {
        false
    }
}

/// Does this many operations.
fn run(worker: &mut Worker<'_>, operations: u64) {
    worker.begin();
    worker.left = operations;
    while worker.step(&AtomicBool::new(false)).unwrap() {}
}

/// The operations of each thread out of `operations`; the threads take turns of a few operations.
fn drive(options: &Options, operations: u64) -> Vec<Vec<(Operation, Vec<u8>)>> {
    let index = Recording::default();
    let format = KeyFormat::new(options.key_prefix.as_bytes(), options.key_size);
    let values = Values::load(options, &AtomicBool::new(false)).unwrap();
    let mix = Mix::new(&options.ratios).unwrap();
    let shared = Shared {
        options,
        index: &index,
        format: &format,
        values: &values,
        mix: &mix,
        distribution: options.distribution().unwrap(),
        shown: (0..options.threads).map(|_| Shown::default()).collect(),
    };
    let mut workers: Vec<_> = (0..options.threads)
        .map(|thread| Worker::new(&shared, thread, Clock::new(), None, Attached::new(&index).unwrap()))
        .collect();
    let mut did = vec![Vec::new(); options.threads];
    for turn in 0..operations / 50 {
        for (thread, worker) in workers.iter_mut().enumerate() {
            // Threads need not be equally fast.
            let some = 50 + (turn + thread as u64) % 7;
            run(worker, some);
            did[thread].append(&mut index.keys.lock().unwrap());
        }
    }
    did
}

fn options(threads: usize, read: f64, insert: f64) -> Options {
    let mut options = Options::new("dummy".parse().unwrap());
    (options.records, options.threads) = (100, threads);
    options.ratios.read = read;
    options.ratios.insert = insert;
    options.validate().unwrap();
    options
}

/// PiBench seeds all threads' operations alike, and derives the seeds of their keys from one another.
#[test]
fn threads_have_streams_of_their_own_and_the_same_every_time() {
    let options = options(3, 0.5, 0.5);
    let did = drive(&options, 1000);
    assert_ne!(did[0], did[1]);
    let operations = |thread: usize| did[thread].iter().map(|(operation, _)| *operation).collect::<Vec<_>>();
    assert_ne!(operations(0), operations(1));
    assert_ne!(operations(1), operations(2));
    assert_eq!(did, drive(&options, 1000));
    let mut other = options.clone();
    other.seed += 1;
    assert_ne!(did, drive(&other, 1000));
}

/// Measuring more or less does not change what is done.
#[test]
fn sampling_does_not_touch_the_work() {
    let plain = options(2, 0.5, 0.5);
    let mut sampled = plain.clone();
    sampled.latency_sampling = 0.3;
    assert_eq!(drive(&plain, 1000), drive(&sampled, 1000));
}

/// With PiBench, two threads insert the same keys, reads go to ids that nobody has inserted, and id N is in the draw
/// but not in the load.
#[test]
fn inserted_keys_are_new_and_all_other_keys_exist() {
    for threads in [1, 2, 5] {
        for law in [Law::Uniform, Law::SelfSimilar, Law::Zipfian, Law::Latest, Law::HotSet] {
            let mut options = options(threads, 0.6, 0.4);
            options.law = law;
            let format = KeyFormat::new(b"", 8);
            let loaded: HashSet<_> = (1..=options.records).map(|id| format.key(id)).collect();
            let mut inserted = HashSet::new();
            let mut read_of_inserted = 0;
            let did = drive(&options, 3000);
            // In the order it was done: drive() takes the threads' turns one after another.
            for turn in turns(&did) {
                for (operation, key) in turn {
                    if operation == Operation::Insert {
                        assert!(
                            !loaded.contains(&key) && inserted.insert(key),
                            "{law:?}: inserted twice"
                        );
                    } else if !loaded.contains(&key) {
                        assert!(
                            inserted.contains(&key),
                            "{law:?}, {threads} threads: a key that is not there"
                        );
                        read_of_inserted += 1;
                    }
                }
            }
            assert!(inserted.len() > 1000 * threads, "{}", inserted.len());
            if law != Law::SelfSimilar {
                assert!(
                    read_of_inserted > 100,
                    "{law:?}: inserted keys are read too: {read_of_inserted}"
                );
            }
        }
    }
}

/// The operations of the threads' turns, in the order of the turns.
fn turns(did: &[Vec<(Operation, Vec<u8>)>]) -> Vec<Vec<(Operation, Vec<u8>)>> {
    let mut turns = Vec::new();
    let mut at = vec![0; did.len()];
    for turn in 0.. {
        for (thread, done) in did.iter().enumerate() {
            let some = 50 + (turn + thread) % 7;
            if at[thread] >= done.len() {
                return turns;
            }
            turns.push(done[at[thread]..at[thread] + some].to_vec());
            at[thread] += some;
        }
    }
    turns
}

/// Every id of the load is drawn, the first and the last too.
#[test]
fn every_loaded_id_is_drawn() {
    let mut options = options(2, 1.0, 0.0);
    options.records = 7;
    let format = KeyFormat::new(b"", 8);
    let mut hits = BTreeMap::new();
    for (_, key) in drive(&options, 2000).concat() {
        *hits.entry(key).or_insert(0) += 1;
    }
    let expected: HashSet<_> = (1..=7).map(|id| format.key(id)).collect();
    assert_eq!(hits.keys().cloned().collect::<HashSet<_>>(), expected);
}

#[test]
fn scans_vary_in_length_where_configured() {
    let mut options = options(1, 1.0, 0.0);
    options.set_ycsb(super::super::Ycsb::E);
    options.scan_size = 4;
    let mix = Mix::new(&options.ratios).unwrap();
    let (index, format) = (Recording::default(), KeyFormat::new(b"", 8));
    let values = Values::load(&options, &AtomicBool::new(false)).unwrap();
    let shared = Shared {
        options: &options,
        index: &index,
        format: &format,
        values: &values,
        mix: &mix,
        distribution: options.distribution().unwrap(),
        shown: vec![Shown::default()],
    };
    let mut worker = Worker::new(&shared, 0, Clock::new(), None, Attached::new(&index).unwrap());
    let mut seen = HashSet::new();
    for _ in 0..50 {
        worker.plan(32);
        let scans = worker
            .planned
            .iter()
            .filter(|planned| planned.operation == Operation::Scan);
        seen.extend(scans.map(|planned| planned.scan_size));
    }
    assert_eq!(seen, HashSet::from([1, 2, 3, 4]));
}

/// Every operation takes exactly [`OPERATION_NS`] on a clock that nothing else but the making of keys and values moves.
struct Ticking(Arc<Mock>);

const OPERATION_NS: u64 = 50;

impl Ticking {
    fn tick(&self) -> Result<bool, IndexError> {
        self.0.increment(OPERATION_NS);
        Ok(true)
    }
}

impl Index for Ticking {
    fn find(&self, _: &[u8], _: &mut [u8]) -> Result<bool, IndexError> {
        self.tick()
    }
    fn insert(&self, _: &[u8], _: &[u8]) -> Result<bool, IndexError> {
        self.tick()
    }
    fn update(&self, _: &[u8], _: &[u8]) -> Result<bool, IndexError> {
        self.tick()
    }
    fn remove(&self, _: &[u8]) -> Result<bool, IndexError> {
        self.tick()
    }
    fn scan(&self, _: &[u8], _: usize, _: &mut Vec<u8>) -> Result<usize, IndexError> {
        self.tick().map(|_| 0)
    }
    fn name(&self) -> String {
        "ticking".into()
    }
    fn stores(&self) -> bool {
        false
    }
}

/// The latencies of `operations` operations on a [`Ticking`] index where making a key or a value takes a millisecond.
fn latencies_of_slowly_made(options: &Options, operations: u64) -> Latencies {
    let (clock, mock) = Clock::mock();
    mock_cost::making_takes(Arc::clone(&mock), 1_000_000);
    let index = Ticking(mock);
    let format = KeyFormat::new(b"", options.key_size);
    let values = Values::load(options, &AtomicBool::new(false)).unwrap();
    let mix = Mix::new(&options.ratios).unwrap();
    let shared = Shared {
        options,
        index: &index,
        format: &format,
        values: &values,
        mix: &mix,
        distribution: options.distribution().unwrap(),
        shown: vec![Shown::default()],
    };
    let recorder = Recorder::new(clock.clone(), options.rate.is_some(), options.sampling_ms).unwrap();
    let mut worker = Worker::new(
        &shared,
        0,
        clock.clone(),
        Some(recorder),
        Attached::new(&index).unwrap(),
    );
    run(&mut worker, operations);
    let Finished {
        start, end, recorder, ..
    } = worker.finish();
    // They were made during the run, one key at least for each operation.
    assert!(clock.delta_as_nanos(start, end) >= operations * (1_000_000 + OPERATION_NS));
    Recorder::merge(recorder.into_iter().collect(), options.sampling_ms).unwrap()
}

#[test]
fn making_keys_and_values_is_in_no_latency() {
    for value_size in [8, 40_000] {
        let mut options = options(1, 1.0, 0.0);
        options.value_size = value_size;
        options.ratios = Ratios {
            read: 0.4,
            insert: 0.2,
            update: 0.2,
            remove: 0.1,
            scan: 0.1,
            ..Ratios::NONE
        };
        for share in [1.0, 0.5] {
            options.latency_sampling = share;
            let latencies = latencies_of_slowly_made(&options, 3000);
            let all = latencies.all.unwrap();
            assert!(all.samples > 1000 && all.samples <= 3000);
            assert_eq!(
                (all.min_ns, all.max_ns),
                (OPERATION_NS, OPERATION_NS),
                "{share}: {all:?}"
            );
            assert_eq!(latencies.by_operation.len(), 5);
        }
        // An open loop that is late: its latencies have the lateness in them, its service times do not.
        (options.latency_sampling, options.rate) = (1.0, Some(1e9));
        let service = latencies_of_slowly_made(&options, 3000).service.unwrap();
        assert_eq!((service.samples, service.max_ns), (3000, OPERATION_NS));
    }
}
