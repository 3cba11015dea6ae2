//! From an id to a key's bytes.

use std::sync::Arc;

use super::Options;
use crate::core::corpus::Records;
use crate::core::keys::{KeySet, KeyShape, LoadOrder, Permutation};

/// Multiplier of the hash that scatters ids: 2^64 over the golden ratio, odd (Knuth, "The Art of Computer Programming"
/// 3, 6.4).
const MULTIPLIER: u64 = 11_400_714_819_323_198_393;

/// From an id to a key: PiBench's keys, keys of a shape, or the keys of records.
#[derive(Debug, Clone)]
pub struct KeyFormat {
    prefix: Vec<u8>,
    kind: Kind,
    /// The longest key with its prefix, in bytes.
    longest: usize,
    /// Whether all keys have that length.
    fixed: bool,
    /// Turns the order of the ids into one that is none, where keys would ascend with them.
    shuffled: Option<Permutation>,
}

#[derive(Debug, Clone)]
enum Kind {
    /// Zero bytes, then the id times 11400714819323198393 mod 2^64, little-endian.
    ///
    /// Sizes below 8 bytes keep the low bytes of the product, sizes above have zeros in front of it. As the multiplier
    /// is odd, ids below `256^size` have different keys.
    PiBench {
        size: usize,
    },
    Shape {
        shape: KeyShape,
        seed: u64,
        size: usize,
    },
    Records(Arc<KeySet>),
}

impl KeyFormat {
    /// Creates PiBench's keys of `size` bytes after `prefix`.
    pub fn new(prefix: &[u8], size: usize) -> Self {
        Self {
            prefix: prefix.to_vec(),
            kind: Kind::PiBench { size },
            longest: prefix.len() + size,
            fixed: true,
            shuffled: None,
        }
    }

    /// The keys that a run's options ask for; `records` are those of the dump, if there is one.
    pub(super) fn of(options: &Options, records: Option<&Records>) -> Self {
        let prefix = options.key_prefix.as_bytes();
        let in_order = options.load_order == LoadOrder::Sequential;
        if let Some(records) = records {
            let keys = records.keys.clone();
            return Self {
                prefix: Vec::new(),
                longest: keys.longest(),
                fixed: keys.shortest() == keys.longest(),
                shuffled: (!in_order).then(|| Permutation::new(keys.len(), options.seed)),
                kind: Kind::Records(keys),
            };
        }
        let Some(shape) = options.key_shape else {
            return Self::new(prefix, options.key_size);
        };
        let shuffled = shape.keeps_order() && !in_order && options.records > 0;
        Self {
            prefix: prefix.to_vec(),
            kind: Kind::Shape {
                shape,
                seed: options.seed,
                size: options.key_size,
            },
            longest: prefix.len() + shape.longest(options.key_size),
            fixed: shape.fixed(options.key_size).is_some(),
            shuffled: shuffled.then(|| Permutation::new(options.records, options.seed)),
        }
    }

    /// Returns the length of the longest key with its prefix, in bytes: the room that [`KeyFormat::fill`] needs.
    pub fn key_bytes(&self) -> usize {
        self.longest
    }

    /// Returns whether all keys have the same length.
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Returns room for a key, for [`KeyFormat::fill`].
    pub fn blank(&self) -> Vec<u8> {
        let mut blank = self.prefix.clone();
        blank.resize(self.longest, 0);
        blank
    }

    /// The record of an id, from 0.
    pub(super) fn number(&self, id: u64) -> u64 {
        let number = id.wrapping_sub(1);
        let number = match &self.kind {
            // Ids past the last record come round again.
            Kind::Records(keys) => number % keys.len(),
            _ => number,
        };
        match &self.shuffled {
            Some(shuffled) if number < shuffled.len() => shuffled.apply(number),
            _ => number,
        }
    }

    /// Puts an id's key into what was made by [`KeyFormat::blank`]; its length.
    #[inline]
    pub fn fill(&self, id: u64, key: &mut [u8]) -> usize {
        #[cfg(test)]
        super::mock_cost::make();
        match &self.kind {
            Kind::PiBench { size } => {
                let len = (*size).min(8);
                let hashed = id.wrapping_mul(MULTIPLIER).to_le_bytes();
                key[self.longest - len..].copy_from_slice(&hashed[..len]);
                self.longest
            }
            Kind::Shape { shape, seed, size } => {
                let mut made = Vec::with_capacity(self.longest);
                shape.write(self.number(id), *seed, *size, &mut made);
                let end = self.prefix.len() + made.len();
                key[self.prefix.len()..end].copy_from_slice(&made);
                end
            }
            Kind::Records(keys) => {
                let found = keys.get(self.number(id));
                key[..found.len()].copy_from_slice(found);
                found.len()
            }
        }
    }

    /// Returns the key of an id.
    pub fn key(&self, id: u64) -> Vec<u8> {
        let mut key = self.blank();
        let len = self.fill(id, &mut key);
        key.truncate(len);
        key
    }
}

/// Formats a key: as text if it is text, else in hexadecimal.
pub(super) fn readable(key: &[u8]) -> String {
    if !key.is_empty() && key.iter().all(|byte| byte.is_ascii_graphic()) {
        return String::from_utf8_lossy(key).into_owned();
    }
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_pibenchs() {
        // 5 times 0x9e37_79b9_7f4a_7bb9, mod 2^64.
        assert_eq!(MULTIPLIER, 0x9e37_79b9_7f4a_7bb9);
        let hashed = 0x1715_609f_7c74_6a9d_u64;
        let bytes = hashed.to_le_bytes();
        assert_eq!(KeyFormat::new(b"", 8).key(5), bytes);
        assert_eq!(KeyFormat::new(b"", 3).key(5), bytes[..3]);
        let long = [b"user_".as_slice(), &[0; 4], &bytes].concat();
        assert_eq!(KeyFormat::new(b"user_", 12).key(5), long);
        assert_eq!(KeyFormat::new(b"", 8).key(0), [0; 8]);
    }

    #[test]
    fn short_keys_are_all_different() {
        for (size, ids) in [(1, 256_u64), (2, 65_536)] {
            let format = KeyFormat::new(b"p", size);
            let keys: std::collections::HashSet<_> = (1..=ids).map(|id| format.key(id)).collect();
            assert_eq!(keys.len() as u64, ids);
        }
    }

    #[test]
    fn keys_of_every_shape_differ_also_behind_a_prefix() {
        for shape in KeyShape::ALL {
            let mut options = Options::new("dummy".parse().unwrap());
            options.key_prefix = "p/".into();
            options.records = 500;
            options.set_key_shape(shape);
            let format = KeyFormat::of(&options, None);
            let keys: std::collections::HashSet<_> = (1..=800).map(|id| format.key(id)).collect();
            assert_eq!(keys.len(), 800, "{shape}");
            let right = |key: &Vec<u8>| {
                let length = if format.is_fixed() {
                    key.len() == format.key_bytes()
                } else {
                    key.len() <= format.key_bytes()
                };
                key.starts_with(b"p/") && length
            };
            assert!(keys.iter().all(right), "{shape}");
        }
    }

    #[test]
    fn dense_keys_are_loaded_in_the_configured_order() {
        let mut options = Options::new("dummy".parse().unwrap());
        options.records = 1000;
        options.set_key_shape(KeyShape::Dense);
        let ascents = |options: &Options| {
            let format = KeyFormat::of(options, None);
            let keys: Vec<_> = (1..=1000).map(|id| format.key(id)).collect();
            let mut sorted = keys.clone();
            sorted.sort();
            assert_eq!(
                sorted,
                (0..1000_u64).map(|id| id.to_be_bytes().to_vec()).collect::<Vec<_>>()
            );
            keys.windows(2).filter(|pair| pair[0] < pair[1]).count()
        };
        assert!((400..600).contains(&ascents(&options)));
        options.load_order = LoadOrder::Sequential;
        assert_eq!(ascents(&options), 999);
    }

    #[test]
    fn keys_are_readable() {
        assert_eq!(readable(b"user_1"), "user_1");
        assert_eq!(readable(&[0, 255]), "0x00ff");
        assert_eq!(readable(b""), "0x");
    }
}
