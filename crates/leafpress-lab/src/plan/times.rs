//! Times of accesses, measured on the sample.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use leafpress::Tree;
use quanta::Clock;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::Serialize;

use crate::core::corpus::Records;
use crate::core::keys::{Chooser, Distribution};
use crate::core::{LabError, resources};

/// Reads that are measured, after as many that are not.
const READS: usize = 100_000;
/// One read in this many, the slowest, does not count in the mean.
const DISTURBED_ONE_IN: usize = 1000;
/// One record in this many is overwritten, to measure insertions.
const OVERWRITTEN_ONE_IN: u64 = 4;
/// Reads between checks for cancellation.
const LOOK_EVERY: usize = 1 << 12;

/// Times of an access, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Time {
    /// The mean.
    pub mean_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
}

/// Times of accesses to memory, and of a codec, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Times {
    /// A read of an uncompressed record: a hash map of the standard library, and a copy of the value.
    pub raw: Time,
    /// A read of a compressed record: a tree of default settings.
    pub compressed: Time,
    /// CPU time of an insertion into a tree, with the compression that it causes in the background.
    pub insert_us: f64,
    /// Compression of a record for the SSD.
    pub spill_us: f64,
    /// Compression of a page of the pool.
    pub page_encode_us: f64,
    /// Decompression of a page of the pool.
    pub page_decode_us: f64,
}

/// Measures reads of uncompressed records.
///
/// # Errors
/// [`LabError::Cancelled`].
pub(super) fn of_raw(records: &Records, distribution: Distribution, cancel: &AtomicBool) -> Result<Time, LabError> {
    let count = records.keys.len();
    let map: HashMap<&[u8], &[u8]> = (0..count)
        .map(|id| (records.keys.get(id), records.values.get(id)))
        .collect();
    of_reads(records, distribution, cancel, |key, value| {
        if let Some(found) = map.get(key) {
            value.clear();
            value.extend_from_slice(found);
        }
        Ok(())
    })
}

/// Measures reads of a tree with the records.
///
/// # Errors
/// The tree's error, [`LabError::Cancelled`].
pub(super) fn of_tree(
    tree: &Tree,
    records: &Records,
    distribution: Distribution,
    cancel: &AtomicBool,
) -> Result<Time, LabError> {
    of_reads(records, distribution, cancel, |key, value| {
        tree.get_into(key, value)?;
        Ok(())
    })
}

/// Runs something for a number of records, and returns its result and the CPU time per record, in microseconds.
///
/// # Errors
/// Its error.
pub(super) fn cpu_us<T>(records: u64, work: impl FnOnce() -> Result<T, LabError>) -> Result<(T, f64), LabError> {
    let before = resources::usage()?;
    let start = Instant::now();
    let result = work()?;
    let cpu = resources::usage()?.since(&before, start.elapsed());
    Ok((
        result,
        (cpu.user_seconds + cpu.system_seconds) * 1e6 / records.max(1) as f64,
    ))
}

/// Measures the CPU time of an insertion into a tree that has the records, in microseconds. Its dictionary has been
/// trained, and less than the part of the records is overwritten after which it trains another.
///
/// # Errors
/// The tree's error.
pub(super) fn of_insertions(tree: &Tree, records: &Records) -> Result<f64, LabError> {
    let count = records.keys.len();
    let overwritten = count.div_ceil(OVERWRITTEN_ONE_IN);
    let chooser = Chooser::new(Distribution::Uniform, count, 1);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    // What is due afterwards is not waited for: it would be done in larger steps than while writes go on.
    let overwrite = || {
        for _ in 0..overwritten {
            let id = chooser.read(&mut rng);
            tree.insert(records.keys.get(id), records.values.get(id))?;
        }
        Ok(())
    };
    let ((), us) = cpu_us(overwritten, overwrite)?;
    Ok(us)
}

/// Measures single reads of keys that are drawn by the distribution.
fn of_reads(
    records: &Records,
    distribution: Distribution,
    cancel: &AtomicBool,
    read: impl Fn(&[u8], &mut Vec<u8>) -> Result<(), LabError>,
) -> Result<Time, LabError> {
    let chooser = Chooser::new(distribution, records.keys.len(), 1);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let clock = Clock::new();
    let (mut ns, mut value) = (Vec::with_capacity(READS), Vec::new());
    for number in 0..2 * READS {
        if number % LOOK_EVERY == 0 && cancel.load(Ordering::Relaxed) {
            return Err(LabError::Cancelled);
        }
        let key = records.keys.get(chooser.read(&mut rng));
        let start = clock.raw();
        read(key, &mut value)?;
        let taken = clock.delta_as_nanos(start, clock.raw());
        black_box(&value);
        if number >= READS {
            ns.push(taken);
        }
    }
    ns.sort_unstable();
    let p99_us = ns[ns.len() * 99 / 100] as f64 / 1e3;
    // The slowest are those in which the system ran something else.
    ns.truncate(ns.len() - ns.len() / DISTURBED_ONE_IN);
    Ok(Time {
        mean_us: ns.iter().sum::<u64>() as f64 / ns.len() as f64 / 1e3,
        p99_us,
    })
}
