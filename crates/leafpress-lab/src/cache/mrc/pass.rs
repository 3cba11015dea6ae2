//! The pass over the requests.

use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::cache::{MIN_MEMORY_BYTES, Policy};
use leafpress_base::reuse::NumberMap;
use leafpress_pages::pool::PolicyKind;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::super::workload::{Action, Place, Workload};
use super::super::{EngineSpec, Length, Options};
use super::curves::sizes;
use super::miniatures::Miniatures;
use super::shards::Shards;
use super::{Curve, HitCurves, HitRatios, MrcOptions, Sampling, SizePoint, record_footprint};
use crate::core::LabError;
use crate::core::keys::{mix, unit};

/// Uncompressed and compressed records.
const WAYS: usize = 2;
/// Requests between checks for cancellation.
const LOOK_EVERY: u64 = 1 << 16;
/// Fewest requests that are counted where keys are drawn, and most of a stage: a larger working set is not gone
/// through.
const DRAWN: (u64, u64) = (1_000_000, 1 << 27);
/// Estimated share of the time for filling a cache.
const FILLING: f64 = 0.4;

/// Measures the memory of records, and makes one pass over the requests: curves of the sizes that our cache can have.
///
/// # Errors
/// Errors of our cache, [`LabError::Cancelled`].
pub(in super::super) fn run(
    workload: &Workload,
    options: &Options,
    mrc: &MrcOptions,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<HitCurves, LabError> {
    run_of_all_sizes(workload, options, mrc, cancel, progress).map(of_caches_that_can_be_built)
}

/// As [`run`], with smaller sizes too: a trace may stand for more requests than it has.
///
/// # Errors
/// As [`run`].
pub(in super::super) fn run_of_all_sizes(
    workload: &Workload,
    options: &Options,
    mrc: &MrcOptions,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<HitCurves, LabError> {
    let is_ours = |engine: &&EngineSpec| matches!(engine, EngineSpec::Leafpress(..));
    let engine = options.engines.iter().find(is_ours).copied();
    let engine = engine.unwrap_or(EngineSpec::Leafpress(None, Policy::default()));
    let mut filled = 0.0_f64;
    let held = record_footprint::measure(workload, engine, options.memory_bytes, cancel, &mut |done| {
        // Held memory may shrink meanwhile.
        filled = done.clamp(filled, 1.0);
        progress(filled * FILLING);
    })?;
    let per_byte = held.per_byte();
    let all_bytes = workload.keys() as f64 * (workload.record_bytes() + mrc.entry_bytes as f64);
    let sizes = sizes(
        options.memory_bytes,
        all_bytes.max(workload.keys() as f64 * workload.record_bytes() * per_byte),
    );
    let keys = workload.keys() as f64;
    let miniature_rate = match mrc.sampling {
        Sampling::Rate(rate) => rate,
        Sampling::Keys(most) => (most as f64 / keys).min(1.0),
    };
    let mut pass = Pass {
        workload,
        rng: Xoshiro256PlusPlus::seed_from_u64(mix(options.seed ^ mix(1))),
        write_pct: options.write_pct,
        shards: Shards::new(&sizes, mrc.sampling),
        miniatures: Miniatures::new(PolicyKind::S3Fifo, &sizes, miniature_rate)
            .ok_or_else(|| LabError::System("no memory for caches in miniature".into()))?,
        weights: Weights {
            workload,
            entry_bytes: mrc.entry_bytes,
            per_byte,
            known: NumberMap::default(),
            key: Vec::new(),
        },
        cancel,
    };
    let (warmup, counted) = stages(options, workload);
    let all = (warmup + counted).max(1) as f64;
    pass.go(warmup, false, &mut |done| {
        progress(FILLING + (1.0 - FILLING) * done as f64 / all)
    })?;
    workload.rewind();
    pass.go(counted, true, &mut |done| {
        progress(FILLING + (1.0 - FILLING) * (warmup + done) as f64 / all);
    })?;
    workload.rewind();
    let ([lru, lru_compressed], [s3_fifo, s3_fifo_compressed]) =
        (pass.shards.hit_ratios(), pass.miniatures.hit_ratios());
    let points = sizes.iter().enumerate().map(|(at, memory_bytes)| SizePoint {
        memory_bytes: *memory_bytes,
        hits: HitRatios {
            lru: lru[at],
            lru_compressed: lru_compressed[at],
            s3_fifo: s3_fifo[at],
            s3_fifo_compressed: s3_fifo_compressed[at],
        },
    });
    Ok(HitCurves {
        warmup_requests: warmup,
        requests: counted,
        sampled_keys: pass.shards.keys() as u64,
        rate: pass.shards.rate(),
        miniature_rate: pass.miniatures.rate(),
        entry_bytes: mrc.entry_bytes,
        held,
        points: points.collect(),
    })
}

/// The curves without sizes that our cache does not support; for compressed records, an empty cache's memory is
/// subtracted.
fn of_caches_that_can_be_built(curves: HitCurves) -> HitCurves {
    let empty_bytes = curves.held.empty_bytes as f64;
    let sizes = curves.points.iter().map(|point| point.memory_bytes);
    let mut sizes: Vec<u64> = sizes.filter(|bytes| *bytes >= MIN_MEMORY_BYTES).collect();
    if sizes.is_empty() {
        // All of the records fit into the smallest cache.
        sizes.push(MIN_MEMORY_BYTES);
    }
    let points = sizes.into_iter().map(|memory_bytes| {
        let bytes = memory_bytes as f64;
        let hits = |curve| curves.hit_ratio(curve, bytes);
        let compressed_hits = |curve| curves.hit_ratio(curve, bytes - empty_bytes);
        SizePoint {
            memory_bytes,
            hits: HitRatios {
                lru: hits(Curve::Lru),
                lru_compressed: compressed_hits(Curve::LruCompressed),
                s3_fifo: hits(Curve::S3Fifo),
                s3_fifo_compressed: compressed_hits(Curve::S3FifoCompressed),
            },
        }
    });
    let points = points.collect();
    HitCurves { points, ..curves }
}

/// Requests of the warm-up and counted requests: those of a cache's run, as far as known in advance.
fn stages(options: &Options, workload: &Workload) -> (u64, u64) {
    let (keys, trace) = (workload.keys(), workload.trace_requests());
    let bound = |requests: u64| {
        if trace.is_some() {
            requests
        } else {
            requests.min(DRAWN.1)
        }
    };
    let warmup = if trace.is_some() { 0 } else { keys.saturating_mul(2) };
    let counted = match (options.length, trace) {
        (Some(Length::Operations(operations)), _) => operations,
        (_, Some(requests)) => requests,
        _ => keys.max(DRAWN.0),
    };
    (bound(options.warmup_operations.unwrap_or(warmup)), bound(counted))
}

/// Bytes of a record in each way. Called only for sampled keys, and cached.
struct Weights<'w> {
    workload: &'w Workload,
    entry_bytes: u64,
    per_byte: f64,
    known: NumberMap<[u64; WAYS]>,
    key: Vec<u8>,
}

impl Weights<'_> {
    fn of(&mut self, id: u64) -> [u64; WAYS] {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        self.workload.key(id, &mut self.key);
        let bytes = self.key.len() as u64 + self.workload.value_bytes(id);
        let compressed = (bytes as f64 * self.per_byte).round().max(1.0) as u64;
        let weights = [bytes + self.entry_bytes, compressed];
        self.known.insert(id, weights);
        weights
    }
}

struct Pass<'p> {
    workload: &'p Workload,
    rng: Xoshiro256PlusPlus,
    write_pct: f64,
    shards: Shards<WAYS>,
    miniatures: Miniatures<WAYS>,
    weights: Weights<'p>,
    cancel: &'p AtomicBool,
}

impl Pass<'_> {
    fn go(&mut self, requests: u64, counts: bool, progress: &mut dyn FnMut(u64)) -> Result<(), LabError> {
        let mut place = Place::new(0);
        for number in 0..requests {
            if number % LOOK_EVERY == 0 {
                if self.cancel.load(Ordering::Relaxed) {
                    return Err(LabError::Cancelled);
                }
                progress(number);
            }
            let request = self.workload.next(&mut self.rng, &mut place);
            if request.is_lone || request.action == Action::Remove {
                // Keys that are never requested again, and are not part of any curve.
                continue;
            }
            let is_read = matches!(request.action, Action::Read | Action::Look);
            let is_write = !is_read || self.write_pct > 0.0 && unit(&mut self.rng) * 100.0 < self.write_pct;
            let counts = counts && !is_write;
            self.shards.access(request.id, counts, || self.weights.of(request.id));
            self.miniatures
                .access(request.id, counts, || self.weights.of(request.id));
        }
        Ok(())
    }
}
