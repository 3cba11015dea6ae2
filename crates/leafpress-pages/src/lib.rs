//! Compressed caches for blocks with fixed addresses: a page pool over a file or device, and a victim cache.
//!
//! | | use | memory | when full |
//! |---|---|---|---|
//! | [`PagePool`] | pages of a file or device, by number | bounded | evicts pages, dirty ones to their store |
//! | [`VictimCache`] | blocks evicted by another cache | bounded | evicts the least requested blocks |
//!
//! Both are used by shared reference, from any number of threads. For records by key use `leafpress::Cache` or
//! `leafpress::Tree`.
#![warn(missing_docs)]
// Modules with unsafe code are allowed it individually, at their declaration.
#![deny(unsafe_code, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

// Code shared by unit tests and integration tests names the crate as the latter do.
#[cfg(test)]
extern crate self as leafpress_pages;

mod eviction;
pub mod pool;
pub mod store;
mod tuner;
pub mod victim;

pub use leafpress_codec as codec;
pub use leafpress_codec::{Codec, CodecError, Dictionary};
pub use pool::PagePool;
pub use victim::VictimCache;
