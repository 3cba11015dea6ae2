//! The tier: what readers and those who evict do with it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use leafpress_base::sync::plain::RwLock;

use super::batch::Batch;
use super::counters::{Counters, add, get};
use super::device::{Device, MAX_RECORD_DIVISOR};
use super::failure::Failure;
use super::image;
use super::key_hash::{DiskHash, KeyHasher};
use super::page::BLOCK_BYTES;
use super::recovery::{Opened, Opening, Recovery};
use super::run::CHUNK_BLOCKS;
use super::state::State;
use super::superblock::{Kind, RecoveryStamp};
use super::writer::Writer;
use crate::cache::clock::Clock;
use crate::cache::error::CacheError;
use crate::cache::observer::Observer;
use leafpress_base::mem::room::{TryGrow, room_for};
use leafpress_base::sync::{Condvar, Mutex};
use leafpress_codec::Engine;

/// Counters of what left memory, by hash: a few keys share one.
pub(super) const VERSIONS: usize = 1024;
/// What is on disk may take one part in so many of the cache's memory to be known.
const INDEX_DIVISOR: u64 = 2;
/// Full batches that wait to be written.
pub(super) const MAX_SEALED: usize = 2;
/// How long who evicts waits for a device that brings nothing to an end. Then, and until it does, records are dropped in place of being
/// admitted.
const MAX_WAIT: Duration = Duration::from_millis(500);
/// How long who evicts waits where nothing can be dropped, before all that is on disk is forgotten.
const MAX_STALL: Duration = Duration::from_secs(5);
/// From one look at the device to the next.
const SHORT_WAIT: Duration = Duration::from_millis(50);

/// What the writer's thread is told.
#[derive(Default)]
pub(super) struct Orders {
    pub is_stopped: bool,
    /// A batch waits.
    pub has_work: bool,
}

pub(in crate::cache) struct Tier {
    pub(super) device: Device,
    pub(super) engine: Arc<dyn Engine>,
    /// Its own number, in every page's checksum.
    pub(super) id: u64,
    pub(super) hasher: KeyHasher,
    pub(super) state: RwLock<State>,
    kind: Kind,
    /// What is needed to be found again after a crash, where that is wanted.
    pub(super) recovery: Option<Recovery>,
    /// Records of runs that were found again after a crash.
    pub(super) recovered: u64,
    versions: Vec<AtomicU64>,
    pub(super) writer: Mutex<Writer>,
    pub(super) orders: Mutex<Orders>,
    /// There is work, or the thread is to end.
    pub(super) ordered: Condvar,
    /// A batch was written.
    pub(super) written: Condvar,
    pub(super) counters: Counters,
    /// What the last write said that failed.
    pub(super) last_error: leafpress_base::sync::plain::Mutex<String>,
    /// It takes and has nothing any more.
    pub(super) has_failed: AtomicBool,
    /// Nothing was written for too long.
    is_stalled: AtomicBool,
    /// Bytes of a batch when it is full.
    pub(super) batch_bytes: AtomicUsize,
    /// Bytes of memory that what is on disk may take.
    pub(super) most_index_bytes: AtomicUsize,
    /// Bytes of the longest record that is taken in.
    pub(super) most_record_bytes: AtomicU64,
    /// Blocks of a super-leaf that is to be split.
    pub(super) leaf_blocks: AtomicU64,
    /// Bytes a second that may be written.
    write_limit: Option<u64>,
    opened: Instant,
    /// What the writer uses just now.
    pub(super) writing_bytes: AtomicUsize,
    pub(super) observer: Arc<Observer>,
}

impl Tier {
    /// A tier on a device, with what one left there that was closed, or, by files beside that at `recovers_by`, one that was killed; and the
    /// keys that were in use when it was closed.
    pub(super) fn open(
        device: Device,
        engine: Arc<dyn Engine>,
        memory_bytes: u64,
        write_limit: Option<u64>,
        recovers_by: Option<&Path>,
        clock: Arc<dyn Clock>,
        observer: &Arc<Observer>,
    ) -> Result<(Self, Vec<Vec<u8>>), Failure> {
        let mut versions = Vec::new();
        versions.try_extend((0..VERSIONS).map(|_| AtomicU64::new(0)))?;
        let kind = Kind::of(engine.codec(), &device, recovers_by.is_some());
        let opening = Opening {
            device: &device,
            kind,
            most_chunks: u32::try_from(device.blocks / CHUNK_BLOCKS).unwrap_or(u32::MAX),
            memory_bytes,
        };
        let opened = recovers_by.map_or_else(|| opening.open(), |path| opening.open_beside(path));
        let Opened {
            id,
            head,
            state,
            keys,
            recovery,
            recovered,
        } = opened?;
        let tier = Self {
            state: RwLock::new(state),
            kind,
            recovery,
            recovered,
            device,
            engine,
            hasher: KeyHasher::of(id),
            id,
            versions,
            writer: Mutex::new(Writer::new(head, clock)),
            orders: Mutex::default(),
            ordered: Condvar::default(),
            written: Condvar::default(),
            counters: Counters::default(),
            last_error: leafpress_base::sync::plain::Mutex::default(),
            has_failed: AtomicBool::new(false),
            is_stalled: AtomicBool::new(false),
            batch_bytes: AtomicUsize::new(0),
            most_index_bytes: AtomicUsize::new(0),
            most_record_bytes: AtomicU64::new(0),
            leaf_blocks: AtomicU64::new(0),
            write_limit,
            opened: Instant::now(),
            writing_bytes: AtomicUsize::new(0),
            observer: Arc::clone(observer),
        };
        tier.fit(memory_bytes);
        // It may have had more memory before.
        let generation = tier.state.read().generation;
        tier.make_space(0, generation);
        Ok((tier, keys))
    }

    /// Leaves what is known, and `keys`, for the next who opens the tier, after which this one has and takes nothing.
    pub(in crate::cache) fn close(&self, keys: &[Vec<u8>]) -> Result<(), CacheError> {
        self.write_all();
        let writer = self.writer.lock();
        let closed = self.write_image(&writer, keys).map_err(|failure| match failure {
            Failure::OutOfMemory { bytes } => CacheError::OutOfMemory { bytes },
            other => CacheError::Disk {
                reason: format!("what is on it cannot be kept for the next: {other}"),
            },
        });
        // What the side files say stays: the next opening needs it.
        self.has_failed.store(true, Ordering::Relaxed);
        self.state.write().forget();
        self.note_forgotten();
        closed
    }

    fn write_image(&self, writer: &Writer, keys: &[Vec<u8>]) -> Result<(), Failure> {
        if self.has_failed() {
            return Err(Failure::Io(io::Error::other(
                "it was given up after writes that failed",
            )));
        }
        let keys_bytes = keys.iter().map(|key| key.len() + 4).sum();
        let (needed, generation) = {
            let state = self.state.read();
            if !state.open.is_empty() || !state.sealed.is_empty() {
                return Err(Failure::Io(io::Error::other(
                    "not all that left memory could be written",
                )));
            }
            (image::chunks_for(&state, keys_bytes), state.generation)
        };
        self.make_space(needed as u64 * CHUNK_BLOCKS, generation);
        let mut chunks = room_for(needed)?;
        {
            let mut state = self.state.write();
            chunks.extend((0..needed).map_while(|_| state.take_chunk()));
        }
        let state = self.state.read();
        let epochs = self.recovery.as_ref().map(|recovery| RecoveryStamp {
            session: recovery.session(),
            judged_before: recovery.judged_before(),
            epoch: state.open.epoch,
        });
        if let Some(recovery) = &self.recovery
            && recovery.judged_before() > 0
        {
            recovery.sync_notes()?;
        }
        let left = image::Left {
            tier: self.id,
            head: writer.head,
            state: &state,
            keys,
            epochs,
        };
        image::write(&self.device, self.kind, &left, &chunks)
    }

    /// Takes its measures from the cache's memory.
    pub(in crate::cache) fn fit(&self, memory_bytes: u64) {
        let disk_bytes = self.device.blocks * BLOCK_BYTES as u64;
        let bytes = (memory_bytes / 64).min(disk_bytes / 64).clamp(64 << 10, 4 << 20);
        self.batch_bytes.store(bytes as usize, Ordering::Relaxed);
        let most_index_bytes = usize::try_from(memory_bytes / INDEX_DIVISOR).unwrap_or(usize::MAX);
        self.most_index_bytes.store(most_index_bytes, Ordering::Relaxed);
        // Merging one takes its length several times.
        let most_record_bytes = (disk_bytes / MAX_RECORD_DIVISOR).min(memory_bytes / 32);
        self.most_record_bytes.store(most_record_bytes, Ordering::Relaxed);
        // A batch of the hand's should find enough for some pages in each leaf that it falls into.
        let leaves = (memory_bytes / (512 << 10)).clamp(16, 1 << 16);
        let blocks = (self.device.blocks / leaves).clamp(64, 1024);
        self.leaf_blocks.store(blocks, Ordering::Relaxed);
    }

    /// A key's hash, by which the tier is asked for it.
    #[inline]
    pub(in crate::cache) fn hash(&self, key: &[u8]) -> DiskHash {
        DiskHash(self.hasher.hash(key))
    }

    fn version_of(&self, hash: DiskHash) -> &AtomicU64 {
        &self.versions[Self::version_index(hash)]
    }

    pub(super) fn version_index(hash: DiskHash) -> usize {
        (hash.0 >> 24) as usize % VERSIONS
    }

    pub(super) fn versions(&self) -> &[AtomicU64] {
        &self.versions
    }

    /// Rises when a record of the key leaves memory. What was found here goes back to memory only where that has not happened since it was
    /// looked for: it may be out of date.
    pub(in crate::cache) fn version(&self, hash: DiskHash) -> u64 {
        self.version_of(hash).load(Ordering::SeqCst)
    }

    /// A record of the key is about to leave memory.
    pub(in crate::cache) fn note_leaving(&self, hash: DiskHash) {
        self.version_of(hash).fetch_add(1, Ordering::SeqCst);
    }

    pub(in crate::cache) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Whether a record of the key may be here. If not there is none.
    pub(in crate::cache) fn may_have(&self, hash: DiskHash, key: &[u8]) -> bool {
        self.state.read().may_have(hash.0, key)
    }

    /// The key's record was changed in memory, or removed: what is older is not to be found after a crash.
    #[inline]
    pub(in crate::cache) fn note_change(&self, key: &[u8]) {
        if let Some(recovery) = &self.recovery {
            self.note_change_in(recovery, key);
        }
    }

    fn note_change_in(&self, recovery: &Recovery, key: &[u8]) {
        let hash = self.hasher.hash(key);
        let state = self.state.read();
        // What left before the change was there when it was made, and its epoch is no later than this.
        if state.may_have(hash, key) {
            recovery.note(hash, state.open.epoch);
        }
    }

    /// The log of runs could not be written.
    pub(super) fn note_log_failure(&self, failure: &Failure) {
        add(&self.counters.log_errors, 1);
        *self.last_error.lock() = format!("the log of runs: {failure}; nothing is found again after a crash");
        warn_event!(cache = %self.observer.name, error = %failure, "log of runs given up");
    }

    /// Whether more was written than may be.
    pub(super) fn is_over_limit(&self) -> bool {
        self.write_limit.is_some_and(|limit| {
            // A second's worth at first.
            let allowed = (self.opened.elapsed().as_secs_f64() + 1.0) * limit as f64;
            get(&self.counters.written_blocks) as f64 * BLOCK_BYTES as f64 > allowed
        })
    }

    /// Whether who evicts should wait, since nothing more would be taken in.
    pub(in crate::cache) fn is_full(&self) -> bool {
        let state = self.state.read();
        let is_full =
            state.sealed.len() >= MAX_SEALED && state.open.bytes() >= self.batch_bytes.load(Ordering::Relaxed);
        is_full && !self.is_stalled() && !self.has_failed()
    }

    /// Whether nothing is taken in because nothing was written for too long.
    pub(in crate::cache) fn is_stalled(&self) -> bool {
        self.is_stalled.load(Ordering::Relaxed)
    }

    /// Has what is full written, and waits for that where no more would be taken in, as long as the device is at work for it. The caller
    /// holds no latch.
    pub(in crate::cache) fn make_room(&self) {
        if self.state.read().sealed.is_empty() || self.has_failed() {
            return;
        }
        if cfg!(any(shuttle, miri)) {
            while self.write_next() {}
            return;
        }
        let mut is_new_stall = false;
        let mut orders = self.orders.lock();
        orders.has_work = true;
        self.ordered.notify_one();
        let mut transfers = self.device.transfers();
        let mut since = Instant::now();
        while self.is_full() && !orders.is_stopped {
            self.written.wait_for(&mut orders, SHORT_WAIT);
            if self.device.transfers() != transfers {
                (transfers, since) = (self.device.transfers(), Instant::now());
            } else if since.elapsed() > MAX_WAIT {
                is_new_stall |= !self.is_stalled.swap(true, Ordering::Relaxed);
            }
        }
        drop(orders);
        if is_new_stall {
            warn_event!(cache = %self.observer.name, "disk stalled");
        }
    }

    /// Waits for a stalled device; false once it has been waited for long enough.
    pub(in crate::cache) fn wait_stalled(&self, since: Instant) -> bool {
        let mut orders = self.orders.lock();
        if self.is_stalled() && !orders.is_stopped {
            self.written.wait_for(&mut orders, SHORT_WAIT);
        }
        since.elapsed() < MAX_STALL
    }

    /// Writes what is full. The caller holds no latch.
    pub(in crate::cache) fn write_full(&self) {
        while self.write_next() {}
    }

    /// Writes all that is on its way. The caller holds no latch.
    pub(in crate::cache) fn write_all(&self) {
        {
            let mut state = self.state.write();
            if !state.open.is_empty() && state.seal().is_err() {
                return;
            }
        }
        while self.write_next() {}
    }

    /// Forgets all: see [`Self::forget_runs_and_batches`].
    pub(in crate::cache) fn forget(&self) {
        let (runs, records) = self.forget_runs_and_batches();
        add(&self.counters.runs_dropped, runs);
        add(&self.counters.records_dropped, records);
        self.note_forgotten();
    }

    fn note_forgotten(&self) {
        self.is_stalled.store(false, Ordering::Relaxed);
        for version in &self.versions {
            version.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Has the writer's thread end.
    pub(super) fn stop(&self) {
        self.orders.lock().is_stopped = true;
        self.ordered.notify_all();
        self.written.notify_all();
    }

    /// Counts a lookup that came to something.
    pub(in crate::cache) fn note_hit(&self) {
        add(&self.counters.hits, 1);
    }

    /// Goes on without, and says why.
    #[cfg_attr(not(feature = "tracing"), allow(unused_variables))]
    pub(super) fn give_up(&self, reason: &'static str) {
        self.fail();
        warn_event!(cache = %self.observer.name, reason, "disk given up");
    }

    /// Goes on without: what was on its way is forgotten as well.
    pub(super) fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
        self.forget();
    }

    pub(in crate::cache) fn held_bytes(&self) -> u64 {
        let state = self.state.read();
        let fixed = size_of::<Self>() + VERSIONS * size_of::<AtomicU64>();
        let recovery = self.recovery.as_ref().map_or(0, Recovery::held_bytes);
        (state.index_bytes() + state.batches_bytes() + self.writing_bytes.load(Ordering::Relaxed) + fixed + recovery)
            as u64
    }

    /// A batch was written, or dropped.
    pub(super) fn note_written(&self, batch: Arc<Batch>) {
        let mut state = self.state.write();
        if state.sealed.front().is_some_and(|front| Arc::ptr_eq(front, &batch)) {
            state.sealed.pop_front();
        }
        if state.spare.is_none() {
            let full = self.batch_bytes.load(Ordering::Relaxed);
            state.spare = Arc::into_inner(batch).map(|batch| batch.emptied(full));
        }
        drop(state);
        self.is_stalled.store(false, Ordering::Relaxed);
        drop(self.orders.lock());
        self.written.notify_all();
    }
}
