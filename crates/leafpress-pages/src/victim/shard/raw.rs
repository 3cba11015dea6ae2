//! The entries of a shard that are kept raw to save the time of decoding and compressing: which they are, and which are too many.
//!
//! An entry that would not shrink, or is not to be compressed, is none of them: raw is the least that it takes. Nor are there any where
//! all the budget is for raw blocks: then nothing is ever compressed, and what leaves is chosen as everywhere.

use super::super::entry::{At, BlockRef, Pin, entry_bytes};
use super::Shard;
use super::victims::SAMPLE;
use crate::victim::is_worth_restoring;

/// There is a place in the list for every so many bytes of budget.
pub(super) const BYTES_PER_PLACE: usize = 2048;
/// Entries that are worth less than what would have to leave for them when compressed, and that leave at once: at most so many in a row.
const MAX_DROPPED: usize = 16;

/// How much of the budget is for these entries.
#[derive(Default)]
pub(super) struct RawSpace {
    /// There may be a share other than none and all.
    is_used: bool,
    /// The part of the budget, 0 to 1, that these entries may take.
    share: f64,
    budget_bytes: usize,
    /// [`usize::MAX`] where all the budget is for raw blocks.
    limit_bytes: usize,
}

impl RawSpace {
    pub(super) fn new(is_used: bool) -> Self {
        Self {
            is_used,
            ..Self::default()
        }
    }

    /// Places of the list of these entries, for a budget.
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

    /// Whether raw entries that take so many bytes may stay when others can leave.
    pub(super) fn is_within_limit(&self, held_bytes: usize) -> bool {
        self.limit_bytes != usize::MAX && held_bytes <= self.limit_bytes
    }
}

/// What is to become of a block that is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::victim) enum Form {
    /// It is compressed.
    Compressed,
    /// It is kept raw, and may be compressed later.
    RawForNow,
    /// It is kept raw: nothing is compressed, but for some now and then.
    Raw,
    /// It is not to be compressed.
    Never,
}

impl Shard {
    /// Entries that are kept raw and could be compressed, and their memory in bytes.
    pub(in crate::victim) fn kept_raw(&self) -> (usize, usize) {
        (self.table.listed(), self.table.listed_bytes())
    }

    /// Sets the part of the budget, 0 to 1, for blocks that are kept raw. What is too much leaves with the next insertions.
    pub(in crate::victim) fn set_share(&mut self, share: f64) {
        self.raw.set_share(share);
    }

    /// Whether there is a place for an entry of so many bytes that is kept raw.
    pub(super) fn has_raw_place_for(&self, bytes: usize) -> bool {
        let places = self.raw.places_for(self.raw.budget_bytes).min(self.table.places());
        bytes <= self.raw.limit_bytes && self.table.listed() < places
    }

    /// Lists an entry as kept raw, where there is a place.
    pub(super) fn list_raw(&mut self, at: At, bytes: usize) {
        if self.has_raw_place_for(bytes) {
            self.table.list(at);
        }
    }

    /// What is to become of a new block that could be compressed.
    pub(in crate::victim) fn form(&self, key_bytes: usize, raw_bytes: usize) -> Form {
        if self.raw.share >= 1.0 {
            Form::Raw
        } else if self.has_raw_place_for(entry_bytes(key_bytes, raw_bytes)) {
            Form::RawForNow
        } else {
            Form::Compressed
        }
    }

    /// The place of the raw entry of least worth among some that nobody reads.
    fn raw_victim(&mut self) -> Option<usize> {
        let mut worst: Option<(usize, f32)> = None;
        for _ in 0..SAMPLE.min(self.table.listed()) {
            let place = (self.random() >> 32) as usize % self.table.listed();
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

    /// Whether there are more raw entries than their share allows.
    pub(in crate::victim) fn has_surplus(&self) -> bool {
        self.table.listed_bytes() > self.raw.limit_bytes
    }

    /// An entry that the raw space has too much and that is to be compressed, pinned and listed no more. Those leave that are not worth
    /// it: `expected` says what a block of a family and length would take.
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
            // One that is lent would be compressed for nothing.
            if !entry.is_lent() && (!admission || self.admits(at.hash, key_bytes, stored_bytes)) {
                return Some(pin);
            }
            self.evict(at);
            self.unpin(pin);
        }
        None
    }

    /// Whether a compressed entry was asked for so often that it should be raw: much more often than the raw one that would have to be
    /// compressed in its place, because that costs more than decoding once.
    pub(super) fn is_for_raw(&mut self, entry: BlockRef<'_>, asked: u8) -> bool {
        let bytes = entry_bytes(usize::from(entry.key_bytes), entry.raw_bytes as usize);
        if self.raw.share >= 1.0 || !self.has_raw_place_for(bytes) {
            return false;
        }
        if self.table.listed_bytes() + bytes <= self.raw.limit_bytes {
            return asked > 1;
        }
        let Some(place) = self.raw_victim() else { return false };
        let Some(raw) = self.table.listed_at(place) else {
            return false;
        };
        is_worth_restoring(asked, self.sketch.get(raw.hash))
    }
}
