//! Common parts of runs: child processes, the map under test, the maps it is
//! compared with, their weights, and the oracle of valid answers. Independent of any command.

pub mod child;
pub(crate) mod machine_load;
#[cfg(feature = "peers")]
pub(crate) mod maps;
pub mod oracle;
mod phase;
pub mod resident_memory;
pub mod store;
pub mod timeline;

pub use phase::Phase;

/// Most worker threads of a run.
pub const MAX_THREADS: usize = 1024;
