//! Allocation of frames: free ones, those of victims, and some kept free ahead of need.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::PoolError;
use super::counts::Count;
use super::frames::Frame;
use super::inner::{PoolInner, nanoseconds};
use super::log::Reclaimed;
use super::sweep::{Sweeper, Swept};
use crate::store::PageId;

/// Maximum failed writes before a thread that needs room gives up, and pages that it skips because their last write
/// failed.
const MAX_FAILED_WRITES: usize = 16;
const MAX_PASSED_OVER: usize = 1024;
/// Number of segments found in use after which a thread that needs room gives up.
const STUCK_SEGMENTS: usize = 256;
/// Number of frames kept free ahead of need, if they are at most an eighth of all. With too few, threads that read
/// pages compress all victims themselves; more have no further benefit.
const MIN_AHEAD: usize = 8;
const MAX_AHEAD: usize = 256;

/// Pages that would have made room if they could have been written.
#[derive(Default)]
struct Unwritten {
    pages: usize,
    /// The error of the last write.
    error: Option<PoolError>,
}

impl PoolInner {
    /// Allocates a frame for a version of a page to be kept, evicting if necessary. If dirty pages would have to be
    /// evicted and cannot be written, returns their error.
    pub(super) fn frame_to_update(&self, page: PageId, len: usize) -> Result<Frame<'_>, PoolError> {
        self.frame(len, Sweeper::Writer).or_else(|unwritten| {
            let frame = self.frame_of_compressed(len);
            frame.ok_or_else(|| unwritten.error.unwrap_or_else(|| self.full(page)))
        })
    }

    /// Allocates a frame for a page to be read, evicting if necessary; [`None`] if there would be room if all pages
    /// could be written.
    pub(super) fn frame_to_read(&self, page: PageId, len: usize) -> Result<Option<Frame<'_>>, PoolError> {
        match self.frame(len, Sweeper::Reader) {
            Ok(frame) => Ok(Some(frame)),
            Err(unwritten) => match self.frame_of_compressed(len) {
                Some(frame) => Ok(Some(frame)),
                None if unwritten.pages > 0 => Ok(None),
                None => Err(self.full(page)),
            },
        }
    }

    /// Allocates a frame for a page that is in the pool already: if no raw page can be evicted, none has to be.
    pub(super) fn frame_to_restore(&self, len: usize) -> Option<Frame<'_>> {
        self.frame(len, Sweeper::Reader).ok()
    }

    fn full(&self, page: PageId) -> PoolError {
        PoolError::PoolFull {
            page,
            pinned_bytes: self.frames.bytes(),
            budget_bytes: self.budget.load(Relaxed),
        }
    }

    /// Allocates a free frame, or that of an evicted raw page.
    fn frame(&self, len: usize, sweeper: Sweeper) -> Result<Frame<'_>, Unwritten> {
        if !self.is_to_shrink()
            && let Some(frame) = self.frames.allocate(len, self.raw_limit())
        {
            self.keep_ahead();
            return Ok(frame);
        }
        let start = Instant::now();
        let frame = self.sweep_for(len, sweeper);
        self.counts.add(Count::SweepNs, nanoseconds(start));
        self.keep_ahead();
        frame
    }

    /// Returns true if the raw space exceeds its share and no worker thread shrinks it. Free frames are then not
    /// allocated without another victim, or they would be used as fast as they become free.
    fn is_to_shrink(&self) -> bool {
        !self.workers.are_there() && self.frames.bytes() > self.shares().0
    }

    /// Sweeps until there is a frame.
    ///
    /// Invariant: this gives up for lack of victims only if no thread holds anything that will become room, or will
    /// release room, shortly. A flush that was preempted may hold a batch of old versions, and every unpinned page may
    /// be a newer version of one of them: that stays until the store has the older one. No thread waits here while it
    /// holds something.
    #[cold]
    fn sweep_for(&self, len: usize, sweeper: Sweeper) -> Result<Frame<'_>, Unwritten> {
        self.approach_shares(sweeper);
        let (mut kept, mut failed, mut unwritten) = (0, 0, Unwritten::default());
        let mut others_had_some = false;
        let patience = 2 * self.entries.used() as usize + 64;
        while failed < MAX_FAILED_WRITES && unwritten.pages < MAX_PASSED_OVER {
            if kept >= patience {
                if !others_had_some {
                    break;
                }
                self.waiters.wait_for_others();
                (kept, others_had_some) = (0, false);
            }
            match self.sweep_one(sweeper) {
                Swept::Freed => kept = 0,
                Swept::Kept => {
                    kept += 1;
                    others_had_some |= self.waiters.in_hand() > 0;
                }
                Swept::Failed(error) => {
                    failed += 1;
                    unwritten.pages += 1;
                    unwritten.error = Some(error);
                }
                Swept::PassedOver => unwritten.pages += 1,
                Swept::Others => self.waiters.wait_for_others(),
                // There may be free frames nevertheless, if the space is to shrink.
                Swept::Nothing => return self.frames.allocate(len, self.raw_limit()).ok_or(unwritten),
            }
            if let Some(frame) = self.frames.allocate(len, self.raw_limit()) {
                return Ok(frame);
            }
        }
        Err(unwritten)
    }

    /// Allocates a frame from the memory of compressed pages. Some of them may be pinned for a short time.
    #[cold]
    fn frame_of_compressed(&self, len: usize) -> Option<Frame<'_>> {
        let mut stuck = 0;
        while stuck < STUCK_SEGMENTS {
            let limit = self.data_limit().saturating_sub(self.log.bytes());
            if let Some(frame) = self.frames.allocate(len, limit) {
                return Some(frame);
            }
            match self.clear_segment() {
                Reclaimed::Freed => {}
                Reclaimed::Stuck => {
                    stuck += 1;
                    std::thread::yield_now();
                }
                Reclaimed::Nothing => break,
            }
        }
        None
    }

    /// Number of frames to be kept free ahead of need.
    pub(super) fn frames_ahead(&self) -> usize {
        let used = self.frames.used_frames();
        (used / 64).max(MIN_AHEAD.min(used / 8)).min(MAX_AHEAD)
    }

    /// Wakes the worker threads when frames run short.
    fn keep_ahead(&self) {
        let ahead = self.frames_ahead();
        if ahead > 0 && self.frames.free_frames() < ahead / 2 && self.is_full() {
            self.workers.wake();
        }
    }

    /// Returns true if the raw space has reached its limit.
    fn is_full(&self) -> bool {
        self.frames.bytes() + self.frames.frame_bytes(self.max_page_bytes) > self.raw_limit()
    }

    /// Restores the limits: the loop of a worker thread.
    pub(super) fn run_upkeep(&self, stop: impl Fn() -> bool) {
        let start = Instant::now();
        self.clear_limbo();
        let mut kept = 0;
        while !stop() && kept < 64 {
            let (raw, _) = self.shares();
            let over = !self.frames.trim(raw);
            if over {
                self.close_up(raw);
            }
            let runs_short = self.is_full() && self.frames.free_frames() < self.frames_ahead();
            if !over && !runs_short {
                break;
            }
            match self.sweep_one(Sweeper::Ahead) {
                Swept::Freed => kept = 0,
                Swept::Kept | Swept::Failed(_) | Swept::PassedOver => kept += 1,
                Swept::Others | Swept::Nothing => break,
            }
        }
        while !stop() {
            let (_, compressed) = self.shares();
            if self.log.bytes() <= compressed || self.reclaim(self.log.bytes(), compressed) != Reclaimed::Freed {
                break;
            }
        }
        self.counts.add(Count::SweepNs, nanoseconds(start));
    }
}
