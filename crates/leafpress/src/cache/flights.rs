//! Single-flight loading: at most one load of a key is under way, and those who miss meanwhile wait for it.
//!
//! A flight is one load of one key. The first caller that misses begins a flight and leads it; others wait for it, blocking or in a task. A
//! flight ends with a value, an error, a panic, or a future that was dropped; it then leaves the table, and its waiters are woken. After a
//! panic or a dropped future one of them leads the next flight.
//!
//! **A write or removal of the key wins over a load that is under way.** Every write, and every removal, also one that finds nothing, calls
//! [`Flights::supersede`] under the latch of the key's leaf. A leader stores its value under the same latch, only where the key is absent or
//! has expired, and only while its flight is still in the table ([`Lead::is_current`]). So the two are ordered by the latch:
//!
//! - A flight that began before the write's turn is taken out of the table, and never stores.
//! - A flight that began after it saw what was written. `supersede` first reads a counter, without a lock; it cannot miss a flight, because
//!   a leader takes the latch once ([`crate::tree::Tree::synchronize`]) between entering the table and looking for the key: a write before
//!   that is seen by the look, and a write after it sees the counter.
//!
//! Lock order: a leaf's latch, then a table. No latch is waited for while a table is locked. Waiters of a superseded flight get its value all
//! the same: they asked before the write.

use std::any::Any;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
#[cfg(not(shuttle))]
use std::thread::{self, ThreadId};

#[cfg(shuttle)]
use shuttle::thread::{self, ThreadId};

use crate::sync::{Condvar, Mutex, plain};
use crate::tree::hash::hash;

const TABLES: usize = 16;

/// How a load ended.
#[derive(Clone)]
pub(super) enum Landed {
    Value(Arc<[u8]>),
    Error(Arc<dyn Any + Send + Sync>),
    /// The loader panicked, or its future was dropped.
    Nothing,
}

#[derive(Default)]
struct State {
    landed: Option<Landed>,
    /// The wakers of tasks that wait, in the order in which they began to.
    wakers: BTreeMap<u64, Waker>,
    next_waker: u64,
}

/// A load.
#[derive(Default)]
pub(super) struct Flight {
    state: Mutex<State>,
    done: Condvar,
    /// The thread that runs the loader, or that last polled it.
    thread: plain::Mutex<Option<ThreadId>>,
}

impl Flight {
    /// Whether a blocking wait might never end, because the loader needs the calling thread: the thread runs the loader further up its
    /// stack, or it is the one that last polled the loader's future.
    pub(super) fn is_led_here(&self) -> bool {
        *self.thread.lock() == Some(thread::current().id())
    }

    fn is_led_by_this_thread_from_now_on(&self) {
        *self.thread.lock() = Some(thread::current().id());
    }

    /// Waits for the load's end.
    pub(super) fn wait(&self) -> Landed {
        let mut state = self.state.lock();
        loop {
            match &state.landed {
                Some(landed) => return landed.clone(),
                None => self.done.wait(&mut state),
            }
        }
    }

    fn land(&self, landed: Landed) {
        let wakers = {
            let mut state = self.state.lock();
            state.landed = Some(landed);
            std::mem::take(&mut state.wakers)
        };
        self.done.notify_all();
        wakers.into_values().for_each(Waker::wake);
    }
}

/// Waits for the end of a load in a task. A task that no longer waits leaves nothing behind in the flight.
pub(super) struct Waiting {
    flight: Arc<Flight>,
    waker: Option<u64>,
}

impl Waiting {
    pub(super) fn new(flight: Arc<Flight>) -> Self {
        Self { flight, waker: None }
    }
}

impl Future for Waiting {
    type Output = Landed;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Landed> {
        let flight = Arc::clone(&self.flight);
        let mut state = flight.state.lock();
        if let Some(landed) = &state.landed {
            return Poll::Ready(landed.clone());
        }
        let number = *self.waker.get_or_insert_with(|| {
            state.next_waker += 1;
            state.next_waker
        });
        let replaced = match state.wakers.get(&number) {
            Some(waker) if waker.will_wake(context.waker()) => None,
            _ => state.wakers.insert(number, context.waker().clone()),
        };
        // Dropped without the lock: it may drop a task, and that one its wait.
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(number) = self.waker {
            // Dropped without the lock, as above.
            let waker = self.flight.state.lock().wakers.remove(&number);
            drop(waker);
        }
    }
}

type Table = HashMap<Box<[u8]>, Arc<Flight>>;

/// The loads under way.
#[derive(Default)]
pub(super) struct Flights {
    tables: [Mutex<Table>; TABLES],
    /// Flights in the tables: a writer reads this first.
    count: AtomicUsize,
    /// Calls of [`Flights::superseding_all`] under way: no flight stores meanwhile.
    clears: AtomicUsize,
}

/// What a caller that misses does.
pub(super) enum Boarding<'f> {
    Leads(Lead<'f>),
    Waits(Arc<Flight>),
}

/// The right and the duty to load a key. Dropped without a landing, it ends the flight with [`Landed::Nothing`].
pub(super) struct Lead<'f> {
    flights: &'f Flights,
    key: Box<[u8]>,
    flight: Arc<Flight>,
    has_landed: bool,
}

impl Flights {
    fn table(&self, key: &[u8]) -> &Mutex<Table> {
        &self.tables[(hash(key) >> 20) as usize % TABLES]
    }

    /// Joins the load of a key, or begins one.
    pub(super) fn board(&self, key: &[u8]) -> Boarding<'_> {
        let mut table = self.table(key).lock();
        match table.entry(key.into()) {
            Entry::Occupied(flight) => Boarding::Waits(Arc::clone(flight.get())),
            Entry::Vacant(place) => {
                let flight = Arc::clone(place.insert(Arc::default()));
                self.count.fetch_add(1, Ordering::Relaxed);
                Boarding::Leads(self.lead(key, flight))
            }
        }
    }

    /// Begins a load in place of one that the caller must not wait for, and that stores nothing from now on.
    pub(super) fn take_over(&self, key: &[u8]) -> Lead<'_> {
        let flight = Arc::new(Flight::default());
        if self.table(key).lock().insert(key.into(), Arc::clone(&flight)).is_none() {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        self.lead(key, flight)
    }

    fn lead(&self, key: &[u8], flight: Arc<Flight>) -> Lead<'_> {
        flight.is_led_by_this_thread_from_now_on();
        Lead {
            flights: self,
            key: key.into(),
            flight,
            has_landed: false,
        }
    }

    /// Ends the right of a load of the key that is under way to store its value. To be called under the latch of the key's leaf, by every
    /// write and every removal of the key.
    #[inline]
    pub(super) fn supersede(&self, key: &[u8]) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.take_out(key);
        }
    }

    #[cold]
    fn take_out(&self, key: &[u8]) {
        let mut table = self.table(key).lock();
        let flight = table.remove(key);
        self.count.fetch_sub(usize::from(flight.is_some()), Ordering::Relaxed);
        drop(table);
    }

    /// Calls `clear`, which removes every key, and supersedes all loads that began before it ended.
    pub(super) fn superseding_all<R>(&self, clear: impl FnOnce() -> R) -> R {
        struct Ends<'f>(&'f Flights);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                for table in &self.0.tables {
                    let flights = std::mem::take(&mut *table.lock());
                    self.0.count.fetch_sub(flights.len(), Ordering::Relaxed);
                }
                self.0.clears.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.clears.fetch_add(1, Ordering::SeqCst);
        let _ends = Ends(self);
        clear()
    }
}

impl Lead<'_> {
    /// The key that is loaded.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Polls the loader's future, and notes which thread does.
    pub(super) fn poll<F: Future>(&self, load: Pin<&mut F>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.flight.is_led_by_this_thread_from_now_on();
        load.poll(context)
    }

    /// Whether the key was neither written nor removed since the load began. Only under the latch of the key's leaf does the answer hold
    /// until the key is written.
    pub(super) fn is_current(&self) -> bool {
        let table = self.flights.table(&self.key).lock();
        let flight = table.get(&self.key);
        flight.is_some_and(|flight| Arc::ptr_eq(flight, &self.flight))
            && self.flights.clears.load(Ordering::SeqCst) == 0
    }

    /// Ends the flight with a value, which is stored already where it is to be.
    pub(super) fn land_value(self, value: &Arc<[u8]>) {
        self.land(Landed::Value(Arc::clone(value)));
    }

    /// Ends the flight with an error, which all waiters get.
    pub(super) fn land_error(self, error: Arc<dyn Any + Send + Sync>) {
        self.land(Landed::Error(error));
    }

    fn land(mut self, landed: Landed) {
        self.has_landed = true;
        self.leave();
        self.flight.land(landed);
    }

    fn leave(&self) {
        let mut table = self.flights.table(&self.key).lock();
        let flight = table.get(&self.key);
        if flight.is_some_and(|flight| Arc::ptr_eq(flight, &self.flight)) {
            table.remove(&self.key);
            self.flights.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if !self.has_landed {
            self.leave();
            self.flight.land(Landed::Nothing);
        }
    }
}
