use std::collections::BTreeMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

use leafpress::TreeError;

use super::*;
use std::sync::Arc;

use crate::core::corpus::{Corpus, Cut};
use crate::core::keys::KeyShape;
use crate::eval::{EvalConfig, LandingBytes, Workload};

/// The defect of a [`Broken`] map.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Nothing,
    /// Flips a bit in every 1000th returned value.
    Corrupts,
    /// Cuts a byte off.
    CutsShort,
    /// Reports an existing key as missing.
    Misses,
    /// Forgets a put.
    DropsPut,
    /// Forgets a remove.
    DropsRemove,
    /// Reports wrongly whether a key was new or existed.
    LiesOnPut,
    /// Leaves a record out of a scan.
    SkipsInScan,
    /// Returns a scan's records in the wrong order.
    ReversesScan,
    /// Miscounts its records.
    Miscounts,
    Fails,
    Panics,
}

/// An ordered map that does one thing wrong, now and then.
struct Broken {
    map: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
    fault: Fault,
    chances: AtomicU64,
}

impl Broken {
    fn new(fault: Fault) -> Self {
        Self {
            map: RwLock::default(),
            fault,
            chances: AtomicU64::new(0),
        }
    }

    fn strikes(&self, fault: Fault) -> bool {
        // A forgotten put is healed by the key's next one, so it must happen often for some to be there at the end.
        let every = if fault == Fault::DropsPut { 10 } else { 1000 };
        self.fault == fault && self.chances.fetch_add(1, Ordering::Relaxed) % every == every - 1
    }
}

impl Store for Broken {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        let mut map = self.map.write().unwrap();
        // Only overwrites are forgotten: a key that never was is another fault.
        if map.contains_key(key) && self.strikes(Fault::DropsPut) {
            return Ok(false);
        }
        let new = map.insert(key.into(), value.into()).is_none();
        Ok(new != self.strikes(Fault::LiesOnPut))
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, TreeError> {
        if self.strikes(Fault::Fails) {
            return Err(TreeError::OutOfMemory { bytes: 42 });
        }
        assert!(!self.strikes(Fault::Panics), "a panic on purpose");
        value.clear();
        let map = self.map.read().unwrap();
        let Some(found) = map.get(key).filter(|_| !self.strikes(Fault::Misses)) else {
            return Ok(false);
        };
        value.extend_from_slice(found);
        if self.strikes(Fault::Corrupts) {
            let middle = value.len() / 2;
            value[middle] ^= 1;
        }
        if self.strikes(Fault::CutsShort) {
            value.pop();
        }
        Ok(true)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, TreeError> {
        let mut map = self.map.write().unwrap();
        if self.fault == Fault::DropsRemove {
            return Ok(map.contains_key(key));
        }
        Ok(map.remove(key).is_some())
    }

    fn scan(&self, start: &[u8], limit: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), TreeError> {
        let map = self.map.read().unwrap();
        let mut records: Vec<_> = map.range(start.to_vec()..).take(limit).collect();
        if self.fault == Fault::ReversesScan {
            records.reverse();
        }
        for (key, value) in records {
            if !self.strikes(Fault::SkipsInScan) {
                visit(key, value);
            }
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.map.read().unwrap().len() + usize::from(self.fault == Fault::Miscounts)
    }
}

fn spec(workload: Workload, threads: usize) -> RunSpec {
    let base = EvalConfig {
        keys: 2000,
        value_bytes: 32,
        seconds: 0.2,
        scan_records: 20,
        latency_samples_per_thread: 0,
        ..EvalConfig::default()
    };
    RunSpec {
        run: "test".into(),
        codec: "none".into(),
        workload,
        threads,
        landing_bytes: LandingBytes::Fixed(512),
        background: false,
        check_one_in: 1,
        base,
    }
}

/// Runs long enough for every fault to strike, however slow the machine.
fn run_on(spec: &RunSpec, fault: Fault) -> Result<RunResult, LabError> {
    let bytes = (0..100_000_u32)
        .flat_map(|i| crate::core::keys::mix(i.into()).to_le_bytes())
        .collect();
    let corpus = Arc::new(Corpus::from_parts("test", vec![bytes], Cut::Fixed(32)).unwrap());
    let data = Dataset::shaped(corpus, &spec.base);
    let enough = if spec.workload == Workload::Scan { 1000 } else { 20_000 };
    let mut spec = spec.clone();
    loop {
        let make = || -> Result<Box<dyn Store>, LabError> { Ok(Box::new(Broken::new(fault))) };
        let result = run_store(&spec, &data, &make, &AtomicBool::new(false), &mut |_, _| {})?;
        if result.operations() >= enough {
            return Ok(result);
        }
        spec.base.seconds *= 2.0;
    }
}

#[test]
fn a_right_map_has_no_mismatch_and_counts_add_up() {
    for workload in Workload::ALL {
        for distribution in ["uniform", "zipfian", "latest"] {
            let mut spec = spec(workload, 3);
            spec.base.distribution = distribution.parse().unwrap();
            spec.base.load_order = crate::core::keys::LoadOrder::Random;
            let result = run_on(&spec, Fault::Nothing).unwrap();
            assert_eq!(
                result.mismatches, 0,
                "{workload} {distribution}: {:?}",
                result.mismatch_examples
            );
            for (latency, count) in [
                (&result.read_latency, result.reads),
                (&result.write_latency, result.writes),
                (&result.delete_latency, result.deletes),
                (&result.scan_latency, result.scans),
            ] {
                assert_eq!(
                    latency.as_ref().map_or(0, |l| l.samples),
                    count,
                    "{workload}: every operation is measured"
                );
            }
            let total = result.operations() as f64;
            let [read, mutate, scan] = workload.shares().map(|share| f64::from(share) / 100.0);
            let counts = [
                (result.reads, read),
                (result.writes + result.deletes, mutate),
                (result.scans, scan),
            ];
            for (count, share) in counts {
                // Ten deviations of a binomial.
                let slack = 10.0 * (share * (1.0 - share) / total).sqrt() + 1e-9;
                assert!(
                    (count as f64 / total - share).abs() <= slack,
                    "{workload}: {count} of {total}, not {share}"
                );
            }
            assert_eq!(result.deletes > 0, workload == Workload::Crud, "{workload}");
            assert!(result.scanned_records <= result.scans * 20);
            assert!(result.wall_seconds >= 0.2 && result.qps() > 0.0);
        }
    }
}

#[test]
fn every_fault_is_detected() {
    for (fault, workload) in [
        (Fault::Corrupts, Workload::ReadOnly),
        (Fault::CutsShort, Workload::ReadOnly),
        (Fault::Misses, Workload::ReadOnly),
        (Fault::DropsPut, Workload::ReadWrite55),
        (Fault::DropsPut, Workload::WriteOnly),
        (Fault::DropsRemove, Workload::Crud),
        (Fault::LiesOnPut, Workload::WriteOnly),
        (Fault::SkipsInScan, Workload::Scan),
        (Fault::ReversesScan, Workload::Scan),
        (Fault::Miscounts, Workload::ReadOnly),
    ] {
        let result = run_on(&spec(workload, 2), fault).unwrap();
        assert!(result.mismatches > 0, "{fault:?} in {workload} passed");
        let example = &result.mismatch_examples[0];
        assert!(!example.is_empty() && !example.contains('\n'), "{fault:?}: {example}");
    }
}

#[test]
fn reads_of_many_keys_in_a_call_are_all_checked_and_counted() {
    for (workload, reads_per_call) in [
        (Workload::ReadOnly, 2),
        (Workload::ReadOnly, 3),
        (Workload::ReadWrite82, 8),
        (Workload::Crud, 64),
    ] {
        let mut spec = spec(workload, 2);
        spec.base.reads_per_call = reads_per_call;
        let result = run_on(&spec, Fault::Nothing).unwrap();
        assert_eq!(result.mismatches, 0, "{workload}: {:?}", result.mismatch_examples);
        assert_eq!(
            result.read_latency.unwrap().samples,
            result.reads,
            "{workload}: every read is measured"
        );
        for fault in [Fault::Corrupts, Fault::CutsShort, Fault::Misses] {
            let result = run_on(&spec, fault).unwrap();
            assert!(result.mismatches > 0, "{fault:?} in {workload} passed");
        }
        spec.base.data = crate::core::corpus::Source::Synthetic(0.5);
        let result = run(&spec, &AtomicBool::new(false), &mut |_, _| {}).unwrap();
        assert_eq!(
            result.mismatches, 0,
            "the tree, {workload}: {:?}",
            result.mismatch_examples
        );
        assert!(result.counters.gets >= result.reads);
    }
}

#[test]
fn a_failing_or_panicking_map_ends_the_run() {
    let mut long = spec(Workload::ReadOnly, 2);
    long.base.seconds = 3600.0;
    let failed = run_on(&long, Fault::Fails).unwrap_err();
    assert!(
        matches!(failed, LabError::Operation { operation: "get", .. }),
        "{failed}"
    );
    assert!(failed.to_string().contains("42 bytes"), "{failed}");
    let panicked = run_on(&spec(Workload::ReadOnly, 2), Fault::Panics).unwrap_err();
    assert!(panicked.to_string().contains("panicked"), "{panicked}");
}

#[test]
fn cancelling_ends_a_run() {
    let mut long = spec(Workload::ReadWrite55, 2);
    long.base.seconds = 3600.0;
    let corpus = Arc::new(Corpus::from_parts("test", vec![vec![7; 320]], Cut::Fixed(32)).unwrap());
    let data = Dataset::shaped(corpus, &long.base);
    let cancel = AtomicBool::new(false);
    let result = run_store(
        &long,
        &data,
        &|| Ok(Box::new(Broken::new(Fault::Nothing))),
        &cancel,
        &mut |phase, _| {
            if phase == Phase::Timed {
                cancel.store(true, Ordering::Relaxed);
            }
        },
    );
    assert!(matches!(result, Err(LabError::Cancelled)), "{result:?}");
}

/// Keys of every shape go through every workload; scans find them in their order.
#[test]
fn a_right_map_has_no_mismatch_whatever_its_keys_look_like() {
    for shape in KeyShape::ALL {
        for workload in [Workload::ReadWrite55, Workload::Crud, Workload::Scan] {
            let mut spec = spec(workload, 2);
            spec.base.key_shape = shape;
            spec.base.load_order = crate::core::keys::LoadOrder::Random;
            let result = run_on(&spec, Fault::Nothing).unwrap();
            assert_eq!(
                result.mismatches, 0,
                "{shape} {workload}: {:?}",
                result.mismatch_examples
            );
            assert!(result.operations() > 0, "{shape} {workload}");
        }
        let caught = run_on(
            &{
                let mut spec = spec(Workload::Scan, 2);
                spec.base.key_shape = shape;
                spec
            },
            Fault::SkipsInScan,
        )
        .unwrap();
        assert!(
            caught.mismatches > 0,
            "{shape}: a scan that leaves records out is caught"
        );
    }
}

#[test]
fn sampling_and_collecting_can_be_turned_off() {
    let mut spec = spec(Workload::ReadOnly, 2);
    spec.base.latency_samples_per_thread = 100;
    let result = run_on(&spec, Fault::Nothing).unwrap();
    let samples = result.read_latency.unwrap().samples;
    assert!(
        (2..=400).contains(&samples) && samples < result.reads,
        "{samples} of {}",
        result.reads
    );
    spec.base.measure_latency = false;
    spec.base.collect_cpu = false;
    let result = run_on(&spec, Fault::Nothing).unwrap();
    assert_eq!((result.read_latency, result.resources), (None, None));
}

#[test]
fn the_tree_itself_runs_every_workload() {
    for workload in Workload::ALL {
        let mut spec = spec(workload, 2);
        spec.base.data = crate::core::corpus::Source::Synthetic(0.5);
        let mut phases = Vec::new();
        let result = run(&spec, &AtomicBool::new(false), &mut |phase, fraction| {
            assert!((0.0..=1.0).contains(&fraction));
            if phases.last() != Some(&phase) {
                phases.push(phase);
            }
        });
        let result = result.unwrap();
        assert_eq!(result.mismatches, 0, "{workload}: {:?}", result.mismatch_examples);
        assert_eq!(phases, [Phase::Corpus, Phase::Load, Phase::Timed, Phase::Verify]);
    }
}
