//! Warming a cache at its next start: reading back the keys that were in use when it was closed.

use std::sync::Arc;

use super::inner::{CacheInner, Seen};
use leafpress_base::sync::runtime::{Next, Task};
use leafpress_base::sync::worker::Health;

/// The saved keys take at most 1/64 of the memory.
pub(super) const WARM_KEYS_DIVISOR: u64 = 64;
/// Estimated memory of a saved key in addition to its bytes.
pub(super) const KEY_OVERHEAD_BYTES: u64 = 48;
/// Keys that are read back in one step of the task.
const KEYS_AT_ONCE: usize = 16;

/// Returns the longest prefix of the keys that fits in the memory for saved keys.
pub(super) fn keys_within(mut keys: Vec<Vec<u8>>, memory_bytes: u64) -> Vec<Vec<u8>> {
    let mut room = memory_bytes / WARM_KEYS_DIVISOR;
    let fits = |key: &&Vec<u8>| {
        let bytes = key.len() as u64 + KEY_OVERHEAD_BYTES;
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits
    };
    let count = keys.iter().take_while(fits).count();
    keys.truncate(count);
    keys.shrink_to_fit();
    keys
}

/// Reads back the keys that were in use when the cache was closed, until memory is nearly full.
pub(super) struct Warming {
    pub core: Arc<CacheInner>,
    pub keys: std::vec::IntoIter<Vec<u8>>,
}

impl Warming {
    fn end(&self) {
        debug_event!(cache = %self.core.observer.name, left = self.keys.len(), "warm again");
    }
}

impl Task for Warming {
    fn work(&mut self) -> Next {
        let budget = &self.core.budget;
        let is_full = self.core.tree.node_bytes() >= budget.node_limit_bytes() / 10 * 9;
        if is_full {
            self.end();
            return Next::End;
        }
        for _ in 0..KEYS_AT_ONCE {
            let Some(key) = self.keys.next() else {
                self.end();
                return Next::End;
            };
            // A record that cannot be read counts as absent.
            let _ = self.core.find(&key, |_| (), &mut Seen::default());
        }
        Next::Again
    }

    fn health(&self) -> &Health {
        &self.core.health
    }

    fn give_up(&mut self) {}
}
