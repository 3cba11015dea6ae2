//! Keys that lie ready in memory.

use crate::core::resources;

/// Keys in ascending order: the number of a key is its place among them, so that a scan meets ascending numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySet {
    bytes: Vec<u8>,
    /// Key i is `bytes[starts[i]..starts[i + 1]]`.
    starts: Vec<u64>,
    shortest: usize,
    longest: usize,
}

impl KeySet {
    /// Creates a set of keys that come in ascending order, none of them twice.
    pub fn from_ascending<'k>(keys: impl Iterator<Item = &'k [u8]>) -> Self {
        let mut set = Self {
            bytes: Vec::new(),
            starts: vec![0],
            shortest: usize::MAX,
            longest: 0,
        };
        for key in keys {
            debug_assert!(set.last().is_none_or(|last| last < key), "keys ascend");
            set.bytes.extend_from_slice(key);
            set.starts.push(set.bytes.len() as u64);
            set.shortest = set.shortest.min(key.len());
            set.longest = set.longest.max(key.len());
        }
        set.bytes.shrink_to_fit();
        set.starts.shrink_to_fit();
        set.shortest = set.shortest.min(set.longest);
        resources::in_huge_pages(&set.bytes);
        resources::in_huge_pages(&set.starts);
        set
    }

    fn last(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).map(|last| self.get(last))
    }

    /// Returns the number of keys.
    pub fn len(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns key number `id`, which must be below [`KeySet::len`].
    #[inline]
    pub fn get(&self, id: u64) -> &[u8] {
        let at = id as usize;
        &self.bytes[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Returns the number of a key, `None` if it is not in the set. `guess` is tried first.
    pub fn find(&self, key: &[u8], guess: u64) -> Option<u64> {
        if guess < self.len() && self.get(guess) == key {
            return Some(guess);
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Returns the length of the shortest key in bytes; 0 without a key.
    pub fn shortest(&self) -> usize {
        self.shortest
    }

    /// Returns the length of the longest key in bytes; 0 without a key.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Returns the bytes of all keys.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the keys with the numbers of `ids`, ascending.
    #[must_use]
    pub fn only(&self, ids: impl Iterator<Item = u64>) -> Self {
        Self::from_ascending(ids.map(|id| self.get(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_number_and_by_bytes() {
        let keys = ["", "a", "ab", "b", "zebra"];
        let set = KeySet::from_ascending(keys.iter().map(|key| key.as_bytes()));
        assert_eq!(
            (set.len(), set.shortest(), set.longest(), set.total_bytes()),
            (5, 0, 5, 9)
        );
        for (id, key) in (0..).zip(keys) {
            assert_eq!(set.get(id), key.as_bytes());
            for guess in 0..6 {
                assert_eq!(set.find(key.as_bytes(), guess), Some(id));
            }
        }
        for absent in ["0", "aa", "c", "zebras"] {
            assert_eq!(set.find(absent.as_bytes(), 0), None);
        }
        let some = set.only([1, 4].into_iter());
        assert_eq!((some.get(0), some.get(1)), (b"a".as_slice(), b"zebra".as_slice()));
    }

    #[test]
    fn there_may_be_no_key() {
        let set = KeySet::from_ascending(std::iter::empty());
        assert!(set.is_empty() && set.find(b"a", 0).is_none());
        assert_eq!((set.shortest(), set.longest()), (0, 0));
    }
}
