//! Telling a program which records leave, and why.

use std::any::Any;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::tree::hash::hash;
use leafpress_base::sync::Mutex;

/// Why a record left a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemovalCause {
    /// It made room for others.
    Evicted,
    /// Its time was over.
    Expired,
    /// It was removed by its key.
    Removed,
    /// Its key was inserted again.
    Replaced,
}

/// Called for each record that leaves, with its key, its value, and why it left. It is called with no lock held, so that it may use the
/// cache, and for one key by one thread at a time: by the thread that had the record leave, or, where another thread is in such a call
/// for the same key, by that one next. What is noted of one key while the listener is called for it waits in memory. A panic of the listener is
/// caught, and counted in [`CacheStats::listener_panics`](super::CacheStats::listener_panics).
///
/// [`Cache::clear`](super::Cache::clear) tells of none.
pub type Listener = dyn Fn(&[u8], &[u8], RemovalCause) + Send + Sync;

const TABLES: usize = 16;

/// Notifications that wait for one of the same key to end, oldest first.
type Queue = VecDeque<(Vec<u8>, RemovalCause)>;

/// Calls a listener, one key at a time.
pub(super) struct Notifier {
    listener: Box<Listener>,
    /// The keys that the listener is being called for.
    tables: [Mutex<HashMap<Box<[u8]>, Queue>>; TABLES],
    panics: AtomicU64,
}

impl Notifier {
    pub(super) fn new(listener: Box<Listener>) -> Self {
        Self {
            listener,
            tables: Default::default(),
            panics: AtomicU64::new(0),
        }
    }

    /// Times that the listener panicked.
    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Calls the listener, or leaves that to the thread that is calling it for the same key.
    pub(super) fn tell(&self, key: &[u8], value: Vec<u8>, cause: RemovalCause) {
        let table = &self.tables[(hash(key) >> 20) as usize % TABLES];
        match table.lock().entry(key.into()) {
            Entry::Occupied(mut queue) => return queue.get_mut().push_back((value, cause)),
            Entry::Vacant(place) => _ = place.insert(Queue::new()),
        }
        let mut next = Some((value, cause));
        while let Some((value, cause)) = next {
            self.call(key, &value, cause);
            let mut table = table.lock();
            next = table.get_mut(key).and_then(Queue::pop_front);
            if next.is_none() {
                table.remove(key);
            }
        }
    }

    fn call(&self, key: &[u8], value: &[u8], cause: RemovalCause) {
        let called = catch_unwind(AssertUnwindSafe(|| (self.listener)(key, value, cause)));
        if let Err(panic) = called {
            self.note_panic(panic);
        }
    }

    #[cold]
    fn note_panic(&self, panic: Box<dyn Any + Send>) {
        let panics = self.panics.fetch_add(1, Ordering::Relaxed) + 1;
        warn_event_by_count!(panics, "listener panicked");
        // Its destructor might panic.
        std::mem::forget(panic);
    }
}
