//! What a plan needs of caches: the memory of records in ours, and the hits of a trace.

use std::sync::atomic::AtomicBool;

use leafpress::cache::Policy;

use super::mrc::{self, HitCurves, MrcOptions, measure_record_footprint};
use super::workload::Workload;
use super::{EngineSpec, Held, Options};
use crate::core::LabError;

/// The curves of a trace.
pub(crate) struct TraceCurves {
    /// Hit ratios by memory.
    pub(crate) curves: HitCurves,
    /// Its keys.
    pub(crate) keys: u64,
    /// Mean bytes of key and value.
    pub(crate) record_bytes: f64,
    /// Its description, a line each.
    pub(crate) description: Vec<String>,
}

/// Computes the curves of the options' work, of all sizes.
///
/// # Errors
/// Unusable data, and errors of our cache; [`LabError::Cancelled`].
pub(crate) fn curves_of(
    options: &Options,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<TraceCurves, LabError> {
    let workload = Workload::load(options)?;
    let curves = mrc::run_of_all_sizes(&workload, options, &MrcOptions::default(), cancel, progress)?;
    Ok(TraceCurves {
        curves,
        keys: workload.keys(),
        record_bytes: workload.record_bytes(),
        description: workload.description,
    })
}

/// Measures the memory of the records of the options' work in our cache with its default settings.
///
/// # Errors
/// As [`curves_of`].
pub(crate) fn held_of(options: &Options, cancel: &AtomicBool, progress: &mut dyn FnMut(f64)) -> Result<Held, LabError> {
    let workload = Workload::load(options)?;
    let engine = EngineSpec::Leafpress(None, Policy::default());
    measure_record_footprint(&workload, engine, options.memory_bytes, cancel, progress)
}
