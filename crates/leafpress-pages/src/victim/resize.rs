//! Changes of the cache's memory budget.
//!
//! Blocks that are being read cannot be evicted, and a thread that changes the memory budget waits for their readers,
//! unless it is one of them itself. Then it does what can be done at once, and the rest when its own read ends.

use super::adaptive::Adaptive;
use super::inner::VictimInner;
use super::limits::Wanted;
use leafpress_base::sync::Patience;

/// Dictionaries may take this fraction (1/16) of the memory budget.
const DICTIONARIES_ONE_IN: usize = 16;
/// Buffers may take this fraction (1/128) of the memory budget, up to a maximum.
const BUFFERS_ONE_IN: usize = 128;
const MAX_BUFFER_BYTES: usize = 32 << 20;
/// Maximum memory of a dictionary with its tables, as a multiple of its length.
const TABLES_FACTOR: usize = 16;

impl VictimInner {
    pub(super) fn budget(&self) -> usize {
        self.limits.wanted.lock().budget_bytes
    }

    pub(super) fn set_memory(&self, budget_bytes: usize) {
        self.limits.wanted.lock().budget_bytes = budget_bytes;
        self.apply();
    }

    pub(super) fn shrink_by(&self, bytes: usize) {
        {
            let mut wanted = self.limits.wanted.lock();
            wanted.deflated_bytes = wanted.deflated_bytes.saturating_add(bytes);
        }
        self.apply();
    }

    pub(super) fn grow_back(&self, bytes: usize) {
        {
            let mut wanted = self.limits.wanted.lock();
            wanted.deflated_bytes = wanted.deflated_bytes.saturating_sub(bytes);
        }
        self.apply();
    }

    /// Applies the requested memory budget.
    fn apply(&self) {
        if self.limits.is_reading() {
            self.limits.note_unfinished();
            // A thread that is applying it checks the requested memory budget again until all excess has been evicted.
            if let Some(_applying) = self.limits.applying.try_lock() {
                self.approach();
            }
            return;
        }
        let _applying = self.limits.applying.lock();
        let mut patience = Patience::default();
        while !self.approach() {
            patience.wait();
        }
    }

    /// Completes a change that the calling thread could not complete while it was reading a block. Called when the read
    /// has ended.
    #[inline]
    pub(super) fn finish(&self) {
        if self.limits.is_unfinished() {
            self.finish_own();
        }
    }

    #[cold]
    fn finish_own(&self) {
        if !self.limits.is_reading() && self.limits.take_unfinished() {
            self.apply();
        }
    }

    /// Gives every shard its part. Returns true if all excess has been evicted.
    fn approach(&self) -> bool {
        let Wanted {
            budget_bytes,
            deflated_bytes,
        } = *self.limits.wanted.lock();
        let bytes = budget_bytes.saturating_sub(deflated_bytes);
        let most = self.dictionaries.dictionary_bytes * TABLES_FACTOR;
        let for_dictionaries = most.min(bytes / DICTIONARIES_ONE_IN);
        self.dictionaries.limit(for_dictionaries);
        if self.dictionaries.held_bytes() > for_dictionaries {
            self.dictionaries.forget();
            // Entries hold references to dictionaries that exceed the limit now, and so do insertions, until they end.
            if self.dictionaries.held_bytes() > for_dictionaries {
                self.resize_shards(0);
            }
            if self.dictionaries.held_bytes() > for_dictionaries {
                return false;
            }
        }
        let for_buffers = (bytes / BUFFERS_ONE_IN).min(MAX_BUFFER_BYTES);
        self.buffers.set_limit(for_buffers);
        let for_blocks = bytes.saturating_sub(self.fixed_bytes() + for_dictionaries + for_buffers);
        let for_deciding = self
            .adaptive
            .as_ref()
            .map_or(0, |adaptive| adaptive.resize_within(for_blocks));
        self.resize_shards(for_blocks.saturating_sub(for_deciding) / self.shards.len())
    }

    /// Returns true if all excess has been evicted.
    fn resize_shards(&self, budget_bytes: usize) -> bool {
        let mut done = true;
        for shard in &self.shards {
            done &= shard.0.lock().resize(budget_bytes);
        }
        done
    }

    /// Memory of the adaptive share, in bytes.
    pub(super) fn deciding_bytes(&self) -> usize {
        self.adaptive.as_ref().map_or(0, Adaptive::bytes)
    }
}
