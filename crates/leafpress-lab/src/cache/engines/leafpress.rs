//! Ours.

use leafpress::cache::{Disk, DiskStats, InsertOptions, Policy};
use leafpress::{Cache, CacheError, Codec};

use super::super::outcome::DiskFigures;
use super::{Engine, Settings, Standing};

/// [`leafpress::Cache`].
pub(super) struct Leafpress {
    cache: Cache,
    entry: Option<InsertOptions>,
    /// Whether it chooses its codec.
    chooses: bool,
}

impl Leafpress {
    pub(super) fn new(codec: Option<Codec>, policy: Policy, settings: &Settings) -> Result<Self, CacheError> {
        let mut builder = Cache::builder()
            .memory(settings.capacity_bytes)
            .policy(policy)
            .miss_cost(settings.miss_cost);
        if let Some(codec) = codec {
            builder = builder.codec(codec);
        }
        if let Some(disk) = &settings.disk {
            if disk.path.is_file() {
                return Err(CacheError::Disk {
                    reason: format!("{} exists already: use another file", disk.path.display()),
                });
            }
            // A block device, that is: a file was refused above.
            builder = builder.disk(Disk::file(&disk.path, disk.bytes).overwrite(true));
        }
        let cache = builder.build()?;
        if let Some(disk) = settings.disk.as_ref().filter(|disk| disk.path.is_file()) {
            // It is open; without a name it is gone when this process is, however that ends.
            std::fs::remove_file(&disk.path).map_err(|error| CacheError::Disk {
                reason: format!("{}: cannot unlink it: {error}", disk.path.display()),
            })?;
        }
        Ok(Self {
            cache,
            entry: settings.ttl.map(InsertOptions::ttl),
            chooses: codec.is_none_or(|codec| !codec.candidates().is_empty()),
        })
    }
}

/// Describes failures of the disk tier.
fn disk_error(disk: &DiskStats) -> Option<String> {
    let failed = [
        (disk.write_errors, "writes"),
        (disk.read_errors, "reads"),
        (disk.damaged, "pages damaged"),
    ];
    let failed = failed.iter().filter(|(count, _)| *count > 0);
    let failed: Vec<_> = failed.map(|(count, what)| format!("{count} {what}")).collect();
    let cause = if disk.last_error.is_empty() {
        String::new()
    } else {
        format!(": {}", disk.last_error)
    };
    (!failed.is_empty()).then(|| format!("errors of the disk tier ({}){cause}", failed.join(", ")))
}

impl Engine for Leafpress {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, CacheError> {
        self.cache.get_into(key, value)
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), CacheError> {
        match self.entry {
            Some(entry) => self.cache.insert_entry(key, value, entry),
            None => self.cache.insert(key, value),
        }
    }

    fn remove(&self, key: &[u8]) -> Result<(), CacheError> {
        self.cache.remove(key).map(|_| ())
    }

    fn standing(&self) -> Standing {
        let stats = self.cache.stats();
        Standing {
            records: Some(stats.records),
            bytes_held: Some(stats.bytes_held),
            chosen_codec: self.chooses.then(|| stats.tree.codec.to_string()),
            codec_reason: self.chooses.then_some(stats.tree.limits_reason),
            raw_share: (!stats.raw_share_reason.is_empty()).then_some(stats.raw_share_reason),
            disk_error: stats.disk.as_ref().and_then(disk_error),
            disk: stats.disk.map(|disk| DiskFigures {
                hits: disk.hits,
                written_bytes: disk.written_bytes,
                evicted_bytes: disk.admitted_bytes,
            }),
        }
    }
}
