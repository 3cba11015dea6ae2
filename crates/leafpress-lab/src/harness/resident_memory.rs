//! Measures the memory of a small map: a run's own growth is too coarse for it.
//!
//! In a run the allocator has huge pages, as in any program, and the threads and buffers of the measurement are new. Of
//! a hundred megabytes both are negligible; of one they dominate. So a small map is loaded once more, in a process
//! without huge pages whose loader has warmed up by loading everything into a no-op map. The run itself is unchanged.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::child::{Job, Launcher};
use crate::core::{LabError, about, resources};

/// Maps smaller than this are weighed.
const LITTLE_BYTES: u64 = 64 << 20;
/// Growth below this is not measurable: it is that of the threads' partial pages.
const MIN_BYTES: u64 = 128 << 10;

/// Where figures of resident memory are from, in words.
pub(crate) const RESIDENT: &str = "Resident: the growth of the process over the load; an index smaller than 64M is \
    loaded once more for that figure, in a process without huge pages.";

/// Growth of a process's resident memory, or why it is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resident {
    /// In bytes.
    #[serde(rename = "resident_growth_bytes")]
    Growth(u64),
    /// Why it is unknown, in words.
    #[serde(rename = "resident_growth_unknown")]
    Unknown(String),
}

impl Resident {
    pub(crate) fn since(before: Option<u64>, now: Option<u64>) -> Self {
        match before.zip(now) {
            Some((before, now)) => Self::Growth(now.saturating_sub(before)),
            None => Self::Unknown("the system does not report it".into()),
        }
    }

    /// Growth of less than `least` bytes cannot be separated from the measurement's own.
    pub(crate) fn at_least(self, least: u64) -> Self {
        match self {
            Self::Growth(bytes) if bytes < least => Self::Unknown(format!(
                "growth of {} is too small to separate from the benchmark's own; {} is enough",
                about(bytes as f64),
                about(least as f64)
            )),
            resident => resident,
        }
    }

    /// Returns the growth in bytes, if it is known.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Self::Growth(bytes) => Some(*bytes),
            Self::Unknown(_) => None,
        }
    }

    /// Returns why it is not known.
    pub fn unknown(&self) -> Option<&str> {
        match self {
            Self::Growth(_) => None,
            Self::Unknown(why) => Some(why),
        }
    }
}

/// Whether a process's growth over a load, in bytes, is too imprecise for the load.
pub(crate) fn is_little(grown: Option<u64>) -> bool {
    grown.is_none_or(|bytes| bytes < LITTLE_BYTES)
}

/// Memory of a map after the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weight {
    /// Growth of the process over the load.
    pub resident: Resident,
    /// Memory by the map's own accounting, in bytes.
    pub held_bytes: Option<u64>,
}

impl Weight {
    /// Runs `job` in its own process, which loads the map and returns its weight; that process's output goes to `log`.
    /// If it fails, the resident memory is unknown, and `held_bytes` is the run's own.
    pub(crate) fn weigh_in_child<Q: Serialize>(
        launcher: &Launcher,
        job: &Job<&str, Q>,
        preload: Option<&Path>,
        held_bytes: Option<u64>,
        log: &Path,
        cancel: &AtomicBool,
    ) -> Self {
        let mut launcher = launcher.clone();
        // Before the program has allocated anything; the child rejects any other job.
        launcher.envs.push(("MIMALLOC_ALLOW_THP".into(), "0".into()));
        let weight = launcher.call(job, preload, log, cancel, &mut |_, _| {});
        weight.unwrap_or_else(|e| Self {
            resident: Resident::Unknown(format!("it could not be weighed separately: {e}")),
            held_bytes,
        })
    }
}

/// The first thing that the process of a [`Weight`] does.
pub(crate) fn prepare() {
    resources::refuse_huge_pages();
    resources::make_program_resident();
}

/// Weighs what `open` makes, in this process: `load` fills `nothing`, which keeps nothing, and then the map, and
/// answers with what that says it holds.
///
/// # Errors
/// Errors of `open` and `load`.
pub(crate) fn weigh<M: ?Sized + Sync>(
    nothing: &M,
    open: impl FnOnce() -> Result<Box<M>, LabError>,
    mut load: impl FnMut(&M) -> Result<Option<u64>, LabError> + Send,
) -> Result<Weight, LabError> {
    in_a_thread(|| load(nothing))?;
    resources::release_free_memory();
    let before = resources::resident_bytes();
    let map = open()?;
    let (filled, load) = (map.as_ref(), &mut load);
    let held_bytes = in_a_thread(move || load(filled))?;
    // The allocator returns memory freed by training in its own time.
    resources::release_free_memory();
    Ok(Weight {
        resident: Resident::since(before, resources::resident_bytes()).at_least(MIN_BYTES),
        held_bytes,
    })
}

/// Does `work` in a thread of its own: what it has for a while is in pages of its own. An allocator cannot give back
/// what is free in a page that also has something of the harness.
fn in_a_thread<T: Send>(work: impl FnOnce() -> Result<T, LabError> + Send) -> Result<T, LabError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work);
        let thread = thread.map_err(|e| LabError::System(format!("cannot start a thread: {e}")))?;
        let panicked = |_| Err(LabError::System("a loading thread panicked".into()));
        thread.join().unwrap_or_else(panicked)
    })
}
