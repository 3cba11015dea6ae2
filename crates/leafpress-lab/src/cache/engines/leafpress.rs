//! Ours.

use leafpress::cache::Entry;
use leafpress::{Cache, CacheError, Codec};

use super::{Engine, Settings, Standing};

/// [`leafpress::Cache`].
pub(super) struct Leafpress {
    cache: Cache,
    entry: Option<Entry>,
}

impl Leafpress {
    /// The one place where our cache is made. With a tier on a disk, [`Settings::disk`] belongs into the builder here, its figures into
    /// [`Engine::standing`], and `EngineSpec::has_disk` says so.
    pub(super) fn new(codec: Option<Codec>, settings: &Settings) -> Result<Self, CacheError> {
        let mut builder = Cache::builder().memory(settings.knob_bytes);
        if let Some(codec) = codec {
            builder = builder.codec(codec);
        }
        if settings.disk.is_some() {
            return Err(CacheError::Option {
                option: "disk",
                reason: "the library's cache has no tier on a disk yet".into(),
            });
        }
        Ok(Self {
            cache: builder.build()?,
            entry: settings.ttl.map(Entry::ttl),
        })
    }
}

impl Engine for Leafpress {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, CacheError> {
        self.cache.get_into(key, value)
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), CacheError> {
        match self.entry {
            Some(entry) => self.cache.insert_with(key, value, entry),
            None => self.cache.insert(key, value),
        }
    }

    fn standing(&self) -> Standing {
        let stats = self.cache.stats();
        Standing {
            records: stats.records,
            bytes_held: Some(stats.bytes_held),
            disk: None,
        }
    }
}
