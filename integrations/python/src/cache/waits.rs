//! Who waits for whose load: a loader that waits for itself, straight or through others, is told so and does not wait for ever.
//!
//! A load is one run of one loader. What runs inside of it knows its number by a context variable of Python's, which tasks and
//! `asyncio.to_thread` inherit. Whoever asks for a key inside of a load adds an edge, from his load to the key, before he waits. A load is put
//! beside its key before its loader runs. So whoever closes a circle sees all of it.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::thread::ThreadId;

use crate::lock::Mutex;

use crate::fork;

/// A key of one cache.
type Key = (u64, Box<[u8]>);

/// The number of a load; 0 is none.
pub type LoadId = u64;

#[derive(Default)]
struct Load {
    /// What is asked for inside of it.
    asks: Vec<Key>,
    /// The thread of the event loop that it needs to go on.
    event_loop: Option<ThreadId>,
}

#[derive(Default)]
struct Graph {
    last: LoadId,
    loads: HashMap<LoadId, Load>,
    /// Loads of a key: more than one where it was written meanwhile.
    of_keys: HashMap<Key, Vec<LoadId>>,
}

/// The graph of this process: a child of a fork may find its parent's locked for ever.
fn graph() -> &'static Mutex<Graph> {
    static GRAPHS: [OnceLock<Mutex<Graph>>; 16] = [const { OnceLock::new() }; 16];
    GRAPHS[fork::forks() as usize % GRAPHS.len()].get_or_init(Mutex::default)
}

impl Graph {
    /// Whether the load that `key` waits for waits, in the end, for `asker`, or for an event loop that `thread` keeps from going on.
    fn would_wait(&self, key: &Key, asker: LoadId, thread: Option<ThreadId>) -> bool {
        let mut seen = Vec::new();
        let mut keys = vec![key];
        while let Some(key) = keys.pop() {
            for &id in self.of_keys.get(key).into_iter().flatten() {
                if seen.contains(&id) {
                    continue;
                }
                seen.push(id);
                let Some(load) = self.loads.get(&id) else { continue };
                if id == asker || thread.is_some() && load.event_loop == thread {
                    return true;
                }
                keys.extend(&load.asks);
            }
        }
        false
    }
}

/// That something is asked for inside of a load, until this is dropped.
pub struct Asking {
    asker: LoadId,
    key: Key,
}

impl Asking {
    /// `asker` is the load inside of which `key` of the cache is asked for, `thread` the one that would wait without doing anything else.
    /// [`None`] when it would wait for itself.
    pub fn begin(asker: LoadId, cache: u64, key: &[u8], thread: Option<ThreadId>) -> Option<Self> {
        let key: Key = (cache, key.into());
        let mut graph = graph().lock();
        if graph.would_wait(&key, asker, thread) {
            return None;
        }
        if let Some(load) = graph.loads.get_mut(&asker) {
            load.asks.push(key.clone());
        }
        Some(Self { asker, key })
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(load) = graph().lock().loads.get_mut(&self.asker)
            && let Some(at) = load.asks.iter().position(|key| *key == self.key)
        {
            load.asks.swap_remove(at);
        }
    }
}

/// That a key is being loaded, until this is dropped.
pub struct Loading {
    pub id: LoadId,
    key: Key,
}

impl Loading {
    /// `event_loop` is the thread of the event loop that the loader needs, if it needs one.
    pub fn begin(cache: u64, key: &[u8], event_loop: Option<ThreadId>) -> Self {
        let key: Key = (cache, key.into());
        let mut graph = graph().lock();
        graph.last += 1;
        let id = graph.last;
        let load = Load {
            asks: Vec::new(),
            event_loop,
        };
        graph.loads.insert(id, load);
        graph.of_keys.entry(key.clone()).or_default().push(id);
        Self { id, key }
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        let mut graph = graph().lock();
        graph.loads.remove(&self.id);
        if let Some(ids) = graph.of_keys.get_mut(&self.key) {
            ids.retain(|id| *id != self.id);
            if ids.is_empty() {
                graph.of_keys.remove(&self.key);
            }
        }
    }
}
