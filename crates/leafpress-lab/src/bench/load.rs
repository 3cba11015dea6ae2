//! The load, and reading it back.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::keys::readable;
use super::values::Values;
use super::{Index, IndexError, Input, KeyFormat, Load, Options, Resident};
use crate::core::keys::LoadOrder;
use crate::core::{LabError, resources};
use crate::driver::{Deal, for_every, in_order};

/// PiBench's buffer for a value, which wrappers may count on.
pub(super) const MIN_VALUE_BUFFER: usize = 4096;

/// Inputs of a load.
pub(super) struct Loader<'r> {
    pub options: &'r Options,
    pub index: &'r dyn Index,
    pub format: &'r KeyFormat,
    pub values: &'r Values,
    pub cancel: &'r AtomicBool,
}

/// Errors found by the read-back.
#[derive(Default)]
struct Wrong {
    missing: u64,
    least_missing: Option<u64>,
    other_value: u64,
    least_other_value: Option<u64>,
}

impl Wrong {
    fn add(&mut self, other: &Self) {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        self.missing += other.missing;
        self.other_value += other.other_value;
        self.least_missing = least(self.least_missing, other.least_missing);
        self.least_other_value = least(self.least_other_value, other.least_other_value);
    }
}

impl Loader<'_> {
    /// Inserts the ids 1 to n: each thread a run of them, so that what is in the index in the end does not depend on
    /// the threads.
    pub(super) fn load(&self, resident_before: Option<u64>, progress: &mut dyn FnMut(f64)) -> Result<Load, LabError> {
        let started = Instant::now();
        let in_bulk = self.options.load_order == LoadOrder::Sequential && self.load_in_order(progress)?;
        let one_by_one = |id, key: &[u8], _: &mut [u8]| match self.index.insert(key, self.values.loaded(id)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.error(format!(
                "load: insert of key {} (id {id}) returned false, as if the key existed already; use --skip_load \
                     for a loaded pool",
                readable(key)
            ))),
            Err(e) => Err(self.error(format!("load: insert of key {} (id {id}): {e}", readable(key)))),
        };
        if !in_bulk {
            self.over_all_ids(progress, one_by_one)?;
        }
        let milliseconds = started.elapsed().as_secs_f64() * 1e3;
        self.index
            .settle()
            .map_err(|e| self.error(format!("after the load: {e}")))?;
        // The allocator returns memory freed by training in its own time.
        resources::release_free_memory();
        Ok(Load {
            records: self.options.records,
            in_bulk,
            milliseconds,
            verify_milliseconds: None,
            wrong_values: 0,
            resident: Resident::since(resident_before, resources::resident_bytes()),
            held_bytes: self.index.held_bytes(),
        })
    }

    /// Hands the ids 1 to n, whose keys ascend, to an index that has a way of its own to load such records; false where
    /// it has none.
    fn load_in_order(&self, progress: &mut dyn FnMut(f64)) -> Result<bool, LabError> {
        let count = self.options.records;
        let mut records =
            in_order(count, self.cancel, progress).map(|at| (self.format.key(at + 1), self.values.loaded(at + 1)));
        let Some(loaded) = self.index.load_sorted(&mut records) else {
            return Ok(false);
        };
        let new = loaded.map_err(|e| self.error(format!("load in key order: {e}")))?;
        if self.cancel.load(Ordering::Relaxed) {
            return Err(LabError::Cancelled);
        }
        if new != count {
            return Err(self.error(format!("load: {new} of {count} keys were new")));
        }
        Ok(true)
    }

    /// Reads every id back.
    ///
    /// # Errors
    /// [`LabError::Index`] when one is missing, or has a wrong value in an index of ours; for wrappers that return no
    /// values it is only reported.
    pub(super) fn verify(&self, load: &mut Load, progress: &mut dyn FnMut(f64)) -> Result<(), LabError> {
        if !self.index.stores() {
            return Ok(());
        }
        let started = Instant::now();
        let wrong = Mutex::new(Wrong::default());
        self.over_all_ids(progress, |id, key, value_out| {
            let found = self
                .index
                .find(key, value_out)
                .map_err(|e| self.error(format!("read-back of key {} (id {id}): {e}", readable(key))))?;
            let expected = self.values.loaded(id);
            if found && value_out.starts_with(expected) {
                return Ok(());
            }
            let one = if found {
                Wrong {
                    other_value: 1,
                    least_other_value: Some(id),
                    ..Wrong::default()
                }
            } else {
                Wrong {
                    missing: 1,
                    least_missing: Some(id),
                    ..Wrong::default()
                }
            };
            if let Ok(mut wrong) = wrong.lock() {
                wrong.add(&one);
            }
            Ok(())
        })?;
        let wrong = wrong.into_inner().unwrap_or_default();
        let key = |id: u64| format!("key {} (id {id})", readable(&self.format.key(id)));
        if let Some(id) = wrong.least_missing {
            return Err(self.error(format!(
                "{} of {} records are missing after the load; the first is {}",
                wrong.missing,
                self.options.records,
                key(id)
            )));
        }
        let ours = !matches!(self.options.input, Input::Library(_));
        if let Some(id) = wrong.least_other_value.filter(|_| ours) {
            return Err(self.error(format!(
                "{} of {} records have a wrong value; the first is {}",
                wrong.other_value,
                self.options.records,
                key(id)
            )));
        }
        load.wrong_values = wrong.other_value;
        load.verify_milliseconds = Some(started.elapsed().as_secs_f64() * 1e3);
        Ok(())
    }

    fn error(&self, reason: String) -> LabError {
        self.options.input.error(reason)
    }

    /// Calls `visit` with every id, its key and a buffer for a value, on all threads, each of which has a run of ids.
    fn over_all_ids(
        &self,
        progress: &mut dyn FnMut(f64),
        visit: impl Fn(u64, &[u8], &mut [u8]) -> Result<(), LabError> + Sync,
    ) -> Result<(), LabError> {
        let amount = (self.options.records, self.options.threads);
        let panicked = |_| self.error("a thread panicked in the index".into());
        for_every(amount, Deal::Runs, self.cancel, &panicked, progress, || {
            let attached = Attached::new(self.index).map_err(|e| self.error(e.to_string()))?;
            let mut key = self.format.blank();
            let mut value = vec![0; self.values.longest().max(MIN_VALUE_BUFFER)];
            let visit = &visit;
            Ok(move |number| {
                let _attached = &attached;
                let id = number + 1;
                let len = self.format.fill(id, &mut key);
                visit(id, &key[..len], &mut value)
            })
        })
    }
}

/// A thread that an index knows, until this is dropped.
pub(super) struct Attached<'i>(&'i dyn Index);

impl<'i> Attached<'i> {
    /// # Errors
    /// The index's.
    pub(super) fn new(index: &'i dyn Index) -> Result<Self, IndexError> {
        // An index that failed to attach a thread is still to detach it.
        let attached = Self(index);
        index.attach_thread().map(|()| attached)
    }
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        self.0.detach_thread();
    }
}
