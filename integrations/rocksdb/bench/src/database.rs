//! The databases of a run: opened by an options string, measured, and copied by hard links.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use leafpress_lab::LabError;
use leafpress_rocksdb::BlockCache;
use rocksdb::checkpoint::Checkpoint;
use rocksdb::statistics::{StatsLevel, Ticker};
use rocksdb::{BlockBasedOptions, CompactOptions, DB, Env, Options, WaitForCompactOptions, properties};

use crate::error::WithOperation;
use crate::note::{self, Note, check};
use crate::options::Run;
use crate::options_string::with_block_cache;
use crate::{BenchError, Workload};

/// Databases that are open.
pub(crate) struct Databases {
    // The fields are dropped in this order: the databases before the caches and environments that they use.
    pub(crate) instances: Vec<DB>,
    /// Of each instance.
    options: Vec<Options>,
    /// Kept for as long as the databases: they share it.
    caches: Vec<BlockCache>,
    directories: Vec<PathBuf>,
    /// The directory that is removed at the end.
    scratch: Option<PathBuf>,
    pub(crate) complete: bool,
    env: Env,
}

impl Databases {
    /// Without an instance.
    fn unopened(run: &Run) -> Result<Self, BenchError> {
        leafpress_rocksdb::register();
        Ok(Self {
            instances: Vec::new(),
            options: Vec::new(),
            caches: Vec::new(),
            directories: Vec::new(),
            scratch: None,
            complete: false,
            env: environment(run)?,
        })
    }

    /// Opens the databases of a run: new ones for a workload that fills, otherwise existing ones.
    pub(crate) fn open(run: &Run) -> Result<Self, BenchError> {
        let mut databases = Self::unopened(run)?;
        for _ in 0..run.shape.instances {
            databases.configure(run)?;
        }
        if run.workload.is_fresh() {
            databases.create(run)?;
        } else {
            databases.complete = check(run)?;
            if run.on_copy {
                databases.copy(run)?;
            } else {
                databases.directories = (0..run.shape.instances)
                    .map(|number| run.instance_directory(number))
                    .collect();
            }
        }
        for (directory, options) in databases.directories.iter().zip(&databases.options) {
            let database = DB::open(options, directory);
            let database = database.with_operation(|| format!("cannot open {}", directory.display()))?;
            check_cache(&database, run)?;
            databases.instances.push(database);
        }
        Ok(databases)
    }

    /// Makes the options of an instance and drops them: RocksDB reports invalid ones.
    fn try_options(run: &Run) -> Result<(), BenchError> {
        let mut databases = Self::unopened(run)?;
        databases.configure(run)
    }

    /// Makes the options of the next instance, from an options string, and its cache.
    fn configure(&mut self, run: &Run) -> Result<(), BenchError> {
        let tuning = &run.tuning;
        let mut base = Options::default();
        let mut uri = String::new();
        if tuning.cache.bytes == 0 {
            // With the string alone RocksDB keeps a table factory's default cache of 32 MiB; a string changes the
            // factory of the options to which it is applied.
            let mut table = BlockBasedOptions::default();
            table.disable_cache();
            base.set_block_based_table_factory(&table);
        } else {
            let cache =
                BlockCache::new(&tuning.block_cache()).map_err(|e| BenchError::option("cache", e.to_string()))?;
            uri = cache.uri();
            self.caches.push(cache);
        }
        let text = with_block_cache(&run.shape, tuning, &uri);
        let refused = |reason: String| {
            let option = match (tuning.rocksdb_options.is_empty(), run.shape.compression.is_leafpress()) {
                (true, true) => "compression",
                _ => "rocksdb_options",
            };
            BenchError::option(option, format!("RocksDB refuses the options: {reason}"))
        };
        leafpress_rocksdb::check_options(&text).map_err(|e| refused(e.to_string()))?;
        let options = base.get_options_from_string(&text);
        let mut options = options.map_err(|e| refused(e.to_string()))?;
        options.set_env(&self.env);
        if tuning.statistics {
            options.enable_statistics();
            options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
        }
        self.options.push(options);
        Ok(())
    }

    fn create(&mut self, run: &Run) -> Result<(), BenchError> {
        let io = |path: &Path, source| {
            BenchError::from(LabError::Io {
                path: path.to_owned(),
                source,
            })
        };
        // The note is removed first, so that a partly filled database does not count as complete.
        note::forget(&run.directory)?;
        for number in 0..run.shape.instances {
            let directory = run.instance_directory(number);
            if directory.join("CURRENT").exists() {
                DB::destroy(&Options::default(), &directory)
                    .with_operation(|| format!("cannot remove {}", directory.display()))?;
            }
            fs::create_dir_all(&directory).map_err(|e| io(&directory, e))?;
            self.directories.push(directory);
        }
        Ok(())
    }

    /// Makes a checkpoint of each database next to it and uses that instead.
    fn copy(&mut self, run: &Run) -> Result<(), BenchError> {
        let scratch = run.directory.join(format!("copy-{}", std::process::id()));
        self.scratch = Some(scratch.clone());
        fs::create_dir_all(&scratch).map_err(|source| LabError::Io {
            path: scratch.clone(),
            source,
        })?;
        for number in 0..run.shape.instances {
            let from = run.instance_directory(number);
            let to = scratch.join(number.to_string());
            let what = || format!("cannot copy {} to {}", from.display(), to.display());
            let database = DB::open_for_read_only(&self.options[number], &from, false).with_operation(what)?;
            let checkpoint = Checkpoint::new(&database).with_operation(what)?;
            checkpoint.create_checkpoint(&to).with_operation(what)?;
            self.directories.push(to);
        }
        Ok(())
    }

    /// Waits until nothing is left to flush or compact.
    pub(crate) fn settle(&self, workload: Workload) -> Result<(), BenchError> {
        for database in &self.instances {
            database.flush().with_operation(|| "flush".into())?;
            if workload == Workload::Compact {
                let mut options = CompactOptions::default();
                options.set_bottommost_level_compaction(rocksdb::BottommostLevelCompaction::Force);
                database.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
            }
            let options = WaitForCompactOptions::default();
            database
                .wait_for_compact(&options)
                .with_operation(|| "wait for compaction".into())?;
        }
        Ok(())
    }

    /// Notes what the databases hold now.
    pub(crate) fn note(&self, run: &Run) -> Result<(), BenchError> {
        let note = Note {
            shape: run.shape.clone(),
            complete: run.workload == Workload::FillSeq,
        };
        note.write(&run.directory)
    }

    /// Bytes of all live SST files.
    pub(crate) fn sst_bytes(&self) -> Result<u64, BenchError> {
        let mut bytes = 0;
        for database in &self.instances {
            let files = database.live_files().with_operation(|| "list of live files".into())?;
            bytes += files.iter().map(|file| file.size as u64).sum::<u64>();
        }
        Ok(bytes)
    }

    /// Returns RocksDB's current tickers, without those that are 0.
    pub(crate) fn tickers(&self, statistics: bool) -> BTreeMap<String, u64> {
        let mut tickers = BTreeMap::new();
        if !statistics {
            return tickers;
        }
        for ticker in Ticker::iter() {
            let count = self
                .options
                .iter()
                .map(|options| options.get_ticker_count(*ticker))
                .sum();
            if count > 0 {
                tickers.insert(ticker.name().to_owned(), count);
            }
        }
        let ours = leafpress_rocksdb::statistics_text() + &leafpress_rocksdb::secondary_cache_statistics_text();
        for (name, count) in ours.lines().filter_map(ticker) {
            *tickers.entry(name).or_default() += count;
        }
        tickers
    }
}

/// Parses a line of Leafpress's statistics, `NAME COUNT : NUMBER`; `None` if the number is 0.
fn ticker(line: &str) -> Option<(String, u64)> {
    let (name, count) = line.split_once(" COUNT : ")?;
    let count = count.trim().parse().ok().filter(|count| *count > 0)?;
    Some((name.to_owned(), count))
}

/// Checks that RocksDB takes the options of a run.
///
/// # Errors
/// [`BenchError::Option`] with RocksDB's reason.
pub fn check_options(run: &Run) -> Result<(), BenchError> {
    Databases::try_options(run)
}

impl Drop for Databases {
    fn drop(&mut self) {
        self.instances.clear();
        if let Some(scratch) = &self.scratch {
            let _ = fs::remove_dir_all(scratch);
        }
    }
}

/// Checks that RocksDB uses the block cache: its options strings ignore what they cannot create silently.
fn check_cache(database: &DB, run: &Run) -> Result<(), BenchError> {
    let capacity = database.property_int_value(properties::BLOCK_CACHE_CAPACITY);
    let capacity = capacity
        .with_operation(|| "capacity of the block cache".into())?
        .unwrap_or(0);
    match run.tuning.cache.bytes {
        bytes if bytes == capacity => Ok(()),
        bytes => Err(LabError::System(format!(
            "RocksDB has a block cache of {capacity} bytes instead of {bytes}"
        ))
        .into()),
    }
}

/// Returns an environment whose pools of threads, which all instances share, have as many threads for each instance as
/// for a single one.
fn environment(run: &Run) -> Result<Env, BenchError> {
    let mut env = Env::new().with_operation(|| "cannot make an environment".into())?;
    let jobs = run.tuning.max_background_jobs;
    let flushes = (jobs / 4).max(1);
    let compactions = (jobs - flushes).max(1);
    let of_all = |jobs: usize| i32::try_from(jobs * run.shape.instances).unwrap_or(i32::MAX);
    env.set_low_priority_background_threads(of_all(compactions));
    env.set_high_priority_background_threads(of_all(flushes));
    Ok(env)
}
