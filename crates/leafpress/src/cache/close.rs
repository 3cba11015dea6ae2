//! Closing a cache so that the next has what this one had, and warming that one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::disk::Tier;
use super::error::CacheError;
use super::evict::heat;
use super::inner::{CacheInner, Seen, Sweeper};
use crate::tree::evict::{Evictor, Hand, Shown};
use leafpress_base::mem::room::copied;
use leafpress_base::sync::Patience;
use leafpress_base::sync::runtime::{Next, Task};
use leafpress_base::sync::worker::Health;

/// Keys in use are remembered in one part in so many of the memory.
const PART_OF_KEYS: u64 = 64;
/// What a key that is remembered takes beside its bytes, about.
const KEY_OVERHEAD_BYTES: u64 = 48;
/// Times that all leaves are gone round in vain, of which some may be passed over because another thread is at them.
const MAX_ROUNDS: u64 = 16;
/// How long a cache that is closed waits for its own threads to leave such a leaf.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Leaves that are emptied before what they gave is written.
const LEAVES_AT_ONCE: usize = 16;
/// Keys that are brought back before it is asked whether to go on.
const KEYS_AT_ONCE: usize = 16;

/// Moves all to the disk, and remembers which keys were in use.
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
            let (heat, bytes) = (
                heat(self.core.policy, record.mark),
                record.key.len() as u64 + KEY_OVERHEAD_BYTES,
            );
            if heat > 0 && bytes <= self.room_bytes && self.keys.try_reserve(1).is_ok() {
                self.keys.extend(copied(record.key).map(|key| (heat, key)));
                self.room_bytes -= bytes;
            }
        }
        self.core.move_down(self.disk, records, self.now);
    }

    fn gone(&mut self, _record: &Shown<'_>) {}
}

impl CacheInner {
    /// Moves all to the disk, and closes it. Nobody else uses the cache.
    pub(super) fn close(&self, disk: &Tier) -> Result<(), CacheError> {
        let mut keys = self.spill(disk)?;
        let (began, mut patience) = (Instant::now(), Patience::default());
        while !self.tree.is_empty() && !disk.has_failed() && began.elapsed() < MAX_WAIT {
            patience.wait();
            keys.append(&mut self.spill(disk)?);
        }
        debug_event!(cache = %self.observer.name, keys = keys.len(), "moved to disk");
        if !self.tree.is_empty() && !disk.has_failed() {
            // What is left may be newer than what is on disk.
            return Err(CacheError::Disk {
                reason: format!("{} records could not be moved to it", self.tree.len()),
            });
        }
        disk.close(&keys)
    }

    /// Moves all to the disk, but for leaves that others are at again and again. Returns the keys that are in use, those that are used most
    /// first.
    pub(super) fn spill(&self, disk: &Tier) -> Result<Vec<Vec<u8>>, CacheError> {
        let mut everything = Everything {
            core: self,
            disk,
            now: self.clock.now(),
            keys: Vec::new(),
            room_bytes: self.budget.memory_bytes() / PART_OF_KEYS,
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

/// As many of the keys, from the first on, as are to be remembered in so much memory.
pub(super) fn keys_within(mut keys: Vec<Vec<u8>>, memory_bytes: u64) -> Vec<Vec<u8>> {
    let mut room = memory_bytes / PART_OF_KEYS;
    let fits = |key: &&Vec<u8>| {
        let bytes = key.len() as u64 + KEY_OVERHEAD_BYTES;
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits
    };
    let count = keys.iter().take_while(fits).count();
    keys.truncate(count);
    keys.shrink_to_fit();
    keys
}

/// Brings back what was in use when the cache was closed, until memory is nearly full.
pub(super) struct Warming {
    pub core: Arc<CacheInner>,
    pub keys: std::vec::IntoIter<Vec<u8>>,
}

impl Warming {
    fn end(&self) {
        debug_event!(cache = %self.core.observer.name, left = self.keys.len(), "warm again");
    }
}

impl Task for Warming {
    fn work(&mut self) -> Next {
        let budget = &self.core.budget;
        let is_full = self.core.tree.node_bytes() >= budget.node_limit_bytes() / 10 * 9;
        if is_full {
            self.end();
            return Next::End;
        }
        for _ in 0..KEYS_AT_ONCE {
            let Some(key) = self.keys.next() else {
                self.end();
                return Next::End;
            };
            // What cannot be read is not there.
            let _ = self.core.find(&key, |_| (), &mut Seen::default());
        }
        Next::Again
    }

    fn health(&self) -> &Health {
        &self.core.health
    }

    fn give_up(&mut self) {}
}
