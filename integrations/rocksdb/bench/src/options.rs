//! The options of a run, and their bounds.

use std::path::PathBuf;

use leafpress_lab::Bytes;
use leafpress_lab::core::keys::Distribution;
use leafpress_rocksdb::{BlockCacheOptions, PrimaryCache};
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, Secondary};
use crate::compression::Compression;
use crate::values::{SourceType, ValueSource};
use crate::{BenchError, Workload};

/// Longest run and longest warm-up, in seconds: 30 days.
pub const MAX_SECONDS: f64 = 2_592_000.0;
/// Maximum of threads of all instances together.
pub const MAX_THREADS: usize = 4096;
/// Maximum of instances.
pub const MAX_INSTANCES: usize = 256;
/// Longest key in bytes.
pub const MAX_KEY_BYTES: usize = 1024;
/// Longest value in bytes.
pub const MAX_VALUE_BYTES: usize = 64 << 20;
/// Longest block in bytes.
pub const MAX_BLOCK_BYTES: u64 = 64 << 20;

/// The databases of a run: their contents, and RocksDB's settings for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Databases.
    pub instances: usize,
    /// Keys of an instance.
    pub num: u64,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Bytes of a block, before compression.
    pub block_bytes: u64,
    /// The source of values.
    pub values: ValueSource,
    /// The codec.
    pub compression: Compression,
    /// Bits of a Bloom filter for each key; 0 is none.
    pub bloom_bits: u32,
    /// Version of the files' format; 0 is RocksDB's default, or what the compression needs.
    pub format_version: u32,
    /// Seed of every random choice.
    pub seed: u64,
}

impl Shape {
    /// Bytes of the keys and values of all instances.
    pub fn raw_bytes(&self) -> u64 {
        self.instances as u64 * self.num * (self.key_bytes + self.value_bytes) as u64
    }

    /// Keys of all instances.
    pub fn keys(&self) -> u64 {
        self.instances as u64 * self.num
    }
}

/// The type of block cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheType {
    /// RocksDB's `HyperClockCache`, which db_bench takes too.
    #[default]
    HyperClockCache,
    /// RocksDB's `LRUCache`.
    LruCache,
}

/// RocksDB's settings that do not depend on a database's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// Block cache of each instance, and the cache behind it.
    pub cache: Cache,
    /// The type of block cache.
    pub cache_type: CacheType,
    /// Background jobs of each instance.
    pub max_background_jobs: usize,
    /// Bytes of a memtable.
    pub write_buffer_bytes: u64,
    /// Maximum of memtables.
    pub max_write_buffers: u32,
    /// Files are read around the page cache.
    pub use_direct_reads: bool,
    /// Writes are not logged first.
    pub disable_wal: bool,
    /// Each write waits for the device.
    pub sync: bool,
    /// Disable automatic compaction.
    pub disable_auto_compactions: bool,
    /// Checksums of blocks are checked on reading.
    pub verify_checksum: bool,
    /// RocksDB counts.
    pub statistics: bool,
    /// More for RocksDB's options string, last word.
    pub rocksdb_options: String,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            cache: Cache::default(),
            cache_type: CacheType::default(),
            max_background_jobs: 2,
            write_buffer_bytes: 64 << 20,
            max_write_buffers: 2,
            use_direct_reads: false,
            disable_wal: true,
            sync: false,
            disable_auto_compactions: false,
            verify_checksum: true,
            statistics: true,
            rocksdb_options: String::new(),
        }
    }
}

impl Tuning {
    /// Returns the block cache of an instance, with the one behind it.
    pub(crate) fn block_cache(&self) -> BlockCacheOptions {
        BlockCacheOptions {
            capacity_bytes: usize::try_from(self.cache.bytes).unwrap_or(usize::MAX),
            primary: match self.cache_type {
                CacheType::HyperClockCache => PrimaryCache::HyperClock,
                CacheType::LruCache => PrimaryCache::Lru,
            },
            shard_bits: None,
            secondary: self.cache.secondary.as_ref().map(Secondary::uri),
        }
    }
}

/// The work on the databases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Threads of each instance.
    pub threads: usize,
    /// Length of the measured work in seconds; 0 measures `reads` operations of each thread.
    pub seconds: f64,
    /// The same work before that, in seconds, if there is a length.
    pub warmup_seconds: f64,
    /// Operations of each thread without a length; `None` is the number of keys.
    pub reads: Option<u64>,
    /// The distribution of keys.
    pub distribution: Distribution,
    /// Percent of reads in `readrandomwriterandom`.
    pub read_pct: u64,
    /// Puts that are written together.
    pub batch: u64,
    /// Steps behind a seek.
    pub seek_nexts: u64,
    /// Every value read is compared with what its key can hold.
    pub verify: bool,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            threads: 1,
            seconds: 10.0,
            warmup_seconds: 1.0,
            reads: None,
            distribution: Distribution::Uniform,
            read_pct: 80,
            batch: 1,
            seek_nexts: 0,
            verify: false,
        }
    }
}

/// One benchmark on some databases: the work of one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The benchmark.
    pub workload: Workload,
    /// Directory of the database; with several instances, the directory above theirs.
    pub directory: PathBuf,
    /// The content of the databases.
    pub shape: Shape,
    /// RocksDB's settings.
    pub tuning: Tuning,
    /// The work.
    pub work: Work,
    /// Run on a copy by hard links, which is removed afterwards, so that the databases stay unchanged.
    pub on_copy: bool,
}

impl Run {
    /// Returns the directory of instance `number`.
    pub fn instance_directory(&self, number: usize) -> PathBuf {
        match self.shape.instances {
            1 => self.directory.clone(),
            _ => self.directory.join(format!("instance-{number}")),
        }
    }

    /// Checks all bounds.
    ///
    /// # Errors
    /// [`BenchError::Option`] with the name of the option on the command line.
    pub fn validate(&self) -> Result<(), BenchError> {
        let refuse = |option, reason: String| Err(BenchError::option(option, reason));
        self.validate_shape()?;
        let (tuning, work) = (&self.tuning, &self.work);
        let threads = work.threads.saturating_mul(self.shape.instances);
        if work.threads == 0 || threads > MAX_THREADS {
            return refuse("threads", format!("of all instances together is 1 to {MAX_THREADS}"));
        }
        for (option, seconds) in [("seconds", work.seconds), ("warmup-seconds", work.warmup_seconds)] {
            if !(0.0..=MAX_SECONDS).contains(&seconds) {
                return refuse(option, format!("{seconds} is not 0 to {MAX_SECONDS} seconds"));
            }
        }
        if work.read_pct > 100 {
            return refuse("readwritepercent", format!("{} is not 0 to 100", work.read_pct));
        }
        if !(1..=1 << 20).contains(&work.batch) {
            return refuse("batch_size", "is 1 to 1048576 puts".into());
        }
        if work.reads == Some(0) {
            return refuse("reads", "0 leaves nothing to do".into());
        }
        if !(1..=1024).contains(&tuning.max_background_jobs) {
            return refuse("max_background_jobs", "is 1 to 1024".into());
        }
        if tuning.write_buffer_bytes < 64 << 10 {
            return refuse("write_buffer_size", "is at least 64K".into());
        }
        if tuning.max_write_buffers < 2 {
            return refuse("max_write_buffer_number", "is at least 2".into());
        }
        if tuning.sync && tuning.disable_wal {
            return refuse("sync", "needs a log: give --disable_wal=false with it".into());
        }
        Ok(())
    }

    fn validate_shape(&self) -> Result<(), BenchError> {
        let refuse = |option, reason: String| Err(BenchError::option(option, reason));
        let shape = &self.shape;
        if !(1..=MAX_INSTANCES).contains(&shape.instances) {
            return refuse("instances", format!("{} is not 1 to {MAX_INSTANCES}", shape.instances));
        }
        if !(1..=MAX_KEY_BYTES).contains(&shape.key_bytes) {
            return refuse(
                "key_size",
                format!("{} is not 1 to {MAX_KEY_BYTES} bytes", shape.key_bytes),
            );
        }
        if !(1..=MAX_VALUE_BYTES).contains(&shape.value_bytes) {
            return refuse(
                "value_size",
                format!(
                    "{} is not 1 to {} bytes",
                    shape.value_bytes,
                    Bytes(MAX_VALUE_BYTES as u64)
                ),
            );
        }
        if !(100..=MAX_BLOCK_BYTES).contains(&shape.block_bytes) {
            return refuse(
                "block_size",
                format!("{} is not 100 to {} bytes", shape.block_bytes, Bytes(MAX_BLOCK_BYTES)),
            );
        }
        let distinct = match shape.key_bytes {
            8.. => u64::MAX >> 8,
            bytes => 1 << (8 * bytes),
        };
        if shape.num == 0 || shape.num > distinct.min(1 << 40) {
            return refuse(
                "num",
                format!(
                    "{} keys: keys of {} bytes are 1 to {}",
                    shape.num,
                    shape.key_bytes,
                    distinct.min(1 << 40)
                ),
            );
        }
        if shape.bloom_bits > 100 {
            return refuse("bloom_bits", format!("{} is more than 100", shape.bloom_bits));
        }
        let ratio = shape.values.compression_ratio;
        if shape.values.kind != SourceType::FileDirect && !(ratio > 0.0 && ratio <= 1.0) {
            return refuse("compression_ratio", format!("{ratio} is not over 0 and up to 1"));
        }
        if shape.compression.is_leafpress() && (1..7).contains(&shape.format_version) {
            return refuse(
                "format_version",
                "of files that leafpress compressed is 7 or more".into(),
            );
        }
        Ok(())
    }
}
