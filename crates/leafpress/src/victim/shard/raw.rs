//! The entries of a shard that are kept raw to save the time of decoding and compressing: which they are, and which are too many.
//!
//! An entry that would not shrink, or is not to be compressed, is none of them: raw is the least that it takes. Nor are there any where
//! all the budget is for raw blocks: then nothing is ever compressed, and what leaves is chosen as everywhere.

use super::super::entry::{Entry, entry_bytes};
use super::Shard;
use super::victims::SAMPLE;
use crate::victim::is_worth_restoring;

/// There is a place in the list for every so many bytes of budget.
const BYTES_PER_PLACE: usize = 2048;
/// Entries that are worth less than what would have to leave for them when compressed, and that leave at once: at most so many in a row.
const MOST_DROPPED: usize = 16;

/// A list of entries in no order, each of which knows its place.
#[derive(Default)]
pub(super) struct RawSpace {
    /// There may be a share other than none and all.
    is_used: bool,
    /// As long as it may become.
    entries: Vec<Entry>,
    held_bytes: usize,
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

    fn places_for(&self, budget_bytes: usize) -> usize {
        if self.is_used {
            budget_bytes / BYTES_PER_PLACE
        } else {
            0
        }
    }

    /// Memory of the list for a budget, in bytes.
    pub(super) fn bytes_for(&self, budget_bytes: usize) -> usize {
        self.places_for(budget_bytes) * size_of::<Entry>()
    }

    /// Memory of the list, in bytes.
    pub(super) fn table_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that listed entries take.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
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

    /// A list for the budget; whether there was memory. Entries that find no place there are listed no more.
    pub(super) fn remake_table(&mut self, budget_bytes: usize) -> bool {
        let places = self.places_for(budget_bytes);
        let mut entries = Vec::new();
        if entries.try_reserve_exact(places).is_err() {
            return false;
        }
        while self.entries.len() > places {
            let last = self.entries[self.entries.len() - 1];
            self.unlist(last);
        }
        entries.extend_from_slice(&self.entries);
        self.entries = entries;
        true
    }

    /// Listed entries are all gone.
    pub(super) fn drop_table(&mut self) {
        debug_assert!(self.entries.is_empty());
        self.entries = Vec::new();
    }

    /// Whether raw entries may stay when others can leave.
    pub(super) fn is_within_limit(&self) -> bool {
        self.limit_bytes != usize::MAX && self.held_bytes <= self.limit_bytes
    }

    /// Whether an entry of so many bytes has a place.
    fn has_place_for(&self, bytes: usize) -> bool {
        bytes <= self.limit_bytes
            && self.entries.len() < self.places_for(self.budget_bytes).min(self.entries.capacity())
    }

    /// Lists a linked entry, where there is a place.
    pub(super) fn list(&mut self, entry: Entry) {
        // SAFETY: the entry is linked, and the lock is held.
        let (header, bytes) = unsafe { (entry.header(), entry.bytes()) };
        if self.has_place_for(bytes) {
            header.set_place(self.entries.len());
            self.entries.push(entry);
            self.held_bytes += bytes;
        }
    }

    /// Takes an entry off the list, if it is on it. It is not freed yet.
    pub(super) fn unlist(&mut self, entry: Entry) {
        // SAFETY: the caller has not freed the entry.
        let (header, bytes) = unsafe { (entry.header(), entry.bytes()) };
        let Some(place) = header.place() else { return };
        self.entries.swap_remove(place);
        if let Some(moved) = self.entries.get(place) {
            // SAFETY: what is listed is linked, and the lock is held.
            unsafe { moved.header() }.set_place(place);
        }
        header.clear_place();
        self.held_bytes -= bytes;
    }

    /// Whether the list says of this entry what the entry says.
    pub(super) fn is_in_order(&self, entry: Entry) -> bool {
        // SAFETY: the entry is linked, and the lock is held.
        let header = unsafe { entry.header() };
        header
            .place()
            .is_none_or(|place| self.entries.get(place) == Some(&entry))
            && !(header.is_listed() && header.pressed)
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
        (self.raw.len(), self.raw.held_bytes())
    }

    /// Sets the part of the budget, 0 to 1, for blocks that are kept raw. What is too much leaves with the next insertions.
    pub(in crate::victim) fn set_share(&mut self, share: f64) {
        self.raw.set_share(share);
    }

    /// What is to become of a new block that could be compressed.
    pub(in crate::victim) fn form(&self, key_bytes: usize, raw_bytes: usize) -> Form {
        if self.raw.share >= 1.0 {
            Form::Raw
        } else if self.raw.has_place_for(entry_bytes(key_bytes, raw_bytes)) {
            Form::RawForNow
        } else {
            Form::Compressed
        }
    }

    /// The raw entry of least worth among some that nobody reads, with that.
    fn raw_victim(&mut self) -> Option<Entry> {
        let mut worst: Option<(Entry, f32)> = None;
        for _ in 0..SAMPLE.min(self.raw.entries.len()) {
            let at = (self.random() >> 32) as usize % self.raw.entries.len();
            let entry = self.raw.entries[at];
            // SAFETY: what is listed is linked, and the lock is held.
            if unsafe { entry.header() }.is_pinned() {
                continue;
            }
            let worth = self.worth(entry);
            if worst.is_none_or(|(_, least)| worth < least) {
                worst = Some((entry, worth));
            }
        }
        worst.map(|(entry, _)| entry)
    }

    /// Whether there are more raw entries than their share allows.
    pub(in crate::victim) fn has_surplus(&self) -> bool {
        self.raw.held_bytes > self.raw.limit_bytes
    }

    /// An entry that the raw space has too much and that is to be compressed, pinned and listed no more. Those leave that are not worth
    /// it: `expected` says what a block of a family and length would take.
    pub(in crate::victim) fn surplus(
        &mut self,
        admission: bool,
        expected: impl Fn(u8, usize) -> usize,
    ) -> Option<Entry> {
        for _ in 0..MOST_DROPPED {
            if !self.has_surplus() {
                return None;
            }
            let entry = self.raw_victim()?;
            // SAFETY: what is listed is linked, and the lock is held.
            let header = unsafe { entry.header() };
            self.raw.unlist(entry);
            let stored_bytes = expected(header.family, header.raw_bytes as usize);
            // One that is lent would be compressed for nothing.
            if !header.is_lent()
                && (!admission || self.admits(header.hash, usize::from(header.key_bytes), stored_bytes))
            {
                header.pin();
                return Some(entry);
            }
            self.evict(entry);
        }
        None
    }

    /// Whether a compressed entry was asked for so often that it should be raw: much more often than the raw one that would have to be
    /// compressed in its place, because that costs more than decoding once.
    pub(super) fn is_for_raw(&mut self, entry: Entry, asked: u8) -> bool {
        // SAFETY: the caller has a pin.
        let header = unsafe { entry.header() };
        let bytes = entry_bytes(usize::from(header.key_bytes), header.raw_bytes as usize);
        if self.raw.share >= 1.0 || !self.raw.has_place_for(bytes) {
            return false;
        }
        if self.raw.held_bytes + bytes <= self.raw.limit_bytes {
            return asked > 1;
        }
        let Some(raw) = self.raw_victim() else { return false };
        // SAFETY: what is listed is linked, and the lock is held.
        let least = self.sketch.get(unsafe { raw.header() }.hash);
        is_worth_restoring(asked, least)
    }
}
