//! Compares caches: ours, and alternatives from the registry that a Rust service would use, each in the same memory.
//!
//! Memory is the growth of the *process*. Each engine runs in its own process. Ours takes the memory as its bound; the
//! others bound something else (the configured weight of an entry), so for those a capacity is searched at which the
//! process grows by no more (`capacity_search`). Then threads get keys by a distribution, a trace or a CacheBench file,
//! insert missed keys, and compare every value that they find with what its key must have (`checks`).

mod capacity_search;
mod charts;
mod checks;
pub(crate) mod document;
mod driver;
mod engines;
pub(crate) mod job;
mod mrc;
mod objects;
mod options;
pub(crate) mod outcome;
#[cfg(feature = "plan")]
mod plan_input;
pub(crate) mod run;
pub(crate) mod tables;
mod verdict;
mod worker;
pub(crate) mod workload;

#[cfg(test)]
pub(crate) mod fixtures;

pub use document::{document, line};
pub use engines::{AddedEngine, Engine, EngineSpec, Envelope, Peer, Settings, Standing, add_engines, conformance};
pub(crate) use job::{fill, measure};
pub use mrc::{Curve, Held, HitCurves, HitRatios, MrcOptions, Sampling, SizePoint};
pub use objects::{MAX_PAPER_VALUE_BYTES, PaperObjects};
pub use options::{DiskOptions, Length, MAX_WORKING_SET_BYTES, Options, Work};
pub use outcome::{ConfiguredCapacity, DiskFigures, Fill, Line, Measured, Mismatches, Outcome, RateFigures, Sample};
#[cfg(feature = "plan")]
pub(crate) use plan_input::{curves_of, held_of};
pub use run::{Step, run_caches, run_caches_with};
pub use workload::{CacheBenchDefaults, TraceFormat, cachebench_defaults};

/// The job of a child that fills a cache, to see by how much its process grows.
pub(crate) const FILL: &str = "cache_fill";
/// The job of a child that measures a cache.
pub(crate) const MEASURE: &str = "cache_measure";

#[cfg(test)]
mod tests;
