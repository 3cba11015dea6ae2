//! Spilling: how records leave memory for the disk tier, the records of one leaf at a time.

use std::sync::atomic::Ordering;

use leafpress_base::sync::plain::RwLockWriteGuard;

use super::counters::add;
use super::state::State;
use super::tier::{MAX_SEALED, Tier};
use crate::cache::record;

/// What becomes of a record that is to leave memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cache) enum SpillOutcome {
    /// It is here from now on.
    Moved,
    /// It goes, and no record of its key is here.
    Forgotten,
    /// It stays in memory until what waits is written.
    Stays,
    /// A tombstone takes its place, since an older record of the key may be here.
    Tombstone,
}

/// Takes records that leave memory, while the tier's state is locked: see [`Tier::begin_spill`].
pub(in crate::cache) struct SpillGuard<'t> {
    tier: &'t Tier,
    state: RwLockWriteGuard<'t, State>,
}

impl Tier {
    /// Whoever holds the latch of a leaf lets its records out by this, before they leave the tree.
    pub(in crate::cache) fn begin_spill(&self) -> SpillGuard<'_> {
        SpillGuard {
            tier: self,
            state: self.state.write(),
        }
    }
}

impl SpillGuard<'_> {
    /// Decides what becomes of a record that is to leave memory, and takes it in if it is to be here. Without `stored` it cannot be read.
    pub(in crate::cache) fn spill(&mut self, key: &[u8], stored: Option<&[u8]>) -> SpillOutcome {
        let counters = &self.tier.counters;
        let hash = self.tier.hash(key);
        self.tier.note_leaving(hash);
        let hash = hash.0;
        match stored {
            Some(stored) if record::is_clean(stored) && self.state.may_have(hash, key) => {
                add(&counters.clean, 1);
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
                    add(&counters.admitted, 1);
                    add(&counters.admitted_bytes, (key.len() + stored.len()) as u64);
                    return SpillOutcome::Moved;
                }
                if !self.tier.is_stalled() {
                    return SpillOutcome::Stays;
                }
            }
            _ => {}
        }
        add(&counters.dropped, 1);
        if self.state.may_have(hash, key) {
            add(&counters.tombstones, 1);
            return SpillOutcome::Tombstone;
        }
        SpillOutcome::Forgotten
    }

    /// Whether a record is kept on disk at all.
    fn is_admitted(&self, key: &[u8], stored: &[u8]) -> bool {
        let bytes = (key.len() + stored.len()) as u64;
        let is_short = bytes <= self.tier.most_record_bytes.load(Ordering::Relaxed);
        is_short && !self.tier.has_failed() && !self.tier.is_over_limit()
    }

    /// Takes a record into the open batch, or into another where that is full; false where too many wait.
    fn takes(&mut self, hash: u64, key: &[u8], record: &[u8]) -> bool {
        let state = &mut *self.state;
        // As `Tier::is_full` has it: who evicts waits only for what would not be taken in.
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
