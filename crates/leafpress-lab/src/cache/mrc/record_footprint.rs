//! Measures the memory of records in our cache, by filling it until it evicts.

use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::Cache;
use leafpress::cache::{MAX_KEY_BYTES, MIN_MEMORY_BYTES};
use serde::{Deserialize, Serialize};

use super::super::EngineSpec;
use super::super::workload::Workload;
use crate::core::{Bytes, LabError};

/// The largest cache that is filled: of a larger one each byte holds as much.
const MAX_MEMORY_BYTES: u64 = 64 << 20;
/// Bytes between two looks at the cache, as a part of its memory.
const LOOK_EVERY: u64 = 8;
/// It is full once one record was evicted for this many that it holds.
const ENOUGH_ONE_IN: u64 = 8;

/// Memory of the workload's records in our cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The cache.
    pub engine: EngineSpec,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// Records in it.
    pub records: u64,
    /// Bytes of their keys and values.
    pub user_bytes: u64,
    /// Its memory in excess of that while empty, in bytes.
    pub bytes_held: u64,
    /// Its memory while empty, in bytes.
    #[serde(default)]
    pub empty_bytes: u64,
    /// Evicted records; 0 if the whole workload fits.
    pub evicted: u64,
}

impl Held {
    /// Returns the bytes held for each byte of keys and values.
    pub fn per_byte(&self) -> f64 {
        self.bytes_held as f64 / self.user_bytes.max(1) as f64
    }

    /// Returns the bytes held for each record.
    pub fn per_record(&self) -> f64 {
        self.bytes_held as f64 / self.records.max(1) as f64
    }
}

/// Fills a cache of the codec, and of the memory or less, with records of the work in no order, until it has made room
/// for a while.
///
/// # Errors
/// The cache's error; [`LabError::Option`] for `memory` when it keeps no record; [`LabError::Cancelled`].
pub(in crate::cache) fn measure(
    workload: &Workload,
    engine: EngineSpec,
    memory_bytes: u64,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Held, LabError> {
    let memory_bytes = memory_bytes.clamp(MIN_MEMORY_BYTES, MAX_MEMORY_BYTES);
    let mut builder = Cache::builder().memory(memory_bytes);
    if let EngineSpec::Leafpress(codec, policy) = engine {
        builder = builder.policy(policy);
        if let Some(codec) = codec {
            builder = builder.codec(codec);
        }
    }
    let cache = builder.build()?;
    let empty_bytes = cache.stats().bytes_held;
    let mut filling = Filling {
        workload,
        cache: &cache,
        look_every: memory_bytes / LOOK_EVERY,
        next: 0,
    };
    filling.fill(cancel, &mut |bytes| progress(bytes as f64 / memory_bytes as f64 / 2.0))?;
    // It was filled too fast to train its dictionary and compress all records with it.
    cache.settle()?;
    let mut stats = cache.stats();
    if stats.evicted > 0 {
        // Gaps from insertions and evictions count as memory of records.
        filling.fill(cancel, &mut |bytes| {
            progress(0.5 + bytes as f64 / memory_bytes as f64 / 2.0)
        })?;
        stats = cache.stats();
    }
    if stats.records == 0 {
        let reason = format!(
            "{} cannot hold a record of this workload: a record may be at most an eighth of the memory",
            Bytes(memory_bytes)
        );
        return Err(LabError::option("memory", reason));
    }
    Ok(Held {
        engine,
        memory_bytes,
        records: stats.records,
        user_bytes: stats.user_bytes,
        bytes_held: stats.bytes_held.saturating_sub(empty_bytes),
        empty_bytes,
        evicted: stats.evicted,
    })
}

struct Filling<'f> {
    workload: &'f Workload,
    cache: &'f Cache,
    /// Bytes between two looks.
    look_every: u64,
    /// Keys inserted so far, some perhaps repeatedly.
    next: u64,
}

impl Filling<'_> {
    /// Inserts records until the wanted number was evicted, or each was inserted once.
    fn fill(&mut self, cancel: &AtomicBool, progress: &mut dyn FnMut(u64)) -> Result<(), LabError> {
        let (mut key, mut value) = (Vec::with_capacity(MAX_KEY_BYTES), Vec::new());
        let before = self.cache.stats().evicted;
        let mut unseen = 0;
        for _ in 0..self.workload.keys() {
            let id = self.workload.in_filling_order(self.next % self.workload.keys());
            self.next += 1;
            self.workload.key(id, &mut key);
            self.workload.fill(id, 0, &mut value);
            self.cache.insert(&key, &value)?;
            unseen += (key.len() + value.len()) as u64;
            if unseen < self.look_every {
                continue;
            }
            unseen = 0;
            if cancel.load(Ordering::Relaxed) {
                return Err(LabError::Cancelled);
            }
            let stats = self.cache.stats();
            progress(stats.bytes_held);
            if (stats.evicted - before) * ENOUGH_ONE_IN > stats.records {
                break;
            }
        }
        Ok(())
    }
}
