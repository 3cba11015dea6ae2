//! The index benchmark: PiBench's command line and report (Lersch et al., "Evaluating Persistent Memory Range Indexes",
//! PVLDB 13(4), 2019), on our tree, on the registry's ordered maps, and on wrappers written for PiBench.
//!
//! From the outside in: [`run`] opens an [`Index`], `load`s it and reads it back, and lets the `driver` run the
//! operations, whose threads are `worker`s that draw operations from a `mix`, ids from a `distribution`, `keys` from
//! ids and `values`. What it measured is an [`Outcome`]; [`text`] writes it in PiBench's layout. [`compare()`] does so
//! for several indexes in turn, each in its own process.

mod builtin;
mod compare;
mod distribution;
mod document;
mod driver;
mod dump;
mod environment;
mod hardware;
mod index;
mod input;
mod keys;
mod load;
mod mix;
#[cfg(test)]
mod mock_cost;
mod numbers;
mod options;
mod outcome;
mod pin;
mod recorder;
mod repeat;
mod resident_memory;
mod scan;
mod session;
pub mod text;
mod tree;
mod values;
mod verdict;
mod worker;
mod ycsb;

pub use crate::core::resources::CpuTime;
pub use builtin::Builtin;
pub use compare::{Comparison, Line, compare, compare_with};
pub use distribution::{DEFAULT_LATEST_SKEW, Law};
pub use document::document;
pub use dump::{Dump, look_at_records};
pub use environment::Environment;
pub use hardware::{Hardware, Reading};
pub use index::{Index, IndexError, KeyOrder, OpenLibrary};
pub use input::Input;
pub use keys::KeyFormat;
pub use options::{
    MAX_KEY_BYTES, MAX_OPERATIONS, MAX_RECORDS, MAX_REPEAT, MAX_SAMPLING_MS, MAX_SCAN, MAX_SECONDS, MAX_VALUE_BYTES,
    Mode, Options, Ratios,
};
pub use outcome::{Counts, Latencies, Load, Operation, Outcome, Sample, ScanErrors, WindowLatency};
pub use pin::Pin;
pub use repeat::{Spread, median_of};
pub(crate) use resident_memory::weigh_here;
pub use session::{Event, Report, run, run_with};
pub use tree::TreeOptions;
pub use values::{ValueSource, check as check_values};
pub use ycsb::Ycsb;

pub use crate::harness::resident_memory::{Resident, Weight};

/// The job of a child that does one run of the index benchmark; the answer is a [`Report`].
pub(crate) const RUN: &str = "bench_run";
/// The job of a child that loads an index to measure its memory; the answer is a [`Weight`].
pub(crate) const WEIGH: &str = "bench_weigh";
