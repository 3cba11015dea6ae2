//! Caches side by side: ours, and those of the registry that a Rust service would take else, each in the same memory.
//!
//! Memory is what the *process* grows by. Each engine has a process of its own. Ours takes the memory as its bound; the others bound
//! something else (the bytes they are told that an entry weighs), so for those the bound is searched under which the process grows by no
//! more (`knob`). Then threads get keys by a law, a trace or a CacheBench file, insert what they miss, and compare every value that they find with what
//! its key must hold (`checks`).

mod checks;
mod driver;
mod engines;
mod files;
mod html;
mod job;
mod knob;
mod mrc;
mod objects;
mod options;
mod outcome;
mod pace;
mod paper;
mod run;
mod tables;
mod text;
mod verdict;
mod worker;
mod workload;

#[cfg(test)]
mod fixtures;

pub use engines::{AddedEngine, Engine, EngineSpec, Envelope, Peer, Settings, Standing, add_engines, conformance};
pub use files::{write_figure_files, write_files};
pub(crate) use job::{fill, measure};
pub use mrc::{Curve, Held, HitCurves, HitRatios, MrcOptions, Sampling, SizePoint};
pub use objects::{MAX_PAPER_VALUE_BYTES, PaperObjects};
pub use options::{DiskOptions, Length, MAX_WORKING_SET_BYTES, Options, Work};
pub use outcome::{DiskFigures, Fill, Knob, Line, Measured, Mismatches, Outcome, RateFigures, Sample};
pub use paper::{
    Figure, FigureOptions, FigureOutcome, Scenario, ScenarioOutcome, figure_report, run_figure, run_figure_with,
};
pub use run::{Step, run_caches, run_caches_with};
pub use text::{line, report};
pub use workload::{CacheBenchDefaults, TraceFormat, cachebench_defaults};

/// The job of a child that fills a cache, to see by how much its process grows.
pub(crate) const FILL: &str = "cache_fill";
/// The job of a child that measures a cache.
pub(crate) const MEASURE: &str = "cache_measure";

#[cfg(test)]
mod tests;
