//! What the cache stands before: slow, and counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Objects that are there from the beginning: the keys 0, 1, 2 and so on.
const OBJECTS: u64 = 100_000;

/// Why there is no value.
#[derive(Debug, thiserror::Error)]
#[error("no such object")]
pub struct NoSuchObject;

/// Objects of which each takes some time to load, as from another service.
pub struct Backend {
    latency: Duration,
    /// What was changed: [`None`] if it was removed.
    changed: Mutex<BTreeMap<String, Option<Vec<u8>>>>,
    loads: AtomicU64,
}

impl Backend {
    pub fn new(latency: Duration) -> Self {
        Self {
            latency,
            changed: Mutex::default(),
            loads: AtomicU64::new(0),
        }
    }

    fn changed(&self) -> MutexGuard<'_, BTreeMap<String, Option<Vec<u8>>>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often something was loaded.
    pub fn loads(&self) -> u64 {
        self.loads.load(Ordering::Relaxed)
    }

    pub async fn load(&self, key: &str) -> Result<Vec<u8>, NoSuchObject> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(self.latency).await;
        if let Some(changed) = self.changed().get(key) {
            return changed.clone().ok_or(NoSuchObject);
        }
        let number = key.parse::<u64>().ok().filter(|&number| number < OBJECTS);
        let number = number.ok_or(NoSuchObject)?;
        Ok(format!("{{\"id\":{number},\"name\":\"object {number}\",\"state\":\"active\"}}\n").into_bytes())
    }

    pub async fn store(&self, key: &str, value: Option<Vec<u8>>) {
        tokio::time::sleep(self.latency).await;
        self.changed().insert(key.to_owned(), value);
    }
}
