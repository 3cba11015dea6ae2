//! The shared state of a victim cache, and its statistics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use leafpress_base::sync::plain::Mutex;
use rapidhash::v3::rapidhash_v3;

use super::VictimError;
use super::adaptive::Adaptive;
use super::buffers::BufferPool;
use super::dictionaries::{Dictionaries, FAMILIES};
use super::limits::Limits;
use super::locked_shard::LockedShard;
use super::shard::Shard;
use super::stats::{Count, VictimCounts, VictimStats};
use super::work_queue::WorkQueue;
use crate::tuner::RawShare;
use crate::tuner::costs::Costs;
use leafpress_base::sync::worker::Health;
use leafpress_codec::{Codec, Engine};

pub(super) struct VictimInner {
    pub(super) codec: Codec,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) shards: Box<[LockedShard]>,
    pub(super) dictionaries: Dictionaries,
    pub(super) buffers: BufferPool,
    pub(super) work: WorkQueue,
    pub(super) health: Health,
    pub(super) admission: AtomicBool,
    pub(super) limits: Limits,
    pub(super) costs: Arc<Costs>,
    /// [`None`] if the share is fixed.
    pub(super) adaptive: Option<Adaptive>,
    /// By family, the moving average of compression ratios, in 65536ths.
    pub(super) shrinkage: [AtomicU32; FAMILIES],
    pub(super) attempts: AtomicU32,
    pub(super) probes: AtomicU32,
    /// What is counted without a shard's lock.
    pub(super) counts: VictimCounts,
    /// The fraction of the memory for blocks that are kept raw: the bits of an `f64`.
    share: AtomicU64,
}

impl VictimInner {
    /// Creates a cache without memory. Codecs without dictionary support get no dictionaries.
    pub(super) fn new(
        codec: Codec,
        engine: Arc<dyn Engine>,
        shards: usize,
        dictionary_bytes: usize,
        share: RawShare,
    ) -> Self {
        let compresses = codec != Codec::None;
        let costs = Arc::new(Costs::default());
        let adaptive =
            (compresses && share == RawShare::Adaptive).then(|| Adaptive::of_victim_cache(Arc::clone(&costs)));
        let fraction = match share {
            _ if !compresses => 1.0,
            RawShare::Fixed { raw_percent } => f64::from(raw_percent.min(100)) / 100.0,
            RawShare::Adaptive => adaptive.as_ref().map_or(0.0, Adaptive::fraction),
        };
        let keeps_raw = adaptive.is_some() || (fraction > 0.0 && fraction < 1.0);
        let shards = (0..shards).map(|n| LockedShard(Mutex::new(Shard::new(n as u64 + 1, keeps_raw))));
        let dictionary_bytes = if engine.supports_dictionary() && engine.codec().can_train() {
            dictionary_bytes
        } else {
            0
        };
        let core = Self {
            codec,
            engine,
            shards: shards.collect(),
            dictionaries: Dictionaries::new(dictionary_bytes),
            buffers: BufferPool::default(),
            work: WorkQueue::default(),
            health: Health::default(),
            admission: AtomicBool::new(true),
            limits: Limits::default(),
            costs,
            adaptive,
            shrinkage: std::array::from_fn(|_| AtomicU32::new(1 << 15)),
            attempts: AtomicU32::new(0),
            probes: AtomicU32::new(0),
            counts: VictimCounts::default(),
            share: AtomicU64::new(0),
        };
        core.set_share(fraction);
        core
    }

    /// Sets the fraction of the memory, 0 to 1, for blocks that are kept raw.
    fn set_share(&self, share: f64) {
        self.share.store(share.to_bits(), Relaxed);
        for shard in &self.shards {
            shard.0.lock().set_share(share);
        }
    }

    /// Processes the queued events, and applies the share.
    pub(super) fn adapt(&self) {
        if let Some(share) = self.adaptive.as_ref().and_then(Adaptive::step) {
            self.set_share(share);
        }
    }

    #[inline]
    pub(super) fn shard(&self, hash: u64) -> &LockedShard {
        // The upper bits select the bucket.
        &self.shards[hash as usize & (self.shards.len() - 1)]
    }

    /// Memory of the cache that is independent of its memory budget, in bytes.
    pub(super) fn fixed_bytes(&self) -> usize {
        size_of::<Self>() + size_of::<Costs>() + self.shards.len() * size_of::<LockedShard>()
    }

    pub(super) fn remove(&self, key: &[u8]) -> bool {
        let hash = rapidhash_v3(key);
        self.note(hash, |adaptive| adaptive.erased(hash));
        let mut shard = self.shard(hash).0.lock();
        let erased = shard.remove_key(key, hash);
        shard.counts.add(Count::Erased, u64::from(erased));
        erased
    }

    /// Reports an event of a sampled block, and wakes the background task when there is enough to process.
    #[inline]
    pub(super) fn note(&self, hash: u64, report: impl FnOnce(&Adaptive)) {
        if let Some(adaptive) = self.adaptive.as_ref().filter(|adaptive| adaptive.follows(hash)) {
            report(adaptive);
            if adaptive.is_due() {
                self.work.adapting();
            }
        }
    }

    #[cfg(feature = "testing")]
    pub(super) fn flip(&self, key: &[u8], bit: usize) -> bool {
        let hash = rapidhash_v3(key);
        self.shard(hash).0.lock().flip(key, hash, bit)
    }

    pub(super) fn stats(&self) -> VictimStats {
        let counts = VictimCounts::default();
        let mut stats = VictimStats {
            budget_bytes: self.budget() as u64,
            ..VictimStats::default()
        };
        let mut held = self.fixed_bytes();
        for shard in &self.shards {
            let shard = shard.0.lock();
            counts.add_all(&shard.counts);
            held += shard.held_bytes();
            stats.entries += shard.entries as u64;
            stats.compressed_entries += shard.pressed_entries as u64;
            stats.raw_bytes += shard.raw_bytes;
            stats.stored_bytes += shard.stored_bytes;
            let (entries, bytes) = shard.kept_raw();
            stats.kept_raw_entries += entries as u64;
            stats.kept_raw_bytes += bytes as u64;
        }
        held += self.deciding_bytes();
        stats.dictionary_bytes = self.dictionaries.held_bytes() as u64;
        stats.buffer_bytes = self.buffers.held_bytes() as u64;
        stats.bytes_held = held as u64 + stats.dictionary_bytes + stats.buffer_bytes;
        counts.add_all(&self.counts);
        let corrupt = counts.get(Count::Corrupt);
        stats.corrupt = corrupt + counts.get(Count::CorruptUnread);
        stats.failed_hits = counts.get(Count::FailedHits);
        stats.failed_insertions = counts.get(Count::FailedInsertions);
        stats.lookups = counts.get(Count::Lookups);
        stats.hits = counts.get(Count::Hits).saturating_sub(corrupt + stats.failed_hits);
        stats.compressed_hits = counts.get(Count::CompressedHits).min(stats.hits);
        stats.raw_hits = stats.hits - stats.compressed_hits;
        stats.misses = stats.lookups - stats.hits;
        stats.taken = counts.get(Count::Taken);
        stats.inserted = counts.get(Count::Inserted);
        stats.replaced = counts.get(Count::Replaced);
        stats.rejected = counts.get(Count::Rejected);
        stats.no_room = counts.get(Count::NoRoom);
        stats.evicted = counts.get(Count::Evicted);
        stats.erased = counts.get(Count::Erased);
        stats.compressed_later = counts.get(Count::CompressedLater);
        stats.returned = counts.get(Count::Returned);
        stats.restored = counts.get(Count::Restored);
        stats.raw_share_pct = f64::from_bits(self.share.load(Relaxed)) * 100.0;
        stats.decode_ns = self.costs.decompress_ns() as u64;
        stats.compress_ns = self.costs.compress_ns() as u64;
        stats.miss_ns = self.costs.store_read_ns() as u64;
        stats.deciding_ns = self.adaptive.as_ref().map_or(0, Adaptive::deciding_ns);
        stats.background_panics = self.health.panics();
        stats.background_threads_ended = self.health.ended();
        stats.dictionary_versions = self.dictionaries.versions.load(Relaxed);
        stats
    }

    /// Checks the accounting.
    pub(super) fn validate(&self) -> Result<(), VictimError> {
        for (number, shard) in self.shards.iter().enumerate() {
            let faults = shard.0.lock().faults();
            if !faults.is_empty() {
                return Err(VictimError::Invalid { shard: number, faults });
            }
        }
        let share = f64::from_bits(self.share.load(Relaxed));
        if !(0.0..=1.0).contains(&share) {
            let faults = format!("a share of {share}");
            return Err(VictimError::Invalid { shard: 0, faults });
        }
        Ok(())
    }
}
