//! A sample of the records in a tree, in a cache, and in pages.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use leafpress::codec::EngineOptions;
use leafpress::{Codec, Tree, TreeStats};
use serde::Serialize;

use super::options::{Options, Requests};
use super::times::{self, Times};
use crate::cache::{self, Held, Work, held_of};
use crate::core::LabError;
use crate::core::corpus::Records;
use crate::core::keys::{Distribution, Permutation};

/// Parts of the sample from whose spread the error follows.
const PARTS: u64 = 4;
/// The factor of the standard error of four parts at a probability of 95%: Student's t with three degrees of freedom.
const STUDENT: f64 = 3.182;
/// Insertions between checks for cancellation.
const LOOK_EVERY: u64 = 1 << 12;
/// Memory of the cache that is filled, in bytes: fewest and most.
const CACHE_BYTES: (u64, u64) = (4 << 20, 32 << 20);
/// Keys and values that are inserted into the cache, as a multiple of its memory: no data compresses as well.
const CACHE_WORK: u64 = 64;
/// Length of a page of the pool, in bytes.
pub(super) const PAGE_BYTES: usize = 8 << 10;
/// Bytes that the disk tier compresses into a page of 4 KiB, about.
const SPILL_BYTES: usize = 12 << 10;
/// Bytes of pages that are compressed, to measure ratio and times.
const PAGED_BYTES: usize = 16 << 20;
/// The disk tier's default codec.
const SPILL: Codec = Codec::Zstd { level: 3 };

/// The records of a sample, and what each takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sampled {
    /// Records that were measured.
    pub records: u64,
    /// Records of the source.
    pub found: u64,
    /// Records of the source that were skipped, in words.
    pub left_out: Option<String>,
    /// Mean bytes of key and value.
    pub record_bytes: f64,
    /// Bytes of a record in a tree.
    pub tree_bytes: f64,
    /// The relative error of that with a probability of 95%, by the spread of `PARTS` parts of the sample.
    pub error: f64,
    /// Bytes of a tree that do not depend on the records.
    pub tree_fixed_bytes: f64,
    /// The codec that the tree chose.
    pub codec: String,
    /// The records in a cache.
    pub held: Held,
    /// Bytes of a record on the SSD.
    pub disk_bytes: f64,
    /// Raw over compressed bytes of pages of the pool.
    pub page_ratio: f64,
    /// Times of accesses.
    pub times: Times,
}

/// Reads and measures the sample.
///
/// # Errors
/// Unusable data, errors of a tree or a cache, [`LabError::Cancelled`].
pub(super) fn measure(
    options: &Options,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(f64, &'static str),
) -> Result<Sampled, LabError> {
    progress(0.0, "reading");
    let records = Records::load_until(&options.data, &options.format, cancel)?;
    let (found, left_out) = (records.keys.len(), records.census.left_out());
    let mean = user_bytes(&records, 0..found) / found as f64;
    let records = records.take_runs(((options.sample_bytes as f64 / mean) as u64).max(PARTS));
    let count = records.keys.len();
    if count < PARTS {
        return Err(LabError::data(
            options.data.to_string(),
            format!("it has {count} records: a projection needs {PARTS} at least"),
        ));
    }
    progress(0.1, "the sample in a tree");
    let (tree, filled_us) = times::cpu_us(count, || filled(&records, 0..count, None, cancel))?;
    let stats = tree.stats();
    let distribution = match options.requests {
        Requests::Distribution(distribution) => distribution,
        Requests::Trace { .. } => Distribution::Zipfian { theta: 0.99 },
    };
    progress(0.3, "reads");
    let raw = times::of_raw(&records, distribution, cancel)?;
    let compressed = times::of_tree(&tree, &records, distribution, cancel)?;
    // Other work on the machine adds to both, and training to the first.
    let insert_us = filled_us.min(times::of_insertions(&tree, &records)?);
    drop(tree);
    let mut ratios = Vec::new();
    for part in 0..PARTS {
        progress(0.35 + 0.05 * part as f64, "parts of the sample in trees");
        let ids = part * count / PARTS..(part + 1) * count / PARTS;
        let bytes = user_bytes(&records, ids.clone());
        let tree = filled(&records, ids, Some(stats.codec), cancel)?;
        ratios.push(of_records(&tree.stats()) / bytes.max(1.0));
    }
    progress(0.55, "pages");
    let record_bytes = user_bytes(&records, 0..count) / count as f64;
    let spilled = blocks(&records, SPILL, SPILL_BYTES)?;
    let paged = blocks(&records, Codec::Lz4 { acceleration: 1 }, PAGE_BYTES)?;
    drop(records);
    let held = held(options, record_bytes * count as f64, cancel, &mut |done| {
        progress(0.6 + 0.4 * done, "the sample in a cache");
    })?;
    Ok(Sampled {
        records: count,
        found,
        left_out,
        record_bytes,
        tree_bytes: of_records(&stats) / count as f64,
        error: relative_error(&ratios),
        tree_fixed_bytes: (stats.dictionary_bytes + stats.fixed_bytes + stats.thread_bytes) as f64,
        codec: stats.codec.to_string(),
        held,
        disk_bytes: record_bytes / spilled.ratio,
        page_ratio: paged.ratio,
        times: Times {
            raw,
            compressed,
            insert_us,
            spill_us: spilled.encode_us * record_bytes / SPILL_BYTES as f64,
            page_encode_us: paged.encode_us,
            page_decode_us: paged.decode_us,
        },
    })
}

pub(super) fn user_bytes(records: &Records, ids: std::ops::Range<u64>) -> f64 {
    let bytes = |id| records.keys.get(id).len() + records.values.get(id).len();
    ids.map(bytes).sum::<usize>() as f64
}

/// A tree with some of the records, inserted in no order, all of them compressed. With a codec of its own it does not
/// choose one, so that parts of a sample do not differ by their choices.
pub(super) fn filled(
    records: &Records,
    ids: std::ops::Range<u64>,
    codec: Option<Codec>,
    cancel: &AtomicBool,
) -> Result<Tree, LabError> {
    let mut builder = Tree::builder();
    if let Some(codec) = codec {
        builder = builder.codec(codec);
    }
    let tree = builder.build()?;
    let count = ids.end - ids.start;
    let order = Permutation::new(count, 1);
    for place in 0..count {
        if place % LOOK_EVERY == 0 && cancel.load(Ordering::Relaxed) {
            return Err(LabError::Cancelled);
        }
        let id = ids.start + order.apply(place);
        tree.insert(records.keys.get(id), records.values.get(id))?;
    }
    tree.settle()?;
    Ok(tree)
}

/// The memory of a tree that grows with its records.
pub(super) fn of_records(stats: &TreeStats) -> f64 {
    let fixed = stats.dictionary_bytes + stats.fixed_bytes + stats.thread_bytes;
    let passing = stats.free_bytes + stats.retired_bytes;
    stats.bytes_held.saturating_sub(fixed + passing) as f64
}

/// The relative error of the mean of some parts' figures, with a probability of 95%.
fn relative_error(parts: &[f64]) -> f64 {
    let count = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / count;
    let variance = parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    STUDENT * (variance / count).sqrt() / mean.max(f64::MIN_POSITIVE)
}

/// The memory of the records in a cache that evicts. A sample that is smaller than what it holds is repeated, if its
/// keys allow that.
fn held(
    options: &Options,
    sample_bytes: f64,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Held, LabError> {
    let memory_bytes = (sample_bytes as u64).clamp(CACHE_BYTES.0, CACHE_BYTES.1);
    let work = |working_set_bytes| cache::Options {
        engines: Vec::new(),
        memory_bytes,
        working_set_bytes: Some(working_set_bytes),
        ..cache::Options::new(Work::Records {
            data: options.data.clone(),
            format: options.format.clone(),
        })
    };
    let repeated = held_of(&work(memory_bytes * CACHE_WORK), cancel, progress);
    match repeated {
        Err(LabError::Option {
            option: "working-set", ..
        }) => held_of(&work(sample_bytes as u64), cancel, progress),
        held => held,
    }
}

/// Ratio and times of blocks.
struct Blocks {
    ratio: f64,
    encode_us: f64,
    decode_us: f64,
}

/// Compresses and decompresses blocks of records in the order of their keys.
fn blocks(records: &Records, codec: Codec, block_bytes: usize) -> Result<Blocks, LabError> {
    let failed = |error: leafpress::codec::CodecError| LabError::System(error.to_string());
    let engine = codec.open(&EngineOptions::default()).map_err(failed)?;
    let mut raw = Vec::new();
    for id in 0..records.keys.len() {
        raw.extend_from_slice(records.keys.get(id));
        raw.extend_from_slice(records.values.get(id));
        if raw.len() >= PAGED_BYTES {
            break;
        }
    }
    let mut packed = Vec::new();
    let start = Instant::now();
    for block in raw.chunks(block_bytes) {
        let mut out = Vec::with_capacity(block.len());
        engine.compress(block, None, &mut out).map_err(failed)?;
        // A block that does not shrink is kept uncompressed.
        packed.push((out.len() < block.len()).then_some(out));
    }
    let encode = start.elapsed();
    let mut page = vec![0; block_bytes];
    let start = Instant::now();
    for (block, packed) in raw.chunks(block_bytes).zip(&packed) {
        if let Some(packed) = packed {
            engine
                .decompress(packed, None, &mut page[..block.len()])
                .map_err(failed)?;
        }
    }
    let decode = start.elapsed();
    let sizes = raw.chunks(block_bytes).zip(&packed);
    let stored: usize = sizes
        .map(|(block, packed)| packed.as_ref().map_or(block.len(), Vec::len))
        .sum();
    let number = packed.len().max(1) as f64;
    Ok(Blocks {
        ratio: raw.len() as f64 / stored.max(1) as f64,
        encode_us: encode.as_secs_f64() * 1e6 / number,
        decode_us: decode.as_secs_f64() * 1e6 / number,
    })
}
