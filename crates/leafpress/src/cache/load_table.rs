//! Single-flight loading: at most one load of a key is under way, and other callers that miss meanwhile wait for it.
//!
//! The first caller that misses starts a load and becomes its leader; others wait for it, blocking or in a task. A load
//! ends with a value, an error, a panic, or a future that was dropped; it then leaves the table, and its waiters are
//! woken. After a panic or a dropped future one of them leads the next load.
//!
//! The answer that there is no value may be remembered for a while: then the key stays in the table, and whatever takes
//! a load out of the table takes it out too.
//!
//! **A write or removal of the key wins over a load that is under way.** Every write and every removal, even one that
//! finds nothing, calls [`LoadTable::supersede`] under the latch of the key's leaf. A leader stores its value under the
//! same latch, only if the key is absent or has expired, and only while its load is still in the table
//! ([`LoadLeader::is_current`]). So the two are ordered by the latch:
//!
//! - A load that began before the write's turn is taken out of the table and never stores its value.
//! - A load that began after it read what was written. `supersede` first reads a counter without a lock; it cannot miss
//!   a load, because a leader takes the latch once ([`crate::tree::Tree::synchronize`]) between entering the table and
//!   looking up the key: a write before that is seen by the lookup, and a write after it sees the counter.
//!
//! Lock order: a leaf's latch, then a table. No latch is waited for while a table is locked. Waiters of a superseded
//! load still get its value: they asked before the write.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
#[cfg(not(shuttle))]
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

#[cfg(shuttle)]
use shuttle::thread::{self, ThreadId};

use super::expiry::Expiry;
use crate::tree::hash::hash;
use leafpress_base::sync::{Condvar, Mutex, plain};

const TABLES: usize = 16;

/// The outcome of a load.
#[derive(Clone)]
pub(super) enum LoadOutcome {
    Value(Arc<[u8]>),
    /// The loader answered that there is no value.
    Absent,
    Error(Arc<dyn Any + Send + Sync>),
    /// The loader panicked, or its future was dropped.
    Nothing,
}

#[derive(Default)]
struct LoadState {
    outcome: Option<LoadOutcome>,
    /// Wakers of waiting tasks, in the order of arrival.
    wakers: BTreeMap<u64, Waker>,
    next_waker: u64,
}

/// A load under way.
#[derive(Default)]
pub(super) struct PendingLoad {
    state: Mutex<LoadState>,
    done: Condvar,
    /// The thread that runs the loader, or that polled it last.
    thread: plain::Mutex<Option<ThreadId>>,
}

impl PendingLoad {
    /// Returns true if a blocking wait might never end because the loader needs the calling thread: the thread runs the
    /// loader further up its stack, or polled the loader's future last.
    pub(super) fn is_led_here(&self) -> bool {
        *self.thread.lock() == Some(thread::current().id())
    }

    fn set_leading_thread(&self) {
        *self.thread.lock() = Some(thread::current().id());
    }

    /// Blocks until the load ends, or for at most `limit`; [`None`] if it has not ended by then.
    pub(super) fn wait(&self, limit: Option<Duration>) -> Option<LoadOutcome> {
        let began = Instant::now();
        let mut state = self.state.lock();
        loop {
            if let Some(outcome) = &state.outcome {
                return Some(outcome.clone());
            }
            match limit {
                None => self.done.wait(&mut state),
                Some(limit) => {
                    let left = limit.checked_sub(began.elapsed()).filter(|left| !left.is_zero())?;
                    self.done.wait_for(&mut state, left);
                }
            }
        }
    }

    fn finish(&self, outcome: LoadOutcome) {
        let wakers = {
            let mut state = self.state.lock();
            state.outcome = Some(outcome);
            std::mem::take(&mut state.wakers)
        };
        self.done.notify_all();
        wakers.into_values().for_each(Waker::wake);
    }
}

/// A task's wait for the end of a load. Dropping it removes its waker from the load.
pub(super) struct LoadWaiter {
    pending: Arc<PendingLoad>,
    waker: Option<u64>,
}

impl LoadWaiter {
    pub(super) fn new(pending: Arc<PendingLoad>) -> Self {
        Self { pending, waker: None }
    }
}

impl Future for LoadWaiter {
    type Output = LoadOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<LoadOutcome> {
        let pending = Arc::clone(&self.pending);
        let mut state = pending.state.lock();
        if let Some(outcome) = &state.outcome {
            return Poll::Ready(outcome.clone());
        }
        let number = *self.waker.get_or_insert_with(|| {
            state.next_waker += 1;
            state.next_waker
        });
        let replaced = match state.wakers.get(&number) {
            Some(waker) if waker.will_wake(context.waker()) => None,
            _ => state.wakers.insert(number, context.waker().clone()),
        };
        // Dropped without the lock: dropping a waker may drop a task, and that task's own wait.
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for LoadWaiter {
    fn drop(&mut self) {
        if let Some(number) = self.waker {
            // Removed under the lock and dropped without it: dropping a waker may drop a task, and that task's own
            // wait.
            let waker = self.pending.state.lock().wakers.remove(&number);
            drop(waker);
        }
    }
}

/// Estimated memory of a remembered absence in addition to its key, in bytes.
const ABSENCE_BYTES: u64 = 96;

fn absence_bytes(key: &[u8]) -> u64 {
    key.len() as u64 + ABSENCE_BYTES
}

/// What is known of a key in a table.
enum LoadSlot {
    Loading(Arc<PendingLoad>),
    /// A loader answered that there is no value.
    Absent {
        until: Expiry,
    },
}

#[derive(Default)]
struct LoadSlots {
    slots: HashMap<Box<[u8]>, LoadSlot>,
    /// Memory of the remembered absences, in bytes.
    absent_bytes: u64,
}

impl LoadSlots {
    /// Sets or replaces a key's slot.
    fn put(&mut self, key: &[u8], slot: LoadSlot) {
        let is_absence = matches!(slot, LoadSlot::Absent { .. });
        self.absent_bytes += if is_absence { absence_bytes(key) } else { 0 };
        if let Some(replaced) = self.slots.insert(key.into(), slot) {
            self.note_taken(key, &replaced);
        }
    }

    fn take_out(&mut self, key: &[u8]) -> Option<LoadSlot> {
        let slot = self.slots.remove(key)?;
        self.note_taken(key, &slot);
        Some(slot)
    }

    /// Takes out the slots for which `is_one` returns true.
    fn extract(&mut self, mut is_one: impl FnMut(&[u8], &LoadSlot) -> bool) -> Vec<(Box<[u8]>, LoadSlot)> {
        let taken: Vec<_> = self.slots.extract_if(|key, slot| is_one(key, slot)).collect();
        taken.iter().for_each(|(key, slot)| self.note_taken(key, slot));
        taken
    }

    fn note_taken(&mut self, key: &[u8], slot: &LoadSlot) {
        if matches!(slot, LoadSlot::Absent { .. }) {
            self.absent_bytes -= absence_bytes(key);
        }
    }

    /// Returns true if the slot of the key is this load.
    fn has(&self, key: &[u8], pending: &Arc<PendingLoad>) -> bool {
        matches!(self.slots.get(key), Some(LoadSlot::Loading(other)) if Arc::ptr_eq(other, pending))
    }
}

/// The loads under way, and the remembered absences.
#[derive(Default)]
pub(super) struct LoadTable {
    tables: [Mutex<LoadSlots>; TABLES],
    /// Number of slots in the tables: a writer reads it first.
    count: AtomicUsize,
    /// Calls of [`LoadTable::superseding_all`] under way: no load stores its value meanwhile.
    clears: AtomicUsize,
    /// Memory of the remembered absences, in bytes, as of the last change of each table.
    absent_bytes: AtomicU64,
    /// Calls of [`LoadTable::forget_expired`].
    visited: AtomicUsize,
}

/// The role of a caller that misses.
pub(super) enum Join<'f> {
    Lead(LoadLeader<'f>),
    Wait(Arc<PendingLoad>),
    /// It is known that there is no value.
    Absent,
}

/// The right and the duty to load a key. Dropped without an outcome, it ends the load with [`LoadOutcome::Nothing`].
pub(super) struct LoadLeader<'f> {
    loads: &'f LoadTable,
    key: Box<[u8]>,
    pending: Arc<PendingLoad>,
    has_finished: bool,
}

impl LoadTable {
    fn table(&self, key: &[u8]) -> &Mutex<LoadSlots> {
        &self.tables[(hash(key) >> 20) as usize % TABLES]
    }

    /// Calls `change` with a key's locked table, and updates the number and the memory of the slots.
    fn change<R>(&self, table: &Mutex<LoadSlots>, change: impl FnOnce(&mut LoadSlots) -> R) -> R {
        let mut table = table.lock();
        let (slots, bytes) = (table.slots.len(), table.absent_bytes);
        let result = change(&mut table);
        // Wraps where there are fewer. Writers share the counter: it is not touched without need.
        if table.slots.len() != slots {
            let more = table.slots.len().wrapping_sub(slots);
            self.count.fetch_add(more, Ordering::Relaxed);
        }
        if table.absent_bytes != bytes {
            let more = table.absent_bytes.wrapping_sub(bytes);
            self.absent_bytes.fetch_add(more, Ordering::Relaxed);
        }
        result
    }

    /// Joins the load of a key, or starts one. `absent_at`: the time, if a remembered absence is an answer.
    pub(super) fn join_or_start(&self, key: &[u8], absent_at: Option<Duration>) -> Join<'_> {
        self.change(self.table(key), |table| match table.slots.get(key) {
            Some(LoadSlot::Loading(pending)) => Join::Wait(Arc::clone(pending)),
            Some(LoadSlot::Absent { until }) if absent_at.is_some_and(|now| !until.is_expired(now)) => Join::Absent,
            _ => Join::Lead(self.start(key, table)),
        })
    }

    /// Starts a load instead of one that the caller must not wait for; the other load no longer stores its value.
    pub(super) fn take_over(&self, key: &[u8]) -> LoadLeader<'_> {
        self.change(self.table(key), |table| self.start(key, table))
    }

    fn start(&self, key: &[u8], table: &mut LoadSlots) -> LoadLeader<'_> {
        let pending = Arc::new(PendingLoad::default());
        table.put(key, LoadSlot::Loading(Arc::clone(&pending)));
        self.lead(key, pending)
    }

    /// Returns the memory of the remembered absences, in bytes.
    pub(super) fn held_bytes(&self) -> u64 {
        self.absent_bytes.load(Ordering::Relaxed)
    }

    /// Forgets the absences of one of the tables that have expired: of another one at each call.
    pub(super) fn forget_expired(&self, now: Duration) {
        if self.held_bytes() == 0 {
            return;
        }
        let table = &self.tables[self.visited.fetch_add(1, Ordering::Relaxed) % TABLES];
        let is_expired = |slot: &LoadSlot| matches!(slot, LoadSlot::Absent { until } if until.is_expired(now));
        let expired = self.change(table, |table| {
            let expired = table.extract(|_, slot| is_expired(slot));
            if table.absent_bytes == 0 {
                table.slots.shrink_to_fit();
            }
            expired
        });
        drop(expired);
    }

    fn lead(&self, key: &[u8], pending: Arc<PendingLoad>) -> LoadLeader<'_> {
        pending.set_leading_thread();
        LoadLeader {
            loads: self,
            key: key.into(),
            pending,
            has_finished: false,
        }
    }

    /// Revokes the right of a running load of the key to store its value. Every write and every removal of the key must
    /// call it under the latch of the key's leaf.
    #[inline]
    pub(super) fn supersede(&self, key: &[u8]) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.take_out(key);
        }
    }

    #[cold]
    fn take_out(&self, key: &[u8]) {
        let taken = self.change(self.table(key), |table| table.take_out(key));
        drop(taken);
    }

    /// Revokes the right of all running loads of the keys for which `is_one` returns true to store their values, and
    /// returns the keys; forgets remembered absences of such keys. A leader that is about to store its value has done
    /// so once the latch of its key's leaf has been acquired ([`crate::tree::Tree::synchronize`]).
    pub(super) fn supersede_all(&self, is_one: impl Fn(&[u8]) -> bool) -> Vec<Box<[u8]>> {
        let mut keys = Vec::new();
        if self.count.load(Ordering::SeqCst) == 0 {
            return keys;
        }
        for table in &self.tables {
            let superseded = self.change(table, |table| table.extract(|key, _| is_one(key)));
            let loading = superseded
                .into_iter()
                .filter(|(_, slot)| matches!(slot, LoadSlot::Loading(_)));
            keys.extend(loading.map(|(key, _)| key));
        }
        keys
    }

    /// Calls `clear`, which removes every key, and supersedes all loads that began before it ended.
    pub(super) fn superseding_all<R>(&self, clear: impl FnOnce() -> R) -> R {
        struct Ends<'f>(&'f LoadTable);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                for table in &self.0.tables {
                    let loads = self.0.change(table, std::mem::take);
                    drop(loads);
                }
                self.0.clears.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.clears.fetch_add(1, Ordering::SeqCst);
        let _ends = Ends(self);
        clear()
    }
}

impl LoadLeader<'_> {
    /// The key of the load.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Polls the loader's future and records the polling thread.
    pub(super) fn poll<F: Future>(&self, load: Pin<&mut F>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.pending.set_leading_thread();
        load.poll(context)
    }

    /// Returns true if the key was neither written nor removed since the load began. The answer remains valid until the
    /// next write only under the latch of the key's leaf.
    pub(super) fn is_current(&self) -> bool {
        let table = self.loads.table(&self.key).lock();
        table.has(&self.key, &self.pending) && self.loads.clears.load(Ordering::SeqCst) == 0
    }

    /// Ends the load with a value, which has been stored already if it is to be stored.
    pub(super) fn finish_with_value(self, value: &Arc<[u8]>) {
        self.finish(LoadOutcome::Value(Arc::clone(value)));
    }

    /// Ends the load without a value. The absence is remembered for `remembered`, if that is a time and memory is left:
    /// `room_bytes` for all of them.
    pub(super) fn finish_absent(self, remembered: Option<Expiry>, room_bytes: u64) {
        let Some(until) = remembered else {
            return self.finish(LoadOutcome::Absent);
        };
        let (key, pending) = (&self.key, &self.pending);
        self.loads.change(self.loads.table(key), |table| {
            // After a write or removal of the key the answer may be outdated.
            let is_current = table.has(key, pending) && self.loads.clears.load(Ordering::SeqCst) == 0;
            let has_room = table.absent_bytes + absence_bytes(key) <= room_bytes / TABLES as u64;
            if is_current && has_room {
                table.put(key, LoadSlot::Absent { until });
            }
        });
        self.finish(LoadOutcome::Absent);
    }

    /// Ends the load with an error for all waiters.
    pub(super) fn finish_with_error(self, error: Arc<dyn Any + Send + Sync>) {
        self.finish(LoadOutcome::Error(error));
    }

    fn finish(mut self, outcome: LoadOutcome) {
        self.has_finished = true;
        self.leave();
        self.pending.finish(outcome);
    }

    fn leave(&self) {
        self.loads.change(self.loads.table(&self.key), |table| {
            if table.has(&self.key, &self.pending) {
                table.take_out(&self.key);
            }
        });
    }
}

impl Drop for LoadLeader<'_> {
    fn drop(&mut self) {
        if !self.has_finished {
            self.leave();
            self.pending.finish(LoadOutcome::Nothing);
        }
    }
}
