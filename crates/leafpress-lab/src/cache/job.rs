//! The child's side: a cache in its own process, filled to measure its growth, or benchmarked.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::checks::Versions;
use super::driver::{self, Growth};
use super::engines::{Engine, EngineSpec, Settings};
use super::outcome::{Fill, Measured};
use super::worker::{Filling, Scratch, Shared, Shown};
use super::workload::Workload;
use super::{Length, Options};
use crate::core::{LabError, resources};
use crate::harness::Phase;

/// A cache is filled with this multiple of the records that it could hold at most.
const OVERFILL: f64 = 1.5;
/// Operations on it then: for each record of the fill, and bounds. What queues and tables grow by shows only under
/// work.
const WORK: (u64, u64, u64) = (4, 400_000, 4_000_000);
/// The multiple for a cache that keeps its records on a disk, whose operations are far slower.
const DISK_WORK: (u64, u64, u64) = (4, 100_000, 1_000_000);

/// The job of a child.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) options: Options,
    pub(crate) engine: EngineSpec,
    pub(crate) capacity_bytes: u64,
}

/// The workload and the possible values: memory allocated before a cache is created, so that the process's growth from
/// then on is the cache's.
pub(super) struct Prepared {
    pub(super) workload: Workload,
    versions: Versions,
}

impl Prepared {
    pub(super) fn new(options: &Options) -> Result<Self, LabError> {
        resources::allocate_in_small_pages();
        let workload = Workload::load(options)?;
        let versions = Versions::new(workload.keys(), options.ttl_seconds.map(Duration::from_secs));
        Ok(Self { workload, versions })
    }

    /// The threads' buffers, allocated last.
    pub(super) fn scratch(options: &Options, workload: &Workload) -> Result<Vec<Scratch>, LabError> {
        let scratch = (0..options.threads).map(|_| Scratch::new(options, workload));
        let scratch = scratch.collect::<Result<_, _>>()?;
        resources::make_program_resident();
        // Memory freed after reading the data must not hide the cache's growth.
        resources::release_free_memory();
        Ok(scratch)
    }

    /// A run of a cache.
    pub(super) fn shared<'s>(&'s self, options: &'s Options, engine: &'s dyn Engine) -> Shared<'s> {
        Shared {
            options,
            workload: &self.workload,
            versions: &self.versions,
            engine,
            filling: options.load.then(|| Filling {
                enough_bytes: options.load_bytes(),
                bytes: AtomicU64::new(0),
                next: AtomicU64::new(0),
                is_load: true,
            }),
            left: AtomicI64::new(0),
            shown: (0..options.threads).map(|_| Shown::default()).collect(),
        }
    }
}

/// Measures a cache.
pub(crate) fn measure(
    task: &Task,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Phase, f64),
) -> Result<Measured, LabError> {
    progress(Phase::Corpus, 0.0);
    let prepared = Prepared::new(&task.options)?;
    let settings = Settings::new(&task.options, task.capacity_bytes, prepared.workload.record_bytes());
    let scratch = Prepared::scratch(&task.options, &prepared.workload)?;
    let growth = Growth::from_here();
    let engine = task.engine.make(&settings)?;
    driver::measure(
        &prepared.shared(&task.options, engine.as_ref()),
        scratch,
        growth,
        cancel,
        progress,
    )
}

/// Fills a cache past its capacity, works on it, and returns the growth of the process.
pub(crate) fn fill(task: &Task, cancel: &AtomicBool, progress: &mut dyn FnMut(Phase, f64)) -> Result<Fill, LabError> {
    progress(Phase::Load, 0.0);
    let prepared = Prepared::new(&task.options)?;
    let workload = &prepared.workload;
    let settings = Settings::new(&task.options, task.capacity_bytes, workload.record_bytes());
    let enough_bytes = (task.capacity_bytes as f64 * OVERFILL) as u64;
    let records = ((enough_bytes as f64 / workload.record_bytes()) as u64).min(workload.keys());
    let (each, least, most) = if task.engine.needs_disk() { DISK_WORK } else { WORK };
    let options = Options {
        // The filling is its own measure.
        warmup_operations: Some(records),
        length: Some(Length::Operations((records * each).clamp(least, most))),
        rate: None,
        shift_at: None,
        ..task.options.clone()
    };
    let scratch = Prepared::scratch(&options, workload)?;
    let growth = Growth::from_here();
    let engine = task.engine.make(&settings)?;
    let mut shared = prepared.shared(&options, engine.as_ref());
    shared.filling = Some(Filling {
        enough_bytes,
        bytes: AtomicU64::new(0),
        next: AtomicU64::new(0),
        is_load: false,
    });
    let mut progress = |phase, done| {
        let before = if phase == Phase::Timed { 0.5 } else { 0.0 };
        progress(Phase::Load, before + done / 2.0);
    };
    let measured = driver::measure(&shared, scratch, growth, cancel, &mut progress)?;
    Ok(Fill {
        capacity_bytes: task.capacity_bytes,
        growth_bytes: measured.peak_growth_bytes,
        holds_all: measured.holds_all(workload.keys()),
    })
}
