//! Putting blocks in, reading them, and the cache's size.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use rapidhash::v3::rapidhash_v3;

use super::background::Wake;
use super::dictionaries::{Dictionaries, FAMILIES, Version};
use super::entry::{Entry, Parts};
use super::shard::{Placed, Shard};
use super::stats::{Counts, VictimStats};
use super::{FoundBlock, Insertion, MAX_KEY_BYTES, NewBlock, VictimError};
use crate::codec::{Codec, CodecError, Engine, Scratch};
use crate::sync::Patience;

/// A block that does not shrink by one in so many of its bytes is stored raw.
const MIN_SAVING_ONE_IN: usize = 8;
/// Blocks of a family that did not shrink lately are tried once in so many.
const TRY_ONE_IN: u32 = 16;
/// Buffers larger than this are not kept, in bytes.
const MAX_KEPT_BYTES: usize = 1 << 20;
/// Dictionaries may take one in so many of the capacity's bytes.
const DICTIONARIES_ONE_IN: usize = 16;
/// Memory of a dictionary with its tables, at most, in its own bytes.
const TABLES_TIMES: usize = 16;

/// A shard on cache lines of its own.
#[repr(align(128))]
pub(super) struct Padded(pub(super) Mutex<Shard>);

pub(super) struct Core {
    pub(super) codec: Codec,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) shards: Box<[Padded]>,
    pub(super) dictionaries: Dictionaries,
    pub(super) wake: Wake,
    pub(super) admission: AtomicBool,
    limits: Mutex<Limits>,
    /// By family, what blocks shrank to lately, in 65536ths.
    shrinkage: [AtomicU32; FAMILIES],
    attempts: AtomicU32,
    corrupt: AtomicU64,
    failed_hits: AtomicU64,
    failed_insertions: AtomicU64,
}

#[derive(Default)]
struct Limits {
    capacity_bytes: usize,
    deflated_bytes: usize,
}

/// A thread's buffers.
#[derive(Default)]
struct Buffers {
    raw: Vec<u8>,
    pressed: Vec<u8>,
    scratch: Scratch,
}

thread_local! {
    static BUFFERS: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// Runs `work` with the calling thread's buffers, or with new ones where `work` itself comes here again or the thread is ending.
fn with_buffers<R>(work: impl FnOnce(&mut Buffers) -> R) -> R {
    let mut buffers = BUFFERS.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let result = work(&mut buffers);
    for kept in [&mut buffers.raw, &mut buffers.pressed] {
        if kept.capacity() > MAX_KEPT_BYTES {
            *kept = Vec::new();
        }
    }
    if buffers.scratch.held_bytes() > 4 * MAX_KEPT_BYTES {
        buffers.scratch = Scratch::default();
    }
    let _ = BUFFERS.try_with(|own| own.set(Some(buffers)));
    result
}

/// A pinned entry; it is let go when this is dropped.
pub(super) struct Pinned<'c> {
    shard: &'c Padded,
    pub(super) entry: Entry,
}

impl<'c> Pinned<'c> {
    /// Takes over a pin on an entry of the shard.
    pub(super) fn new(shard: &'c Padded, entry: Entry) -> Self {
        Self { shard, entry }
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        // SAFETY: this is a pin.
        if unsafe { self.entry.header() }.unpin_is_last() {
            // SAFETY: the entry is unlinked, and this was the last pin.
            unsafe { self.shard.0.lock().free_read(self.entry) };
        }
    }
}

impl Core {
    pub(super) fn new(codec: Codec, engine: Arc<dyn Engine>, shards: usize, dictionary_bytes: usize) -> Self {
        let shards = (0..shards).map(|n| Padded(Mutex::new(Shard::new(n as u64 + 1))));
        let dictionary_bytes = if engine.supports_dictionary() {
            dictionary_bytes
        } else {
            0
        };
        Self {
            codec,
            engine,
            shards: shards.collect(),
            dictionaries: Dictionaries::new(dictionary_bytes),
            wake: Wake::default(),
            admission: AtomicBool::new(true),
            limits: Mutex::default(),
            shrinkage: std::array::from_fn(|_| AtomicU32::new(1 << 15)),
            attempts: AtomicU32::new(0),
            corrupt: AtomicU64::new(0),
            failed_hits: AtomicU64::new(0),
            failed_insertions: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn shard(&self, hash: u64) -> &Padded {
        // The bucket is chosen by the upper bits.
        &self.shards[hash as usize & (self.shards.len() - 1)]
    }

    /// Memory that the cache takes whatever it holds, in bytes.
    fn fixed_bytes(&self) -> usize {
        size_of::<Self>() + self.shards.len() * size_of::<Padded>()
    }

    pub(super) fn capacity(&self) -> usize {
        self.limits.lock().capacity_bytes
    }

    pub(super) fn set_capacity(&self, capacity_bytes: usize) {
        let mut limits = self.limits.lock();
        limits.capacity_bytes = capacity_bytes;
        self.apply(&limits);
    }

    pub(super) fn deflate(&self, bytes: usize) {
        let mut limits = self.limits.lock();
        limits.deflated_bytes = limits.deflated_bytes.saturating_add(bytes);
        self.apply(&limits);
    }

    pub(super) fn inflate(&self, bytes: usize) {
        let mut limits = self.limits.lock();
        limits.deflated_bytes = limits.deflated_bytes.saturating_sub(bytes);
        self.apply(&limits);
    }

    /// Gives every shard its part.
    fn apply(&self, limits: &Limits) {
        let bytes = limits.capacity_bytes.saturating_sub(limits.deflated_bytes);
        let most = self.dictionaries.dictionary_bytes * TABLES_TIMES;
        let for_dictionaries = most.min(bytes / DICTIONARIES_ONE_IN);
        self.dictionaries.limit(for_dictionaries);
        if self.dictionaries.held_bytes() > for_dictionaries {
            self.dictionaries.forget();
            // Entries hold on to dictionaries that are too much now, and so do insertions, until they end.
            let mut patience = Patience::default();
            while self.dictionaries.held_bytes() > for_dictionaries {
                self.resize_shards(0);
                patience.wait();
            }
        }
        self.resize_shards(bytes.saturating_sub(self.fixed_bytes() + for_dictionaries) / self.shards.len());
    }

    fn resize_shards(&self, budget_bytes: usize) {
        for shard in &self.shards {
            let mut patience = Patience::default();
            while !shard.0.lock().resize(budget_bytes) {
                patience.wait();
            }
        }
    }

    /// Puts a block in whose bytes `fill` writes, if it is worth it.
    pub(super) fn insert<E>(
        &self,
        key: &[u8],
        block: &NewBlock,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Insertion, E> {
        if key.len() > MAX_KEY_BYTES || block.raw_bytes == 0 || u32::try_from(block.raw_bytes).is_err() {
            return Ok(Insertion::NoRoom);
        }
        let hash = rapidhash_v3(key);
        let shard = self.shard(hash);
        let family = usize::from(block.family).min(FAMILIES - 1);
        let compress = block.compress && self.codec != Codec::None;
        {
            let share = if compress {
                self.shrinkage[family].load(Relaxed) as usize
            } else {
                1 << 16
            };
            let expected = (block.raw_bytes * share) >> 16;
            let mut shard = shard.0.lock();
            if shard.is_closed() {
                return Ok(Insertion::NoRoom);
            }
            if !block.force && self.admission.load(Relaxed) && !shard.admits(hash, key.len(), expected) {
                shard.counts.rejected += 1;
                return Ok(Insertion::Rejected);
            }
        }
        with_buffers(|buffers| {
            let raw = &mut buffers.raw;
            raw.clear();
            if raw.try_reserve(block.raw_bytes).is_err() {
                self.failed_insertions.fetch_add(1, Relaxed);
                return Ok(Insertion::NoRoom);
            }
            raw.resize(block.raw_bytes, 0);
            fill(raw).inspect_err(|_| {
                self.failed_insertions.fetch_add(1, Relaxed);
            })?;
            let version = if compress {
                self.dictionaries.current(family)
            } else {
                None
            };
            let pressed = compress && self.press(raw, family, version.as_deref(), &mut buffers.pressed);
            let parts = Parts {
                key,
                hash,
                stored: if pressed { &buffers.pressed } else { raw },
                raw_bytes: block.raw_bytes as u32,
                pressed,
                dictionary: if pressed { version } else { None },
                family: family as u8,
                tag: block.tag,
            };
            let placed = shard.0.lock().insert(parts);
            if compress && self.dictionaries.inserted(family, block.raw_bytes) {
                self.wake.training(family);
            }
            Ok(match placed {
                Placed::Inserted => Insertion::Inserted,
                Placed::NoRoom => Insertion::NoRoom,
            })
        })
    }

    /// Compresses a block; whether that saves enough.
    fn press(&self, raw: &[u8], family: usize, version: Option<&Version>, out: &mut Vec<u8>) -> bool {
        let shrinkage = &self.shrinkage[family];
        let (lately, most) = (shrinkage.load(Relaxed), 1_u32 << 16);
        let is_hopeless = lately > most - most / MIN_SAVING_ONE_IN as u32;
        if is_hopeless && !self.attempts.fetch_add(1, Relaxed).is_multiple_of(TRY_ONE_IN) {
            return false;
        }
        out.clear();
        let pressed = self
            .engine
            .compress(raw, version.map(|version| &version.dictionary), out);
        let Ok(len) = pressed else { return false };
        let share = ((len.min(raw.len()) << 16) / raw.len()) as u32;
        // A lost update does no harm.
        shrinkage.store(lately - lately / 32 + share / 32, Relaxed);
        len <= raw.len() - raw.len() / MIN_SAVING_ONE_IN && len < raw.len()
    }

    /// Hands the block to `read`, and takes it out where `take` says so.
    pub(super) fn read<R, E>(
        &self,
        key: &[u8],
        take: bool,
        read: impl FnOnce(FoundBlock<'_>) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        let hash = rapidhash_v3(key);
        let shard = self.shard(hash);
        let entry = shard.0.lock().get(key, hash, take)?;
        let pinned = Pinned::new(shard, entry);
        let result = with_buffers(|buffers| {
            let bytes = self.raw_bytes(&pinned, &mut buffers.scratch).ok()?;
            // SAFETY: the entry is pinned.
            let header = unsafe { pinned.entry.header() };
            Some(read(FoundBlock {
                bytes,
                tag: header.tag,
                family: header.family,
            }))
        });
        match &result {
            None => self.corrupt.fetch_add(1, Relaxed),
            Some(Err(_)) => self.failed_hits.fetch_add(1, Relaxed),
            Some(Ok(_)) => return result,
        };
        if !take {
            shard.0.lock().erase_entry(entry, hash);
        }
        result
    }

    /// The block's raw bytes: where they are, or decoded.
    pub(super) fn raw_bytes<'b>(
        &self,
        pinned: &'b Pinned<'_>,
        scratch: &'b mut Scratch,
    ) -> Result<&'b [u8], CodecError> {
        // SAFETY: the entry is pinned.
        let (header, stored, is_sound) =
            unsafe { (pinned.entry.header(), pinned.entry.stored(), pinned.entry.is_sound()) };
        if !is_sound {
            return Err(CodecError::Corrupt {
                codec: "victim",
                reason: "its checksum is wrong".to_owned(),
            });
        }
        if !header.pressed {
            return Ok(stored);
        }
        let raw_bytes = header.raw_bytes as usize;
        let dictionary = header.dictionary.as_ref().map(|version| &version.dictionary);
        self.engine.decode(stored, dictionary, raw_bytes, raw_bytes, scratch)
    }

    pub(super) fn erase(&self, key: &[u8]) -> bool {
        let hash = rapidhash_v3(key);
        let mut shard = self.shard(hash).0.lock();
        let erased = shard.erase(key, hash);
        shard.counts.erased += u64::from(erased);
        erased
    }

    /// Trains a dictionary for a family from the blocks that are held.
    pub(super) fn train(&self, family: usize) {
        if !self.dictionaries.begin(family) {
            return;
        }
        let each = self.dictionaries.sample_bytes().div_ceil(self.shards.len());
        let (mut blocks, mut scratch) = (Vec::new(), Scratch::default());
        for shard in &self.shards {
            let mut entries = Vec::new();
            shard.0.lock().sample(family as u8, each, &mut entries);
            let pinned: Vec<_> = entries.into_iter().map(|entry| Pinned::new(shard, entry)).collect();
            let raw = pinned
                .iter()
                .filter_map(|pinned| self.raw_bytes(pinned, &mut scratch).ok().map(<[u8]>::to_vec));
            blocks.extend(raw);
        }
        self.dictionaries.train(family, self.codec, &*self.engine, &blocks);
    }

    pub(super) fn flip(&self, key: &[u8], bit: usize) -> bool {
        let hash = rapidhash_v3(key);
        self.shard(hash).0.lock().flip(key, hash, bit)
    }

    pub(super) fn stats(&self) -> VictimStats {
        let mut counts = Counts::default();
        let mut stats = VictimStats {
            capacity_bytes: self.capacity() as u64,
            ..VictimStats::default()
        };
        let mut held = self.fixed_bytes();
        for shard in &self.shards {
            let shard = shard.0.lock();
            counts.add(&shard.counts);
            held += shard.held_bytes();
            stats.entries += shard.entries as u64;
            stats.compressed_entries += shard.pressed_entries as u64;
            stats.raw_bytes += shard.raw_bytes;
            stats.stored_bytes += shard.stored_bytes;
        }
        stats.dictionary_bytes = self.dictionaries.held_bytes() as u64;
        stats.bytes_held = held as u64 + stats.dictionary_bytes;
        stats.corrupt = self.corrupt.load(Relaxed);
        stats.failed_hits = self.failed_hits.load(Relaxed);
        stats.failed_insertions = self.failed_insertions.load(Relaxed);
        stats.lookups = counts.lookups;
        stats.hits = counts.hits.saturating_sub(stats.corrupt + stats.failed_hits);
        stats.misses = stats.lookups - stats.hits;
        stats.taken = counts.taken;
        stats.inserted = counts.inserted;
        stats.replaced = counts.replaced;
        stats.rejected = counts.rejected;
        stats.no_room = counts.no_room;
        stats.evicted = counts.evicted;
        stats.erased = counts.erased;
        stats.dictionary_versions = self.dictionaries.versions.load(Relaxed);
        stats
    }

    /// Checks the books.
    pub(super) fn validate(&self) -> Result<(), VictimError> {
        for (number, shard) in self.shards.iter().enumerate() {
            let faults = shard.0.lock().faults();
            if !faults.is_empty() {
                return Err(VictimError::Broken { shard: number, faults });
            }
        }
        Ok(())
    }
}
