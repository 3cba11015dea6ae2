//! The compressible entries of a shard that are kept raw to save decoding and compressing: their list, and the choice
//! of surplus ones.
//!
//! Entries that are incompressible, or are not to be compressed, do not belong to them: raw is their smallest form. Nor
//! are there any if all of the budget is for raw blocks: then nothing is ever compressed, and victims are chosen as
//! usual.

use super::super::entry::{At, BlockRef, Pin, entry_bytes};
use super::Shard;
use super::victims::SAMPLE;
use crate::victim::is_worth_restoring;

/// The list has one element per this many bytes of budget.
pub(super) const BYTES_PER_PLACE: usize = 2048;
/// Maximum number of consecutive entries that are dropped at once because they would be worth less than their victims
/// when compressed.
const MAX_DROPPED: usize = 16;

/// The fraction of the budget for these entries.
#[derive(Default)]
pub(super) struct RawSpace {
    /// There may be a share other than none and all.
    is_used: bool,
    /// The fraction of the budget, 0 to 1, for these entries.
    share: f64,
    budget_bytes: usize,
    /// [`usize::MAX`] if all of the budget is for raw blocks.
    limit_bytes: usize,
}

impl RawSpace {
    pub(super) fn new(is_used: bool) -> Self {
        Self {
            is_used,
            ..Self::default()
        }
    }

    /// Capacity of the list of these entries, for a budget.
    pub(super) fn places_for(&self, budget_bytes: usize) -> usize {
        if self.is_used {
            budget_bytes / BYTES_PER_PLACE
        } else {
            0
        }
    }

    pub(super) fn set_budget(&mut self, budget_bytes: usize) {
        self.budget_bytes = budget_bytes;
        self.set_share(self.share);
    }

    fn set_share(&mut self, share: f64) {
        self.share = share;
        self.limit_bytes = if share >= 1.0 {
            usize::MAX
        } else {
            (self.budget_bytes as f64 * share) as usize
        };
    }

    /// Returns true if raw entries of `held_bytes` may stay while others can be evicted.
    pub(super) fn is_within_limit(&self, held_bytes: usize) -> bool {
        self.limit_bytes != usize::MAX && held_bytes <= self.limit_bytes
    }
}

/// The form of an admitted block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::victim) enum Form {
    /// It is compressed.
    Compressed,
    /// It is kept raw, and may be compressed later.
    RawForNow,
    /// It is kept raw: nothing is compressed except occasional probes.
    Raw,
    /// It is not to be compressed.
    Never,
}

impl Shard {
    /// Returns the number of compressible entries that are kept raw, and their memory in bytes.
    pub(in crate::victim) fn kept_raw(&self) -> (usize, usize) {
        (self.table.listed(), self.table.listed_bytes())
    }

    /// Sets the fraction of the budget, 0 to 1, for blocks that are kept raw. Any excess is removed by later
    /// insertions.
    pub(in crate::victim) fn set_share(&mut self, share: f64) {
        self.raw.set_share(share);
    }

    /// Returns true if there is room for an entry of `bytes` that is kept raw.
    pub(super) fn has_raw_place_for(&self, bytes: usize) -> bool {
        let places = self.raw.places_for(self.raw.budget_bytes).min(self.table.places());
        bytes <= self.raw.limit_bytes && self.table.listed() < places
    }

    /// Lists an entry as kept raw, if there is capacity.
    pub(super) fn list_raw(&mut self, at: At, bytes: usize) {
        if self.has_raw_place_for(bytes) {
            self.table.list(at);
        }
    }

    /// Returns the form of a new compressible block.
    pub(in crate::victim) fn form(&self, key_bytes: usize, raw_bytes: usize) -> Form {
        if self.raw.share >= 1.0 {
            Form::Raw
        } else if self.has_raw_place_for(entry_bytes(key_bytes, raw_bytes)) {
            Form::RawForNow
        } else {
            Form::Compressed
        }
    }

    /// Returns the index of the raw entry of least worth in a sample of those without readers.
    fn raw_victim(&mut self) -> Option<usize> {
        let mut worst: Option<(usize, f32)> = None;
        for _ in 0..SAMPLE.min(self.table.listed()) {
            let place = self.random.below(self.table.listed());
            let entry = self.table.listed_at(place)?;
            if entry.is_pinned() {
                continue;
            }
            let worth = self.worth(entry);
            if worst.is_none_or(|(_, least)| worth < least) {
                worst = Some((place, worth));
            }
        }
        worst.map(|(place, _)| place)
    }

    /// Returns true if there are more raw entries than their share allows.
    pub(in crate::victim) fn has_surplus(&self) -> bool {
        self.table.listed_bytes() > self.raw.limit_bytes
    }

    /// Returns a surplus raw entry to be compressed, pinned and unlisted. Those that are not worth it are dropped:
    /// `expected` estimates the compressed length of a block of a family and length.
    pub(in crate::victim) fn surplus(&mut self, admission: bool, expected: impl Fn(u8, usize) -> usize) -> Option<Pin> {
        for _ in 0..MAX_DROPPED {
            if !self.has_surplus() {
                return None;
            }
            let place = self.raw_victim()?;
            let pin = self.table.listed_at(place)?.pin();
            self.table.unlist(place);
            let entry = pin.entry();
            let (at, key_bytes) = (entry.at(), usize::from(entry.key_bytes));
            let stored_bytes = expected(entry.family, entry.raw_bytes as usize);
            // Compressing a promoted entry would be wasted.
            if !entry.is_promoted() && (!admission || self.admits(at.hash, key_bytes, stored_bytes)) {
                return Some(pin);
            }
            self.evict(at);
            self.unpin(pin);
        }
        None
    }

    /// Returns true if a compressed entry is accessed so often that it should be raw: much more often than the raw one
    /// that would be compressed instead, because the exchange costs more than decoding once.
    pub(super) fn is_for_raw(&mut self, entry: BlockRef<'_>, frequency: u8) -> bool {
        let bytes = entry_bytes(usize::from(entry.key_bytes), entry.raw_bytes as usize);
        if self.raw.share >= 1.0 || !self.has_raw_place_for(bytes) {
            return false;
        }
        if self.table.listed_bytes() + bytes <= self.raw.limit_bytes {
            return frequency > 1;
        }
        let Some(place) = self.raw_victim() else { return false };
        let Some(raw) = self.table.listed_at(place) else {
            return false;
        };
        is_worth_restoring(frequency, self.sketch.get(raw.hash))
    }
}
