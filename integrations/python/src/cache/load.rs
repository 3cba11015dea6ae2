//! Getting a value, or loading it: one loader per key, among threads and tasks.

use std::sync::{Arc, Condvar, PoisonError};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use leafpress::cache::InsertOptions;
use pyo3::PyTraverseError;
use pyo3::exceptions::PyException;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::listener::Call;
use super::pending_load::{PendingLoad, Step};
use super::waits::{Cycle, LoadId, Loading, Request, Runner};
use super::{CacheBase, entry};
use crate::call;
use crate::errors::Class;
use crate::lock::Mutex;

/// A waiting thread checks for signals at this interval.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(100);

/// Returns the load inside of which Python runs: a context variable, which tasks and `asyncio.to_thread` inherit.
fn current(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let variable = VARIABLE.get_or_try_init(py, || {
        let class = py.import("contextvars")?.getattr("ContextVar")?;
        let default = pyo3::types::PyDict::new(py);
        default.set_item("default", 0)?;
        class.call(("leafpress_load",), Some(&default)).map(Bound::unbind)
    })?;
    Ok(variable.bind(py))
}

fn current_load(py: Python<'_>) -> PyResult<LoadId> {
    current(py)?.call_method0("get")?.extract()
}

/// Returns this thread's identifier in Python.
fn thread_id(py: Python<'_>) -> PyResult<u64> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FUNCTION.import(py, "threading", "get_ident")?.call0()?.extract()
}

/// Returns whether a thread that loads the requested key waits for this one.
#[cold]
fn is_waited_for(py: Python<'_>, request: &Request) -> PyResult<bool> {
    let threads = request.threads();
    if threads.is_empty() {
        return Ok(false);
    }
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let function = FUNCTION.import(py, "leafpress._cycles", "is_waited_for")?;
    call::with(function, (threads,))?.extract()
}

#[cold]
fn cycle() -> PyErr {
    Class::LoadCycle.error(
        "a loader requested a key that cannot be available before it ends: its own, or one that waits for it. Load \
         what both need under a third key, or outside of the cache",
    )
}

/// Wakes a thread.
#[derive(Default)]
struct Bell {
    has_rung: Mutex<bool>,
    rings: Condvar,
}

impl Bell {
    /// Waits until it rings, or for some time; returns whether it has rung.
    fn wait(&self) -> bool {
        let mut has_rung = self.has_rung.lock();
        if !*has_rung {
            let waited = self.rings.wait_timeout(has_rung, LOOK_FOR_SIGNALS);
            has_rung = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::take(&mut *has_rung)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.has_rung.lock() = true;
        self.rings.notify_all();
    }
}

/// Wakes a task by calling a Python function.
struct Callback(Py<PyAny>);

impl Wake for Callback {
    fn wake(self: Arc<Self>) {
        let Some(_call) = Call::begin() else { return };
        Python::try_attach(|py| {
            // The event loop may be closed by now: its tasks wait no more.
            let _ = call::with(self.0.bind(py), ());
        });
    }
}

/// The bytes of a value, and its insert options.
type Loaded = (Vec<u8>, InsertOptions);

/// Runs a loader, and returns its value and the value's bytes.
fn load<'py>(
    cache: &CacheBase,
    loader: &Bound<'py, PyAny>,
    entry: InsertOptions,
) -> PyResult<(Bound<'py, PyAny>, Loaded)> {
    let value = call::with(loader, ())?;
    let bytes = cache.values.input(&value)?.as_ref().to_vec();
    cache.note_length(bytes.len());
    Ok((value, (bytes, entry)))
}

#[pymethods]
impl CacheBase {
    /// Return the key's value, or else call load(), insert its result and return it.
    ///
    /// One thread or task loads at a time for a key; others that miss it meanwhile wait for it and get the same value,
    /// or the exception that it raised. If the key is set or deleted meanwhile, the loaded value is returned, and not
    /// stored. A loader may use the cache; one that requests its own key, directly or through others, gets a LoadCycle:
    /// that includes other loaders, tasks and threads that it waits for, also the threads of concurrent.futures.
    ///
    /// >>> cache = Cache(serializer="json")
    /// >>> cache.get_or_set("answer", lambda: 42, ttl=60), cache.get_or_set("answer", lambda: 0)
    /// (42, 42)
    #[pyo3(
        signature = (key, load, ttl=None, tags=None, time_to_idle=None),
        text_signature = "($self, key, load, ttl=None, tags=(), time_to_idle=None)",
    )]
    fn get_or_set<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        load: &Bound<'py, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        tags: Option<&Bound<'_, PyAny>>,
        time_to_idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(found) = self.find_before_load(key)? {
            return Ok(found);
        }
        self.load_or_wait(key, load, entry(ttl, tags, time_to_idle)?)
    }

    /// Return what get_or_set returns without a load or a read of the disk, or else the default.
    fn _find_before_load<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.find_before_load(key)?.unwrap_or(default))
    }

    /// Return a load of a key for a task, which aget_or_set drives. None if it would wait for another load that may
    /// wait for the task: if that loader waits for all tasks that it has started.
    fn _begin_load(
        this: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        task: &Bound<'_, PyAny>,
    ) -> PyResult<Option<TaskLoad>> {
        let (py, cache) = (this.py(), this.get());
        let key = cache.keys.input(key)?.as_ref().to_vec();
        let serial = cache.handle.get()?.serial;
        let task = task.as_ptr() as usize;
        let request = match Request::begin(current_load(py)?, serial, &key, Some(task), None) {
            Ok(request) => request,
            Err(Cycle::Possible) => return Ok(None),
            Err(Cycle::Certain) => return Err(cycle()),
        };
        let pending = cache.pending_load(&key)?;
        Ok(Some(TaskLoad {
            cache: this.clone().unbind(),
            key,
            pending,
            state: Mutex::new(State {
                request: Some(request),
                loading: None,
            }),
            task,
        }))
    }
}

impl CacheBase {
    fn pending_load(&self, key: &[u8]) -> PyResult<Arc<PendingLoad>> {
        let handle = self.handle.get()?;
        handle.with(|cache| {
            let pending = Arc::new(PendingLoad::new(Arc::clone(cache), key.to_vec()));
            handle.remember(&pending);
            Ok(pending)
        })
    }

    #[cold]
    fn load_or_wait<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        loader: &Bound<'py, PyAny>,
        entry: InsertOptions,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = key.py();
        let key = self.keys.input(key)?;
        let (serial, key): (u64, &[u8]) = (self.handle.get()?.serial, key.as_ref());
        let here = Some(thread::current().id());
        let request = Request::begin(current_load(py)?, serial, key, None, here).map_err(|_| cycle())?;
        let mut pending = Ending(self.pending_load(key)?);
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let mut loaded = None;
        loop {
            match py.detach(|| pending.0.step(&waker))? {
                Step::Ready(_) if let Some(loaded) = loaded => return Ok(loaded),
                Step::Ready(bytes) => match self.answer(py, key, &bytes)? {
                    Some(value) => return Ok(value),
                    None => pending = Ending(self.pending_load(key)?),
                },
                Step::Waits => {
                    let has_rung = py.detach(|| bell.wait());
                    py.check_signals()?;
                    if !has_rung && is_waited_for(py, &request)? {
                        return Err(cycle());
                    }
                }
                Step::Leads => {
                    let loading = Loading::begin(serial, key, Runner::Thread(thread_id(py)?));
                    let token = current(py)?.call_method1("set", (loading.id,))?;
                    let result = load(self, loader, entry);
                    current(py)?.call_method1("reset", (token,))?;
                    match result {
                        Ok((value, bytes)) => {
                            loaded = Some(value);
                            pending.0.fill(Ok(bytes));
                        }
                        // All waiting threads share an error. What ends this thread ends it alone, and another loads.
                        Err(error) if error.is_instance_of::<PyException>(py) => pending.0.fill(Err(error)),
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }

    /// Returns the value of bytes. A value that other options wrote is removed, and is to be loaded again: [`None`].
    pub(super) fn answer<'py>(&self, py: Python<'py>, key: &[u8], bytes: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.values.output(py, bytes)?;
        if value.is_none() {
            self.unlocked(py, |cache| cache.remove(key))?;
        }
        Ok(value)
    }
}

/// Releases a load without the interpreter's lock: it wakes other threads, which may want it.
struct Ending(Arc<PendingLoad>);

impl Drop for Ending {
    fn drop(&mut self) {
        let pending = &self.0;
        if Python::try_attach(|py| py.detach(|| pending.end())).is_none() {
            pending.end();
        }
    }
}

struct State {
    request: Option<Request>,
    loading: Option<Loading>,
}

/// A load that a task waits for, or leads.
#[pyclass(name = "TaskLoad", module = "leafpress._leafpress", frozen)]
pub struct TaskLoad {
    cache: Py<CacheBase>,
    key: Vec<u8>,
    pending: Arc<PendingLoad>,
    state: Mutex<State>,
    /// The task's identity.
    task: usize,
}

#[pymethods]
impl TaskLoad {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.cache)
    }

    /// Return ("ready", value); ("leads", None) when the loader is to run; ("waits", None): wake() is called when to
    /// poll again; ("again", None) when another load is to be begun.
    fn step<'py>(&self, py: Python<'py>, wake: Py<PyAny>) -> PyResult<(&'static str, Option<Bound<'py, PyAny>>)> {
        let waker = Waker::from(Arc::new(Callback(wake)));
        match py.detach(|| self.pending.step(&waker))? {
            Step::Ready(bytes) => {
                let value = self.cache.bind(py).get().answer(py, &self.key, &bytes)?;
                Ok((if value.is_some() { "ready" } else { "again" }, value))
            }
            Step::Leads => Ok(("leads", None)),
            Step::Waits => Ok(("waits", None)),
        }
    }

    /// Enter the loader in this context; return the token that `leave` takes.
    fn enter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let serial = self.cache.bind(py).get().handle.get()?.serial;
        let loading = Loading::begin(serial, &self.key, Runner::Task(self.task, thread::current().id()));
        let token = current(py)?.call_method1("set", (loading.id,))?;
        self.state.lock().loading = Some(loading);
        Ok(token)
    }

    /// Leave the loader.
    fn leave(&self, py: Python<'_>, token: &Bound<'_, PyAny>) -> PyResult<()> {
        drop(self.state.lock().loading.take());
        current(py)?.call_method1("reset", (token,)).map(drop)
    }

    /// Pass the loader's value.
    #[pyo3(
        signature = (value, ttl=None, tags=None, time_to_idle=None),
        text_signature = "($self, value, ttl=None, tags=(), time_to_idle=None)",
    )]
    fn give(
        &self,
        value: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        tags: Option<&Bound<'_, PyAny>>,
        time_to_idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let cache = self.cache.bind(value.py()).get();
        let entry = entry(ttl, tags, time_to_idle)?;
        let bytes = cache.values.input(value)?.as_ref().to_vec();
        cache.note_length(bytes.len());
        self.pending.fill(Ok((bytes, entry)));
        Ok(())
    }

    /// Pass the exception that the loader raised.
    fn fail(&self, error: &Bound<'_, PyAny>) {
        self.pending.fill(Err(PyErr::from_value(error.clone())));
    }

    /// Releases the load. If it led, one of the waiting tasks leads.
    fn end(&self, py: Python<'_>) {
        let state = &self.state;
        py.detach(|| {
            self.pending.end();
            let mut state = state.lock();
            (state.request, state.loading) = (None, None);
        });
    }
}

impl Drop for TaskLoad {
    fn drop(&mut self) {
        drop(Ending(Arc::clone(&self.pending)));
    }
}

/// Adds the class.
///
/// # Errors
/// Where it cannot be added.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TaskLoad>()
}
