//! Leafpress inside RocksDB.
#![warn(missing_docs)]

// Linked for its symbols, which the shim calls.
#[cfg(feature = "bundled")]
extern crate librocksdb_sys as _;

mod secondary_cache;

pub use secondary_cache::{
    BlockCache, BlockCacheError, BlockCacheOptions, PrimaryCache, SecondaryCacheOptionError, SecondaryCacheOptions,
    SecondaryCacheStatistics, secondary_cache_statistics, secondary_cache_statistics_text,
};

unsafe extern "C" {
    fn leafpress_shim_register() -> i32;
}

/// Makes `leafpress` known to RocksDB's options strings and to its readers; more than once does no harm.
pub fn register() {
    // SAFETY: takes no arguments; C++ static initialisation makes it safe from any thread.
    unsafe { leafpress_shim_register() };
}

/// [`register`] for programs in other languages.
#[unsafe(no_mangle)]
pub extern "C" fn leafpress_rocksdb_register() {
    register();
}
