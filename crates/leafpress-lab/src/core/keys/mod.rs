//! Keys: from a number to key bytes, the order keys are loaded in, and how operations choose them.

mod distribution;
mod key_set;
mod permutation;
mod shape;
mod zipf;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

#[cfg(feature = "bench")]
pub(crate) use distribution::Ranks;
pub use distribution::{Chooser, Distribution};
pub use key_set::KeySet;
pub use permutation::Permutation;
pub use permutation::{below, mix};
pub use shape::{KeyShape, MIN_SCATTERED_KEY_BYTES};
pub(crate) use zipf::power_integral;
#[cfg(any(feature = "bench", feature = "cache", feature = "pool"))]
pub(crate) use zipf::unit;

use crate::core::words::words;

/// Most keys of a run.
pub const MAX_KEYS: u64 = 1 << 32;
/// Shortest key of a run, in bytes.
pub const MIN_KEY_BYTES: usize = 4;

/// Order in which the key space is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadOrder {
    /// Ascending.
    #[default]
    Sequential,
    /// A permutation drawn from the seed.
    Random,
}

words!(LoadOrder, "load-order", "unknown order `{}`; known: sequential random":
    Sequential "sequential", Random "random");

/// From a key's number to its bytes: keys that lie ready, or else a buffer for the number, big-endian with zeros in
/// front, so that byte order is number order.
#[derive(Debug, Clone)]
pub struct KeyBytes {
    bytes: Vec<u8>,
    ready: Option<Arc<KeySet>>,
}

impl KeyBytes {
    /// Creates a buffer for keys of `len` bytes, at least [`MIN_KEY_BYTES`], which hold every number below
    /// [`MAX_KEYS`].
    pub fn new(len: usize) -> Self {
        Self {
            bytes: vec![0; len.max(MIN_KEY_BYTES)],
            ready: None,
        }
    }

    /// Creates a buffer for keys that lie ready; their numbers are their places.
    pub fn of(keys: Arc<KeySet>) -> Self {
        Self {
            bytes: Vec::new(),
            ready: Some(keys),
        }
    }

    /// Encodes the key of number `id`.
    #[inline]
    pub fn encode(&mut self, id: u64) -> &[u8] {
        if let Some(keys) = &self.ready {
            return keys.get(id);
        }
        let at = self.bytes.len() - 4;
        // Keys have at least four bytes and numbers are below 2^32; longer keys keep their zeros in front.
        self.bytes[at..].copy_from_slice(&(id as u32).to_be_bytes());
        &self.bytes
    }

    /// The address of a stored key's bytes, for prefetching.
    #[inline]
    pub(crate) fn place(&self, id: u64) -> Option<&[u8]> {
        self.ready.as_ref().map(|keys| keys.get(id))
    }

    /// Decodes the number of a key of this run, `None` for bytes that are not one of its keys. `guess` is the likely
    /// number.
    pub fn decode(&self, key: &[u8], guess: u64) -> Option<u64> {
        if let Some(keys) = &self.ready {
            return keys.find(key, guess);
        }
        let (zeros, number) = key.split_last_chunk::<4>()?;
        (key.len() == self.bytes.len() && zeros.iter().all(|&byte| byte == 0))
            .then(|| u32::from_be_bytes(*number).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_number_order_and_decode() {
        for len in [4, 8, 20] {
            let mut keys = KeyBytes::new(len);
            let mut last = Vec::new();
            for id in [0, 1, 255, 256, 70_000, u64::from(u32::MAX)] {
                let key = keys.encode(id).to_vec();
                assert_eq!(key.len(), len);
                assert!(key > last, "{id}");
                assert_eq!(keys.decode(&key, 0), Some(id));
                last = key;
            }
            assert_eq!(keys.decode(&last[1..], 0), None);
        }
        assert_eq!(KeyBytes::new(8).decode(&[1; 8], 0), None);
    }
    #[test]
    fn keys_that_lie_ready_have_their_places_as_numbers() {
        let set = Arc::new(KeyShape::Text.keys(100, 1, 8));
        let mut keys = KeyBytes::of(set.clone());
        for id in 0..100 {
            let key = keys.encode(id).to_vec();
            assert_eq!(key, set.get(id));
            assert_eq!(keys.decode(&key, 7), Some(id));
        }
        assert_eq!(keys.decode(b"foreign", 0), None);
    }
}
