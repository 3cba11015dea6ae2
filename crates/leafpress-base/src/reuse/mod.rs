//! Hit ratios of caches of every size, from the order of requests.
//!
//! The [stack](Stack) has keys in the order of their last requests, and [`Shards`] the hits of every size from a sample
//! of the keys.

mod shards;
mod stack;

pub use shards::{Shards, place, threshold};
pub use stack::{NumberHasher, NumberMap, Stack};
