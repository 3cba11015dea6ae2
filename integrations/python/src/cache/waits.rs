//! Detects cycles of loads: a loader that waits for itself, directly or through others, gets an error instead of
//! waiting for ever.
//!
//! A load is one run of one loader. Code inside of it knows its number by a context variable of Python's, which tasks
//! and `asyncio.to_thread` inherit. A request for a key inside of a load adds an edge, from that load to the key,
//! before it waits. A load is entered under its key before its loader runs. So the request that closes a cycle sees all
//! of it.
//!
//! A task that a loader has started is inside of the load too, but the loader may never wait for it. Such a cycle is
//! distinguished. The threads of a pool do not inherit the variable: `leafpress/_cycles.py` finds what loaders wait for
//! there.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::thread::ThreadId;

use crate::lock::Mutex;

use crate::fork;

/// A key of one cache.
type Key = (u64, Box<[u8]>);

/// The number of a load; 0 stands for none.
pub type LoadId = u64;

/// The runner of a loader.
#[derive(Clone, Copy, Debug)]
pub enum Runner {
    /// A thread, by Python's identifier.
    Thread(u64),
    /// A task, by the object's identity, which needs the event loop of a thread to go on.
    Task(usize, ThreadId),
}

struct Load {
    /// The keys requested inside of it, and whether by the runner itself, which does nothing else until the key is
    /// available.
    requested: Vec<(Key, bool)>,
    runner: Runner,
}

impl Load {
    /// Returns whether a requester inside of this load, in `task` if it is one, is the runner. Only another task is
    /// known not to be.
    fn is_run_by(&self, task: Option<usize>) -> bool {
        !matches!((self.runner, task), (Runner::Task(runner, _), Some(task)) if runner != task)
    }
}

/// Evidence that the requested load waits for the requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cycle {
    /// It waits for certain.
    Certain,
    /// It waits if the runner of a load waits for a task that it started.
    Possible,
}

#[derive(Default)]
struct Graph {
    last: LoadId,
    loads: HashMap<LoadId, Load>,
    /// Loads of a key: more than one if it was written meanwhile.
    of_keys: HashMap<Key, Vec<LoadId>>,
}

/// Returns the graph of this process: a child of a fork may find its parent's locked for ever.
fn graph() -> &'static Mutex<Graph> {
    static GRAPHS: [OnceLock<Mutex<Graph>>; 16] = [const { OnceLock::new() }; 16];
    GRAPHS[fork::forks() as usize % GRAPHS.len()].get_or_init(Mutex::default)
}

impl Graph {
    /// Returns the loads that `key` waits for: all, or those that it waits for with certainty.
    fn loads_of<'a>(&'a self, key: &'a Key, only_certain: bool) -> Vec<(LoadId, &'a Load)> {
        let mut found: Vec<(LoadId, &Load)> = Vec::new();
        let mut keys = vec![key];
        while let Some(key) = keys.pop() {
            for &id in self.of_keys.get(key).into_iter().flatten() {
                let Some(load) = self.loads.get(&id) else { continue };
                if found.iter().any(|(seen, _)| *seen == id) {
                    continue;
                }
                found.push((id, load));
                keys.extend(
                    load.requested
                        .iter()
                        .filter(|request| request.1 || !only_certain)
                        .map(|request| &request.0),
                );
            }
        }
        found
    }

    /// Returns whether the load of `key` waits, directly or not, for `requester`, or for an event loop that `thread`
    /// blocks.
    fn would_wait(&self, key: &Key, requester: LoadId, is_runner: bool, thread: Option<ThreadId>) -> Option<Cycle> {
        let keeps = |load: &Load| matches!(load.runner, Runner::Task(_, needed) if Some(needed) == thread);
        let reaches = |only_certain| {
            let mut loads = self.loads_of(key, only_certain).into_iter();
            loads.any(|(id, load)| id == requester || keeps(load))
        };
        if !reaches(false) {
            return None;
        }
        let is_certain = thread.is_some() || is_runner && reaches(true);
        Some(if is_certain { Cycle::Certain } else { Cycle::Possible })
    }
}

/// A request inside of a load, until this is dropped.
pub struct Request {
    requester: LoadId,
    key: Key,
}

impl Request {
    /// `requester` is the load inside of which `key` of the cache is requested, `task` the task that requests it if it
    /// is one, and `thread` the thread that would wait without doing anything else.
    ///
    /// # Errors
    /// If it would wait for itself.
    pub fn begin(
        requester: LoadId,
        cache: u64,
        key: &[u8],
        task: Option<usize>,
        thread: Option<ThreadId>,
    ) -> Result<Self, Cycle> {
        let key: Key = (cache, key.into());
        let mut graph = graph().lock();
        let is_runner = graph.loads.get(&requester).is_none_or(|load| load.is_run_by(task));
        if let Some(cycle) = graph.would_wait(&key, requester, is_runner, thread) {
            return Err(cycle);
        }
        if let Some(load) = graph.loads.get_mut(&requester) {
            load.requested.push((key.clone(), is_runner));
        }
        Ok(Self { requester, key })
    }

    /// Returns the threads whose loads are waited for.
    pub fn threads(&self) -> Vec<u64> {
        let graph = graph().lock();
        let runners = graph
            .loads_of(&self.key, false)
            .into_iter()
            .map(|(_, load)| load.runner);
        runners
            .filter_map(|runner| match runner {
                Runner::Thread(thread) => Some(thread),
                Runner::Task(..) => None,
            })
            .collect()
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(load) = graph().lock().loads.get_mut(&self.requester)
            && let Some(at) = load.requested.iter().position(|request| request.0 == self.key)
        {
            load.requested.swap_remove(at);
        }
    }
}

/// Marks a key as being loaded, until this is dropped.
pub struct Loading {
    pub id: LoadId,
    key: Key,
}

impl Loading {
    pub fn begin(cache: u64, key: &[u8], runner: Runner) -> Self {
        let key: Key = (cache, key.into());
        let mut graph = graph().lock();
        graph.last += 1;
        let id = graph.last;
        let load = Load {
            requested: Vec::new(),
            runner,
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
