//! Leafpress's victim cache behind RocksDB's block cache.
//!
//! A block that the block cache evicts is inserted here, compressed; a lookup that misses there looks here before it
//! reads the file. The shim implements RocksDB's interface `SecondaryCache`; this module has the cache, its options,
//! and its statistics.

mod abi;
mod block_cache;
mod options;
mod statistics;

pub use block_cache::{BlockCache, BlockCacheError, BlockCacheOptions, PrimaryCache};
pub use options::{SecondaryCacheOptionError, SecondaryCacheOptions};
pub use statistics::{SecondaryCacheStatistics, secondary_cache_statistics, secondary_cache_statistics_text};
