//! Eviction: choosing victims, compressing them, and evicting pages.
//!
//! Victims are chosen in batches of a twentieth of the raw space, at most a thousand, and wait in a queue, pinned so
//! that their entries are not reused. A thread that needs a frame takes victims from the queue until there is one, and
//! so do the worker threads, which keep some frames free ahead of need: so a batch is compressed by as many threads as
//! need it. Until a victim has been processed it is an ordinary page, and one that is hit meanwhile is returned to the
//! policy.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::PoolError;
use super::counts::Count;
use super::entry::{CLAIMED, DETACHED, DIRTY, LISTED, PageSlot, PageState, UNWRITABLE};
use super::index::hash;
use super::inner::{PoolInner, nanoseconds, zeroed};
use super::log::{Appended, Reclaimed, Turn};
use super::raw_space::RawSpace;
use super::write_back::Written;
use crate::eviction::another_round;
use leafpress_codec::saves_enough;

/// Maximum number of pages in a batch of victims.
const MAX_BATCH: usize = 1000;
/// If nothing is compressed, one victim in this many is compressed as a probe, to measure the cost; fewer if that would
/// exceed a hundredth of the cost of reading pages. Several follow each other, of which the first only warms the caches
/// for the codec's tables and code, the usual state if every victim is compressed.
const PROBES_IN_A_ROW: u64 = 4;
const PROBE_EVERY: u64 = 64;
const PROBES_COST_AT_MOST: f64 = 0.01;

/// Whether a victim that is not to be compressed is compressed as a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    No,
    WarmUp,
    Yes,
}

impl Probe {
    /// Returns the probe of the victim with this number, if one in `every` is probed.
    fn of(number: u64, every: u64) -> Self {
        match number % (every * PROBES_IN_A_ROW) {
            0 => Self::WarmUp,
            1..PROBES_IN_A_ROW => Self::Yes,
            _ => Self::No,
        }
    }
}

/// The role of a thread that makes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sweeper {
    /// A thread that reads pages and needs room now. Errors of unwritable pages do not concern it.
    Reader,
    /// A thread that changes pages and needs room now.
    Writer,
    /// A thread that makes room ahead of need.
    Ahead,
}

/// The outcome for one victim.
pub(super) enum Swept {
    /// There is more room.
    Freed,
    /// It stays: it was hit meanwhile, or a store operation is in progress.
    Kept,
    /// It stays: its write failed.
    Failed(PoolError),
    /// It stays: an earlier write failed.
    PassedOver,
    /// There was no victim, but other threads are processing some, or are reading into frames.
    Others,
    /// There was no victim: every page is pinned.
    Nothing,
}

/// A victim being processed, pinned.
struct Victim<'c> {
    core: &'c PoolInner,
    number: u32,
    page_hash: u64,
    /// It is returned to the policy.
    stays: bool,
}

impl Drop for Victim<'_> {
    fn drop(&mut self) {
        if self.stays {
            self.core.list(self.number, self.page_hash);
        }
        self.core.unpin(self.number);
    }
}

thread_local! {
    /// Buffer for a compressed victim, until it is in the log.
    static COMPRESSED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl PoolInner {
    /// Takes and processes one victim.
    pub(super) fn sweep_one(&self, sweeper: Sweeper) -> Swept {
        let (victim, probe, others) = {
            let mut raw = self.raw.lock();
            if raw.queue.is_empty() {
                self.choose(&mut raw);
            }
            raw.probes += 1;
            let probe = Probe::of(raw.probes, self.probe_every());
            // Read under the lock: other threads return the victims that stay under it before they release them.
            let others = self.waiters.in_hand();
            let victim = raw
                .queue
                .pop_front()
                .map(|number| (number, self.waiters.take_in_hand()));
            (victim, probe, others)
        };
        match victim {
            Some((number, _in_hand)) => self.victimise(number, probe, sweeper),
            None if others > 0 => Swept::Others,
            None => Swept::Nothing,
        }
    }

    /// Fills the queue of victims.
    fn choose(&self, raw: &mut RawSpace) {
        let mut batch = (raw.pages / 20).clamp(1, MAX_BATCH);
        if raw.queue.try_reserve(batch).is_err() {
            batch = raw.queue.capacity();
        }
        let page_hash = |number: u32| hash(self.entries.at(number).page());
        let mut not_now = Vec::new();
        while raw.queue.len() < batch {
            let Some(number) = raw.policy.victim(&self.entries, &page_hash) else {
                break;
            };
            raw.pages -= 1;
            let entry = self.entries.at(number);
            entry.clear(LISTED);
            if !self.counts.is_held(number) && entry.pin(0).is_some() {
                // A later hit is one after the choice.
                entry.change(|state| state.with_popularity(0));
                raw.queue.push_back(number);
            } else if not_now.try_reserve(1).is_ok() {
                not_now.push(number);
            } else {
                self.list_locked(raw, number, page_hash(number));
                break;
            }
        }
        // Other threads hold or move these. Or they were removed from the index just before: then another thread frees
        // them.
        for number in not_now {
            self.list_locked(raw, number, page_hash(number));
        }
        if !raw.queue.is_empty() {
            self.counts.add(Count::Sweeps, 1);
        }
        self.policy_bytes.store(raw.bytes(), Relaxed);
    }

    /// Compresses or evicts a victim. Its pin is removed in any case.
    fn victimise(&self, number: u32, probe: Probe, sweeper: Sweeper) -> Swept {
        let entry = self.entries.at(number);
        let page_hash = hash(entry.page());
        // It stays, too, if a codec panics.
        let mut victim = Victim {
            core: self,
            number,
            page_hash,
            stays: true,
        };
        let swept = self.try_victimise(number, entry, page_hash, probe, sweeper);
        victim.stays = matches!(swept, Swept::Kept | Swept::Failed(_) | Swept::PassedOver);
        swept
    }

    fn try_victimise(&self, number: u32, entry: &PageSlot, page_hash: u64, probe: Probe, sweeper: Sweeper) -> Swept {
        let state = entry.state();
        if state.has(DETACHED) {
            return Swept::Freed;
        }
        if state.pins() > 1 || state.popularity() > 0 || self.counts.is_held(number) {
            return Swept::Kept;
        }
        if state.has(DIRTY | UNWRITABLE) && sweeper == Sweeper::Reader {
            return Swept::PassedOver;
        }
        if state.has(DIRTY) {
            let pinned = self.pin_again(number);
            let written = pinned.map_or(Ok(Written::Gone), |pinned| self.write_back(&pinned, false));
            match written {
                Ok(Written::Clean) => {}
                Ok(Written::Gone) => return Swept::Freed,
                Ok(Written::Busy) => return Swept::Kept,
                Err(error) => return Swept::Failed(error),
            }
        }
        let (_, share) = self.shares();
        if share > 0 {
            let kept = self.compress(number, page_hash, true, |compressed| {
                self.append(number, entry, compressed)
            });
            self.costs.compressed(sweeper != Sweeper::Ahead);
            match kept {
                Some(Appended::Done(kept)) => {
                    self.free_kept(kept);
                    self.counts.add(Count::Compressions, 1);
                    return Swept::Freed;
                }
                Some(Appended::NotAlone) => return Swept::Kept,
                Some(Appended::NoRoom) | None => {}
            }
        } else if probe != Probe::No && self.adaptive.is_some() {
            self.probe(number, page_hash, probe == Probe::Yes);
        }
        if self.evict(number, page_hash) {
            self.counts.add(Count::RawEvictions, 1);
            Swept::Freed
        } else {
            Swept::Kept
        }
    }

    /// Compresses a raw page that the caller has pinned, and calls `then` with the result if it saves an eighth. If
    /// `counts`, its cost is recorded.
    fn compress<R>(&self, number: u32, page_hash: u64, counts: bool, then: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let engine = self.engine.as_ref()?;
        let pinned = self.pin_again(number)?;
        let raw = pinned.bytes();
        let mut compressed = COMPRESSED.try_with(Cell::take).unwrap_or_default();
        compressed.clear();
        let start = Instant::now();
        let done = engine.compress(raw, None, &mut compressed);
        let ns = nanoseconds(start);
        let saves_enough = done.is_ok() && saves_enough(compressed.len(), raw.len());
        let stored = saves_enough.then_some(compressed.len() as u32);
        if counts {
            self.costs.compress(raw.len() as u32, ns, stored);
        }
        if let Some(adaptive) = &self.adaptive
            && adaptive.follows(page_hash)
        {
            adaptive.sized(page_hash, stored);
        }
        // A thread with exclusive access may move the page.
        drop(pinned);
        let kept = stored.map(|_| then(&compressed));
        if kept.is_none() {
            self.counts.add(Count::Incompressible, 1);
        }
        // While the thread exits its thread-local storage is gone, and the buffer with it.
        let _ = COMPRESSED.try_with(|buffer| buffer.set(compressed));
        kept
    }

    fn probe_every(&self) -> u64 {
        let probe = self.costs.compress_ns() + self.costs.decompress_ns();
        let reads = self.costs.store_read_ns() * PROBES_COST_AT_MOST;
        // No costs are known at first.
        if reads > 0.0 {
            PROBE_EVERY.max((probe / reads) as u64)
        } else {
            PROBE_EVERY
        }
    }

    /// Compresses and decodes a page that is evicted, to measure the cost if it `counts`.
    fn probe(&self, number: u32, page_hash: u64, counts: bool) {
        let len = self.entries.at(number).len();
        self.compress(number, page_hash, counts, |compressed| {
            if let Some(engine) = &self.engine
                && let Ok(mut decoded) = zeroed(len)
            {
                let start = Instant::now();
                if engine.decompress(compressed, None, &mut decoded).is_ok() && counts {
                    self.costs.decompress(len as u32, nanoseconds(start));
                }
            }
        });
    }

    /// Moves a raw page into the log, reclaiming old segments for it.
    fn append(&self, number: u32, entry: &PageSlot, compressed: &[u8]) -> Appended {
        for _ in 0..8 {
            // One segment is reserved for copies during a reclamation.
            let limit = self.compressed_limit();
            let for_appends = limit.saturating_sub(self.log.segment_bytes());
            let claim = || self.mark_if_alone(number, CLAIMED).is_some();
            match self.log.append(number, entry, compressed, for_appends, claim) {
                Appended::NoRoom => {}
                done => return done,
            }
            if self.reclaim(limit, for_appends) == Reclaimed::Nothing {
                break;
            }
        }
        Appended::NoRoom
    }

    /// Reclaims the oldest segment of the compressed space; see [`super::log::Log::reclaim`].
    pub(super) fn reclaim(&self, limit: usize, keep: usize) -> Reclaimed {
        self.log.reclaim(
            limit,
            keep,
            |number| self.entries.at(number),
            |number, entry, state| self.turn(number, entry, state),
            |number| self.unpin(number),
        )
    }

    /// Reclaims the oldest segment of the compressed space, popular pages included.
    pub(super) fn clear_segment(&self) -> Reclaimed {
        let leave =
            |number: u32, entry: &PageSlot, state: PageState| self.turn(number, entry, state.with_popularity(0));
        let entry = |number| self.entries.at(number);
        self.log.reclaim(0, 0, entry, leave, |number| self.unpin(number))
    }

    /// Decides about a compressed page, which the log has pinned, when its segment is reclaimed.
    fn turn(&self, number: u32, entry: &PageSlot, state: PageState) -> Turn {
        if let Some(popularity) = another_round(self.policy, state.popularity()) {
            return Turn::Stays(popularity);
        }
        if self.evict(number, hash(entry.page())) {
            self.counts.add(Count::CompressedEvictions, 1);
            Turn::Left
        } else {
            Turn::Stuck
        }
    }

    /// Removes a page that is in no list and pinned by the caller alone from the index, if it is clean.
    fn evict(&self, number: u32, page_hash: u64) -> bool {
        let mut locked = self.index.shard(page_hash).lock();
        let entry = self.entries.at(number);
        // It was written, but a sync may have failed since.
        if entry.state().has(DIRTY) {
            return false;
        }
        let Some(state) = self.mark_if_alone(number, DETACHED) else {
            return false;
        };
        locked.remove(page_hash, number);
        self.unsynced.leaves(entry.page(), state);
        true
    }

    /// Reports a hit to the policy, with a delay and not always: if the lock is taken, the hits are lost.
    pub(super) fn note_hit(&self, number: u32) {
        let Some(mine) = self.counts.mine() else {
            return;
        };
        mine.note_hit(number, |hits| {
            if let Some(mut raw) = self.raw.try_lock() {
                for number in hits {
                    if self.entries.at(number).state().has(LISTED) {
                        raw.policy.hit(number);
                    }
                }
            }
        });
    }
}
