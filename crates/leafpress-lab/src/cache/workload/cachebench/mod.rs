//! CacheBench's own workloads: operations by their ratios, keys by the popularity, lengths by the sizes that a file of
//! it names.
//!
//! CacheLib's generator cuts the popularity into 2,048 parts of like weight; here buckets are drawn as the file has
//! them, which is what it approximates. Lengths come from a hash of the key's number, so that none is kept.

mod config;
mod draws;
mod json;

use std::path::Path;

pub use self::config::CacheBenchDefaults;
use self::config::{Config, Drawn, Operation, RATIOS};
use self::draws::{Alias, Popularity, Sizes, hashed_letters, letters};
use super::{Action, Place, Request};
use crate::core::LabError;
use crate::core::keys::{Permutation, mix};
use crate::core::resources::total_memory_bytes;
use crate::report::numbers::{percent, thousands};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// Most keys: what each may hold is kept, in four bytes.
const MAX_KEYS: u64 = 1 << 30;
/// Letters by which keys differ, and how many of them there are.
const LETTERS: usize = 8;
const NUMBERS: u64 = 26_u64.pow(LETTERS as u32);
/// Set in the number of a key that is requested once. Above its own number is its pool's.
const LONE: u64 = 1 << 62;
const POOL_SHIFT: u32 = 48;
/// Digits of such a key: those of a 64-bit number. Other keys have letters.
const LONE_DIGITS: usize = 20;
/// Keys sampled for mean lengths.
const LOOKED_AT: u64 = 1 << 18;

/// Returns the file's settings of the run.
///
/// # Errors
/// [`LabError::Data`] with the file and the field at fault; [`LabError::Option`] of `scale`.
pub fn cachebench_defaults(path: &Path, scale: f64) -> Result<CacheBenchDefaults, LabError> {
    check_scale(scale)?;
    Ok(Config::read(path, scale)?.defaults)
}

/// That a file can be scaled by this.
pub(crate) fn check_scale(scale: f64) -> Result<(), LabError> {
    if scale > 0.0 && scale <= 1.0 {
        return Ok(());
    }
    Err(LabError::option(
        "scale",
        format!("{scale} must be greater than 0 and at most 1"),
    ))
}

/// A workload of CacheBench.
#[derive(Debug)]
pub(super) struct CacheBench {
    seed: u64,
    pools: Vec<Pool>,
    /// Which pool an operation is for.
    pool: Alias,
    /// Where each pool's keys end.
    ends: Vec<u64>,
    /// From the number of a key to its letters.
    scatter: Permutation,
    looks_aside: bool,
    only_set_if_miss: bool,
    /// Mean bytes of a key and of a value.
    pub(super) mean_bytes: (f64, f64),
    /// In words, a line each.
    pub(super) description: Vec<String>,
    /// Fields of the file that have no meaning here.
    pub(super) unused: Vec<String>,
}

/// Keys of one kind.
#[derive(Debug)]
struct Pool {
    first: u64,
    popularity: Popularity,
    operations: Alias,
    key_sizes: Sizes,
    value_sizes: Sizes,
}

impl CacheBench {
    /// Reads a file.
    ///
    /// # Errors
    /// [`LabError::Data`] with the file and the field at fault; [`LabError::Option`] of `scale` when there are too many
    /// keys.
    pub(super) fn load(path: &Path, scale: f64, seed: u64) -> Result<Self, LabError> {
        check_scale(scale)?;
        let config = Config::read(path, scale)?;
        let refuse =
            |field: &str, reason: String| LabError::data(path.display().to_string(), format!("{field} {reason}"));
        let all: f64 = config.key_shares.iter().sum();
        let of_pools = config.key_shares.iter().enumerate().map(|(at, share)| {
            let drawn = config.pools.get(at).unwrap_or(&config.pools[0]);
            (drawn, drawn.keys(config.keys as f64 * share / all))
        });
        let whole = of_pools.clone().map(|(_, keys)| keys).sum();
        let (mut pools, mut ends, mut first) = (Vec::new(), Vec::new(), 0);
        for (drawn, keys) in of_pools {
            let keys = ((keys as f64 * scale) as u64).max(1);
            check_count(first + keys, whole, scale)?;
            pools.push(Pool::new(drawn, first, keys).map_err(|(field, reason)| refuse(field, reason))?);
            first += keys;
            ends.push(first);
        }
        // The keys of pools without operations are never requested.
        let pool = Alias::new(&config.operation_shares);
        let pool = pool.ok_or_else(|| refuse("opPoolDistribution", "has no positive share".into()))?;
        let mut made = Self {
            seed,
            pools,
            pool,
            ends,
            scatter: Permutation::new(NUMBERS, mix(!seed)),
            looks_aside: config.looks_aside,
            only_set_if_miss: config.only_set_if_miss,
            mean_bytes: (0.0, 0.0),
            description: Vec::new(),
            unused: Vec::new(),
        };
        made.mean_bytes = made.means();
        made.description = made.describe(path, &config, scale, whole);
        made.unused = config.unused;
        Ok(made)
    }

    fn means(&self) -> (f64, f64) {
        let keys = self.keys();
        let looked_at = keys.min(LOOKED_AT);
        let (mut key_bytes, mut value_bytes) = (0, 0);
        for at in 0..looked_at {
            let id = (u128::from(at) * u128::from(keys) / u128::from(looked_at)) as u64;
            key_bytes += self.key_bytes(id);
            value_bytes += self.value_bytes(id);
        }
        let mean = |bytes: usize| bytes as f64 / looked_at as f64;
        (mean(key_bytes), mean(value_bytes))
    }

    fn describe(&self, path: &Path, config: &Config, scale: f64, whole: u64) -> Vec<String> {
        let pools = match self.pools.len() {
            1 => String::new(),
            pools => format!(" in {pools} pools, all of them in one cache"),
        };
        let scaled = if scale < 1.0 {
            format!(", {scale} times {}", thousands(whole))
        } else {
            String::new()
        };
        let mut lines = vec![format!(
            "{} (CacheBench): {} keys{pools}{scaled}",
            path.display(),
            thousands(self.keys())
        )];
        for (at, drawn) in config.pools.iter().enumerate() {
            let sum: f64 = drawn.ratios.iter().sum();
            let parts = drawn.ratios.iter().zip(RATIOS).filter(|(ratio, _)| **ratio > 0.0);
            let parts = parts.map(|(ratio, (_, _, words))| match ratio / sum {
                share if share < 0.0005 => format!("under 0.1% {words}"),
                share => format!("{}% {words}", percent(share, 1)),
            });
            let parts: Vec<_> = parts.collect();
            let of = if config.pools.len() > 1 {
                format!(" of pool {at}")
            } else {
                String::new()
            };
            let popularity = match &drawn.popularity {
                Some((buckets, _)) => format!("keys by {} popularity buckets", thousands(buckets.len() as u64)),
                None => "keys by a normal distribution".into(),
            };
            lines.push(format!("operations{of}: {}; {popularity}", parts.join(", ")));
        }
        lines.push(if self.looks_aside {
            "look-aside: misses are inserted".into()
        } else {
            "misses are not inserted".into()
        });
        let is_requested = |operation: Operation| {
            let at = RATIOS.iter().position(|(_, known, _)| *known == operation);
            at.is_some_and(|at| config.pools.iter().any(|drawn| drawn.ratios[at] > 0.0))
        };
        if is_requested(Operation::AddChained) {
            lines.push("chained items are not supported: an addition overwrites the key".into());
        }
        if self.pools.iter().any(|pool| pool.key_sizes.least < LETTERS) {
            lines.push(format!("keys have at least {LETTERS} bytes, so that all are distinct"));
        }
        lines
    }

    /// Number of keys, except those requested once.
    pub(super) fn keys(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn pool_of(&self, id: u64) -> &Pool {
        let at = if is_lone(id) {
            ((id ^ LONE) >> POOL_SHIFT) as usize
        } else {
            self.ends.partition_point(|end| *end <= id)
        };
        &self.pools[at.min(self.pools.len() - 1)]
    }

    /// Length of a key.
    fn key_bytes(&self, id: u64) -> usize {
        let random = mix(mix(id ^ self.seed) ^ 0x6b65_7973);
        self.pool_of(id).key_sizes.of(random).max(LETTERS)
    }

    /// Length of a key's value.
    #[inline]
    pub(super) fn value_bytes(&self, id: u64) -> usize {
        let random = mix(mix(id ^ self.seed) ^ 0x7661_6c75_6573);
        self.pool_of(id).value_sizes.of(random)
    }

    /// Length of the longest value there may be.
    pub(super) fn longest_value(&self) -> usize {
        self.pools.iter().map(|pool| pool.value_sizes.most).max().unwrap_or(0)
    }

    /// Appends a key to `key`.
    pub(super) fn write_key(&self, id: u64, key: &mut Vec<u8>) {
        if is_lone(id) {
            let mut number = mix(id ^ self.seed);
            let start = key.len();
            key.extend(std::iter::repeat_n(b'0', LONE_DIGITS));
            for digit in key[start..].iter_mut().rev() {
                *digit += (number % 10) as u8;
                number /= 10;
            }
            return;
        }
        letters(self.scatter.apply(id), LETTERS, key);
        hashed_letters(mix(id ^ self.seed), self.key_bytes(id) - LETTERS, key);
    }

    /// The next request of a thread.
    #[inline]
    pub(super) fn next(&self, rng: &mut Xoshiro256PlusPlus, place: &mut Place) -> Request {
        let at = self.pool.draw(rng.next_u64());
        let pool = &self.pools[at];
        let (_, operation, _) = RATIOS[pool.operations.draw(rng.next_u64())];
        let (id, is_lone) = match operation {
            Operation::LoneGet | Operation::LoneSet => (LONE | (at as u64) << POOL_SHIFT | place.next_lone(), true),
            _ => (pool.first + pool.popularity.draw(rng), false),
        };
        let action = match operation {
            Operation::Get | Operation::LoneGet if self.looks_aside => Action::Read,
            Operation::Get | Operation::LoneGet | Operation::CouldExist => Action::Look,
            Operation::Set | Operation::LoneSet if self.only_set_if_miss => Action::Add,
            Operation::Set | Operation::LoneSet | Operation::AddChained => Action::Write,
            Operation::Update => Action::Update,
            Operation::Delete => Action::Remove,
        };
        Request { id, action, is_lone }
    }
}

fn is_lone(id: u64) -> bool {
    id & LONE != 0
}

/// Checks that the keys do not exceed the maximum.
fn check_count(keys: u64, whole: u64, scale: f64) -> Result<(), LabError> {
    // Four bytes each, of half of the machine's memory.
    let room = total_memory_bytes().map_or(MAX_KEYS, |bytes| (bytes / 8).min(MAX_KEYS));
    if keys <= room {
        return Ok(());
    }
    // Rounded down to two digits.
    let fitting = room as f64 / whole as f64;
    let decimals = (1.0 - fitting.log10().floor()).max(0.0) as usize;
    let digits = 10_f64.powi(decimals as i32);
    let fitting = (fitting * digits).floor() / digits;
    let reason = format!(
        "{scale} leaves {} keys, more than the maximum of {}: use {fitting:.decimals$} or less",
        thousands(keys),
        thousands(room)
    );
    Err(LabError::option("scale", reason))
}

impl Drawn {
    /// Number of keys of a pool with at most this many.
    fn keys(&self, keys: f64) -> u64 {
        let objects = self.popularity.as_ref().map(|(buckets, _)| buckets.iter().sum::<f64>());
        match objects.filter(|_| self.legacy_keys) {
            Some(objects) => keys.min(objects) as u64,
            None => keys as u64,
        }
    }
}

impl Pool {
    /// Keys from `first` on; an error has the field at fault.
    fn new(drawn: &Drawn, first: u64, keys: u64) -> Result<Self, (&'static str, String)> {
        let sizes =
            |(bounds, weights): &(Vec<f64>, Vec<f64>), field| Sizes::new(bounds, weights).map_err(|e| (field, e));
        let popularity = match &drawn.popularity {
            Some((objects, weights)) => {
                Popularity::buckets(objects, weights, keys).map_err(|e| ("popularityWeights", e))?
            }
            None => Popularity::Normal { keys },
        };
        Ok(Self {
            first,
            popularity,
            operations: Alias::new(&drawn.ratios).ok_or(("getRatio", "and the other ratios are all 0".to_owned()))?,
            key_sizes: sizes(&drawn.key_sizes, "keySizeRangeProbability")?,
            value_sizes: sizes(&drawn.value_sizes, "valSizeRangeProbability")?,
        })
    }
}

#[cfg(test)]
mod tests;
