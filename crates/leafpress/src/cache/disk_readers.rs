//! Reads of the disk for async tasks, by threads of the cache.
//!
//! A task whose key may be on disk queues the key and waits without blocking its thread. A reader takes up to
//! [`KEYS_AT_ONCE`] queued keys and reads them by one batch, so that the reads of concurrent tasks overlap on the
//! device. Readers are started when they are needed and end with the cache.
//!
//! A request that no reader serves is dropped, and its task makes the read itself: the cache is being closed, no thread
//! can be started, a read panicked, or memory is exhausted. So a task never waits for ever, and errors have one path.

use std::collections::VecDeque;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::get_many::KEYS_AT_ONCE;
use super::inner::{CacheInner, Seen};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{copied, room_for};
use leafpress_base::sync::worker::{Health, Worker, Workers};
use leafpress_base::sync::{Condvar, Mutex};

/// Maximum number of readers of a cache. One keeps [`KEYS_AT_ONCE`] reads in flight; more of them decode in parallel.
const MAX_READERS: usize = 4;

/// The readers of a cache.
#[derive(Default)]
pub(super) struct DiskReaders {
    queue: Arc<Queue>,
    workers: Mutex<Workers>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    /// Signals the readers: there are requests, or the cache ends.
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    requests: VecDeque<Request>,
    readers: usize,
    /// Readers that wait for requests.
    idle: usize,
    /// No reader will take a request any more.
    has_ended: bool,
}

/// Progress of a request.
enum ReplyState {
    Waiting(Option<Waker>),
    Served(Option<Vec<u8>>),
    /// No reader serves it, or its answer was taken.
    Unserved,
}

type Reply = Mutex<ReplyState>;

/// A queued key. Dropping it wakes its task.
struct Request {
    key: Vec<u8>,
    /// Whether a hit or miss is counted.
    is_counted: bool,
    reply: Arc<Reply>,
}

impl Request {
    /// Returns true if the task has stopped waiting.
    fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.reply) == 1
    }

    fn serve(self, value: Option<Vec<u8>>) {
        self.answer(ReplyState::Served(value));
    }

    fn answer(&self, answer: ReplyState) {
        let mut reply = self.reply.lock();
        let ReplyState::Waiting(waker) = &mut *reply else {
            return;
        };
        let waker = waker.take();
        *reply = answer;
        // Woken without the lock: a waker may run or drop its task.
        drop(reply);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // Without effect on a request that was served.
        self.answer(ReplyState::Unserved);
    }
}

/// A task's wait for a reader. It yields the value, or [`None`] if the task has to make the read itself.
pub(super) struct DiskRead(Arc<Reply>);

impl Future for DiskRead {
    type Output = Option<Option<Vec<u8>>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut reply = self.0.lock();
        match std::mem::replace(&mut *reply, ReplyState::Unserved) {
            ReplyState::Served(value) => Poll::Ready(Some(value)),
            ReplyState::Unserved => Poll::Ready(None),
            ReplyState::Waiting(waker) => {
                let waker = match waker {
                    Some(waker) if waker.will_wake(context.waker()) => (waker, None),
                    replaced => (context.waker().clone(), replaced),
                };
                *reply = ReplyState::Waiting(Some(waker.0));
                // Dropped without the lock: dropping a waker may drop a task.
                drop(reply);
                drop(waker.1);
                Poll::Pending
            }
        }
    }
}

impl DiskReaders {
    /// Queues a key. `is_counted`: the read counts as a hit or miss.
    pub(super) fn read(&self, core: &Arc<CacheInner>, key: &[u8], is_counted: bool) -> Result<DiskRead, OutOfMemory> {
        let reply = Arc::new(Mutex::new(ReplyState::Waiting(None)));
        let request = Request {
            key: copied(key)?,
            is_counted,
            reply: Arc::clone(&reply),
        };
        if self.queue.push(request) {
            self.start_reader(core);
        }
        Ok(DiskRead(reply))
    }

    /// Starts the reader that [`Queue::push`] has counted already.
    fn start_reader(&self, core: &Arc<CacheInner>) {
        let reader = Reader {
            core: Arc::clone(core),
            queue: Arc::clone(&self.queue),
        };
        // Model checkers follow no thread of the system.
        let is_started =
            !cfg!(any(shuttle, miri)) && self.workers.lock().start("leafpress-read".to_owned(), reader).is_ok();
        if !is_started {
            self.queue.note_reader_gone();
        }
    }

    /// Ends the readers. Tasks that wait for them, and later ones, make their reads themselves.
    pub(super) fn end(&self) {
        self.queue.end();
        let mut workers = std::mem::take(&mut *self.workers.lock());
        workers.join();
    }
}

impl Drop for DiskReaders {
    fn drop(&mut self) {
        self.end();
    }
}

impl Queue {
    /// Adds a request. Returns true if the caller has to start a reader.
    fn push(&self, request: Request) -> bool {
        let mut state = self.state.lock();
        if state.has_ended {
            drop(state);
            drop(request);
            return false;
        }
        state.requests.push_back(request);
        let starts = state.idle == 0 && state.readers < MAX_READERS;
        state.readers += usize::from(starts);
        drop(state);
        self.changed.notify_one();
        starts
    }

    /// Waits for requests and takes some; [`None`] once the cache ends.
    fn take(&self) -> Option<Vec<Request>> {
        let mut state = self.state.lock();
        loop {
            if state.has_ended {
                return None;
            }
            let count = state.requests.len().min(KEYS_AT_ONCE);
            if count > 0 {
                return Some(state.requests.drain(..count).collect());
            }
            state.idle += 1;
            self.changed.wait(&mut state);
            state.idle -= 1;
        }
    }

    /// A reader has ended, or was not started.
    fn note_reader_gone(&self) {
        let mut state = self.state.lock();
        state.readers -= 1;
        let unserved = match state.readers {
            0 => std::mem::take(&mut state.requests),
            _ => VecDeque::new(),
        };
        drop(state);
        drop(unserved);
    }

    fn end(&self) {
        let mut state = self.state.lock();
        state.has_ended = true;
        let unserved = std::mem::take(&mut state.requests);
        drop(state);
        self.changed.notify_all();
        drop(unserved);
    }
}

struct Reader {
    core: Arc<CacheInner>,
    queue: Arc<Queue>,
}

impl Worker for Reader {
    fn work(&mut self) -> ControlFlow<()> {
        match self.queue.take() {
            Some(requests) => {
                // After an error the tasks make their reads themselves, and get the error that they then meet.
                let _ = serve(&self.core, requests);
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }

    fn health(&self) -> &Health {
        &self.core.health
    }

    fn give_up(&mut self) {
        self.queue.note_reader_gone();
    }
}

/// Reads the keys and answers the requests. No task is woken before the last look into the tree has ended: a waker may
/// drop the last handle of the cache.
fn serve(core: &CacheInner, mut requests: Vec<Request>) -> Result<(), super::CacheError> {
    requests.retain(|request| !request.is_abandoned());
    let (mut batch, again): (Vec<_>, Vec<_>) = requests.into_iter().partition(|request| request.is_counted);
    let mut values = room_for(batch.len() + again.len())?;
    let keys: Vec<&[u8]> = batch.iter().map(|request| &*request.key).collect();
    core.get_many(&keys, |_, value| values.push(value.map(copied)))?;
    for request in &again {
        values.push(core.find(&request.key, copied, &mut Seen::default())?);
    }
    batch.extend(again);
    for (request, value) in batch.into_iter().zip(values) {
        request.serve(value.transpose()?);
    }
    Ok(())
}
