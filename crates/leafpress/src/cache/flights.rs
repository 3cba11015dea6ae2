//! One loader a key: who misses while another loads waits for him.
//!
//! A flight is one load of one key. Whoever finds none begins one and leads it; the others wait, blocking or in a task. When it ends, by a
//! value, an error, a panic, or a future that was dropped, it leaves the table, and all who wait are told. After a panic or a dropped future
//! one of them leads the next.
//!
//! A write of the key during a load wins: the writer takes the flight out of the table before it writes, and a leader stores what he loaded
//! under the table's lock and only while his flight is in it. So what is loaded is either stored before the write, which replaces it, or
//! not at all. Those who waited get it all the same: they asked before.

use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use crate::sync::{Condvar, Mutex};
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
    wakers: Vec<Waker>,
}

/// A load.
#[derive(Default)]
pub(super) struct Flight {
    state: Mutex<State>,
    done: Condvar,
}

impl Flight {
    /// Waits for its end.
    pub(super) fn wait(&self) -> Landed {
        let mut state = self.state.lock();
        loop {
            match &state.landed {
                Some(landed) => return landed.clone(),
                None => self.done.wait(&mut state),
            }
        }
    }

    /// The same for a task, which is woken at its end.
    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<Landed> {
        let mut state = self.state.lock();
        match &state.landed {
            Some(landed) => Poll::Ready(landed.clone()),
            None => {
                if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                    state.wakers.push(context.waker().clone());
                }
                Poll::Pending
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
        wakers.into_iter().for_each(Waker::wake);
    }
}

type Table = HashMap<Box<[u8]>, Arc<Flight>>;

/// The loads under way.
#[derive(Default)]
pub(super) struct Flights {
    tables: [Mutex<Table>; TABLES],
    /// Loads in the tables: a writer looks at this first.
    count: AtomicUsize,
}

/// What becomes of who misses.
pub(super) enum Boarding<'f> {
    Leads(Lead<'f>),
    Waits(Arc<Flight>),
}

/// Whoever has this loads. If it is dropped without a landing, the load has come to nothing.
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

    /// Joins the load of a key, or begins it.
    pub(super) fn board(&self, key: &[u8]) -> Boarding<'_> {
        let mut table = self.table(key).lock();
        match table.entry(key.into()) {
            Entry::Occupied(flight) => Boarding::Waits(Arc::clone(flight.get())),
            Entry::Vacant(place) => {
                let flight = Arc::clone(place.insert(Arc::default()));
                self.count.fetch_add(1, Ordering::SeqCst);
                Boarding::Leads(Lead {
                    flights: self,
                    key: key.into(),
                    flight,
                    has_landed: false,
                })
            }
        }
    }

    /// A key is about to be written or removed: what is being loaded for it is out of date. A load that begins from now on began after the
    /// write did, and may see what it wrote.
    #[inline]
    pub(super) fn supersede(&self, key: &[u8]) {
        if self.count.load(Ordering::SeqCst) > 0 && self.table(key).lock().remove(key).is_some() {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The same, and calls `write`, which writes the key, under the table's lock: a load that begins from now on finds what it wrote. `write`
    /// must not begin or supersede a load.
    pub(super) fn superseding<R>(&self, key: &[u8], write: impl FnOnce() -> R) -> R {
        let mut table = self.table(key).lock();
        if table.remove(key).is_some() {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
        write()
    }

    /// The same of all keys.
    pub(super) fn supersede_all(&self) {
        for table in &self.tables {
            let flights = std::mem::take(&mut *table.lock()).len();
            self.count.fetch_sub(flights, Ordering::SeqCst);
        }
    }
}

impl Lead<'_> {
    /// What is loaded.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The load gave a value. `store` is called with it unless the key was written meanwhile, under the table's lock: it must not begin or
    /// supersede a load.
    pub(super) fn land_value<R>(mut self, value: &Arc<[u8]>, store: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let stored = {
            let mut table = self.flights.table(&self.key).lock();
            let is_current = table
                .get(&self.key)
                .is_some_and(|flight| Arc::ptr_eq(flight, &self.flight));
            let stored = is_current.then(|| store(value));
            self.leave(&mut table);
            stored
        };
        self.has_landed = true;
        self.flight.land(Landed::Value(Arc::clone(value)));
        stored
    }

    /// The load gave an error, which all who wait get.
    pub(super) fn land_error(mut self, error: Arc<dyn Any + Send + Sync>) {
        self.leave(&mut self.flights.table(&self.key).lock());
        self.has_landed = true;
        self.flight.land(Landed::Error(error));
    }

    fn leave(&self, table: &mut Table) {
        if let Some(flight) = table.get(&self.key)
            && Arc::ptr_eq(flight, &self.flight)
        {
            table.remove(&self.key);
            self.flights.count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if !self.has_landed {
            self.leave(&mut self.flights.table(&self.key).lock());
            self.flight.land(Landed::Nothing);
        }
    }
}
