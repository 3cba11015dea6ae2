//! The page pool under Tyche's workload: workers that get pages in rounds, hold them, update some and delete some.
//!
//! [`run()`] opens the pages (`data`; a run that writes has a `view` that keeps changes away from the user's own),
//! builds the pool, lets `worker`s do rounds while a `driver` samples, and proves with a `ledger` that no byte was
//! wrong. What it measured is an [`Outcome`]; [`text`] writes it as Tyche does. [`sweep()`] runs several
//! [`Options`] in turn, each in its own process; [`document()`] makes them a report.

mod data;
mod document;
mod driver;
#[cfg(test)]
mod fixtures;
mod ledger;
mod options;
mod outcome;
mod run;
mod spread;
mod sweep;
mod tables;
pub mod text;
mod theory;
mod verdict;
mod view;
mod worker;

pub use document::document;
pub use driver::Event;
pub use options::{
    MAX_BACKGROUND_THREADS, MAX_DEVICE_LATENCY_US, MAX_ROUND_PAGES, MAX_SECONDS, MIN_BUDGET_BYTES, Options, StoreKind,
    Verify, Warmup, bias, round_pages,
};
pub use outcome::{Checks, Counters, Cpu, Held, Outcome, Report, Sample, Set, Work};
pub use run::{check, run};
pub use sweep::{Line, Step, Sweep, shares, sweep, sweep_with};
pub use tables::{over_time, summary};
pub use theory::{hit_ratio, share_that_fits};

/// The job of a child that does one run of the page pool; the answer is a [`Report`].
pub(crate) const RUN: &str = "pool_run";
