//! `on_removal`: reports removed records to Python.
//!
//! The library calls from the thread that removes a record, often one of its own, and holds no lock meanwhile. Such a
//! thread waits for the interpreter's lock, so no thread may wait for it while holding that lock: caches are closed and
//! released without it. Once the interpreter is about to end nothing is reported any more: waiting for its lock then
//! would never end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::lock::Mutex;
use leafpress::cache::RemovalCause;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, wrap_pyfunction};

use super::forms::{KeyForm, ValueForm};
use super::handle::InUse;
use crate::{call, fork};

/// The interpreter is about to end.
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// Threads that call into Python now.
static CALLS: AtomicUsize = AtomicUsize::new(0);
/// The interpreter's end waits this long for those.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// What is reported, and how.
pub struct Removal {
    callback: Mutex<Option<Py<PyAny>>>,
    keys: Arc<KeyForm>,
    values: Arc<ValueForm>,
}

impl Removal {
    pub fn new(callback: Py<PyAny>, keys: &Arc<KeyForm>, values: &Arc<ValueForm>) -> Arc<Self> {
        Arc::new(Self {
            callback: Mutex::new(Some(callback)),
            keys: Arc::clone(keys),
            values: Arc::clone(values),
        })
    }

    /// Reports a record. What the callback raises goes to `sys.unraisablehook`.
    pub fn report(&self, key: &[u8], value: &[u8], cause: RemovalCause) {
        let Some(_call) = Call::begin() else { return };
        let _in_use = InUse::begin();
        Python::try_attach(|py| {
            let callback = self.callback.lock().as_ref().map(|callback| callback.clone_ref(py));
            let Some(callback) = callback else { return };
            if let Err(error) = self.call(callback.bind(py), key, value, cause) {
                error.write_unraisable(py, Some(callback.bind(py)));
            }
        });
    }

    fn call(&self, callback: &Bound<'_, PyAny>, key: &[u8], value: &[u8], cause: RemovalCause) -> PyResult<()> {
        let py = callback.py();
        let key = self.keys.output(py, key)?;
        // A value of another form is not reported.
        if let Some(value) = self.values.output(py, value)? {
            call::with(callback, (key, value, name(cause)))?;
        }
        Ok(())
    }

    /// Visits its objects for the garbage collector.
    ///
    /// # Errors
    /// The visitor's.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.callback.try_lock() {
            Some(callback) => visit.call(&*callback),
            None => Ok(()),
        }
    }

    /// Stops reporting.
    pub fn clear(&self) {
        let callback = self.callback.lock().take();
        drop(callback);
    }
}

fn name(cause: RemovalCause) -> &'static str {
    match cause {
        RemovalCause::Evicted => "evicted",
        RemovalCause::Expired => "expired",
        RemovalCause::Replaced => "replaced",
        _ => "removed",
    }
}

/// A thread's call into Python.
pub struct Call(());

impl Call {
    /// Begins a call; [`None`] once the interpreter is about to end.
    pub fn begin() -> Option<Self> {
        CALLS.fetch_add(1, Ordering::SeqCst);
        let call = Self(());
        (!IS_OVER.load(Ordering::SeqCst)).then_some(call)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Stops all reports from now on, and waits for those in progress.
#[pyfunction]
fn _end_of_interpreter(py: Python<'_>) {
    IS_OVER.store(true, Ordering::SeqCst);
    py.detach(|| {
        let began = Instant::now();
        // In the child of a fork the counted threads do not exist.
        while CALLS.load(Ordering::SeqCst) > 0 && fork::forks() == 0 && began.elapsed() < MAX_WAIT {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Registers a function that the interpreter calls when it ends.
///
/// # Errors
/// Where it cannot.
pub fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let end = wrap_pyfunction!(_end_of_interpreter, module)?;
    module.py().import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}
