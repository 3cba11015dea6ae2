//! LRU: the least recently used page is evicted.

use super::links::{Links, Ring};
use super::{Pages, Policy};

/// From the front, the least recently used page, to the back.
#[derive(Debug, Default)]
pub(crate) struct Lru {
    links: Links,
    ring: Ring,
}

impl Policy for Lru {
    fn reserve(&mut self, slots: usize) -> bool {
        self.links.reserve(slots)
    }

    fn insert(&mut self, slot: u32, _hash: u64) {
        self.ring.push_back(&mut self.links, slot);
    }

    fn hit(&mut self, slot: u32) {
        if self.ring.remove(&mut self.links, slot) {
            self.ring.push_back(&mut self.links, slot);
        }
    }

    fn wants_hits(&self) -> bool {
        true
    }

    fn remove(&mut self, slot: u32) {
        self.ring.remove(&mut self.links, slot);
    }

    /// A pinned page is in use, so it counts as hit when its turn comes.
    fn victim(&mut self, pages: &dyn Pages, _hash: &dyn Fn(u32) -> u64) -> Option<u32> {
        for _ in 0..self.ring.len() {
            let slot = self.ring.front()?;
            if !pages.is_pinned(slot) {
                self.ring.remove(&mut self.links, slot);
                return Some(slot);
            }
            self.ring.turn(&self.links);
        }
        None
    }

    fn bytes(&self) -> usize {
        self.links.bytes()
    }
}
