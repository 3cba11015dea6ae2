//! Entries of pages that are being loaded.

use std::sync::atomic::Ordering::Relaxed;

use super::PoolError;
use super::entry::{LOADING, PageSlot, PageState, RAW};
use super::frames::Frame;
use super::guard::Pinned;
use super::index::{Locked, Shard};
use super::inner::PoolInner;
use super::sweep::Sweeper;
use super::waiters::InHand;
use crate::store::PageId;

impl PoolInner {
    /// Adds a loading entry to the index.
    pub(super) fn begin_loading(&self, locked: &mut Locked<'_>, page: PageId, hash: u64) -> Result<u32, PoolError> {
        let number = self.new_entry(page)?;
        match locked.reserve() {
            Ok(grown) => self.index_bytes.fetch_add(grown, Relaxed),
            Err(error) => {
                self.entries.free(number);
                return Err(error);
            }
        };
        locked.insert(hash, number);
        Ok(number)
    }

    /// Allocates a loading entry, with capacity in the eviction policy.
    pub(super) fn new_entry(&self, page: PageId) -> Result<u32, PoolError> {
        let bytes = size_of::<PageSlot>();
        let out_of_memory = PoolError::OutOfMemory { bytes };
        let Some(number) = self.entries.allocate(page, LOADING) else {
            return Err(out_of_memory);
        };
        // Numbers are reused: most have capacity already.
        if number >= self.places.load(Relaxed) {
            let mut raw = self.raw.lock();
            if !raw.policy.reserve(number as usize + 1) {
                drop(raw);
                self.entries.free(number);
                return Err(out_of_memory);
            }
            self.places.fetch_max(number + 1, Relaxed);
        }
        Ok(number)
    }

    /// Removes the entry after a failed load.
    pub(super) fn end_loading(&self, number: u32, hash: u64, shard: &Shard) {
        let mut locked = shard.lock();
        locked.remove(hash, number);
        self.entries.free(number);
        locked.notify();
        drop(locked);
        // The tables may have grown for it nevertheless.
        self.fit(Sweeper::Reader);
    }

    /// Makes a loading entry a raw page.
    pub(super) fn publish(
        &self,
        number: u32,
        hash: u64,
        frame: Frame<'_>,
        shard: &Shard,
        in_hand: InHand<'_>,
    ) -> Pinned<'_> {
        let pinned = self.begin_raw(number, frame, PageState(RAW));
        shard.lock().notify();
        self.list(number, hash);
        drop(in_hand);
        self.fit(Sweeper::Reader);
        pinned
    }
}
