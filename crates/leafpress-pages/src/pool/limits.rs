//! How much memory the spaces may take, and keeping to it as shares and budgets move.

use std::sync::atomic::Ordering::Relaxed;

use super::PoolError;
use super::builder::check_budget;
use super::entry::{CLAIMED, RAW};
use super::guard::Pinned;
use super::inner::PoolInner;
use super::sweep::{Sweeper, Swept};

/// The raw space that there is at least, in the longest runs; and what an adaptive share leaves, where that is no large part of the memory.
const MIN_RUNS: usize = 4;
const MIN_ADAPTIVE_RUNS: usize = 16;
const LARGE_PART: usize = 4;

impl PoolInner {
    /// Memory for pages, raw and compressed, in bytes: the budget without the tables, and without a little for their growth.
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

    /// Percent of the memory for pages that is meant for raw ones.
    pub(super) fn raw_percent(&self) -> f64 {
        self.adaptive
            .as_ref()
            .map_or(self.raw_percent, |adaptive| adaptive.fraction() * 100.0)
    }

    /// What raw and compressed pages are meant to take, in bytes.
    pub(super) fn shares(&self) -> (usize, usize) {
        let data = self.data_limit();
        let raw = (data as f64 * self.raw_percent() / 100.0) as usize;
        // Some frames there have to be, more where pages come and go through them, and a log of one segment is none.
        let mut least = MIN_RUNS * self.max_run_bytes;
        if self.adaptive.is_some() {
            least = least.max((MIN_ADAPTIVE_RUNS * self.max_run_bytes).min(data / LARGE_PART));
        }
        let raw = raw.max(least).min(data);
        let compressed = data - raw;
        if compressed < 3 * self.log.segment_bytes() || self.engine.is_none() {
            (data, 0)
        } else {
            (raw, compressed)
        }
    }

    /// What raw pages may take now: their share, less what compressed ones have beyond theirs.
    pub(super) fn raw_limit(&self) -> usize {
        let (raw, compressed) = self.shares();
        raw.min((raw + compressed).saturating_sub(self.log.bytes()))
    }

    /// What compressed pages may take now: their share, less what raw ones have beyond theirs.
    pub(super) fn compressed_limit(&self) -> usize {
        let (raw, compressed) = self.shares();
        compressed.min((raw + compressed).saturating_sub(self.frames.bytes()))
    }

    /// Lets pages leave until the tables, which grow as pages come, fit beside them.
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

    /// A step towards the shares, after they moved: one victim or one segment more than there is need for.
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

    /// Where the raw space is over `limit` because of free frames between pages, moves pages together, and gives back what is empty then.
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

    /// Moves a raw page to another frame, if nobody else has pinned it and there is one.
    fn relocate(&self, pinned: &Pinned<'_>) {
        let entry = pinned.entry();
        // No more memory is held for it.
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

    /// Lets the adaptive share think.
    pub(super) fn decide(&self) {
        if let Some(adaptive) = &self.adaptive {
            adaptive.step();
            // What it follows has grown, perhaps.
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
        self.tend(|| false);
        Ok(())
    }
}
