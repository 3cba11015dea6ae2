//! Spilling: how records leave memory for the disk tier, the records of one leaf at a time.

use std::sync::atomic::Ordering;

use leafpress_base::sync::plain::RwLockWriteGuard;

use super::counters::Count;
use super::state::TierState;
use super::tier::{MAX_SEALED, Tier};
use crate::cache::record;

/// The result for a record that is to leave memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cache) enum SpillOutcome {
    /// The record is in the tier from now on.
    Moved,
    /// The record is removed, and the tier has no record of its key, or a tombstone.
    Forgotten,
    /// The record stays in memory until waiting batches are written.
    Stays,
    /// A tombstone replaces the record in memory, since the tier may have an older record of the key.
    Tombstone,
}

/// Admits records that leave memory, while the tier's state is locked: see [`Tier::begin_spill`].
pub(in crate::cache) struct SpillGuard<'t> {
    tier: &'t Tier,
    /// Whether the write limit was exceeded at the beginning.
    is_over_limit: bool,
    state: RwLockWriteGuard<'t, TierState>,
}

impl Tier {
    /// Begins the spill of a leaf's records. The caller holds the leaf's latch and calls this before the records leave
    /// the tree.
    pub(in crate::cache) fn begin_spill(&self) -> SpillGuard<'_> {
        SpillGuard {
            tier: self,
            is_over_limit: self.is_over_limit(),
            state: self.state.write(),
        }
    }
}

impl SpillGuard<'_> {
    /// Decides about a record that is to leave memory, and adds it to a batch if it is admitted. `stored` is [`None`]
    /// if the record cannot be read.
    pub(in crate::cache) fn spill(&mut self, key: &[u8], stored: Option<&[u8]>) -> SpillOutcome {
        let counters = &self.tier.counters;
        let hash = self.tier.hash(key);
        self.tier.note_leaving(hash);
        let hash = hash.0;
        match stored {
            Some(stored) if record::is_clean(stored) && self.state.may_have(hash, key) => {
                counters.add(Count::Clean, 1);
                return SpillOutcome::Moved;
            }
            Some(stored) if record::is_tombstone(stored) => {
                if !self.state.may_have(hash, key) || self.takes(hash, key, stored) {
                    return SpillOutcome::Forgotten;
                }
                return SpillOutcome::Stays;
            }
            Some(stored) if self.is_admitted(key, stored) => {
                if self.takes(hash, key, stored) {
                    counters.add(Count::Admitted, 1);
                    counters.add(Count::AdmittedBytes, (key.len() + stored.len()) as u64);
                    return SpillOutcome::Moved;
                }
                if !self.tier.is_stalled() {
                    return SpillOutcome::Stays;
                }
            }
            _ => {}
        }
        counters.add(Count::Dropped, 1);
        if self.state.may_have(hash, key) {
            counters.add(Count::Tombstones, 1);
            return SpillOutcome::Tombstone;
        }
        SpillOutcome::Forgotten
    }

    /// Returns true if a record like this is kept on disk.
    fn is_admitted(&self, key: &[u8], stored: &[u8]) -> bool {
        let bytes = (key.len() + stored.len()) as u64;
        let is_short = bytes <= self.tier.most_record_bytes.load(Ordering::Relaxed);
        is_short && !self.tier.has_failed() && !self.is_over_limit
    }

    /// Adds a record to the open batch, or to a new one if that is full; returns false if too many batches wait.
    fn takes(&mut self, hash: u64, key: &[u8], record: &[u8]) -> bool {
        let state = &mut *self.state;
        // The condition of `Tier::is_full`: an evicting thread waits only if the record would not be admitted.
        let full = self.tier.batch_bytes.load(Ordering::Relaxed);
        if state.open.bytes() >= full && (state.sealed.len() >= MAX_SEALED || state.seal().is_err()) {
            return false;
        }
        if state.open.is_empty() && state.open.reserve(full + full / 8).is_err() {
            return false;
        }
        let epoch = state.open.epoch.to_le_bytes();
        let behind = if self.tier.recovery.is_some() { &epoch[..] } else { &[] };
        state.open.push(hash, key, record, behind).is_ok()
    }
}
