//! A block cache with a secondary cache behind it, for databases that Rust opens.

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

use thiserror::Error;

use crate::abi::View;

use super::abi::Sink;
use super::options::SecondaryCacheOptions;

/// The shim's `LeafpressBlockCache`.
#[repr(C)]
struct Raw {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn leafpress_shim_block_cache_new(options: View, sink: Sink, context: *mut c_void) -> *mut Raw;
    fn leafpress_shim_block_cache_free(cache: *mut Raw);
    fn leafpress_shim_block_cache_number(cache: *const Raw) -> u64;
    fn leafpress_shim_block_cache_usage(cache: *const Raw) -> usize;
    fn leafpress_shim_block_cache_capacity(cache: *const Raw) -> usize;
    fn leafpress_shim_block_cache_set_capacity(cache: *const Raw, bytes: usize);
    fn leafpress_shim_block_cache_set_secondary_capacity(cache: *const Raw, bytes: usize) -> bool;
}

/// RocksDB refused to make a block cache.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct BlockCacheError(String);

/// The block cache itself, in front of a secondary cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrimaryCache {
    /// RocksDB's `HyperClockCache`.
    #[default]
    HyperClock,
    /// RocksDB's `LRUCache`.
    Lru,
}

/// Options of a [`BlockCache`]; [`fmt::Display`] writes them as an options string.
#[derive(Debug, Clone)]
pub struct BlockCacheOptions {
    /// Capacity of the block cache in bytes, without the secondary cache's.
    pub capacity_bytes: usize,
    /// The type of the cache.
    pub primary: PrimaryCache,
    /// 2 to this power shards; [`None`] for RocksDB's choice.
    pub shard_bits: Option<u32>,
    /// What is behind it: what `SecondaryCache::CreateFromString` takes, such as
    /// `leafpress_secondary_cache://capacity=64MiB` or `compressed_secondary_cache://capacity=64M`.
    pub secondary: Option<String>,
}

impl BlockCacheOptions {
    /// Returns the options of a `HyperClockCache` with this capacity.
    pub fn new(capacity_bytes: usize) -> Self {
        Self {
            capacity_bytes,
            primary: PrimaryCache::default(),
            shard_bits: None,
            secondary: None,
        }
    }

    /// Puts a Leafpress cache behind it.
    #[must_use]
    pub fn secondary(mut self, options: &SecondaryCacheOptions) -> Self {
        self.secondary = Some(format!("leafpress_secondary_cache://{options}"));
        self
    }
}

impl fmt::Display for BlockCacheOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let primary = match self.primary {
            PrimaryCache::HyperClock => "hyper_clock",
            PrimaryCache::Lru => "lru",
        };
        write!(f, "capacity={};type={primary}", self.capacity_bytes)?;
        if let Some(bits) = self.shard_bits {
            write!(f, ";num_shard_bits={bits}")?;
        }
        if let Some(secondary) = &self.secondary {
            write!(f, ";secondary_cache={{{secondary}}}")?;
        }
        Ok(())
    }
}

/// A block cache that any number of databases share. A database that uses it keeps it alive.
///
/// ```
/// use leafpress_rocksdb::{BlockCache, BlockCacheOptions, SecondaryCacheOptions};
/// use rocksdb::{DB, Options};
///
/// leafpress_rocksdb::register();
/// let options = BlockCacheOptions::new(8 << 20).secondary(&SecondaryCacheOptions::new(24 << 20));
/// let cache = BlockCache::new(&options).unwrap();
/// let mut options = Options::default().get_options_from_string(cache.table_options("block_size=4096"))?;
/// options.create_if_missing(true);
/// let directory = tempfile::tempdir().unwrap();
/// let db = DB::open(&options, directory.path())?;
/// db.put("key", "value")?;
/// # Ok::<(), rocksdb::Error>(())
/// ```
pub struct BlockCache(NonNull<Raw>);

// SAFETY: it is a shared pointer to a cache, which any thread may use and drop.
unsafe impl Send for BlockCache {}
// SAFETY: it is a shared pointer to a cache, which any thread may use and drop.
unsafe impl Sync for BlockCache {}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache")
            .field("capacity_bytes", &self.capacity_bytes())
            .field("usage_bytes", &self.usage_bytes())
            .finish()
    }
}

unsafe extern "C" fn append(text: *mut c_void, data: *const u8, len: usize) {
    // SAFETY: the context is the `String` that `BlockCache::new` passes, and the text is readable during the call.
    let (text, data) = unsafe { (&mut *text.cast::<String>(), std::slice::from_raw_parts(data, len)) };
    text.push_str(&String::from_utf8_lossy(data));
}

impl BlockCache {
    /// Makes the cache. [`crate::register`] is to be called first.
    ///
    /// # Errors
    /// [`BlockCacheError`] with RocksDB's reason when an option is wrong.
    pub fn new(options: &BlockCacheOptions) -> Result<Self, BlockCacheError> {
        let (text, mut error) = (options.to_string(), String::new());
        let context = (&raw mut error).cast();
        // SAFETY: the text is readable during the call, and the context of `append` is a string.
        let made = unsafe { leafpress_shim_block_cache_new(View::of(&text), append, context) };
        NonNull::new(made).map(Self).ok_or(BlockCacheError(error))
    }

    /// Returns the name of this cache in RocksDB's options strings, while it lives: `block_cache=URI`, without braces.
    pub fn uri(&self) -> String {
        // SAFETY: `self.0` points to a cache that the shim made and that is freed only by `drop`.
        let number = unsafe { leafpress_shim_block_cache_number(self.0.as_ptr()) };
        format!("leafpress_block_cache://{number}")
    }

    /// Returns a `block_based_table_factory` with this cache and further options of the table, such as
    /// `block_size=4096;cache_index_and_filter_blocks=true`.
    pub fn table_options(&self, further: &str) -> String {
        format!("block_based_table_factory={{block_cache={};{further}}}", self.uri())
    }

    /// Returns the bytes that the block cache holds, without the secondary cache.
    pub fn usage_bytes(&self) -> usize {
        // SAFETY: `self.0` points to a cache that the shim made and that is freed only by `drop`.
        unsafe { leafpress_shim_block_cache_usage(self.0.as_ptr()) }
    }

    /// Returns the capacity of the block cache in bytes, without the secondary cache.
    pub fn capacity_bytes(&self) -> usize {
        // SAFETY: `self.0` points to a cache that the shim made and that is freed only by `drop`.
        unsafe { leafpress_shim_block_cache_capacity(self.0.as_ptr()) }
    }

    /// Changes what the block cache may hold.
    pub fn set_capacity(&self, bytes: usize) {
        // SAFETY: `self.0` points to a cache that the shim made and that is freed only by `drop`.
        unsafe { leafpress_shim_block_cache_set_capacity(self.0.as_ptr(), bytes) };
    }
}

impl BlockCache {
    /// Changes what the secondary cache may hold, in bytes; false when there is none.
    pub fn set_secondary_capacity(&self, bytes: usize) -> bool {
        // SAFETY: `self.0` points to a cache that the shim made and that is freed only by `drop`.
        unsafe { leafpress_shim_block_cache_set_secondary_capacity(self.0.as_ptr(), bytes) }
    }
}

impl Drop for BlockCache {
    fn drop(&mut self) {
        // SAFETY: `self.0` points to a cache that the shim made and that is freed only by `drop`, after which nothing
        // uses it.
        unsafe { leafpress_shim_block_cache_free(self.0.as_ptr()) };
    }
}
