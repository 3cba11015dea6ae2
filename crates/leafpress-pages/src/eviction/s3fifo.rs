//! S3-FIFO: three queues (Yang, Zhang, Qiu, Yue, Vinayak, "FIFO queues are all you need for cache eviction", SOSP
//! 2023).
//!
//! A new page enters the small queue. A page that was hit more than once there moves on to the main queue; another is
//! evicted and enters the ghost queue: if it returns while it is there it enters the main queue at once. A page of the
//! main queue is reinserted once per hit, at most three times.

use super::clock::sweep;
use super::links::{Links, Ring};
use super::{Pages, Policy};
use leafpress_base::ghost::Ghost;

/// Maximum number of counted hits in the main queue, and so of reinsertions.
const MAX_FREQUENCY: u8 = 3;

/// The small queue yields the victim if it has more than this fraction (1/10) of the pages.
const SMALL_ONE_IN: usize = 10;

/// The two queues of pages, and the ghost queue.
#[derive(Debug, Default)]
pub(crate) struct S3Fifo {
    links: Links,
    small: Ring,
    main: Ring,
    /// Whether a slot that is in a queue is in the main one.
    is_main: Vec<bool>,
    ghost: Ghost,
}

impl S3Fifo {
    /// Capacity of the ghost queue: that of the main queue.
    fn ghost_capacity(&self) -> usize {
        let pages = self.small.len() + self.main.len();
        pages - pages / SMALL_ONE_IN
    }

    fn enter_main(&mut self, slot: u32) {
        self.main.push_back(&mut self.links, slot);
        self.is_main[slot as usize] = true;
    }

    /// Returns the first page of the small queue with at most one hit; those before it move on to the main queue.
    fn small_victim(&mut self, pages: &dyn Pages, hash: &dyn Fn(u32) -> u64) -> Option<u32> {
        for _ in 0..self.small.len() {
            let slot = self.small.front()?;
            if pages.is_pinned(slot) {
                self.small.turn(&self.links);
                continue;
            }
            let capacity = self.ghost_capacity();
            self.small.remove(&mut self.links, slot);
            if pages.popularity(slot) <= 1 {
                // If the allocation fails, the old table is kept, which remembers fewer pages.
                let _ = self.ghost.fit(capacity, usize::MAX);
                self.ghost.add(hash(slot));
                return Some(slot);
            }
            pages.set_popularity(slot, 0);
            self.enter_main(slot);
        }
        None
    }

    fn main_victim(&mut self, pages: &dyn Pages) -> Option<u32> {
        let rounds = usize::from(MAX_FREQUENCY) + 1;
        sweep(&mut self.main, &mut self.links, pages, rounds, |hits| {
            hits.min(MAX_FREQUENCY) - 1
        })
    }
}

impl Policy for S3Fifo {
    fn reserve(&mut self, slots: usize) -> bool {
        let more = slots.saturating_sub(self.is_main.len());
        if self.is_main.try_reserve(more).is_err() || !self.links.reserve(slots) {
            return false;
        }
        self.is_main.resize(slots.max(self.is_main.len()), false);
        true
    }

    fn insert(&mut self, slot: u32, hash: u64) {
        if slot as usize >= self.is_main.len() {
            self.is_main.resize(slot as usize + 1, false);
        }
        if self.ghost.take(hash, self.ghost_capacity()) {
            self.enter_main(slot);
        } else {
            self.small.push_back(&mut self.links, slot);
            self.is_main[slot as usize] = false;
        }
    }

    fn remove(&mut self, slot: u32) {
        if self.is_main.get(slot as usize).is_some_and(|&is_main| is_main) {
            self.main.remove(&mut self.links, slot);
        } else {
            self.small.remove(&mut self.links, slot);
        }
    }

    fn victim(&mut self, pages: &dyn Pages, hash: &dyn Fn(u32) -> u64) -> Option<u32> {
        if self.small.len() * SMALL_ONE_IN > self.small.len() + self.main.len() {
            self.small_victim(pages, hash).or_else(|| self.main_victim(pages))
        } else {
            self.main_victim(pages).or_else(|| self.small_victim(pages, hash))
        }
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.is_main.capacity() + self.ghost.held_bytes()
    }
}
