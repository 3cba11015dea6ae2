//! A CacheBench file: settings of the cache, of operations, and of keys and values. `WorkloadGenerator`,
//! `OnlineGenerator` and `Config` of CacheLib define its fields.

use std::path::{Path, PathBuf};

use leafpress::cache::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use serde_json::Value;

use super::json::{Fields, read};
use crate::core::LabError;

/// Kinds of operations, in the order of [`RATIOS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Get,
    Set,
    Delete,
    AddChained,
    LoneGet,
    LoneSet,
    Update,
    CouldExist,
}

/// The field of each kind's share, and the kind in words.
pub(super) const RATIOS: [(&str, Operation, &str); 8] = [
    ("getRatio", Operation::Get, "gets"),
    ("setRatio", Operation::Set, "sets"),
    ("delRatio", Operation::Delete, "deletes"),
    ("addChainedRatio", Operation::AddChained, "additions to a chain"),
    ("loneGetRatio", Operation::LoneGet, "gets of keys used only once"),
    ("loneSetRatio", Operation::LoneSet, "sets of keys used only once"),
    ("updateRatio", Operation::Update, "updates of existing keys"),
    ("couldExistRatio", Operation::CouldExist, "existence checks"),
];

/// Maximum number of keys, operations, objects of a bucket, and weight in a file.
const MOST: f64 = 1e18;
/// Most megabytes: 16 PiB.
const MAX_MB: f64 = (1_u64 << 34) as f64;
/// Most pools: an identifier of a key has eight bits for them.
pub(super) const MAX_POOLS: usize = 256;

/// A CacheBench file's settings of the run, used as defaults of the command line. Scaled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheBenchDefaults {
    /// The cache's memory, in bytes: `cacheSizeMB`.
    pub memory_bytes: Option<u64>,
    /// Its tier on disks, in bytes: `nvmCacheSizeMB` of each of `nvmCachePaths`.
    pub disk_bytes: Option<u64>,
    /// `numThreads`.
    pub threads: Option<usize>,
    /// Operations of all threads: `numOps` of each.
    pub operations: Option<u64>,
}

/// A CacheBench file.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) defaults: CacheBenchDefaults,
    /// `numKeys`, not scaled.
    pub(super) keys: u64,
    /// The share of the keys that each pool has, and of the operations.
    pub(super) key_shares: Vec<f64>,
    pub(super) operation_shares: Vec<f64>,
    /// Whether a get that finds nothing inserts.
    pub(super) looks_aside: bool,
    /// Whether a set keeps an existing value.
    pub(super) only_set_if_miss: bool,
    /// Distributions of each pool; one for all of them, or one each.
    pub(super) pools: Vec<Drawn>,
    /// Fields that have no meaning here.
    pub(super) unused: Vec<String>,
}

/// Distributions of a pool.
#[derive(Debug)]
pub(super) struct Drawn {
    /// Weights in the order of [`RATIOS`].
    pub(super) ratios: [f64; RATIOS.len()],
    /// Bounds and weights of lengths.
    pub(super) key_sizes: (Vec<f64>, Vec<f64>),
    pub(super) value_sizes: (Vec<f64>, Vec<f64>),
    /// Objects and weights of buckets.
    pub(super) popularity: Option<(Vec<f64>, Vec<f64>)>,
    /// Only as many keys as the buckets have objects.
    pub(super) legacy_keys: bool,
}

impl Config {
    /// Reads a file, and the files that it refers to.
    ///
    /// # Errors
    /// [`LabError::Data`] with the file and the field at fault.
    pub(super) fn read(path: &Path, scale: f64) -> Result<Self, LabError> {
        let mut value = read(path)?;
        if let Value::Array(instances) = &mut value {
            let count = instances.len();
            if count != 1 {
                let reason = format!("has {count} instances: keep only one");
                return Err(LabError::data(path.display().to_string(), reason));
            }
            value = instances.remove(0);
        }
        let mut file = Fields::of(value, path, "")?;
        let cache = match file.take("cache_config") {
            Some(cache) => Some(Fields::of(cache, path, "cache_config")?),
            None => None,
        };
        let Some(test) = file.take("test_config") else {
            return Err(file.refuse("test_config", "is missing: this is not a CacheBench file"));
        };
        let mut config = Self::of_test(Fields::of(test, path, "test_config")?, path)?;
        if let Some(cache) = cache {
            config.of_cache(cache)?;
        }
        config.unused.extend(file.left());
        let scaled = |number: u64| (number as f64 * scale) as u64;
        let defaults = &mut config.defaults;
        // Whole MiB are easier to read.
        defaults.memory_bytes = defaults.memory_bytes.map(|bytes| scaled(bytes) >> 20 << 20);
        defaults.disk_bytes = defaults.disk_bytes.map(|bytes| scaled(bytes) >> 20 << 20);
        defaults.operations = defaults.operations.map(|operations| scaled(operations).max(1));
        Ok(config)
    }

    fn of_cache(&mut self, mut cache: Fields) -> Result<(), LabError> {
        let bytes = |megabytes: Option<f64>| megabytes.filter(|some| *some > 0.0).map(|some| (some as u64) << 20);
        self.defaults.memory_bytes = bytes(cache.number("cacheSizeMB", MAX_MB)?);
        let disks = cache.get("nvmCachePaths").and_then(Value::as_array).map_or(1, Vec::len);
        let disk = bytes(cache.number("nvmCacheSizeMB", MAX_MB)?);
        self.defaults.disk_bytes = disk.map(|disk| disk.saturating_mul(disks.max(1) as u64));
        self.unused.extend(cache.left());
        Ok(())
    }

    fn of_test(mut test: Fields, path: &Path) -> Result<Self, LabError> {
        match test.text("generator")?.as_deref() {
            None | Some("workload" | "online") => {}
            Some(other) => {
                let reason =
                    format!("is `{other}`: only `workload` and `online` are supported; use --trace for a trace");
                return Err(test.refuse("generator", reason));
            }
        }
        let threads = test.whole("numThreads", 1 << 20)?.filter(|threads| *threads > 0);
        let operations = test.number("numOps", MOST)?.filter(|operations| *operations >= 1.0);
        let keys = match test.whole("numKeys", MOST as u64)? {
            None => return Err(test.refuse("numKeys", "is missing")),
            Some(0) => return Err(test.refuse("numKeys", "must be at least 1")),
            Some(keys) => keys,
        };
        let looks_aside = test.truth("enableLookaside")?;
        let only_set_if_miss = test.truth("onlySetIfMiss")?;
        let key_shares = shares(&mut test, "keyPoolDistribution")?;
        let operation_shares = shares(&mut test, "opPoolDistribution")?;
        if operation_shares.len() > key_shares.len() {
            let (operations, keys) = (operation_shares.len(), key_shares.len());
            let reason = format!("has {operations} pools, and keyPoolDistribution {keys}");
            return Err(test.refuse("opPoolDistribution", reason));
        }
        let directory = match test.text("configPath")? {
            Some(directory) => PathBuf::from(directory),
            None => path.parent().unwrap_or_else(|| Path::new("")).to_path_buf(),
        };
        let mut unused = Vec::new();
        let mut pools = Vec::new();
        match test.take("poolDistributions") {
            None => pools.push(Drawn::take(&mut test, &directory, &mut unused)?),
            Some(Value::Array(list)) if list.len() == 1 || list.len() >= key_shares.len() => {
                for (at, pool) in list.into_iter().enumerate() {
                    let place = format!("test_config.poolDistributions[{at}]");
                    let mut pool = Fields::of(pool, path, &place)?;
                    pools.push(Drawn::take(&mut pool, &directory, &mut unused)?);
                    unused.extend(pool.left());
                }
            }
            Some(_) => {
                let reason = format!(
                    "must be a list of one element, or of {}, one per pool",
                    key_shares.len()
                );
                return Err(test.refuse("poolDistributions", reason));
            }
        }
        unused.extend(test.left());
        Ok(Self {
            defaults: CacheBenchDefaults {
                threads: threads.and_then(|threads| usize::try_from(threads).ok()),
                operations: operations.map(|each| (each * threads.unwrap_or(1) as f64) as u64),
                ..CacheBenchDefaults::default()
            },
            keys,
            key_shares,
            operation_shares,
            looks_aside,
            only_set_if_miss,
            pools,
            unused,
        })
    }
}

/// The shares of pools: a single pool by default.
fn shares(fields: &mut Fields, field: &str) -> Result<Vec<f64>, LabError> {
    let shares = fields.numbers(field, MOST)?.unwrap_or_else(|| vec![1.0]);
    if shares.len() > MAX_POOLS {
        return Err(fields.refuse(field, format!("has {} pools, more than {MAX_POOLS}", shares.len())));
    }
    let sum: f64 = shares.iter().sum();
    if sum > 0.0 {
        Ok(shares)
    } else {
        Err(fields.refuse(field, "has no positive share"))
    }
}

impl Drawn {
    fn take(fields: &mut Fields, directory: &Path, unused: &mut Vec<String>) -> Result<Self, LabError> {
        let mut ratios = [0.0; RATIOS.len()];
        for (ratio, (field, ..)) in ratios.iter_mut().zip(RATIOS) {
            *ratio = fields.number(field, MOST)?.unwrap_or(0.0);
        }
        if ratios.iter().sum::<f64>() <= 0.0 {
            return Err(fields.refuse(
                "getRatio",
                "and all other ratios, such as setRatio, are 0 or missing: the workload is empty",
            ));
        }
        let pair = |fields: &mut Fields, names: [&str; 2], most: f64| {
            let bounds = fields.numbers(names[0], most)?;
            let weights = fields.numbers(names[1], MOST)?;
            match (bounds, weights) {
                (None, None) => Ok(None),
                (Some(bounds), Some(weights)) => Ok(Some((bounds, weights))),
                (None, _) => Err(fields.refuse(names[0], format!("is missing, but {} is given", names[1]))),
                (_, None) => Err(fields.refuse(names[1], format!("is missing, but {} is given", names[0]))),
            }
        };
        // A referenced file takes precedence.
        let mut bounds = |fields: &mut Fields, field: &str, names: [&str; 2], most: f64| {
            let here = pair(fields, names, most)?;
            let Some(name) = fields.text(field)? else {
                return Ok(here);
            };
            let path = directory.join(&name);
            let mut file = Fields::of(read(&path)?, &path, "")?;
            let Some(there) = pair(&mut file, names, most)? else {
                return Err(file.refuse(names[0], format!("is missing, and {}", names[1])));
            };
            unused.extend(file.left().map(|left| format!("{name}: {left}")));
            Ok(Some(there))
        };
        let values = ["valSizeRange", "valSizeRangeProbability"];
        let values = bounds(fields, "valSizeDistFile", values, MAX_VALUE_BYTES as f64)?;
        let buckets = ["popularityBuckets", "popularityWeights"];
        let popularity = bounds(fields, "popDistFile", buckets, MOST)?;
        let keys = pair(
            fields,
            ["keySizeRange", "keySizeRangeProbability"],
            MAX_KEY_BYTES as f64,
        )?;
        if popularity.as_ref().is_some_and(|(buckets, _)| buckets.is_empty()) {
            return Err(fields.refuse("popularityBuckets", "is empty"));
        }
        Ok(Self {
            ratios,
            key_sizes: keys.ok_or_else(|| fields.refuse("keySizeRange", "is missing"))?,
            value_sizes: values
                .ok_or_else(|| fields.refuse("valSizeRange", "is missing, and so is valSizeDistFile"))?,
            popularity,
            legacy_keys: fields.truth("useLegacyKeyGen")?,
        })
    }
}
