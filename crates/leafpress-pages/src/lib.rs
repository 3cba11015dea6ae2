//! Compressed caches for blocks of a fixed place: a page pool over a file or device, and a victim cache.
//!
//! | | for | memory | when that is full |
//! |---|---|---|---|
//! | [`PagePool`] | pages of a file or device, by number | bounded | pages leave to their store |
//! | [`VictimCache`] | blocks that a cache of your own evicts | bounded | the least requested blocks are dropped |
//!
//! Both are used by shared reference, from any number of threads. Records by key belong into a `leafpress::Cache` or a `leafpress::Tree`.
#![warn(missing_docs)]
// Modules that need it are allowed it by name, where they are declared.
#![deny(unsafe_code, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

// What unit tests share with the tests outside of the crate names it as those do.
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
