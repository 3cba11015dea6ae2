//! db_bench's workloads over RocksDB, with RocksDB's own codecs and caches and with Leafpress's.
//!
//! [`run()`] does one benchmark ([`Run`]) in this process and returns its results ([`Outcome`]). [`session`] does
//! several, each in a process of its own.
#![warn(missing_docs)]

pub mod cache;
pub mod cache_engine;
pub mod caches;
pub mod compression;
mod database;
mod error;
pub mod frontier;
mod key;
pub mod matrix;
mod note;
mod options;
mod options_string;
mod outcome;
pub mod report;
mod run;
pub mod session;
pub mod size;
pub mod study;
mod values;
mod worker;
mod workload;

pub use cache::Cache;
pub use compression::{Compression, Engines};
pub use database::check_options;
pub use error::BenchError;
pub use note::{Note, check};
pub use options::{
    CacheType, MAX_BLOCK_BYTES, MAX_INSTANCES, MAX_SECONDS, MAX_THREADS, MAX_VALUE_BYTES, Run, Shape, Tuning, Work,
};
pub use options_string::options_string;
pub use outcome::Outcome;
pub use run::run;
pub use values::{SourceType, ValueSource, check_values};
pub use workload::Workload;
