//! Building blocks of Leafpress: memory, synchronisation, reclamation, file I/O and page stores.
//!
//! Only [`store`] is meant for users, as `leafpress::store`; everything else is internal to the Leafpress crates and
//! changes without notice.
//!
//! | module | contents |
//! |---|---|
//! | [`mem`] | mappings, the heap for nodes, fallible allocation, prefetch hints |
//! | [`sync`] | latches and per-thread slots, replaced by a model checker under `--cfg shuttle`; the upkeep runtime |
//! | [`reclaim`] | epoch-based reclamation of nodes |
//! | [`io`] | direct I/O, io_uring, file locks |
//! | [`bytes`], [`random`] | a cursor over encoded bytes, pseudo-random numbers |
//! | [`ghost`] | the queue of recently evicted keys |
//! | [`raw_share`] | the option for the share of memory that holds uncompressed copies |
//! | [`reuse`] | hit ratios of all cache sizes from a sample of the requests |
//! | [`store`] | page stores: a file, memory, and one that injects faults |
#![warn(missing_docs)]
// Modules that need unsafe code are allowed it individually, where they are declared.
#![deny(unsafe_code, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod trace;

#[doc(hidden)]
pub mod bytes;
#[doc(hidden)]
pub mod ghost;
pub mod io;
pub mod mem;
#[doc(hidden)]
pub mod random;
pub mod raw_share;
pub mod reclaim;
#[doc(hidden)]
pub mod reuse;
pub mod store;
#[allow(unsafe_code)]
pub mod sync;

#[cfg(feature = "tracing")]
#[doc(hidden)]
pub use tracing;

/// Whether the feature `tracing` is on.
#[doc(hidden)]
pub const IS_TRACING: bool = cfg!(feature = "tracing");
