//! From the number of a key to its bytes.

use std::io::Write;
use std::sync::Arc;

use super::cachebench::CacheBench;
use crate::core::keys::{KeySet, mix};

/// Length of generated keys in bytes.
const NUMBER_BYTES: usize = 16;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Keys, each of them by its number.
pub(super) enum Keys {
    /// A number's hash in hexadecimal; no two numbers have one hash.
    Numbers { seed: u64 },
    /// The keys of records; numbers past the last repeat them, with the repetition appended.
    Copies(Arc<KeySet>),
    /// The keys of a trace, back to back, and where each ends.
    Listed { bytes: Vec<u8>, ends: Vec<u64> },
    /// Letters, of the length that a CacheBench file defines.
    Drawn(Arc<CacheBench>),
}

/// A key that is another key's copy, if there is one.
pub(super) fn ambiguous(keys: &KeySet) -> Option<&[u8]> {
    let all = (0..keys.len()).map(|id| keys.get(id));
    let mut copies = all.filter(|key| {
        let mark = key.iter().rposition(|byte| *byte == b'#');
        mark.is_some_and(|at| key[at + 1..].iter().all(u8::is_ascii_digit) && keys.find(&key[..at], 0).is_some())
    });
    copies.next()
}

impl Keys {
    /// Mean bytes of one.
    pub(super) fn mean_bytes(&self) -> f64 {
        match self {
            Self::Numbers { .. } => NUMBER_BYTES as f64,
            Self::Copies(keys) => keys.total_bytes() as f64 / keys.len().max(1) as f64,
            Self::Listed { bytes, ends } => bytes.len() as f64 / ends.len().max(1) as f64,
            Self::Drawn(cachebench) => cachebench.mean_bytes.0,
        }
    }

    /// Replaces `key` by the bytes of key `id`.
    #[inline]
    pub(super) fn write(&self, id: u64, key: &mut Vec<u8>) {
        key.clear();
        match self {
            Self::Numbers { seed } => {
                let hash = mix(id ^ mix(*seed));
                key.extend(
                    (0..NUMBER_BYTES)
                        .rev()
                        .map(|digit| DIGITS[(hash >> (4 * digit)) as usize & 15]),
                );
            }
            Self::Copies(keys) => {
                let (copy, id) = (id / keys.len(), id % keys.len());
                key.extend_from_slice(keys.get(id));
                if copy > 0 {
                    // Writing to memory does not fail.
                    let _ = write!(key, "#{copy}");
                }
            }
            Self::Listed { bytes, ends } => {
                let at = id as usize;
                let start = at.checked_sub(1).map_or(0, |before| ends[before]);
                key.extend_from_slice(&bytes[start as usize..ends[at] as usize]);
            }
            Self::Drawn(cachebench) => cachebench.write_key(id, key),
        }
    }
}
