//! Sweeps over the leaves: eviction and removal of expired records.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bumpalo::Bump;

use super::counters::Count;
use super::disk::{SpillOutcome, Tier};
use super::evict::EvictionState;
use super::expiry::Expiry;
use super::inner::{CacheInner, Sweeper};
use super::listener::RemovalCause;
use super::record;
use crate::tree;
use crate::tree::cache_hooks::{Evictor, Hand, Shown};
use leafpress_base::sync::MutexGuard;

/// Leaves visited per turn, after which other threads may proceed and the listener is called.
const VISITS_OF_TURN: usize = 16;
/// Turns after which a writer that finds no room proceeds: only if nothing can be evicted.
const MAX_TURNS: usize = 1024;
/// Turns without progress before an evicting thread blocks on a stalled disk (only tombstones are left to evict).
const MAX_STALLED_TURNS: usize = 8;
/// A writer evicts, or waits for the evicting thread, if nodes exceed their limit by this fraction (1/256) of the
/// budget...
const SLACK_DIVISOR: u64 = 256;
/// ...but at least these bytes, which are written until a thread has been woken.
const MIN_SLACK_BYTES: u64 = 64 << 10;

/// Tag of a record that was moved to disk.
const MOVED: u8 = 1;

/// Removed records to notify the listener of: key, value and cause.
#[derive(Default)]
pub(super) struct Gone(pub Vec<(Vec<u8>, Vec<u8>, RemovalCause)>);

/// Evictor that selects records by worth.
pub(super) struct ByWorth<'c> {
    pub core: &'c CacheInner,
    /// Read before the latch is taken: the clock is the caller's code.
    pub now: Duration,
    pub memory: &'c mut EvictionState,
    pub gone: &'c mut Gone,
}

/// Evictor that selects expired records only.
pub(super) struct ByTime<'c> {
    pub core: &'c CacheInner,
    pub now: Duration,
    pub gone: &'c mut Gone,
}

impl CacheInner {
    /// Evicts until nodes are within their limit.
    pub(super) fn make_room(&self) {
        self.make_room_for(0);
    }

    /// Evicts until there is room for `bytes` of new nodes.
    pub(super) fn make_room_for(&self, bytes: u64) {
        self.evict(|| self.excess(bytes), 0, MAX_TURNS);
    }

    /// Wakes the upkeep to evict ahead of need. Only if it has fallen behind by the slack does the caller evict, just
    /// until the excess is no more than the slack: while the upkeep gets no processor, each insertion does its share.
    pub(super) fn keep_room(&self) {
        if self.bytes_above(self.budget.upper_watermark_bytes()) > 0
            && !self.eviction_due.load(Ordering::Relaxed)
            && !self.eviction_due.swap(true, Ordering::Relaxed)
        {
            self.upkeep.wake();
        }
        self.evict(|| self.excess(0), self.slack_bytes(), MAX_TURNS);
    }

    /// Evicts for one turn if the upkeep was woken to do so; returns true if there is more to evict.
    pub(super) fn evict_ahead(&self) -> bool {
        // Otherwise `finish_evicting` does it.
        let Some(_turn) = self.evicting_ahead.try_lock() else {
            return false;
        };
        self.evict_if_due(1)
    }

    /// Does all eviction that the upkeep was woken for.
    pub(super) fn finish_evicting(&self) {
        let _turn = self.evicting_ahead.lock();
        self.evict_if_due(MAX_TURNS);
        self.eviction_due.store(false, Ordering::Relaxed);
    }

    fn evict_if_due(&self, turns: usize) -> bool {
        if !self.eviction_due.swap(false, Ordering::Relaxed) {
            return false;
        }
        let above = || self.bytes_above(self.budget.lower_watermark_bytes());
        let before = above();
        self.evict(above, 0, turns);
        // The batch that any other thread may keep would be memory that holds no records.
        self.tree.flush_own_retired();
        // Without progress, the disk is stalled or only latched leaves were found.
        let goes_on = (1..before).contains(&above());
        if goes_on {
            self.eviction_due.store(true, Ordering::Relaxed);
        }
        goes_on
    }

    /// Returns by how many bytes the nodes would exceed their limit with `bytes` of new ones.
    pub(super) fn excess(&self, bytes: u64) -> u64 {
        (self.bytes_above(0) + bytes).saturating_sub(self.budget.node_limit_bytes())
    }

    /// Returns by how many bytes the nodes, with the long values that writers hold, exceed `bound`.
    fn bytes_above(&self, bound: u64) -> u64 {
        (self.tree.node_bytes() + self.long_values.in_hand_bytes()).saturating_sub(bound)
    }

    fn slack_bytes(&self) -> u64 {
        (self.budget.memory_bytes() / SLACK_DIVISOR).max(MIN_SLACK_BYTES)
    }

    /// Evicts, for at most `turns`, until `excess` returns no more than `tolerated`. If another thread is evicting,
    /// waits for it only if the excess is more than the slack (backpressure).
    fn evict(&self, excess: impl Fn() -> u64, tolerated: u64, turns: usize) {
        if excess() > tolerated {
            // Otherwise records with queued reads would be removed as expired.
            self.apply_queued_reads();
        }
        // Turns in a row without progress because of the disk, the time waited in them, and the bytes of nodes then.
        let mut stalled: (usize, Duration, u64) = (0, Duration::ZERO, u64::MAX);
        for _ in 0..turns {
            if excess() <= tolerated {
                return;
            }
            if let Some(disk) = &self.disk {
                disk.make_room();
                let held = self.tree.node_bytes();
                if !disk.is_stalled() || held < stalled.2 {
                    stalled = (0, Duration::ZERO, held);
                } else {
                    stalled.0 += 1;
                    if stalled.0 > MAX_STALLED_TURNS && !disk.wait_stalled(&mut stalled.1) {
                        disk.forget();
                        warn_event!(cache = %self.observer.name, "disk forgotten");
                        stalled = (0, Duration::ZERO, u64::MAX);
                    }
                }
            }
            let sweeper = match self.evicting.try_lock() {
                Some(sweeper) => Some(sweeper),
                None if excess() > self.slack_bytes() => Some(self.evicting.lock()),
                None => None,
            };
            let Some(mut sweeper) = sweeper else { return };
            let (mut gone, now) = (Gone::default(), self.clock.now());
            let before = sweeper.held_bytes();
            let Sweeper { hand, arena, memory } = &mut *sweeper;
            let mut evictor = ByWorth {
                core: self,
                now,
                memory,
                gone: &mut gone,
            };
            let is_full = || self.disk.as_ref().is_some_and(|disk| disk.is_full());
            let goes_on = (0..VISITS_OF_TURN)
                .all(|_| excess() > tolerated && !is_full() && self.visit(hand, arena, &mut evictor));
            let is_of_use = goes_on || excess() <= tolerated || is_full();
            self.note_sweeper(before, &sweeper);
            drop(sweeper);
            self.notify_each(gone);
            if !is_of_use {
                return;
            }
        }
    }

    /// Notifies the listener of removed records, with no lock held, so that it may use the cache.
    fn notify_each(&self, gone: Gone) {
        for (key, value, cause) in gone.0 {
            self.notify(&key, Some(value), cause);
        }
    }

    /// Visits one leaf; returns false if further visits are of no use.
    fn visit(&self, hand: &mut Hand, arena: &mut Bump, evictor: &mut dyn Evictor) -> bool {
        self.counters.add(Count::Visits, 1);
        match self.tree.evict_at(hand, arena, evictor) {
            Ok(visit) => {
                self.counters.add(Count::VisitedRecords, visit.records as u64);
                visit.records > 0 || !self.tree.is_empty()
            }
            Err(error) => {
                let errors = self.counters.add(Count::EvictionErrors, 1);
                warn_event_by_count!(errors, cache = %self.observer.name, %error, "leaf not evicted from");
                !matches!(error, tree::TreeError::OutOfMemory { .. })
            }
        }
    }

    /// Removes expired records for at most `time` and one round. Returns at once if another thread is doing so.
    pub(super) fn expire_for(&self, time: Duration) {
        self.apply_queued_reads();
        let (began, mut first) = (Instant::now(), None);
        while self.may_expire() && began.elapsed() < time {
            let Some(sweeper) = self.expiring.try_lock() else {
                return;
            };
            let round = *first.get_or_insert(sweeper.hand.rounds);
            if sweeper.hand.rounds != round || !self.expire_some(sweeper) {
                return;
            }
        }
    }

    /// Removes expired records from every leaf.
    pub(super) fn expire_all(&self) {
        self.apply_queued_reads();
        let mut last = None;
        while self.may_expire() {
            let sweeper = self.expiring.lock();
            // To the end from the current position of the hand, and one full round.
            let last = *last.get_or_insert(sweeper.hand.rounds + 1);
            if sweeper.hand.rounds > last || !self.expire_some(sweeper) {
                return;
            }
        }
    }

    /// Visits some leaves; returns false if further visits are of no use.
    fn expire_some(&self, mut sweeper: MutexGuard<'_, Sweeper>) -> bool {
        let (mut gone, now) = (Gone::default(), self.clock.now());
        let before = sweeper.held_bytes();
        let Sweeper { hand, arena, .. } = &mut *sweeper;
        let mut evictor = ByTime {
            core: self,
            now,
            gone: &mut gone,
        };
        let round = hand.rounds;
        let is_of_use = (0..VISITS_OF_TURN).all(|_| hand.rounds != round || self.visit(hand, arena, &mut evictor));
        self.note_sweeper(before, &sweeper);
        drop(sweeper);
        self.notify_each(gone);
        is_of_use
    }

    /// Returns the expiry of a record that is shown with its value.
    fn expiry_of(&self, record: &Shown<'_>) -> Option<Expiry> {
        record.with_value(|stored| self.read(stored).1)?
    }

    fn choose_expired(&self, records: &mut [Shown<'_>], now: Duration) -> usize {
        if !self.may_expire() {
            return 0;
        }
        let mut over = 0;
        for record in records {
            record.goes = self.is_past_use(self.expiry_of(record), now) && !is_tombstone(record);
            over += usize::from(record.goes);
        }
        over
    }

    /// Prepares victims for their removal: spills those that have not expired to disk, and ensures that no older record
    /// remains visible there.
    pub(super) fn move_down(&self, disk: &Tier, records: &mut [Shown<'_>], now: Duration) {
        if !records.iter().any(|record| record.goes) {
            return;
        }
        let mut guard = disk.begin_spill();
        for record in records.iter_mut().filter(|record| record.goes) {
            let key = record.key;
            let outcome = record.with_value(|stored| {
                let is_expired = record::is_expired(self.read(stored).1, || now);
                guard.spill(key, Some(if is_expired { record::TOMBSTONE } else { stored }))
            });
            match outcome.unwrap_or_else(|| guard.spill(key, None)) {
                SpillOutcome::Moved => record.tag = MOVED,
                SpillOutcome::Forgotten => {}
                SpillOutcome::Stays => record.goes = false,
                SpillOutcome::Tombstone => record.stays_as = Some(record::TOMBSTONE),
            }
        }
    }

    /// Counts a removed record, and queues its notification.
    fn note_gone(&self, record: &Shown<'_>, cause: RemovalCause, gone: &mut Gone) {
        if self.disk.is_some() && is_tombstone(record) {
            return;
        }
        self.counters.add(
            match cause {
                RemovalCause::Expired => Count::Expired,
                _ => Count::Evicted,
            },
            1,
        );
        if self.listener.is_some() && (record.tag != MOVED || cause == RemovalCause::Expired) {
            let value = record.with_value(|stored| record::read(stored).0.to_vec());
            gone.0.extend(value.map(|value| (record.key.to_vec(), value, cause)));
        }
    }
}

fn is_tombstone(record: &Shown<'_>) -> bool {
    record.short_value().is_some_and(record::is_tombstone)
}

impl Evictor for ByTime<'_> {
    fn wants_values(&self) -> bool {
        true
    }

    fn choose(&mut self, records: &mut [Shown<'_>]) {
        self.core.choose_expired(records, self.now);
        if let Some(disk) = &self.core.disk {
            self.core.move_down(disk, records, self.now);
        }
    }

    fn gone(&mut self, record: &Shown<'_>) {
        self.core.note_gone(record, RemovalCause::Expired, self.gone);
    }
}

impl Evictor for ByWorth<'_> {
    fn wants_values(&self) -> bool {
        self.core.listener.is_some() || self.core.may_expire() || self.core.disk.is_some()
    }

    fn choose(&mut self, records: &mut [Shown<'_>]) {
        let mut over = self.core.choose_expired(records, self.now);
        let Some(disk) = &self.core.disk else {
            self.memory.judge(records, over);
            return;
        };
        if !disk.is_stalled() {
            for record in records.iter_mut().filter(|record| is_tombstone(record)) {
                record.goes = true;
                over += 1;
            }
        }
        self.memory.judge(records, over);
        self.core.move_down(disk, records, self.now);
    }

    fn gone(&mut self, record: &Shown<'_>) {
        let is_expired = self.core.may_expire() && record::is_expired(self.core.expiry_of(record), || self.now);
        let cause = if is_expired {
            RemovalCause::Expired
        } else {
            RemovalCause::Evicted
        };
        self.core.note_gone(record, cause, self.gone);
    }
}
