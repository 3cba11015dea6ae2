//! The tier: operations of readers and evicting threads.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use leafpress_base::sync::plain::RwLock;

use super::batch::Batch;
use super::counters::{Count, Counters};
use super::device::{Device, MAX_RECORD_DIVISOR};
use super::failure::Failure;
use super::image::{self, Kept};
use super::key_hash::{DiskHash, KeyHasher};
use super::page::BLOCK_BYTES;
use super::recovery::{Opened, Opening, Recovery};
use super::run::CHUNK_BLOCKS;
use super::state::TierState;
use super::superblock::{Kind, RecoveryStamp};
use super::writer_state::Writer;
use crate::cache::clock::Clock;
use crate::cache::error::CacheError;
use crate::cache::observer::Observer;
use leafpress_base::mem::room::{TryGrow, room_for};
use leafpress_base::sync::{Condvar, Mutex, MutexGuard};
use leafpress_codec::Engine;

/// Counters of departures from memory, by hash: a few keys share one.
pub(super) const VERSIONS: usize = 1024;
/// The index of the disk may take this fraction (1/2) of the cache's memory.
const INDEX_DIVISOR: u64 = 2;
/// Maximum number of full batches that wait to be written.
pub(super) const MAX_SEALED: usize = 2;
/// How long an evicting thread waits for the device to complete a transfer. From then on, until a batch is written,
/// records are dropped instead of being admitted. Time in which the writer has no transfer in progress does not count:
/// the writer is then merging, or waits for a processor.
pub(super) const MAX_WAIT: Duration = Duration::from_millis(500);
/// How long an evicting thread waits if the writer makes no transfer at all, before records are dropped, and if nothing
/// can be dropped, before everything on disk is forgotten.
const MAX_STALL: Duration = Duration::from_secs(5);
/// Polling interval while waiting for the device.
const SHORT_WAIT: Duration = Duration::from_millis(50);

/// Orders for the writer thread.
#[derive(Default)]
pub(super) struct Orders {
    pub is_stopped: bool,
    /// A batch waits.
    pub has_work: bool,
}

pub(in crate::cache) struct Tier {
    pub(super) device: Device,
    pub(super) engine: Arc<dyn Engine>,
    /// The tier's own number, part of every page's checksum.
    pub(super) id: u64,
    pub(super) hasher: KeyHasher,
    pub(super) state: RwLock<TierState>,
    kind: Kind,
    /// State of crash recovery, if it is on.
    pub(super) recovery: Option<Recovery>,
    /// Records of runs recovered after a crash.
    pub(super) recovered: u64,
    versions: Vec<AtomicU64>,
    pub(super) writer: Mutex<Writer>,
    pub(super) orders: Mutex<Orders>,
    /// Signals the writer: there is work, or the thread is to end.
    pub(super) ordered: Condvar,
    /// Signals waiting threads: a batch was written.
    pub(super) written: Condvar,
    pub(super) counters: Counters,
    /// Message of the last failed write.
    pub(super) last_error: leafpress_base::sync::plain::Mutex<String>,
    /// The tier was given up: it has nothing and admits nothing.
    pub(super) has_failed: AtomicBool,
    /// The device has completed no transfer for too long.
    is_stalled: AtomicBool,
    /// Size at which a batch is full, in bytes.
    pub(super) batch_bytes: AtomicUsize,
    /// Maximum memory of the index, in bytes.
    pub(super) most_index_bytes: AtomicUsize,
    /// Maximum length of an admitted record, in bytes.
    pub(super) most_record_bytes: AtomicU64,
    /// Number of blocks at which a super-leaf is split.
    pub(super) leaf_blocks: AtomicU64,
    /// Write limit, in bytes per second.
    write_limit: Option<u64>,
    opened: Instant,
    /// Memory that the writer is using.
    pub(super) writing_bytes: AtomicUsize,
    pub(super) observer: Arc<Observer>,
}

impl Tier {
    /// Opens a tier on a device, with the contents of a closed tier there or, with side files at `recovers_by`, of a
    /// killed one. Also returns what else was kept when it was closed.
    pub(super) fn open(
        device: Device,
        engine: Arc<dyn Engine>,
        memory_bytes: u64,
        write_limit: Option<u64>,
        recovers_by: Option<&Path>,
        clock: Arc<dyn Clock>,
        observer: &Arc<Observer>,
    ) -> Result<(Self, Kept), Failure> {
        let mut versions = Vec::new();
        versions.try_extend((0..VERSIONS).map(|_| AtomicU64::new(0)))?;
        let kind = Kind::of(engine.codec(), &device, recovers_by.is_some());
        let opening = Opening {
            device: &device,
            kind,
            most_chunks: u32::try_from(device.blocks / CHUNK_BLOCKS).unwrap_or(u32::MAX),
            memory_bytes,
        };
        let opened = recovers_by.map_or_else(|| opening.open(), |path| opening.open_with_side_files(path));
        let Opened {
            id,
            head,
            state,
            kept,
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
        // The index may have been built with a larger memory.
        let generation = tier.state.read().generation;
        tier.make_space(0, generation);
        Ok((tier, kept))
    }

    /// Writes the image, including the keys in use and the cache's encoded tags, for the next opening. Nothing may be
    /// admitted from then on: see [`Tier::end`].
    pub(in crate::cache) fn keep(&self, keys: &[Vec<u8>], tags: &[u8]) -> Result<(), CacheError> {
        self.write_all();
        let writer = self.writer.lock();
        self.write_image(&writer, keys, tags).map_err(|failure| match failure {
            Failure::OutOfMemory { bytes } => CacheError::OutOfMemory { bytes },
            other => CacheError::Disk {
                reason: format!("its contents cannot be kept for the next opening: {other}"),
            },
        })
    }

    /// Ends the use of the device: from then on this tier has, admits and writes nothing, and another cache may open
    /// its file.
    pub(in crate::cache) fn end(&self) {
        // Waits for a write under way.
        let writer = self.writer.lock();
        // The side files are kept as they were: the next opening needs them.
        self.has_failed.store(true, Ordering::Relaxed);
        self.state.write().forget();
        self.note_forgotten();
        drop(writer);
        self.device.unlock();
    }

    fn write_image(&self, writer: &Writer, keys: &[Vec<u8>], tags: &[u8]) -> Result<(), Failure> {
        if self.has_failed() {
            return Err(Failure::Io(io::Error::other(
                "it was given up after repeated write errors",
            )));
        }
        let kept_bytes = keys.iter().map(|key| key.len() + 4).sum::<usize>() + tags.len() + 4;
        let (needed, generation) = {
            let state = self.state.read();
            if !state.open.is_empty() || !state.sealed.is_empty() {
                return Err(Failure::Io(io::Error::other("some batches could not be written")));
            }
            (image::chunks_for(&state, kept_bytes), state.generation)
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
            tags,
            epochs,
        };
        image::write(&self.device, self.kind, &left, &chunks)
    }

    /// Derives the limits from the cache's memory.
    pub(in crate::cache) fn fit(&self, memory_bytes: u64) {
        let disk_bytes = self.device.blocks * BLOCK_BYTES as u64;
        let bytes = (memory_bytes / 64).min(disk_bytes / 64).clamp(64 << 10, 4 << 20);
        self.batch_bytes.store(bytes as usize, Ordering::Relaxed);
        let most_index_bytes = usize::try_from(memory_bytes / INDEX_DIVISOR).unwrap_or(usize::MAX);
        self.most_index_bytes.store(most_index_bytes, Ordering::Relaxed);
        // Merging a record takes its length several times.
        let most_record_bytes = (disk_bytes / MAX_RECORD_DIVISOR).min(memory_bytes / 32);
        self.most_record_bytes.store(most_record_bytes, Ordering::Relaxed);
        // A batch should have enough records for several pages in each super-leaf that it touches.
        let leaves = (memory_bytes / (512 << 10)).clamp(16, 1 << 16);
        let blocks = (self.device.blocks / leaves).clamp(64, 1024);
        self.leaf_blocks.store(blocks, Ordering::Relaxed);
    }

    /// Returns the hash by which the tier identifies a key.
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

    /// Returns a version that increases when a record of the key leaves memory. A record found in the tier is promoted
    /// only if the version has not changed since before the lookup: otherwise it may be outdated.
    pub(in crate::cache) fn version(&self, hash: DiskHash) -> u64 {
        self.version_of(hash).load(Ordering::SeqCst)
    }

    /// Increments the version: a record of the key is about to leave memory.
    pub(in crate::cache) fn note_leaving(&self, hash: DiskHash) {
        self.version_of(hash).fetch_add(1, Ordering::SeqCst);
    }

    pub(in crate::cache) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Returns true if the tier may have a record of the key; false is definite.
    pub(in crate::cache) fn may_have(&self, hash: DiskHash, key: &[u8]) -> bool {
        self.state.read().may_have(hash.0, key)
    }

    /// Returns true if a look-up of the key now would read the device.
    pub(in crate::cache) fn may_read_device(&self, hash: DiskHash, key: &[u8]) -> bool {
        !self.has_failed() && self.state.read().may_read_device(hash.0, key)
    }

    /// Marks older records as stale after the key's record was changed in memory or removed, so that they are not
    /// recovered after a crash.
    #[inline]
    pub(in crate::cache) fn note_change(&self, key: &[u8]) {
        if let Some(recovery) = &self.recovery {
            self.note_change_in(recovery, key);
        }
    }

    fn note_change_in(&self, recovery: &Recovery, key: &[u8]) {
        let hash = self.hasher.hash(key);
        let state = self.state.read();
        // A record that left memory before the change was in the tier when the change was made, and its epoch is at
        // most this one.
        if state.may_have(hash, key) {
            recovery.note(hash, state.open.epoch);
        }
    }

    /// Handles a failed write of the log of runs.
    pub(super) fn note_log_failure(&self, failure: &Failure) {
        self.counters.add(Count::LogErrors, 1);
        *self.last_error.lock() = format!("the log of runs: {failure}; crash recovery is off");
        warn_event!(cache = %self.observer.name, error = %failure, "log of runs given up");
    }

    /// Returns true if the write limit is exceeded.
    pub(super) fn is_over_limit(&self) -> bool {
        self.write_limit.is_some_and(|limit| {
            // The limit allows a burst of one second.
            let allowed = (self.opened.elapsed().as_secs_f64() + 1.0) * limit as f64;
            self.counters.sum(Count::WrittenBlocks) as f64 * BLOCK_BYTES as f64 > allowed
        })
    }

    /// Returns true if evicting threads should wait (backpressure), since no record would be admitted.
    pub(in crate::cache) fn is_full(&self) -> bool {
        let state = self.state.read();
        let is_full =
            state.sealed.len() >= MAX_SEALED && state.open.bytes() >= self.batch_bytes.load(Ordering::Relaxed);
        is_full && !self.is_stalled() && !self.has_failed()
    }

    /// Returns true if records are dropped because the device has completed no transfer for too long.
    pub(in crate::cache) fn is_stalled(&self) -> bool {
        self.is_stalled.load(Ordering::Relaxed)
    }

    /// Has full batches written, and waits while no record would be admitted, as long as the device makes progress. The
    /// caller holds no latch.
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
        let (mut ended, _) = self.device.transfers();
        // Sums of waits since a transfer ended.
        let (mut waited, mut waited_for_device) = (Duration::ZERO, Duration::ZERO);
        while self.is_full() && !orders.is_stopped {
            let wait = self.wait_briefly(&mut orders);
            let (ended_now, is_in_progress) = self.device.transfers();
            if ended_now != ended {
                (ended, waited, waited_for_device) = (ended_now, Duration::ZERO, Duration::ZERO);
                continue;
            }
            waited += wait;
            waited_for_device = if is_in_progress {
                waited_for_device + wait
            } else {
                Duration::ZERO
            };
            if waited_for_device > MAX_WAIT || waited > MAX_STALL {
                is_new_stall |= !self.is_stalled.swap(true, Ordering::Relaxed);
            }
        }
        drop(orders);
        if is_new_stall {
            warn_event!(cache = %self.observer.name, "disk stalled");
        }
    }

    /// Waits for a stalled device, and adds the time to `waited`; returns false once that is the maximum.
    pub(in crate::cache) fn wait_stalled(&self, waited: &mut Duration) -> bool {
        let mut orders = self.orders.lock();
        if self.is_stalled() && !orders.is_stopped {
            *waited += self.wait_briefly(&mut orders);
        }
        *waited < MAX_STALL
    }

    /// Waits until a batch is written, for at most [`SHORT_WAIT`]; returns how long that took. A wait counts for no
    /// more, even if it took longer: if the whole machine was suspended, the device had no time either.
    fn wait_briefly(&self, orders: &mut MutexGuard<'_, Orders>) -> Duration {
        let began = Instant::now();
        self.written.wait_for(orders, SHORT_WAIT);
        began.elapsed().min(SHORT_WAIT)
    }

    /// Writes full batches. The caller holds no latch.
    pub(in crate::cache) fn write_full(&self) {
        while self.write_next() {}
    }

    /// Writes all batches. The caller holds no latch.
    pub(in crate::cache) fn write_all(&self) {
        {
            let mut state = self.state.write();
            if !state.open.is_empty() && state.seal().is_err() {
                return;
            }
        }
        while self.write_next() {}
    }

    /// Forgets everything: see [`Self::forget_runs_and_batches`].
    pub(in crate::cache) fn forget(&self) {
        let (runs, records) = self.forget_runs_and_batches();
        self.counters.add(Count::RunsDropped, runs);
        self.counters.add(Count::RecordsDropped, records);
        self.note_forgotten();
    }

    fn note_forgotten(&self) {
        self.is_stalled.store(false, Ordering::Relaxed);
        self.raise_versions();
    }

    /// Has no record promoted that was found before.
    pub(super) fn raise_versions(&self) {
        for version in &self.versions {
            version.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Stops the writer thread.
    pub(super) fn stop(&self) {
        self.orders.lock().is_stopped = true;
        self.ordered.notify_all();
        self.written.notify_all();
    }

    /// Counts a lookup that found its key.
    pub(in crate::cache) fn note_hit(&self) {
        self.counters.add(Count::Hits, 1);
    }

    /// Gives the tier up, and logs the reason.
    #[cfg_attr(not(feature = "tracing"), allow(unused_variables))]
    pub(super) fn give_up(&self, reason: &'static str) {
        self.fail();
        warn_event!(cache = %self.observer.name, reason, "disk given up");
    }

    /// Gives the tier up; the batches are forgotten as well.
    pub(super) fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
        self.forget();
    }

    pub(in crate::cache) fn held_bytes(&self) -> u64 {
        let state = self.state.read();
        let fixed = size_of::<Self>() + VERSIONS * size_of::<AtomicU64>();
        let recovery = self.recovery.as_ref().map_or(0, Recovery::held_bytes);
        let rest = state.index_bytes() + state.batches_bytes() + self.writing_bytes.load(Ordering::Relaxed);
        (rest + fixed + recovery) as u64 + self.counters.held_bytes()
    }

    /// Called after a batch was written or dropped.
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
