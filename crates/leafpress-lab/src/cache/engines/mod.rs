//! The caches: how each is called, made and asked.

mod added;
pub mod conformance;
mod envelope;
#[cfg(feature = "foyer")]
mod foyer;
mod leafpress;
mod moka;
mod quick_cache;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ::leafpress::cache::Policy;
use ::leafpress::codec::EngineOptions;
use ::leafpress::{CacheError, Codec};

pub use self::added::{AddedEngine, add_engines};
pub use self::envelope::Envelope;
use super::outcome::DiskFigures;
use super::{DiskOptions, Options};
use crate::core::LabError;
use crate::core::words::serde_as_text;

/// A cache that is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// `quick_cache::sync::Cache`.
    QuickCache,
    /// `moka::sync::Cache`.
    Moka,
    /// `foyer_memory::Cache`: foyer's tier in memory.
    Foyer,
}

impl Peer {
    const ALL: [Self; 3] = [Self::QuickCache, Self::Moka, Self::Foyer];

    const fn name(self) -> &'static str {
        match self {
            Self::QuickCache => "quick_cache",
            Self::Moka => "moka",
            Self::Foyer => "foyer",
        }
    }

    /// Whether this build includes it.
    pub(crate) const fn is_compiled_in(self) -> bool {
        !matches!(self, Self::Foyer) || cfg!(feature = "foyer")
    }
}

/// A cache of the comparison, with what its values are compressed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineSpec {
    /// Ours, with this codec or its default, and what makes room.
    Leafpress(Option<Codec>, Policy),
    /// Another, whose values are compressed one by one, or not at all.
    Other(Peer, Option<Codec>),
    /// One that the program brings.
    Added(&'static AddedEngine),
}

/// The known names.
fn known() -> String {
    let added: String = added::added().iter().map(|added| format!("{}, ", added.name)).collect();
    format!(
        "known: leafpress[:CODEC][@POLICY], {added}quick_cache[+CODEC], moka[+CODEC], foyer[+CODEC], as in \
         leafpress:lz4, leafpress@page and moka+zstd:3"
    )
}

impl EngineSpec {
    /// Returns the default caches.
    pub fn default_list() -> Vec<Self> {
        let zstd = Some(Codec::Zstd { level: 3 });
        let mut engines = vec![Self::Leafpress(None, Policy::default())];
        let added = added::added().iter().filter(|added| added.is_default);
        engines.extend(added.map(Self::Added));
        engines.extend([
            Self::Other(Peer::QuickCache, None),
            Self::Other(Peer::QuickCache, zstd),
            Self::Other(Peer::Moka, None),
        ]);
        if Peer::Foyer.is_compiled_in() {
            engines.push(Self::Other(Peer::Foyer, None));
        }
        engines
    }

    /// Returns whether it bounds the memory of its process itself.
    pub fn bounds_memory(&self) -> bool {
        matches!(self, Self::Leafpress(..))
    }

    /// Returns whether it can have a tier on a disk here.
    pub fn has_disk(&self) -> bool {
        matches!(self, Self::Leafpress(..) | Self::Added(_))
    }

    /// Returns whether it keeps its records in a directory on a disk, and is nothing without one.
    pub fn needs_disk(&self) -> bool {
        matches!(self, Self::Added(_))
    }

    /// The codec that it is known by in charts: of ours only.
    pub(crate) fn hue(&self) -> Option<String> {
        match self {
            Self::Leafpress(None, Policy::S3Fifo) => Some("trial".into()),
            Self::Leafpress(Some(codec), Policy::S3Fifo) => Some(codec.to_string()),
            _ => None,
        }
    }

    /// Checks that this build includes it, and that its codec runs here.
    pub(super) fn check(&self) -> Result<(), LabError> {
        let refuse = |reason: String| Err(LabError::option("engines", format!("{self}: {reason}")));
        let codec = match self {
            Self::Leafpress(codec, policy) => {
                let settings = Settings {
                    capacity_bytes: ::leafpress::cache::MIN_MEMORY_BYTES,
                    record_bytes: 1.0,
                    ttl: None,
                    miss_cost: Duration::ZERO,
                    disk: None,
                };
                return match leafpress::Leafpress::new(*codec, *policy, &settings) {
                    Ok(_) => Ok(()),
                    Err(e) => refuse(format!("{e}; `leafpress codecs` lists what runs here")),
                };
            }
            Self::Other(peer, _) if !peer.is_compiled_in() => {
                return refuse("not in this build: build with the feature `foyer`".into());
            }
            Self::Other(_, codec) => codec,
            // Its settings are known only when it is created.
            Self::Added(_) => return Ok(()),
        };
        match codec.map(|codec| codec.open(&EngineOptions::default())) {
            Some(Err(e)) => refuse(format!("{e}; `leafpress codecs` lists what runs here")),
            _ => Ok(()),
        }
    }

    /// A new, empty cache.
    pub(super) fn make(&self, settings: &Settings) -> Result<Box<dyn Engine>, CacheError> {
        let (peer, codec) = match *self {
            Self::Leafpress(codec, policy) => {
                return Ok(Box::new(leafpress::Leafpress::new(codec, policy, settings)?));
            }
            Self::Added(added) => return (added.make)(settings),
            Self::Other(peer, codec) => (peer, codec),
        };
        match peer {
            Peer::QuickCache => Ok(Box::new(quick_cache::QuickCache::new(codec, settings)?)),
            Peer::Moka => Ok(Box::new(moka::Moka::new(codec, settings)?)),
            #[cfg(feature = "foyer")]
            Peer::Foyer => Ok(Box::new(foyer::Foyer::new(codec, settings)?)),
            #[cfg(not(feature = "foyer"))]
            Peer::Foyer => Err(CacheError::Option {
                option: "engines",
                reason: "this build does not include foyer".into(),
            }),
        }
    }
}

impl fmt::Display for EngineSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leafpress(codec, policy) => {
                f.write_str("leafpress")?;
                codec.map_or(Ok(()), |codec| write!(f, ":{codec}"))?;
                match policy {
                    Policy::S3Fifo => Ok(()),
                    other => write!(f, "@{other}"),
                }
            }
            Self::Other(peer, None) => f.write_str(peer.name()),
            Self::Other(peer, Some(codec)) => write!(f, "{}+{codec}", peer.name()),
            Self::Added(added) => f.write_str(added.name),
        }
    }
}

impl FromStr for EngineSpec {
    type Err = LabError;

    fn from_str(s: &str) -> Result<Self, LabError> {
        let codec = |word: &str| {
            word.parse::<Codec>()
                .map_err(|e| LabError::option("engines", format!("{s}: {e}")))
        };
        let (ours, policy) = match s.split_once('@') {
            Some((ours, policy)) => (ours, Some(policy)),
            None => (s, None),
        };
        let of_ours = match ours.strip_prefix("leafpress") {
            Some("") => Some(None),
            Some(rest) => rest.strip_prefix(':').map(|word| codec(word).map(Some)).transpose()?,
            None => None,
        };
        if let Some(codec) = of_ours {
            let policy = policy.map_or(Ok(Policy::default()), str::parse);
            let policy = policy.map_err(|e| LabError::option("engines", format!("{s}: {e}")))?;
            return Ok(Self::Leafpress(codec, policy));
        }
        if let Some(added) = added::added().iter().find(|added| added.name == s) {
            return Ok(Self::Added(added));
        }
        let (name, word) = match s.split_once('+') {
            Some((name, word)) => (name, Some(word)),
            None => (s, None),
        };
        let peer = Peer::ALL.into_iter().find(|peer| peer.name() == name);
        let peer = peer.ok_or_else(|| LabError::option("engines", format!("unknown engine `{s}`; {}", known())))?;
        let codec = word.map(codec).transpose()?;
        Ok(Self::Other(peer, codec.filter(|codec| *codec != Codec::None)))
    }
}

serde_as_text!(EngineSpec);

/// Settings of a cache.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its configured capacity, in bytes.
    pub capacity_bytes: u64,
    /// Mean bytes of a key and its value, for caches that need an expected number of entries.
    pub record_bytes: f64,
    /// How long records live.
    pub ttl: Option<Duration>,
    /// Cost of a miss at the backend.
    pub miss_cost: Duration,
    /// A tier on a disk.
    pub disk: Option<DiskOptions>,
}

impl Settings {
    pub(super) fn new(options: &Options, capacity_bytes: u64, record_bytes: f64) -> Self {
        Self {
            capacity_bytes,
            record_bytes,
            ttl: options.ttl_seconds.map(Duration::from_secs),
            miss_cost: Duration::from_secs_f64(options.backend_us / 1e6),
            disk: options.disk.clone(),
        }
    }

    /// Entries that are expected.
    fn entries(&self) -> usize {
        (self.capacity_bytes as f64 / self.record_bytes.max(1.0)) as usize + 1
    }

    /// Creates the envelope of values in a cache that does not compress; `expires_records` if the cache expires records
    /// itself.
    ///
    /// # Errors
    /// The codec's error, if it does not run here.
    pub fn envelope(&self, codec: Option<Codec>, expires_records: bool) -> Result<Envelope, CacheError> {
        Envelope::new(codec, self.ttl.filter(|_| !expires_records))
    }
}

/// The state of a cache.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// Records in memory; `None` if it does not distinguish them from those on its disk.
    pub records: Option<u64>,
    /// Memory by its own accounting, in bytes.
    pub bytes_held: Option<u64>,
    /// The codec that it chose, if it chooses one.
    pub chosen_codec: Option<String>,
    /// Why it chose the codec.
    pub codec_reason: Option<String>,
    /// Its share of uncompressed copies and why, if it chose one.
    pub raw_share: Option<String>,
    /// Its tier on a disk, counted from the start.
    pub disk: Option<DiskFigures>,
    /// Errors of the disk: a cache whose disk fails continues without it.
    pub disk_error: Option<String>,
}

/// A cache of byte strings.
pub trait Engine: Send + Sync {
    /// Replaces `value` by the key's value; returns false on a miss. The value is copied out of the cache, or decoded.
    ///
    /// # Errors
    /// The cache's error.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, CacheError>;

    /// Inserts or replaces.
    ///
    /// # Errors
    /// The cache's error.
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), CacheError>;

    /// Removes the key, if it exists.
    ///
    /// # Errors
    /// The cache's error.
    fn remove(&self, key: &[u8]) -> Result<(), CacheError>;

    /// Its state, after deferred work is done.
    fn standing(&self) -> Standing;
}

#[cfg(test)]
mod tests;
