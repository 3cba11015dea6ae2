//! What an index takes in memory where that is little: a run's own growth is too coarse then.
//!
//! In a run the allocator has huge pages, as it has in any program, and the benchmark's threads and buffers are new. Of a hundred
//! megabytes both are little; of one they are all. So a small index is loaded once more, in a process that has no huge pages and whose
//! loader has loaded nothing into nothing before. The run itself stays as it is.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::load::Loader;
use super::outcome::Resident;
use super::values::Values;
use super::{Builtin, Input, Load, Options, Outcome};
use crate::core::{LabError, resources};
use crate::harness::Phase;
use crate::harness::child::{Job, Launcher};

/// What takes less than this is weighed.
const LITTLE_BYTES: u64 = 64 << 20;
/// Growth of less than this is nothing that can be told: the pages that threads have in part.
const LEAST_BYTES: u64 = 128 << 10;

/// What an index takes in memory once it is loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Weight {
    resident: Resident,
    held_bytes: Option<u64>,
}

impl Weight {
    /// Weighs the index of `options` in a process of its own, if it takes so little that what the run measured of it, `outcome`, says
    /// little, and if it is one that can be made twice: a shared library's pool cannot. That process's output goes to `log`.
    pub fn of(
        launcher: &Launcher,
        options: &Options,
        outcome: &Outcome,
        log: &Path,
        cancel: &AtomicBool,
    ) -> Option<Self> {
        let load = outcome.load.as_ref()?;
        let is_little = load.resident.bytes().is_none_or(|bytes| bytes < LITTLE_BYTES);
        let stores = match options.input {
            Input::Builtin(Builtin::Dummy) | Input::Library(_) => false,
            Input::Builtin(_) => true,
        };
        if !is_little || !stores {
            return None;
        }
        let mut launcher = launcher.clone();
        // Before the program has allocated anything; what else there is of it, the child refuses.
        launcher.envs.push(("MIMALLOC_ALLOW_THP".into(), "0".into()));
        let request = Job {
            name: super::WEIGH,
            request: options,
        };
        let weight = launcher.call(&request, None, log, cancel, &mut |_, _| {});
        Some(weight.unwrap_or_else(|e| Self {
            resident: Resident::Unknown(format!("it could not be weighed by itself: {e}")),
            held_bytes: load.held_bytes,
        }))
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
pub(crate) fn weigh_here(
    options: &Options,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Phase, f64),
) -> Result<Weight, LabError> {
    options.validate()?;
    resources::refuse_huge_pages();
    resources::make_program_resident();
    let (format, values) = Values::of(options, cancel)?;
    let nothing = Builtin::Dummy.make(options)?;
    let mut loader = Loader {
        options,
        index: nothing.as_ref(),
        format: &format,
        values: &values,
        cancel,
    };
    loader.load(None, &mut |_| {})?;
    resources::release_free_memory();
    let before = resources::resident_bytes();
    let index = options.input.open(options, None)?;
    loader.index = index.as_ref();
    let Load {
        resident, held_bytes, ..
    } = loader.load(before, &mut |done| progress(Phase::Load, done))?;
    Ok(Weight {
        resident: resident.at_least(LEAST_BYTES),
        held_bytes,
    })
}
