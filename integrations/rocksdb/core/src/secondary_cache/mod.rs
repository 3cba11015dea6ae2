//! Leafpress's victim cache behind RocksDB's block cache.
//!
//! A block that the block cache evicts is put in here, compressed; a lookup that misses there looks here before it
//! reads the file. What RocksDB asks of a `SecondaryCache` is in the shim; this is the cache, its options, and its
//! statistics.

mod abi;
mod block_cache;
mod options;
mod statistics;

pub use block_cache::{BlockCache, BlockCacheError, BlockCacheOptions, PrimaryCache};
pub use options::{SecondaryCacheOptionError, SecondaryCacheOptions};
pub use statistics::{SecondaryCacheStatistics, secondary_cache_statistics, secondary_cache_statistics_text};
