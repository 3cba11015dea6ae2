//! Leafpress inside RocksDB: its codecs as a `CompressionManager`.
//!
//! [`register`] makes the name `leafpress` known to RocksDB. From then on options strings, `OPTIONS` files and files
//! written with it work like RocksDB's own:
//!
//! ```
//! use rocksdb::{DB, Options};
//!
//! leafpress_rocksdb::register();
//! let directory = tempfile::tempdir().unwrap();
//! let mut options =
//!     Options::default().get_options_from_string("compression_manager={id=leafpress;codec=zstd:3}")?;
//! options.create_if_missing(true);
//! let db = DB::open(&options, directory.path())?;
//! db.put("key", "value")?;
//! db.flush()?;
//! assert_eq!(db.get("key")?.unwrap(), b"value");
//! # Ok::<(), rocksdb::Error>(())
//! ```
//!
//! What can be set is in [`CompressionOptions`] and in `docs/plugin.md`; what files hold is in `docs/formats.md`.
#![warn(missing_docs)]

// Linked for its symbols, which the shim calls.
#[cfg(feature = "bundled")]
extern crate librocksdb_sys as _;

mod abi;
mod compression;
mod registration;
mod secondary_cache;
mod size;

pub use compression::{CompressionOptions, OptionError, statistics_text};
pub use registration::{RefusedOptions, RegisterError, check_options, register, try_register};
pub use secondary_cache::{
    BlockCache, BlockCacheError, BlockCacheOptions, PrimaryCache, SecondaryCacheOptionError, SecondaryCacheOptions,
    SecondaryCacheStatistics, secondary_cache_statistics, secondary_cache_statistics_text,
};
