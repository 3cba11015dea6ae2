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
//!
//! # Which one
//!
//! | | for | memory | when that is full |
//! |---|---|---|---|
//! | [`Cache`] | records that you can load again | bounded | what is used least goes to disk, or is forgotten |
//! | [`Tree`] | records that must stay, in the order of their keys | what they take | it grows |
//! | [`PagePool`] | pages of a file or device, by number | bounded | pages leave to their store |
//! | [`VictimCache`] | blocks that a cache of your own evicts | bounded | what is asked for least is forgotten |
//!
//! All are used by shared reference, from any number of threads. After the process is left what [`PagePool::flush`] has written, and what
//! [`Cache::close`] leaves on disk for the next cache; a tree and a victim cache are gone.
//!
//! Each module has one error: [`Error`] of trees, [`CacheError`], [`pool::PoolError`], [`victim::VictimError`], and [`CodecError`], which
//! the others take in.
//!
//! # Shards, settling, compacting
//!
//! [`Builder::shards`] is best left at 1, until several threads insert new keys all the time: within a shard they wait for one another where
//! leaves split. Reads wait for nobody, and updates only for those of the same leaf. A scan of many shards is slower, unless
//! [`ShardBy::Range`] keeps the order.
//!
//! [`Tree::settle`] does the upkeep that is due and waits for it: before memory is measured, or after a load. [`Tree::compact`] makes every
//! leaf anew with a dictionary of today: after records have become others, when nothing else is to be done. Neither is needed for right
//! answers.
//!
//! # What is stable
//!
//! Before 1.0 nothing of the interface is promised: any version may change it, and the changelog says how. What is on disk says the version
//! of its format: a cache's file of another version counts as empty, and is never misread.
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
pub use victim::VictimCache;
