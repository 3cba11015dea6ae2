//! What all services of a layer share: the cache, the settings, and the validations in progress.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use http::header::HeaderName;
use leafpress::Cache;
use leafpress::cache::Clock;

/// What all services of a layer share.
pub(crate) struct Shared {
    pub cache: Cache,
    pub clock: Arc<dyn Clock>,
    pub is_private: bool,
    pub max_body_bytes: usize,
    pub keeps_stale: Duration,
    pub tag_header: Option<HeaderName>,
    pub namespace: Vec<u8>,
    /// Keys of the responses that tasks are validating.
    pub validating: Arc<Mutex<HashSet<Vec<u8>>>>,
}

impl Shared {
    pub(crate) fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.clock.now()
    }

    /// Marks a response as being validated until the result is dropped; [`None`] if it is already.
    pub(crate) fn begin_validation(&self, key: &[u8]) -> Option<Validation> {
        let mut keys = self.validating.lock().unwrap_or_else(PoisonError::into_inner);
        keys.insert(key.to_vec()).then(|| Validation {
            keys: Arc::clone(&self.validating),
            key: key.to_vec(),
        })
    }
}

/// The validation of a stored response in a task.
pub(crate) struct Validation {
    keys: Arc<Mutex<HashSet<Vec<u8>>>>,
    key: Vec<u8>,
}

impl Drop for Validation {
    fn drop(&mut self) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.remove(&self.key);
    }
}
