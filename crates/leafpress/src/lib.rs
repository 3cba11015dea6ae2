//! Leafpress: a compressed key-value cache.
//!
//! [`Tree`] is a concurrent, ordered map from byte strings to byte strings whose leaves are kept compressed.
//!
//! ```
//! # fn main() -> Result<(), leafpress::TreeError> {
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
//! # Which type to use
//!
//! | type | for | memory | when it is full |
//! |---|---|---|---|
//! | [`Cache`] | records that can be loaded again | bounded | the least used records are evicted, to a disk tier if there is one |
//! | [`Tree`] | records that must stay, in key order | grows with the data | |
//!
//! Both are used by shared reference, from any number of threads. A tree is gone when the process ends;
//! [`Cache::close`] keeps the contents of a cache with a disk tier for the next start. The crate `leafpress-pages` has
//! a compressed page pool and a victim cache for blocks.
//!
//! [`CacheError`] is the error of caches and [`TreeError`] that of trees; both include [`CodecError`].
//!
//! # Shards, settling, compaction
//!
//! Leave [`TreeBuilder::shards`] at 1 unless several threads insert new keys all the time: within a shard, threads wait
//! for one another while leaves split. Reads never wait, and updates wait only for other updates of the same leaf. A
//! scan over several shards is slower, unless [`ShardBy::Range`] keeps the key order.
//!
//! [`Tree::settle`] runs all pending upkeep and waits for it: call it before memory is measured, or after a bulk load.
//! [`Tree::compact`] rebuilds each leaf with the current dictionary: call it when the records have changed their
//! character and the tree is idle. Neither is needed for correct answers.
//!
//! # Stability
//!
//! Before 1.0 any version may change the interface; the changelog says how. Files carry the version of their format: a
//! cache's file of another version counts as empty and is never misread.
#![warn(missing_docs)]
// Modules that need it are allowed it by name, where they are declared.
#![deny(unsafe_code, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

#[macro_use]
extern crate leafpress_base;

// What unit tests share with the tests outside of the crate and with the fuzz targets names it as those do.
#[cfg(test)]
extern crate self as leafpress;

pub mod cache;
mod mean_time;
pub mod tree;

pub use cache::{Cache, CacheError};
pub use leafpress_base::store;
pub use leafpress_codec as codec;
pub use leafpress_codec::{Codec, CodecError, Dictionary};
#[cfg(any(test, feature = "testing"))]
pub use tree::Layout;
pub use tree::{
    DictionaryChoice, KeyRange, Range, Record, RemovedPart, RemovedRange, ShardBy, Tree, TreeBuilder, TreeError,
    TreeStats, Upkeep,
};
