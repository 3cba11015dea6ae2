//! `moka`, with its own defaults: TinyLFU.

use std::sync::Arc;

use leafpress::{CacheError, Codec};
use moka::sync::Cache;

use super::envelope::Envelope;
use super::{Engine, Settings, Standing};

pub(super) struct Moka {
    cache: Cache<Box<[u8]>, Arc<[u8]>>,
    envelope: Envelope,
}

impl Moka {
    pub(super) fn new(codec: Option<Codec>, settings: &Settings) -> Result<Self, CacheError> {
        let mut builder = Cache::<Box<[u8]>, Arc<[u8]>>::builder()
            .max_capacity(settings.capacity_bytes)
            .weigher(|key, value| u32::try_from(key.len() + value.len()).unwrap_or(u32::MAX));
        if let Some(ttl) = settings.ttl {
            builder = builder.time_to_live(ttl);
        }
        Ok(Self {
            cache: builder.build(),
            envelope: settings.envelope(codec, true)?,
        })
    }
}

impl Engine for Moka {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, CacheError> {
        match self.cache.get(key) {
            Some(stored) => self.envelope.unwrap(&stored, value),
            None => Ok(false),
        }
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), CacheError> {
        self.cache.insert(key.into(), self.envelope.wrap(value)?);
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<(), CacheError> {
        self.cache.invalidate(key);
        Ok(())
    }

    fn standing(&self) -> Standing {
        self.cache.run_pending_tasks();
        Standing {
            records: Some(self.cache.entry_count()),
            ..Standing::default()
        }
    }
}
