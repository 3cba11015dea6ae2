//! A shard with its lock, and its pinned entries.

use leafpress_base::sync::plain::Mutex;

use super::entry::{self, Home, Owned, Pin};
use super::shard::Shard;

/// A shard on cache lines of its own.
#[repr(align(128))]
pub(super) struct LockedShard(pub(super) Mutex<Shard>);

/// A pinned entry of a shard; it is unpinned when this is dropped.
pub(super) type Pinned<'c> = entry::Pinned<'c, LockedShard>;

impl Home for LockedShard {
    fn free(&self, entry: Owned) {
        self.0.lock().free(entry);
    }
}

/// Pinned entries of a shard, unpinned one by one, or all when this is dropped.
pub(super) struct Sampled<'c> {
    shard: &'c LockedShard,
    pub(super) pins: Vec<Pin>,
}

impl<'c> Sampled<'c> {
    pub(super) fn new(shard: &'c LockedShard) -> Self {
        Self {
            shard,
            pins: Vec::new(),
        }
    }

    pub(super) fn next(&mut self) -> Option<Pinned<'c>> {
        self.pins.pop().map(|pin| Pinned::new(self.shard, pin))
    }
}

impl Drop for Sampled<'_> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}
