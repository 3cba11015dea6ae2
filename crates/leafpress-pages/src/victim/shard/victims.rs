//! What leaves, and what is let in.

use super::super::entry::{At, BlockRef, entry_bytes};
use super::Shard;
use crate::victim::LENT_WORTH;

/// Entries that a victim is chosen from.
pub(super) const SAMPLE: usize = 8;
/// Raw entries that are passed over before fewer candidates have to do.
const MAX_SPARED: usize = 64;
/// Free room that admits everything again is one in so many of the budget's bytes.
const ROOMY_ONE_IN: usize = 4;

impl Shard {
    pub(super) fn random(&mut self) -> u64 {
        // xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators", ACM TOMS 2016.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// What an entry is worth a byte: how often it was asked for lately, a little less the longer ago that was.
    pub(super) fn worth(&self, entry: BlockRef<'_>) -> f32 {
        let age = self.clock.wrapping_sub(entry.touched()) as f32 / (4 * self.entries.max(64)) as f32;
        let asked = f32::from(self.sketch.get(entry.hash));
        let here = if entry.is_lent() { LENT_WORTH } else { 1.0 };
        here * (asked + 0.5 - 0.4 * age.min(1.0)) / entry.bytes() as f32
    }

    /// The entry that is worth least of some, with that. Raw ones are no candidates while there are no more of them than their share
    /// allows, except where there is nothing else.
    pub(super) fn victim(&mut self) -> Option<(At, f32)> {
        if self.entries == 0 {
            return None;
        }
        let spares_raw = self.raw.is_within_limit(self.table.listed_bytes());
        let random = self.random();
        let mut bucket = self.table.bucket(random);
        let mut worst: Option<(At, f32)> = None;
        let mut worst_spared: Option<(At, f32)> = None;
        let (mut seen, mut spared) = (0, 0);
        for _ in 0..self.table.buckets() {
            for entry in self.table.chain(bucket) {
                if entry.is_pinned() {
                    continue;
                }
                let worth = self.worth(entry);
                let is_spared = spares_raw && entry.is_listed();
                let least = if is_spared { &mut worst_spared } else { &mut worst };
                if least.is_none_or(|(_, least)| worth < least) {
                    *least = Some((entry.at(), worth));
                }
                *(if is_spared { &mut spared } else { &mut seen }) += 1;
            }
            if seen >= SAMPLE || (seen > 0 && spared >= MAX_SPARED) {
                break;
            }
            bucket = (bucket + 1) % self.table.buckets();
        }
        worst.or(worst_spared)
    }

    /// Whether a block that would take about so many bytes is worth more than what would have to leave for it.
    pub(in crate::victim) fn admits(&mut self, hash: u64, key_bytes: usize, stored_bytes: usize) -> bool {
        let bytes = entry_bytes(key_bytes, stored_bytes);
        if self.table.is_closed() {
            return false;
        }
        let unmapped = self.budget_bytes.saturating_sub(self.held_bytes);
        let free = self.shared_bytes - self.shared_used_bytes.min(self.shared_bytes);
        if free + unmapped > self.budget_bytes / ROOMY_ONE_IN {
            self.crowded = false;
        }
        if !self.crowded {
            return true;
        }
        let worth = f32::from(self.sketch.get(hash)) / bytes as f32;
        self.victim().is_none_or(|(_, least)| worth > least)
    }

    pub(super) fn evict(&mut self, at: At) {
        self.counts.evicted += 1;
        self.remove(at);
    }
}
