//! The listener: a callback for removed records.

use std::any::Any;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::tree::hash::hash;
use leafpress_base::sync::Mutex;

/// The reason why a record left a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemovalCause {
    /// The record was evicted to make room for others.
    Evicted,
    /// The record's time to live or time to idle ended.
    Expired,
    /// The key was removed.
    Removed,
    /// The key was inserted again.
    Replaced,
}

/// A callback with the key, the value and the cause of each removed record. No lock is held during the call, so it may
/// use the cache. Calls for one key are serialized: if another thread is in a call for the same key, that thread makes
/// the next call too. Pending notifications of a key are kept in memory while the listener runs for it. Panics of the
/// listener are caught and counted in [`CacheStats::listener_panics`](super::CacheStats::listener_panics).
///
/// [`Cache::clear`](super::Cache::clear) does not call it.
pub type Listener = dyn Fn(&[u8], &[u8], RemovalCause) + Send + Sync;

const TABLES: usize = 16;

/// Pending notifications of one key, oldest first.
type Queue = VecDeque<(Vec<u8>, RemovalCause)>;

/// Calls a listener, one key at a time.
pub(super) struct Notifier {
    listener: Box<Listener>,
    /// Keys for which the listener is running.
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

    /// Returns the number of panics of the listener.
    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Calls the listener, or queues the notification for the thread that is in a call for the same key.
    pub(super) fn notify(&self, key: &[u8], value: Vec<u8>, cause: RemovalCause) {
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
        // The payload's destructor might panic.
        std::mem::forget(panic);
    }
}
