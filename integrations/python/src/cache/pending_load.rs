//! A load in progress, driven from Python: by a thread that runs the loader and waits, or by a task that awaits both.
//!
//! [`Cache::get_or_fetch_entry`](leafpress::Cache::get_or_fetch_entry) is a future that needs no runtime.
//! [`PendingLoad`] polls it when Python requests it; its loader is a future ([`Loader`]) that Python completes. So
//! threads and tasks that request one key share one load, and a write of the key during a load wins, as in the library.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use crate::lock::Mutex;
use leafpress::Cache;
use leafpress::cache::{InsertOptions, LoadError};
use pyo3::prelude::*;

use crate::errors;

type Loaded = Result<(Vec<u8>, InsertOptions), PyErr>;
type Answer = Result<Vec<u8>, LoadError<PyErr>>;

/// The state of a loader's result.
#[derive(Default)]
enum Place {
    /// Nobody has requested it.
    #[default]
    Idle,
    /// The loader is to run.
    Wanted,
    Filled(Loaded),
}

/// The future of a loader's result: it is ready when Python has filled it.
#[derive(Clone, Default)]
struct Loader(Arc<Mutex<Place>>);

impl Future for Loader {
    type Output = Loaded;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Loaded> {
        let mut place = self.0.lock();
        match std::mem::replace(&mut *place, Place::Wanted) {
            // The task that fills it polls again.
            Place::Idle | Place::Wanted => Poll::Pending,
            Place::Filled(loaded) => Poll::Ready(loaded),
        }
    }
}

/// The progress of a load.
pub enum Step {
    /// There is a value.
    Ready(Vec<u8>),
    /// The loader is to run, and its result is to be passed to [`PendingLoad::fill`].
    Leads,
    /// Another thread or task loads: the waker signals when to poll again.
    Waits,
}

/// A load that a thread or task waits for, or leads.
pub struct PendingLoad {
    future: Mutex<Option<Pin<Box<dyn Future<Output = Answer> + Send>>>>,
    loader: Loader,
    waker: Mutex<Option<Waker>>,
    has_ended: AtomicBool,
}

impl PendingLoad {
    pub fn new(cache: Arc<Cache>, key: Vec<u8>) -> Self {
        let loader = Loader::default();
        let load = loader.clone();
        let future = async move { cache.get_or_fetch_entry(&key, load).await };
        Self {
            future: Mutex::new(Some(Box::pin(future))),
            loader,
            waker: Mutex::default(),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Polls the load. It may read the disk, so the interpreter's lock should not be held.
    ///
    /// # Errors
    /// The loader's, regardless of the task that ran it; errors of the cache; `Closed`.
    pub fn step(&self, waker: &Waker) -> PyResult<Step> {
        let step = self.poll(waker);
        if self.has_ended.load(Ordering::SeqCst) {
            self.end();
        }
        step
    }

    fn poll(&self, waker: &Waker) -> PyResult<Step> {
        *self.waker.lock() = Some(waker.clone());
        let mut future = self.future.lock();
        let Some(polled) = future.as_mut() else {
            return Err(errors::closed());
        };
        match polled.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Pending => Ok(match *self.loader.0.lock() {
                Place::Wanted => Step::Leads,
                _ => Step::Waits,
            }),
            Poll::Ready(answer) => {
                *future = None;
                drop(future);
                match answer {
                    Ok(value) => Ok(Step::Ready(value)),
                    Err(LoadError::Load(error)) => Err(Python::attach(|py| error.clone_ref(py))),
                    Err(LoadError::Cache(error)) => Err(errors::of_cache(&error)),
                }
            }
        }
    }

    /// Stores the loader's result. [`PendingLoad::step`] passes it on.
    pub fn fill(&self, loaded: Loaded) {
        *self.loader.0.lock() = Place::Filled(loaded);
    }

    /// Releases the load, or has the polling thread do so. If it led, one of the waiting tasks leads.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        let future = self.future.try_lock().map(|mut future| future.take());
        // Dropping it may wake others.
        drop(future);
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
