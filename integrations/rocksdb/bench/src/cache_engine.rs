//! RocksDB as a cache to compare with others: a database on a disk that drops its oldest files, in bounded memory.
//!
//! FIFO compaction is RocksDB's cache mode: the total size of the files is bounded, and the oldest files are dropped
//! whole. Files are compressed by zstd and read and written around the page cache; there is no log, since
//! records that a crash loses are loaded from the backend again. Of the memory, two memtables have an eighth, the block
//! cache a quarter of the rest, and a secondary cache three quarters.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use leafpress::CacheError;
use leafpress_lab::cache::{AddedEngine, DiskFigures, DiskOptions, Engine, Envelope, Settings, Standing};
use leafpress_rocksdb::{BlockCache, BlockCacheOptions, PrimaryCache};
use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};
use rocksdb::statistics::{StatsLevel, Ticker};
use rocksdb::{DB, Options, ReadOptions, WriteOptions};

/// The secondary cache behind the block cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behind {
    Nothing,
    /// RocksDB's `CompressedSecondaryCache`, with this codec.
    Compressed(&'static str),
    /// Leafpress's, with its default options.
    Leafpress,
}

const fn engine(
    name: &'static str,
    is_default: bool,
    make: fn(&Settings) -> Result<Box<dyn Engine>, CacheError>,
) -> AddedEngine {
    AddedEngine { name, is_default, make }
}

/// The engine that `leafpress-rocksdb cache` adds to the caches of the lab.
pub static ENGINES: [AddedEngine; 4] = [
    engine("rocksdb", true, |settings| {
        RocksDb::make(settings, Behind::Compressed("kZSTD"))
    }),
    engine("rocksdb+lz4", false, |settings| {
        RocksDb::make(settings, Behind::Compressed("kLZ4Compression"))
    }),
    engine("rocksdb+leafpress", false, |settings| {
        RocksDb::make(settings, Behind::Leafpress)
    }),
    engine("rocksdb+none", false, |settings| {
        RocksDb::make(settings, Behind::Nothing)
    }),
];

/// Small files that are merged into a large one: otherwise every read looks into the filters of hundreds.
const MERGED_FILES: u64 = 8;
/// Bounds of a memtable's bytes.
const MEMTABLE_BYTES: (u64, u64) = (64 << 10, 64 << 20);

/// The division of the memory and the disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    /// Bytes of each of two memtables.
    memtable: u64,
    block_cache: u64,
    secondary_cache: u64,
    /// Bytes of all files, before the oldest is dropped.
    files: u64,
    /// The bytes that a merge writes, in addition to the files that it reads.
    merge: u64,
}

impl Sizes {
    fn new(memory: u64, disk: u64, behind: Behind) -> Self {
        let memory = memory.max(1 << 20);
        let memtable = (memory / 16).min(disk / 128).clamp(MEMTABLE_BYTES.0, MEMTABLE_BYTES.1);
        let rest = memory.saturating_sub(2 * memtable);
        let secondary_cache = if behind == Behind::Nothing { 0 } else { rest / 4 * 3 };
        // Files are dropped after others were written, and not during a merge: the rest is for a merge and for flushes
        // meanwhile.
        Self {
            memtable,
            block_cache: rest - secondary_cache,
            secondary_cache,
            files: disk / 4 * 3,
            merge: (disk / 32).max(MERGED_FILES * memtable),
        }
    }

    fn block_cache(&self, behind: Behind) -> BlockCacheOptions {
        let bytes = self.secondary_cache;
        BlockCacheOptions {
            capacity_bytes: usize::try_from(self.block_cache).unwrap_or(usize::MAX),
            primary: PrimaryCache::HyperClock,
            shard_bits: None,
            secondary: match behind {
                Behind::Nothing => None,
                Behind::Compressed(codec) => Some(format!(
                    "compressed_secondary_cache://capacity={bytes};compression_type={codec}"
                )),
                Behind::Leafpress => Some(format!("leafpress_secondary_cache://capacity={bytes}")),
            },
        }
    }

    /// Returns RocksDB's options string. Filters and indexes are in the block cache, so that its bound includes them.
    fn options_string(&self, cache: &BlockCache, ttl_seconds: Option<u64>) -> String {
        // Otherwise each file that a merge reads has a buffer of 2 MiB.
        let readahead = (self.memtable / 16).clamp(16 << 10, 2 << 20);
        let ttl = ttl_seconds.map_or_else(String::new, |seconds| format!("ttl={seconds};"));
        format!(
            "create_if_missing=true;error_if_exists=true;max_background_jobs=2;max_open_files=-1;\
             write_buffer_size={};max_write_buffer_number=2;use_direct_reads=true;\
             use_direct_io_for_flush_and_compaction=true;compaction_readahead_size={readahead};\
             compression=kZSTD;compaction_style=kCompactionStyleFIFO;\
             compaction_options_fifo={{max_table_files_size={};allow_compaction=true}};\
             level0_file_num_compaction_trigger={MERGED_FILES};max_compaction_bytes={};{ttl}\
             avoid_flush_during_shutdown=true;stats_dump_period_sec=0;stats_persist_period_sec=0;keep_log_file_num=1;\
             info_log_level=ERROR_LEVEL;max_manifest_file_size=65536;{}",
            self.memtable,
            self.files,
            self.merge,
            cache
                .table_options("block_size=4096;filter_policy=bloomfilter:10:false;cache_index_and_filter_blocks=true"),
        )
    }
}

thread_local! {
    /// RocksDB's counters of this thread.
    static COUNTS: PerfContext = {
        set_perf_stats(PerfStatsLevel::EnableCount);
        PerfContext::default()
    };
}

/// Blocks that this thread has read from files so far.
fn blocks_read() -> u64 {
    COUNTS.with(|counts| counts.metric(PerfMetric::BlockReadCount))
}

/// The database.
struct RocksDb {
    database: DB,
    /// The options, which own the statistics.
    options: Options,
    read_options: ReadOptions,
    write_options: WriteOptions,
    /// Encodes values that expire.
    envelope: Option<Envelope>,
    /// Reads that found their key, and read a block from a file for that.
    disk_hits: AtomicU64,
}

fn failed(what: &str, reason: impl std::fmt::Display) -> CacheError {
    CacheError::Disk {
        reason: format!("RocksDB: {what}: {reason}"),
    }
}

impl RocksDb {
    fn make(settings: &Settings, behind: Behind) -> Result<Box<dyn Engine>, CacheError> {
        let disk = settings.disk.as_ref();
        let disk = disk.ok_or_else(|| failed("open", "it keeps its records on a disk, and there is none"))?;
        Ok(Box::new(Self::open(settings, disk, behind)?))
    }

    fn open(settings: &Settings, disk: &DiskOptions, behind: Behind) -> Result<Self, CacheError> {
        leafpress_rocksdb::register();
        let directory = disk.directory();
        fs::create_dir(&directory).map_err(|e| failed("open", format!("{}: {e}", directory.display())))?;
        let sizes = Sizes::new(settings.capacity_bytes, disk.bytes, behind);
        let cache = BlockCache::new(&sizes.block_cache(behind)).map_err(|e| failed("block cache", e))?;
        let text = sizes.options_string(&cache, settings.ttl.map(|ttl| ttl.as_secs()));
        leafpress_rocksdb::check_options(&text).map_err(|e| failed("options", e))?;
        let options = Options::default().get_options_from_string(&text);
        let mut options = options.map_err(|e| failed("options", e))?;
        options.enable_statistics();
        options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
        let mut write_options = WriteOptions::default();
        write_options.disable_wal(true);
        let envelope = settings.ttl.map(|_| settings.envelope(None, false)).transpose()?;
        Ok(Self {
            database: DB::open(&options, &directory).map_err(|e| failed("open", e))?,
            options,
            read_options: ReadOptions::default(),
            write_options,
            envelope,
            disk_hits: AtomicU64::new(0),
        })
    }
}

impl Engine for RocksDb {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, CacheError> {
        let before = blocks_read();
        let found = self.database.get_pinned_opt(key, &self.read_options);
        let Some(stored) = found.map_err(|e| failed("get", e))? else {
            return Ok(false);
        };
        let is_there = match &self.envelope {
            Some(envelope) => envelope.unwrap(&stored, value)?,
            None => {
                value.clear();
                value.extend_from_slice(&stored);
                true
            }
        };
        if is_there && blocks_read() > before {
            self.disk_hits.fetch_add(1, Ordering::Relaxed);
        }
        Ok(is_there)
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), CacheError> {
        let put = match &self.envelope {
            Some(envelope) => self.database.put_opt(key, envelope.wrap(value)?, &self.write_options),
            None => self.database.put_opt(key, value, &self.write_options),
        };
        put.map_err(|e| failed("put", e))
    }

    fn remove(&self, key: &[u8]) -> Result<(), CacheError> {
        let deleted = self.database.delete_opt(key, &self.write_options);
        deleted.map_err(|e| failed("delete", e))
    }

    fn standing(&self) -> Standing {
        let count = |ticker| self.options.get_ticker_count(ticker);
        Standing {
            disk: Some(DiskFigures {
                hits: self.disk_hits.load(Ordering::Relaxed),
                written_bytes: count(Ticker::FlushWriteBytes) + count(Ticker::CompactWriteBytes),
                evicted_bytes: count(Ticker::BytesWritten),
            }),
            // RocksDB returns the errors of its files from its calls.
            disk_error: None,
            ..Standing::default()
        }
    }
}

#[cfg(test)]
#[path = "cache_engine_tests.rs"]
mod tests;
