//! A pool of dictionaries shared by several trees.

use std::fmt;
use std::sync::Arc;

use super::Codec;
use super::dictionary::{Dictionary, WeakDictionary};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, room_for};
use leafpress_base::sync::Mutex;

/// Maximum number of offered dictionaries; the newest are kept.
const MOST: usize = 16;

/// A pool of dictionaries that trees with similar records share: see `leafpress::tree::TreeBuilder::dictionary_pool`.
///
/// Clones refer to the same pool. It keeps no dictionary alive: one is freed with the last tree that uses it.
#[derive(Clone, Default)]
pub struct DictionaryPool {
    known: Arc<Mutex<Vec<Known>>>,
}

struct Known {
    codec: Codec,
    dictionary: WeakDictionary,
}

impl DictionaryPool {
    /// Returns an empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of dictionaries that trees use.
    pub fn len(&self) -> usize {
        let known = self.known.lock();
        known
            .iter()
            .filter(|known| known.dictionary.upgrade().is_some())
            .count()
    }

    /// Returns true if no tree uses one of its dictionaries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory that the dictionaries hold, in bytes, each counted once.
    pub fn held_bytes(&self) -> u64 {
        let known = self.known.lock();
        let alive = known.iter().filter_map(|known| known.dictionary.upgrade());
        alive.map(|dictionary| dictionary.held_bytes() as u64).sum()
    }

    /// Returns the dictionaries that were trained for a codec, newest first.
    pub fn for_codec(&self, codec: Codec) -> Result<Vec<Dictionary>, OutOfMemory> {
        let known = self.known.lock();
        let mut found = room_for(known.len())?;
        let of_codec = known.iter().rev().filter(|known| known.codec == codec);
        found.extend(of_codec.filter_map(|known| known.dictionary.upgrade()));
        Ok(found)
    }

    /// Offers a dictionary to other trees. If there is no memory, it is not offered.
    pub fn offer(&self, codec: Codec, dictionary: &Dictionary) {
        let mut known = self.known.lock();
        known.retain(|known| known.dictionary.upgrade().is_some());
        if known.len() >= MOST {
            known.remove(0);
        }
        let dictionary = dictionary.downgrade();
        // Best effort: without memory the dictionary is not listed.
        let _ = known.try_push(Known { codec, dictionary });
    }
}

impl fmt::Debug for DictionaryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DictionaryPool")
            .field("dictionaries", &self.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODEC: Codec = Codec::Lz4 { acceleration: 1 };

    #[test]
    fn the_newest_are_offered_while_somebody_has_them() {
        let pool = DictionaryPool::new();
        let dictionaries: Vec<_> = (0..20).map(|id| Dictionary::from_bytes(id, vec![7; 100])).collect();
        dictionaries.iter().for_each(|dictionary| pool.offer(CODEC, dictionary));
        assert_eq!(pool.len(), MOST);
        let ids = |pool: &DictionaryPool| -> Vec<u32> {
            let found = pool.for_codec(CODEC).unwrap();
            found.iter().map(Dictionary::id).collect()
        };
        assert_eq!(ids(&pool), (4..20).rev().collect::<Vec<_>>());
        assert!(pool.for_codec(Codec::None).unwrap().is_empty());
        let one = dictionaries[19].clone();
        drop(dictionaries);
        assert_eq!((ids(&pool), pool.held_bytes()), (vec![19], one.held_bytes() as u64));
        drop(one);
        assert!(pool.is_empty());
    }
}
