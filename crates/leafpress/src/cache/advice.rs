//! Hit ratios that the cache would have with other sizes, from a sample of its own reads.
//!
//! The sample is by SHARDS (see [`Shards`]): all reads and writes of the keys whose hash is below a threshold, in an
//! LRU stack. A read or write of another key only computes its hash and compares it. The sample is locked for a moment
//! by those that are in it; one that finds it locked is left out, so no read waits.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Cache;
use super::counters::Count;
use super::inner::CacheInner;
use super::stats::CacheStats;
use crate::tree::hash::hash;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{collected, short_lived_room_for};
use leafpress_base::reuse::{Shards, place};
use leafpress_base::sync::Mutex;

/// Most keys of a sample: SHARDS has an error of a percent with these.
const MAX_KEYS: u64 = 8192;
const MIN_KEYS: u64 = 256;
/// Memory of the cache for each key of the sample: a key takes about 160 bytes.
const MEMORY_BYTES_PER_KEY: u64 = 16 << 10;
/// The share of the keys that are sampled at first, so that most reads lock nothing. It falls when there are too many.
const FIRST_RATE: f64 = 1.0 / 32.0;
/// Sampled reads and writes for each key of the sample after which earlier ones count half.
const REQUESTS_PER_KEY: u64 = 8;
/// Sizes of the curve, in uncompressed bytes: from and to these powers of two, with this number in a doubling.
const SIZES: (i32, i32, i32) = (14, 50, 4);
/// Weight of a record whose length is not known.
const UNKNOWN_BYTES: u64 = 256;

/// A sample of a cache's reads.
pub(super) struct ReuseSample {
    /// The threshold of the sample, which is read without its lock.
    threshold: AtomicU64,
    /// Reads in the sample that were left out because another thread had it locked.
    skipped: AtomicU64,
    sampled: Mutex<Sampled>,
    max_keys: u64,
    held_bytes: u64,
}

struct Sampled {
    shards: Shards<1>,
    /// Requests since earlier ones were last halved.
    requests: u64,
    /// Reads and hits in memory of the cache, of which earlier ones count half as those of the sample do.
    window: Window,
    /// The counters when earlier reads were last halved.
    since: Counted,
}

#[derive(Default, Clone, Copy)]
struct Window {
    reads: f64,
    memory_hits: f64,
}

#[derive(Default, Clone, Copy)]
struct Counted {
    reads: u64,
    memory_hits: u64,
}

impl Counted {
    fn of(cache: &CacheInner) -> Self {
        let sum = |count| cache.counters.sum(count);
        let memory_hits = sum(Count::MemoryHits);
        Self {
            reads: memory_hits + sum(Count::DiskHits) + sum(Count::Misses),
            memory_hits,
        }
    }
}

impl Window {
    /// Returns the window with the reads since it began.
    fn with(self, since: Counted, now: Counted) -> Self {
        Self {
            reads: self.reads + now.reads.saturating_sub(since.reads) as f64,
            memory_hits: self.memory_hits + now.memory_hits.saturating_sub(since.memory_hits) as f64,
        }
    }
}

impl ReuseSample {
    /// # Errors
    /// [`OutOfMemory`].
    pub(super) fn new(memory_bytes: u64) -> Result<Self, OutOfMemory> {
        let max_keys = (memory_bytes / MEMORY_BYTES_PER_KEY).clamp(MIN_KEYS, MAX_KEYS);
        let (from, to, steps) = SIZES;
        let sizes = (from * steps..=to * steps).map(|at| (f64::from(at) / f64::from(steps)).exp2());
        let shards = Shards::with_room(collected(sizes)?, FIRST_RATE, max_keys as usize)?;
        Ok(Self {
            threshold: AtomicU64::new(shards.threshold()),
            skipped: AtomicU64::new(0),
            held_bytes: (shards.held_bytes() + size_of::<Self>()) as u64,
            sampled: Mutex::new(Sampled {
                shards,
                requests: 0,
                window: Window::default(),
                since: Counted::default(),
            }),
            max_keys,
        })
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Returns the hash of a key that is in the sample.
    fn hash_within(&self, key: &[u8]) -> Option<u64> {
        let hash = hash(key);
        (place(hash) < self.threshold.load(Ordering::Relaxed)).then_some(hash)
    }

    /// Not inlined, so that reads of caches without advice only test for it.
    #[inline(never)]
    fn note_read(&self, cache: &CacheInner, key: &[u8], is_found: bool) {
        let Some(hash) = self.hash_within(key) else { return };
        let Some(mut sampled) = self.sampled.try_lock() else {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let mean = [sampled.shards.mean_weight().unwrap_or(UNKNOWN_BYTES)];
        sampled.shards.read(hash, is_found.then_some(mean));
        self.after_request(cache, &mut sampled);
    }

    #[inline(never)]
    fn note_write(&self, cache: &CacheInner, key: &[u8], bytes: u64) {
        let Some(hash) = self.hash_within(key) else { return };
        let Some(mut sampled) = self.sampled.try_lock() else {
            return;
        };
        sampled.shards.write(hash, [bytes]);
        self.after_request(cache, &mut sampled);
    }

    fn after_request(&self, cache: &CacheInner, sampled: &mut Sampled) {
        self.threshold.store(sampled.shards.threshold(), Ordering::Relaxed);
        sampled.requests += 1;
        if sampled.requests < self.max_keys * REQUESTS_PER_KEY {
            return;
        }
        let now = Counted::of(cache);
        let window = sampled.window.with(sampled.since, now);
        sampled.window = Window {
            reads: window.reads / 2.0,
            memory_hits: window.memory_hits / 2.0,
        };
        sampled.shards.age();
        (sampled.requests, sampled.since) = (0, now);
        self.skipped
            .store(self.skipped.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
    }

    /// # Errors
    /// [`OutOfMemory`].
    fn advice(&self, cache: &CacheInner, stats: &CacheStats) -> Result<Option<Advice>, OutOfMemory> {
        let sampled = self.sampled.lock();
        let shards = &sampled.shards;
        let window = sampled.window.with(sampled.since, Counted::of(cache));
        if shards.sampled_reads() <= 0.0 || stats.user_bytes == 0 {
            return Ok(None);
        }
        let skipped = self.skipped.load(Ordering::Relaxed) as f64 / shards.rate();
        let [hits] = shards.hit_ratios((window.reads - skipped).max(1.0));
        let mut points = short_lived_room_for(hits.len())?;
        points.extend(shards.sizes().iter().copied().zip(hits));
        let user_bytes = stats.user_bytes as f64;
        let per_memory_byte = user_bytes / stats.bytes_held.max(1) as f64;
        let on_disk = stats.disk.as_ref().filter(|disk| disk.records > 0);
        let per_disk_byte = on_disk.map_or(per_memory_byte, |disk| {
            let mean_bytes = user_bytes / stats.records.max(1) as f64;
            disk.records as f64 * mean_bytes / disk.used_bytes.max(1) as f64
        });
        let mut advice = Advice {
            memory_bytes: stats.memory_bytes,
            reads: window.reads as u64,
            memory_hit_ratio: window.memory_hits / window.reads.max(1.0),
            sampled_keys: shards.keys() as u64,
            sampled_share: shards.rate(),
            per_memory_byte,
            per_disk_byte,
            points,
            misses_per_lru_miss: 1.0,
        };
        advice.fit();
        Ok(Some(advice))
    }
}

impl CacheInner {
    /// Returns the advice by these statistics, if memory suffices.
    #[cfg(feature = "metrics")]
    pub(super) fn advice_by(&self, stats: &CacheStats) -> Option<Advice> {
        self.reuse.as_ref()?.advice(self, stats).ok().flatten()
    }

    /// Called for every read that counts as a hit or a miss.
    #[inline]
    pub(super) fn sample_read(&self, key: &[u8], is_found: bool) {
        if let Some(sample) = &self.reuse {
            sample.note_read(self, key, is_found);
        }
    }

    /// Called for every record that is inserted.
    #[inline]
    pub(super) fn sample_write(&self, key: &[u8], bytes: u64) {
        if let Some(sample) = &self.reuse {
            sample.note_write(self, key, bytes);
        }
    }
}

impl Cache {
    /// Returns the hit ratios that the cache would have had with more or less memory, or with a disk tier, by a sample
    /// of its own recent reads; [`None`] without [`CacheBuilder::advice`](super::CacheBuilder::advice), and as long as
    /// no sampled key was read. Visits every leaf, as [`Cache::stats`] does.
    ///
    /// ```
    /// let cache = leafpress::Cache::builder().memory(8 << 20).advice(true).build()?;
    /// for at in 0..200_000_u32 {
    ///     // Five reads of each of 40,000 keys.
    ///     let key = format!("user:{}", at % 40_000);
    ///     cache.get_or_insert_with(&key, || format!("a value of {key}"))?;
    /// }
    /// let advice = cache.advice()?.expect("keys were read");
    /// let (half, double) = (advice.hit_ratio(4 << 20), advice.hit_ratio(16 << 20));
    /// assert!(half <= double && double <= 1.0);
    /// println!("{advice}");
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`CacheError::OutOfMemory`](super::CacheError::OutOfMemory) or
    /// [`CacheError::Closed`](super::CacheError::Closed).
    pub fn advice(&self) -> Result<Option<Advice>, super::CacheError> {
        self.core.check_open()?;
        match &self.core.reuse {
            Some(sample) => Ok(sample.advice(&self.core, &self.stats())?),
            None => Ok(None),
        }
    }
}

/// Hit ratios of caches of other sizes with the same reads, from [`Cache::advice`].
///
/// They are those of LRU caches, from the order of the reads, fitted to the hit ratio that the cache has: its own
/// policy keeps what is read often for longer. Records are assumed to be compressed as those in memory now. The
/// expected error is a percentage point with 8,192 sampled keys, and several with a few hundred. Removals and expiry
/// are not followed: where most records expire before they are evicted, more memory brings less than this.
#[derive(Debug, Clone)]
pub struct Advice {
    /// The memory budget of the cache, in bytes.
    pub memory_bytes: u64,
    /// Reads that the advice is based on, sampled or not; earlier ones count less.
    pub reads: u64,
    /// The share of these reads that the memory of the cache answered, measured.
    pub memory_hit_ratio: f64,
    /// Keys in the sample.
    pub sampled_keys: u64,
    /// The share of all keys that they are.
    pub sampled_share: f64,
    /// Bytes of keys and values for each byte of memory and of disk.
    per_memory_byte: f64,
    per_disk_byte: f64,
    /// Bytes of keys and values, ascending, and the hit ratio of an LRU cache of these.
    points: Vec<(f64, f64)>,
    /// Misses of this cache that more memory would avoid, for each such miss of an LRU cache.
    misses_per_lru_miss: f64,
}

impl Advice {
    /// Returns the share of the reads that a cache with this memory, in bytes, answers: 0 to 1.
    #[must_use]
    pub fn hit_ratio(&self, memory_bytes: u64) -> f64 {
        self.of_user_bytes(memory_bytes as f64 * self.per_memory_byte)
    }

    /// Returns the share of the reads that a cache with this memory and a disk tier, both in bytes, answers from
    /// either. [`Advice::hit_ratio`] is the share that its memory answers.
    #[must_use]
    pub fn hit_ratio_with_disk(&self, memory_bytes: u64, disk_bytes: u64) -> f64 {
        self.of_user_bytes(memory_bytes as f64 * self.per_memory_byte + disk_bytes as f64 * self.per_disk_byte)
    }

    /// Returns the least memory, in bytes, with which a cache answers this share of the reads; [`None`] if no memory is
    /// enough, because too many reads are the first ones of their key.
    #[must_use]
    pub fn memory_for(&self, hit_ratio: f64) -> Option<u64> {
        let enough = |bytes: f64| self.of_user_bytes(bytes) >= hit_ratio;
        let (mut low, mut high) = (0.0, self.points.last()?.0);
        if !enough(high) {
            return None;
        }
        // To a thousandth.
        while high - low > high / 1000.0 {
            let middle = f64::midpoint(low, high);
            if enough(middle) { high = middle } else { low = middle }
        }
        Some((high / self.per_memory_byte) as u64)
    }

    fn of_user_bytes(&self, bytes: f64) -> f64 {
        let least_misses = self.least_misses();
        let more_misses = (1.0 - self.lru(bytes) - least_misses).max(0.0);
        (1.0 - least_misses - more_misses * self.misses_per_lru_miss).clamp(0.0, 1.0)
    }

    /// The misses of a cache that evicts nothing.
    fn least_misses(&self) -> f64 {
        1.0 - self.points.last().map_or(0.0, |(_, ratio)| *ratio)
    }

    /// The hit ratio of an LRU cache, linear in the logarithm of its bytes between points.
    fn lru(&self, bytes: f64) -> f64 {
        let after = self.points.partition_point(|(size, _)| *size < bytes);
        let before = after.checked_sub(1).and_then(|before| self.points.get(before));
        match (before, self.points.get(after)) {
            (Some((low, from)), Some((high, to))) => from + (to - from) * (bytes / low).log2() / (high / low).log2(),
            (Some((_, last)), None) => *last,
            (None, Some((high, first))) => first * bytes.max(0.0) / high,
            (None, None) => 0.0,
        }
    }

    /// Fits the curve to the hit ratio that the memory has now.
    fn fit(&mut self) {
        let least_misses = self.least_misses();
        let of_lru = 1.0 - self.lru(self.memory_bytes as f64 * self.per_memory_byte) - least_misses;
        let measured = 1.0 - self.memory_hit_ratio - least_misses;
        if of_lru > 0.01 && measured > 0.0 {
            self.misses_per_lru_miss = (measured / of_lru).clamp(0.25, 4.0);
        }
    }
}

impl fmt::Display for Advice {
    /// Writes the hit ratios of half, double and four times the memory.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |bytes: u64| 100.0 * self.hit_ratio(bytes);
        let bytes = self.memory_bytes;
        write!(
            f,
            "hits in memory: {:.1}% now; {:.1}% with half the memory, {:.1}% with twice, {:.1}% with four times \
             (estimated by a sample of {} keys and {} reads)",
            100.0 * self.memory_hit_ratio,
            percent(bytes / 2),
            percent(bytes.saturating_mul(2)),
            percent(bytes.saturating_mul(4)),
            self.sampled_keys,
            self.reads,
        )
    }
}
