//! Weighs a small index in its own process: see [`weigh`](crate::harness::resident_memory).

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::load::Loader;
use super::values::Values;
use super::{Builtin, Input, Options, Outcome};
use crate::core::LabError;
use crate::harness::child::{Job, Launcher};
use crate::harness::resident_memory::{Weight, is_little, prepare, weigh};

impl Weight {
    /// Weighs the index of `options`, if it is so small that `outcome`, the run's own measurement, is imprecise,
    /// and if it can be created twice: a shared library's pool cannot. That process's output goes to `log`.
    pub fn of(
        launcher: &Launcher,
        options: &Options,
        outcome: &Outcome,
        log: &Path,
        cancel: &AtomicBool,
    ) -> Option<Self> {
        let load = outcome.load.as_ref()?;
        let stores = match options.input {
            Input::Builtin(Builtin::Dummy) | Input::Library(_) => false,
            Input::Builtin(_) => true,
        };
        if !is_little(load.resident.bytes()) || !stores {
            return None;
        }
        let job = Job {
            name: super::WEIGH,
            request: options,
        };
        Some(Self::weigh_in_child(launcher, &job, None, load.held_bytes, log, cancel))
    }

    /// Puts it in the place of what a run measured.
    pub fn put_into(&self, outcome: &mut Outcome) {
        if let Some(load) = &mut outcome.load {
            load.resident = self.resident.clone();
            load.held_bytes = self.held_bytes;
        }
    }
}

/// Weighs the index, in this process.
pub(crate) fn weigh_here(options: &Options, cancel: &AtomicBool) -> Result<Weight, LabError> {
    options.validate()?;
    prepare();
    let (format, values) = Values::of(options, cancel)?;
    let nothing = Builtin::Dummy.make(options)?;
    weigh(
        nothing.as_ref(),
        || options.input.open(options, None),
        |index| {
            let loader = Loader {
                options,
                index,
                format: &format,
                values: &values,
                cancel,
            };
            Ok(loader.load(None, &mut |_| {})?.held_bytes)
        },
    )
}
