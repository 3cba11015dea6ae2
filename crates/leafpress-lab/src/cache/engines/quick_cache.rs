//! `quick_cache`, with its own defaults: S3-FIFO, shards by the number of cores.

use std::sync::Arc;

use leafpress::{CacheError, Codec};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::envelope::Envelope;
use super::{Engine, Settings, Standing};

/// An entry weighs what its key and value hold.
#[derive(Clone)]
struct Lengths;

impl Weighter<Box<[u8]>, Arc<[u8]>> for Lengths {
    fn weight(&self, key: &Box<[u8]>, value: &Arc<[u8]>) -> u64 {
        (key.len() + value.len()) as u64
    }
}

pub(super) struct QuickCache {
    cache: Cache<Box<[u8]>, Arc<[u8]>, Lengths>,
    envelope: Envelope,
}

impl QuickCache {
    pub(super) fn new(codec: Option<Codec>, settings: &Settings) -> Result<Self, CacheError> {
        Ok(Self {
            cache: Cache::with_weighter(settings.entries(), settings.capacity_bytes, Lengths),
            envelope: settings.envelope(codec, false)?,
        })
    }
}

impl Engine for QuickCache {
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
        self.cache.remove(key);
        Ok(())
    }

    fn standing(&self) -> Standing {
        Standing {
            records: Some(self.cache.len() as u64),
            ..Standing::default()
        }
    }
}
