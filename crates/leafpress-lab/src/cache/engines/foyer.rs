//! foyer's tier in memory, with its own defaults: LRU with a part of high priority, eight shards.

use std::sync::Arc;

use foyer_memory::{Cache, CacheProperties};
use leafpress::{CacheError, Codec};

use super::envelope::Envelope;
use super::{Engine, Settings, Standing};

pub(super) struct Foyer {
    cache: Cache<Box<[u8]>, Arc<[u8]>>,
    envelope: Envelope,
}

impl Foyer {
    pub(super) fn new(codec: Option<Codec>, settings: &Settings) -> Result<Self, CacheError> {
        let capacity = usize::try_from(settings.capacity_bytes).unwrap_or(usize::MAX);
        let builder = Cache::<Box<[u8]>, Arc<[u8]>>::builder(capacity);
        let builder = builder.with_weighter(|key, value| key.len() + value.len());
        Ok(Self {
            cache: builder.build::<CacheProperties>(),
            envelope: settings.envelope(codec, false)?,
        })
    }
}

impl Engine for Foyer {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, CacheError> {
        match self.cache.get(key) {
            Some(entry) => self.envelope.unwrap(entry.value(), value),
            None => Ok(false),
        }
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), CacheError> {
        self.cache.insert(key.into(), self.envelope.wrap(value)?);
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<(), CacheError> {
        self.cache.remove(key);
        Ok(())
    }

    fn standing(&self) -> Standing {
        Standing {
            records: Some(self.cache.entries() as u64),
            ..Standing::default()
        }
    }
}
