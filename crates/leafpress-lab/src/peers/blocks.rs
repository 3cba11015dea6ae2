//! A store of sorted, compressed blocks, all in memory: what an LSM tree's file makes of the same records, without its
//! levels, filters and caches. It is built once, by `settle`, and read from then on.
//!
//! A block is records in key order, each as `shared | rest of key | value` with three lengths before (LEB128): the key
//! without what it shares with the one before, as LevelDB and RocksDB write it. The first keys of all blocks lie side
//! by side, uncompressed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, RwLock};

use leafpress::codec::{Codec, CodecError, Engine, EngineOptions};
use leafpress::{TreeError, TreeStats};
use leafpress_base::bytes::{Bytes, put_leb128};

use crate::core::LabError;
use crate::harness::store::Store;

/// The codec of blocks.
pub(super) const CODEC: Codec = Codec::Zstd { level: 3 };

type Records = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// The store.
pub(super) struct BlockStore {
    engine: Arc<dyn Engine>,
    block_bytes: usize,
    /// Records put before the blocks were built.
    loaded: RwLock<Records>,
    blocks: OnceLock<Blocks>,
}

#[derive(Default)]
struct Blocks {
    /// First keys, back to back, and where each ends.
    first_keys: Vec<u8>,
    key_ends: Vec<usize>,
    /// Blocks, back to back; where each ends, and its raw length.
    bytes: Vec<u8>,
    ends: Vec<(usize, u32)>,
    records: usize,
    user_bytes: usize,
}

thread_local! {
    /// The block that a thread decoded last, and the key it is at.
    static BUFFERS: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

impl BlockStore {
    /// Creates an empty block store with blocks of about this many raw bytes.
    pub(super) fn new(block_bytes: usize) -> Result<Self, LabError> {
        let engine = CODEC.open(&EngineOptions::default());
        Ok(Self {
            engine: engine.map_err(|e| LabError::Tree(e.into()))?,
            block_bytes,
            loaded: RwLock::default(),
            blocks: OnceLock::new(),
        })
    }

    fn built(&self) -> Result<&Blocks, TreeError> {
        self.blocks
            .get()
            .ok_or_else(|| TreeError::Invalid("blocks are read before they are built".into()))
    }

    fn build(&self, records: Records) -> Result<Blocks, CodecError> {
        let mut blocks = Blocks::default();
        let mut raw = Vec::new();
        let mut before: Box<[u8]> = Box::default();
        for (key, value) in records {
            if raw.is_empty() {
                blocks.first_keys.extend_from_slice(&key);
                blocks.key_ends.push(blocks.first_keys.len());
                before = Box::default();
            }
            let shared = key.iter().zip(&before).take_while(|(one, other)| one == other).count();
            for len in [shared, key.len() - shared, value.len()] {
                put_leb128(&mut raw, len);
            }
            raw.extend_from_slice(&key[shared..]);
            raw.extend_from_slice(&value);
            blocks.records += 1;
            blocks.user_bytes += key.len() + value.len();
            before = key;
            if raw.len() >= self.block_bytes {
                self.close(&mut blocks, &mut raw)?;
            }
        }
        if !raw.is_empty() {
            self.close(&mut blocks, &mut raw)?;
        }
        blocks.first_keys.shrink_to_fit();
        blocks.key_ends.shrink_to_fit();
        blocks.bytes.shrink_to_fit();
        blocks.ends.shrink_to_fit();
        Ok(blocks)
    }

    fn close(&self, blocks: &mut Blocks, raw: &mut Vec<u8>) -> Result<(), CodecError> {
        let start = blocks.bytes.len();
        let stored = self.engine.compress(raw, None, &mut blocks.bytes)?;
        if stored >= raw.len() {
            blocks.bytes.truncate(start);
            blocks.bytes.extend_from_slice(raw);
        }
        blocks.ends.push((blocks.bytes.len(), raw.len() as u32));
        raw.clear();
        Ok(())
    }
}

impl Blocks {
    fn first_key(&self, block: usize) -> &[u8] {
        let start = block.checked_sub(1).map_or(0, |before| self.key_ends[before]);
        &self.first_keys[start..self.key_ends[block]]
    }

    /// The block that has the key, if one has.
    fn block_of(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.first_key(middle) <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    fn decode(&self, engine: &dyn Engine, block: usize, raw: &mut Vec<u8>) -> Result<(), CodecError> {
        let start = block.checked_sub(1).map_or(0, |before| self.ends[before].0);
        let (end, raw_len) = self.ends[block];
        let stored = &self.bytes[start..end];
        raw.resize(raw_len as usize, 0);
        if stored.len() == raw.len() {
            raw.copy_from_slice(stored);
            return Ok(());
        }
        engine.decompress(stored, None, raw)
    }

    fn held_bytes(&self) -> usize {
        self.first_keys.capacity()
            + self.bytes.capacity()
            + self.key_ends.capacity() * size_of::<usize>()
            + self.ends.capacity() * size_of::<(usize, u32)>()
    }
}

/// The next record of a block: the length of the prefix shared with the previous key, the rest of its key, its value.
fn take_record<'r>(raw: &mut Bytes<'r>) -> Option<(usize, &'r [u8], &'r [u8])> {
    let [shared, rest, value] = [raw.leb128()?, raw.leb128()?, raw.leb128()?];
    Some((shared, raw.take(rest)?, raw.take(value)?))
}

fn built_once() -> TreeError {
    TreeError::Invalid("a block store is immutable once built".into())
}

impl Store for BlockStore {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        if self.blocks.get().is_some() {
            return Err(built_once());
        }
        let mut loaded = self.loaded.write().map_err(|_| built_once())?;
        Ok(loaded.insert(key.into(), value.into()).is_none())
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, TreeError> {
        let blocks = self.built()?;
        let Some(block) = blocks.block_of(key) else {
            return Ok(false);
        };
        BUFFERS.with_borrow_mut(|(raw, current)| {
            blocks.decode(&*self.engine, block, raw)?;
            let mut rest = Bytes(raw);
            current.clear();
            while let Some((shared, suffix, found)) = take_record(&mut rest) {
                current.truncate(shared);
                current.extend_from_slice(suffix);
                if current.as_slice() >= key {
                    value.clear();
                    value.extend_from_slice(found);
                    return Ok(current.as_slice() == key);
                }
            }
            Ok(false)
        })
    }

    fn remove(&self, _key: &[u8]) -> Result<bool, TreeError> {
        Err(built_once())
    }

    fn scan(&self, _start: &[u8], _limit: usize, _visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), TreeError> {
        Err(TreeError::Invalid("a block store supports only point reads".into()))
    }

    fn len(&self) -> usize {
        match self.blocks.get() {
            Some(blocks) => blocks.records,
            None => self.loaded.read().map_or(0, |loaded| loaded.len()),
        }
    }

    fn settle(&self) -> Result<(), TreeError> {
        let mut loaded = self.loaded.write().map_err(|_| built_once())?;
        if self.blocks.get().is_none() {
            let blocks = self.build(std::mem::take(&mut *loaded))?;
            let _ = self.blocks.set(blocks);
        }
        Ok(())
    }

    fn stats(&self) -> TreeStats {
        let mut stats = TreeStats::default();
        if let Some(blocks) = self.blocks.get() {
            stats.records = blocks.records as u64;
            stats.user_bytes = blocks.user_bytes as u64;
            stats.bytes_held = blocks.held_bytes() as u64;
        }
        stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_loaded_is_found_and_nothing_else() {
        for (block_bytes, records) in [(4096, 0), (4096, 1), (4096, 3_000), (16_384, 3_000), (1, 50)] {
            let store = BlockStore::new(block_bytes).unwrap();
            let record = |n: u32| (format!("key/{:06}", 2 * n), format!("{n:08}").repeat(n as usize % 40));
            for n in 0..records {
                let (key, value) = record(n * 7919 % records);
                assert!(store.put(key.as_bytes(), value.as_bytes()).unwrap());
            }
            store.settle().unwrap();
            assert_eq!(store.len(), records as usize);
            let mut value = Vec::new();
            for n in 0..records {
                let (key, expected) = record(n);
                assert!(store.get_into(key.as_bytes(), &mut value).unwrap());
                assert_eq!(value, expected.as_bytes());
                let absent = format!("key/{:06}", 2 * n + 1);
                assert!(!store.get_into(absent.as_bytes(), &mut value).unwrap());
            }
            for absent in ["", "a", "z"] {
                assert!(!store.get_into(absent.as_bytes(), &mut value).unwrap());
            }
            assert!(store.put(b"k", b"").is_err());
        }
    }

    #[test]
    fn blocks_hold_less_than_their_records() {
        let store = BlockStore::new(4096).unwrap();
        for n in 0..5_000u32 {
            let value = format!("{{\"id\":{n},\"state\":\"active\"}}").repeat(4);
            store.put(format!("user/{n:08}").as_bytes(), value.as_bytes()).unwrap();
        }
        store.settle().unwrap();
        let stats = store.stats();
        assert!(stats.bytes_held * 3 < stats.user_bytes, "{stats:?}");
    }
}
