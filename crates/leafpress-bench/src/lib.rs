//! What the benchmarks of the library measure: a loaded tree with keys of 8 big-endian bytes and values of 128 bytes,
//! cut from the bundled package index.
#![warn(missing_docs)]

use std::sync::Arc;

use leafpress::codec::{Dictionary, Engine, EngineOptions};
use leafpress::tree::DictionaryChoice;
use leafpress::{Codec, Tree};

/// Length of a value in bytes.
pub const VALUE_BYTES: usize = 128;

/// A tree with the even numbers below `2 * keys` as keys; the odd ones are absent.
pub struct Loaded {
    /// The tree.
    pub tree: Tree,
    /// How many keys it has.
    pub keys: u64,
    values: Vec<u8>,
    state: u64,
    engine: Arc<dyn Engine>,
    dictionary: Option<Dictionary>,
}

impl Loaded {
    /// Returns a settled tree with this codec and this many keys.
    pub fn new(codec: Codec, keys: u64) -> Self {
        let tree = Tree::builder()
            .codec(codec)
            .dictionary(DictionaryChoice::Auto)
            .build()
            .expect("the codec is compiled in");
        let loaded = Self {
            tree,
            keys,
            values: sample(),
            state: 1,
            engine: codec.open(&EngineOptions::default()).expect("the codec is compiled in"),
            dictionary: None,
        };
        for i in 0..keys {
            // A stride that shares no factor with the key count visits every key, out of order.
            let n = i * 7_368_787 % keys;
            loaded.tree.insert(&key(2 * n), loaded.value(n)).expect("put");
        }
        loaded.tree.compact().expect("compact");
        loaded.tree.settle().unwrap();
        assert_eq!(loaded.tree.len() as u64, keys);
        loaded
    }

    /// Returns a number below `keys`, by SplitMix64: the same sequence in every run.
    pub fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % self.keys
    }

    /// Reads eight of the keys in one call; returns the bytes of their values.
    pub fn read_many(&mut self) -> usize {
        let keys: [_; 8] = std::array::from_fn(|_| key(2 * self.random()));
        let mut bytes = 0;
        let read = self
            .tree
            .get_many_with(&keys, |_, value| bytes += value.expect("the key is there").len());
        read.expect("get");
        bytes
    }

    /// Trains the dictionary of [`Loaded::compress`] if the codec uses one.
    pub fn train(&mut self) {
        let samples: Vec<&[u8]> = self.values.chunks_exact(VALUE_BYTES).step_by(7).collect();
        let codec = self.engine.codec();
        let uses_one = self.engine.supports_dictionary();
        self.dictionary = uses_one.then(|| Dictionary::train(codec, &samples, 16 << 10).expect("there are samples"));
    }

    /// Compresses a value by itself.
    pub fn compress(&self, n: u64, block: &mut Vec<u8>) {
        block.clear();
        let compressed = self.engine.compress(self.value(n), self.dictionary.as_ref(), block);
        compressed.expect("compress");
    }

    /// Returns the value of key number `n`.
    pub fn value(&self, n: u64) -> &[u8] {
        let cuts = self.values.len() / VALUE_BYTES;
        let start = n as usize % cuts * VALUE_BYTES;
        &self.values[start..start + VALUE_BYTES]
    }
}

/// Key number `n`.
pub fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

/// Returns the bundled package index, unpacked.
pub fn sample() -> Vec<u8> {
    let packed = include_bytes!("../../../data/packages.txt.gz");
    // A gzip member ends with its raw length.
    let (_, len) = packed.split_last_chunk::<4>().expect("a gzip file");
    let mut raw = vec![0; u32::from_le_bytes(*len) as usize];
    libdeflater::Decompressor::new()
        .gzip_decompress(packed, &mut raw)
        .expect("the bundled sample is whole");
    raw
}
