//! Leafpress: a compressed key-value cache.
//!
//! [`Tree`] is a concurrent, ordered map from byte strings to byte strings whose leaves are kept compressed.
//!
//! ```
//! # fn main() -> Result<(), leafpress::Error> {
//! let tree = leafpress::Tree::builder().codec("lz4".parse()?).build()?;
//! tree.insert(b"apple", b"red")?;
//! tree.insert(b"banana", b"yellow")?;
//! assert_eq!(tree.get(b"apple")?.as_deref(), Some(b"red".as_slice()));
//! for record in tree.range("a"..) {
//!     let (key, value) = record?;
//!     assert!(!key.is_empty() && !value.is_empty());
//! }
//! assert!(tree.remove(b"apple")?);
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]
// Modules that need it are allowed it by name, where they are declared.
#![deny(unsafe_code, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod trace;

// What unit tests share with the tests outside of the crate and with the fuzz targets names it as those do.
#[cfg(test)]
extern crate self as leafpress;

pub mod cache;
pub mod codec;
mod eviction;
mod io;
mod mem;
pub mod pool;
mod reclaim;
#[allow(unsafe_code)]
mod sync;
pub mod tree;
mod tuner;
pub mod victim;

pub use cache::{Cache, CacheError};
pub use codec::{Codec, CodecError, Dictionary};
pub use pool::PagePool;
pub use tree::{
    Builder, DictionaryChoice, Error, KeyRange, Layout, Range, Record, RemovedRange, ShardBy, Stats, Tending, Tree,
};
