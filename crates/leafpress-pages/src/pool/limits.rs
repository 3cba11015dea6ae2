//! Memory limits of the two spaces, and their enforcement as shares and budgets change.

use std::sync::atomic::Ordering::Relaxed;

use super::PoolError;
use super::builder::check_budget;
use super::entry::{CLAIMED, RAW};
use super::guard::Pinned;
use super::inner::PoolInner;
use super::sweep::{Sweeper, Swept};

/// Minimum raw space, in runs of the longest pages; and the minimum of an adaptive share unless that is a large part of
/// the memory.
const MIN_RUNS: usize = 4;
const MIN_ADAPTIVE_RUNS: usize = 16;
const LARGE_DIVISOR: usize = 4;

impl PoolInner {
    /// Memory for pages, raw and compressed, in bytes: the budget minus the tables and a reserve for their growth.
    pub(super) fn data_limit(&self) -> usize {
        let budget = self.budget.load(Relaxed);
        budget.saturating_sub(self.table_bytes() + self.ghost_bytes() + budget / 128)
    }

    pub(super) fn table_bytes(&self) -> usize {
        self.index_bytes.load(Relaxed)
            + self.entries.bytes()
            + self.frames.table_bytes()
            + self.policy_bytes.load(Relaxed)
            + self.unsynced.bytes()
            + self.counts.bytes()
    }

    pub(super) fn ghost_bytes(&self) -> usize {
        self.adaptive.as_ref().map_or(0, |adaptive| adaptive.bytes())
    }

    /// Target percentage of the memory for raw pages.
    pub(super) fn raw_percent(&self) -> f64 {
        self.adaptive
            .as_ref()
            .map_or(self.raw_percent, |adaptive| adaptive.fraction() * 100.0)
    }

    /// Target sizes of the raw and the compressed space, in bytes.
    pub(super) fn shares(&self) -> (usize, usize) {
        let data = self.data_limit();
        let raw = (data as f64 * self.raw_percent() / 100.0) as usize;
        // Some frames are necessary, more if pages pass through them, and a log needs more than one segment.
        let mut least = MIN_RUNS * self.max_run_bytes;
        if self.adaptive.is_some() {
            least = least.max((MIN_ADAPTIVE_RUNS * self.max_run_bytes).min(data / LARGE_DIVISOR));
        }
        let raw = raw.max(least).min(data);
        let compressed = data - raw;
        if compressed < 3 * self.log.segment_bytes() || self.engine.is_none() {
            (data, 0)
        } else {
            (raw, compressed)
        }
    }

    /// Current limit of raw pages: their share, minus the excess of compressed ones.
    pub(super) fn raw_limit(&self) -> usize {
        let (raw, compressed) = self.shares();
        raw.min((raw + compressed).saturating_sub(self.log.bytes()))
    }

    /// Current limit of compressed pages: their share, minus the excess of raw ones.
    pub(super) fn compressed_limit(&self) -> usize {
        let (raw, compressed) = self.shares();
        compressed.min((raw + compressed).saturating_sub(self.frames.bytes()))
    }

    /// Adds a new raw page that the caller has pinned to the eviction policy, and makes room for it.
    pub(super) fn list_new(&self, number: u32, hash: u64, sweeper: Sweeper) {
        self.list(number, hash);
        self.fit(sweeper);
    }

    /// Evicts pages until there is room for the tables, which grow as pages are added.
    pub(super) fn fit(&self, sweeper: Sweeper) {
        for _ in 0..256 {
            let over = (self.frames.bytes() + self.log.bytes()).saturating_sub(self.data_limit());
            if over == 0 || self.frames.trim(self.frames.bytes().saturating_sub(over)) {
                break;
            }
            if matches!(
                self.sweep_one(sweeper),
                Swept::Nothing | Swept::Failed(_) | Swept::PassedOver
            ) {
                break;
            }
            self.close_up(self.frames.bytes().saturating_sub(over));
        }
    }

    /// Moves a step towards the shares after a change: evicts one victim or one segment more than needed.
    pub(super) fn approach_shares(&self, sweeper: Sweeper) {
        self.clear_limbo();
        let (raw, compressed) = self.shares();
        if !self.frames.trim(raw) {
            self.sweep_one(sweeper);
            self.close_up(raw);
        }
        if self.log.bytes() > compressed {
            self.reclaim(self.log.bytes(), compressed);
        }
    }

    /// If the raw space exceeds `limit` because of free frames between pages, compacts it, and returns the empty runs.
    pub(super) fn close_up(&self, limit: usize) {
        let over = self.frames.bytes().saturating_sub(limit);
        let slack = self.frames.slack_bytes();
        if over == 0 || slack < over.max(self.frames.bytes() / 64) {
            return;
        }
        let mut leaving = self.frames.leave();
        leaving.sort_unstable();
        if !leaving.is_empty() {
            for number in 0..self.entries.used() {
                let entry = self.entries.at(number);
                if entry.state().kind() == RAW
                    && leaving.binary_search(&entry.aux()).is_ok()
                    && let Some(pinned) = self.pin(number, 0)
                    && pinned.state.kind() == RAW
                    && leaving.binary_search(&entry.aux()).is_ok()
                {
                    self.relocate(&pinned);
                }
            }
            self.frames.stay(&leaving);
        }
        self.frames.trim(limit);
    }

    /// Moves a raw page to another frame, if only the caller has pinned it and there is a frame.
    fn relocate(&self, pinned: &Pinned<'_>) {
        let entry = pinned.entry();
        // A limit of 0 prevents the allocation of more memory.
        let Some(mut frame) = self.frames.allocate(entry.len(), 0) else {
            return;
        };
        if self.mark_if_alone(pinned.number(), CLAIMED).is_none() {
            self.frames.free(frame);
            return;
        }
        frame.bytes_mut().copy_from_slice(pinned.bytes());
        let kept = entry.put_frame(frame);
        entry.clear(CLAIMED);
        self.free_kept(kept);
    }

    /// Runs a step of the adaptive share.
    pub(super) fn decide(&self) {
        if let Some(adaptive) = &self.adaptive {
            adaptive.step();
            // The sample may have grown.
            self.fit(Sweeper::Reader);
        }
    }

    /// Changes the budget.
    pub(super) fn resize(&self, budget_bytes: usize) -> Result<(), PoolError> {
        check_budget(budget_bytes, self.max_page_bytes)?;
        self.budget.store(budget_bytes, Relaxed);
        if let Some(adaptive) = &self.adaptive {
            adaptive.resize(budget_bytes);
        }
        self.run_upkeep(|| false);
        Ok(())
    }
}
