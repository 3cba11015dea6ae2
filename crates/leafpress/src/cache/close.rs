//! Closing a cache: all records move to the disk tier, and the keys in use are saved for the next start.
//!
//! Other threads may use the cache meanwhile. The tree refuses writes from the beginning, and the writes under way end
//! before the first record is moved: so what a write that returned has changed is moved too, and nothing older is found
//! by the next cache. A `clear` either ends before or is refused. Look-ups find records wherever they are, and the
//! error once they are gone.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::background::Tasks;
use super::disk::{Tier, WriterHandle};
use super::disk_readers::DiskReaders;
use super::error::CacheError;
use super::evict::heat;
use super::inner::{CacheInner, Sweeper};
use super::warm::{KEY_OVERHEAD_BYTES, WARM_KEYS_DIVISOR};
use crate::tree::cache_hooks::{Evictor, Hand, Shown};
use leafpress_base::mem::room::copied;
use leafpress_base::sync::Patience;
use leafpress_base::sync::plain::Mutex;

/// Maximum number of consecutive rounds over all leaves without progress; leaves latched by other threads are skipped.
const MAX_ROUNDS: u64 = 16;
/// Maximum time that `close` waits for the cache's own threads to release such a leaf.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Leaves emptied between two flushes to disk.
const LEAVES_AT_ONCE: usize = 16;

/// Evictor that moves every record to the disk and collects the keys in use.
struct Everything<'c> {
    core: &'c CacheInner,
    disk: &'c Tier,
    now: Duration,
    keys: Vec<(u8, Vec<u8>)>,
    room_bytes: u64,
}

impl Evictor for Everything<'_> {
    fn wants_values(&self) -> bool {
        true
    }

    fn choose(&mut self, records: &mut [Shown<'_>]) {
        for record in records.iter_mut() {
            record.goes = true;
            let (heat, bytes) = (heat(record.mark), record.key.len() as u64 + KEY_OVERHEAD_BYTES);
            if heat > 0 && bytes <= self.room_bytes && self.keys.try_reserve(1).is_ok() {
                self.keys.extend(copied(record.key).map(|key| (heat, key)));
                self.room_bytes -= bytes;
            }
        }
        self.core.move_down(self.disk, records, self.now);
    }

    fn gone(&mut self, _record: &Shown<'_>) {}
}

/// The threads of a cache, which end when it is closed or its last handle is dropped.
pub(super) struct Lifetime {
    core: Arc<CacheInner>,
    threads: Mutex<Option<(Tasks, Option<WriterHandle>)>>,
    /// The threads that read the disk for async tasks.
    pub readers: DiskReaders,
    /// The result of closing.
    closed: OnceLock<Result<(), CacheError>>,
    keeps_on_drop: bool,
}

impl Lifetime {
    pub(super) fn new(
        core: &Arc<CacheInner>,
        tasks: Tasks,
        writing: Option<WriterHandle>,
        keeps_on_drop: bool,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            threads: Mutex::new(Some((tasks, writing))),
            readers: DiskReaders::default(),
            closed: OnceLock::new(),
            keeps_on_drop,
        }
    }

    /// Closes the cache, or waits for the thread that does, and returns the result.
    pub(super) fn close(&self) -> Result<(), CacheError> {
        self.closed.get_or_init(|| self.close_once()).clone()
    }

    fn close_once(&self) -> Result<(), CacheError> {
        enter_span!("leafpress_close", cache = %self.core.observer.name);
        let (tasks, writing) = self.threads.lock().take().unzip();
        // Stop the background tasks and the readers first: they use the tree.
        drop(tasks);
        self.readers.end();
        let closed = self.core.close();
        drop(writing);
        closed
    }
}

impl Drop for Lifetime {
    #[cfg_attr(not(feature = "tracing"), allow(unused_variables))]
    fn drop(&mut self) {
        if self.keeps_on_drop
            && let Err(error) = self.close()
        {
            warn_event!(cache = %self.core.observer.name, %error, "not kept");
        }
    }
}

impl CacheInner {
    /// Moves every record to the disk tier, if there is one, and removes all.
    fn close(&self) -> Result<(), CacheError> {
        self.set_closed();
        self.tree.refuse_writes();
        // A call of `clear` that has not seen the cache closed ends here.
        drop(self.hold());
        let kept = self.disk.as_ref().map_or(Ok(()), |disk| {
            let kept = self.keep(disk);
            disk.end();
            kept
        });
        let cleared = self.clear_memory(&mut [self.evicting.lock(), self.expiring.lock()]);
        self.return_memory();
        self.tree.trim();
        kept.and(cleared)
    }

    /// Moves every record to the disk, and writes what the next opening needs.
    fn keep(&self, disk: &Tier) -> Result<(), CacheError> {
        let mut keys = self.spill(disk)?;
        let (began, mut patience) = (Instant::now(), Patience::default());
        while !self.tree.is_empty() && !disk.has_failed() && began.elapsed() < MAX_WAIT {
            patience.wait();
            keys.append(&mut self.spill(disk)?);
        }
        debug_event!(cache = %self.observer.name, keys = keys.len(), "moved to disk");
        if !self.tree.is_empty() && !disk.has_failed() {
            // Remaining records may be newer than those on disk.
            return Err(CacheError::Disk {
                reason: format!("{} records could not be written", self.tree.len()),
            });
        }
        disk.keep(&keys, &self.tags.to_bytes()?)
    }

    /// Moves every record to the disk, except in leaves that other threads keep latched. Returns the keys in use, the
    /// most used first.
    pub(super) fn spill(&self, disk: &Tier) -> Result<Vec<Vec<u8>>, CacheError> {
        let mut everything = Everything {
            core: self,
            disk,
            now: self.clock.now(),
            keys: Vec::new(),
            room_bytes: self.budget.memory_bytes() / WARM_KEYS_DIVISOR,
        };
        let mut hand = Hand::default();
        let mut sweeper = self.evicting.lock();
        let before = sweeper.held_bytes();
        let spilled = self.spill_by(disk, &mut hand, &mut sweeper, &mut everything);
        self.note_sweeper(before, &sweeper);
        drop(sweeper);
        spilled?;
        disk.write_all();
        let mut keys = everything.keys;
        keys.sort_by_key(|(heat, _)| std::cmp::Reverse(*heat));
        Ok(keys.into_iter().map(|(_, key)| key).collect())
    }

    fn spill_by(
        &self,
        disk: &Tier,
        hand: &mut Hand,
        sweeper: &mut Sweeper,
        everything: &mut Everything<'_>,
    ) -> Result<(), CacheError> {
        let Sweeper { arena, .. } = sweeper;
        let (mut left, mut last_of_use) = (self.tree.len(), 0);
        while !self.tree.is_empty() && hand.rounds - last_of_use < MAX_ROUNDS && !disk.has_failed() {
            for _ in 0..LEAVES_AT_ONCE {
                if disk.is_full() {
                    break;
                }
                self.tree.evict_at(hand, arena, everything)?;
            }
            disk.write_full();
            if self.tree.len() < left {
                (left, last_of_use) = (self.tree.len(), hand.rounds);
            }
        }
        Ok(())
    }
}
