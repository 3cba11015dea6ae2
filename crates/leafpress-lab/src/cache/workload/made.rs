//! Values of the paper's objects: random bytes by a hash of key and version, followed by zeros.

use super::super::PaperObjects;
use crate::core::keys::mix;

/// Where the lengths of keys' values are drawn from, so that they have nothing to do with their bytes.
const LENGTHS: u64 = 0x6c65_6e67_7468;

#[inline]
pub(super) fn hash(id: u64, version: u32) -> u64 {
    mix(mix(id) ^ u64::from(version).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Objects of one length.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// Upper bound of the hashes of this kind's keys; the last kind's bound is the lower one.
    below: u64,
    random_bytes: usize,
    value_bytes: usize,
}

/// The values.
pub(super) struct Made {
    seed: u64,
    kinds: Vec<Kind>,
    mean_bytes: f64,
}

impl Made {
    /// Objects with keys of `key_bytes`.
    pub(super) fn new(objects: &PaperObjects, key_bytes: f64, seed: u64) -> Self {
        let lengths = &objects.value_bytes;
        // As many bytes of each length: the longer, the fewer.
        let keys_of = |value_bytes: u32| 1.0 / (key_bytes + f64::from(value_bytes));
        let all: f64 = lengths.iter().map(|bytes| keys_of(*bytes)).sum();
        let mean_bytes = lengths
            .iter()
            .map(|bytes| keys_of(*bytes) / all * f64::from(*bytes))
            .sum();
        let mut share = 0.0;
        let kinds = lengths.iter().map(|&value_bytes| {
            share += keys_of(value_bytes) / all;
            Kind {
                below: (share * 2_f64.powi(64)) as u64,
                random_bytes: objects.random_bytes(value_bytes) as usize,
                value_bytes: value_bytes as usize,
            }
        });
        Self {
            seed: mix(seed),
            kinds: kinds.collect(),
            mean_bytes,
        }
    }

    /// The place of a key's length among all lengths.
    #[inline]
    pub(super) fn kind(&self, id: u64) -> usize {
        if self.kinds.len() == 1 {
            return 0;
        }
        let hash = mix(mix(id ^ self.seed) ^ LENGTHS);
        let last = self.kinds.len() - 1;
        self.kinds.iter().position(|kind| hash < kind.below).unwrap_or(last)
    }

    pub(super) fn kinds(&self) -> usize {
        self.kinds.len()
    }

    pub(super) fn mean_bytes(&self) -> f64 {
        self.mean_bytes
    }

    pub(super) fn len(&self, id: u64) -> usize {
        self.kinds[self.kind(id)].value_bytes
    }

    pub(super) fn longest(&self) -> usize {
        self.kinds.iter().map(|kind| kind.value_bytes).max().unwrap_or(0)
    }

    /// The random bytes of a value, eight at a time, more than there are.
    #[inline]
    fn words(&self, id: u64, version: u32) -> impl Iterator<Item = [u8; 8]> {
        let start = hash(id ^ self.seed, version);
        (1_u64..).map(move |number| mix(start ^ number.rotate_left(56)).to_le_bytes())
    }

    /// Appends what the key holds in a version.
    #[inline]
    pub(super) fn write(&self, id: u64, version: u32, value: &mut Vec<u8>) {
        let kind = self.kinds[self.kind(id)];
        let mut left = kind.random_bytes;
        for word in self.words(id, version) {
            let part = &word[..left.min(8)];
            value.extend_from_slice(part);
            left -= part.len();
            if left == 0 {
                break;
            }
        }
        value.resize(kind.value_bytes, 0);
    }

    /// Whether this is what the key holds in a version.
    #[inline]
    pub(super) fn holds(&self, id: u64, version: u32, value: &[u8]) -> bool {
        let kind = self.kinds[self.kind(id)];
        if value.len() != kind.value_bytes {
            return false;
        }
        let (random, zeros) = value.split_at(kind.random_bytes);
        let mut parts = random.chunks(8).zip(self.words(id, version));
        parts.all(|(part, word)| *part == word[..part.len()]) && zeros.iter().all(|byte| *byte == 0)
    }
}
