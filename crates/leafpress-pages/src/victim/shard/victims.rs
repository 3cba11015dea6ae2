//! Eviction and admission.

use super::super::entry::{At, BlockRef, entry_bytes};
use super::Shard;
use crate::victim::PROMOTED_WORTH;
use crate::victim::stats::Count;

/// Size of the sample from which a victim is chosen.
pub(super) const SAMPLE: usize = 8;
/// Maximum number of raw entries that are skipped before fewer candidates have to suffice.
const MAX_SPARED: usize = 64;
/// Free room of this fraction (1/4) of the budget ends the admission filter.
const ROOMY_ONE_IN: usize = 4;

impl Shard {
    /// Returns the worth of an entry per byte: its recent access frequency, discounted by the time since its last hit.
    pub(super) fn worth(&self, entry: BlockRef<'_>) -> f32 {
        let age = self.clock.wrapping_sub(entry.touched()) as f32 / (4 * self.entries.max(64)) as f32;
        let frequency = f32::from(self.sketch.get(entry.hash));
        let here = if entry.is_promoted() { PROMOTED_WORTH } else { 1.0 };
        here * (frequency + 0.5 - 0.4 * age.min(1.0)) / entry.bytes() as f32
    }

    /// Returns the entry of least worth in a sample, with its worth. Raw ones within their share are not candidates
    /// unless there are no others.
    pub(super) fn victim(&mut self) -> Option<(At, f32)> {
        if self.entries == 0 {
            return None;
        }
        let spares_raw = self.raw.is_within_limit(self.table.listed_bytes());
        let random = self.random.next_u64();
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

    /// Returns true if a block with about this stored length is worth more than its victims.
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
        self.counts.add(Count::Evicted, 1);
        self.remove(at);
    }
}
