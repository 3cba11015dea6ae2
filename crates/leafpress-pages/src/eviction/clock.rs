//! CLOCK: a hand goes round the pages, and evicts a page that has not been hit for long enough.

use super::links::{Links, Ring};
use super::{MAX_POPULARITY, Pages, Policy};

/// The front of the ring is the position of the hand; the back is what it passed last, where new pages enter.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    links: Links,
    ring: Ring,
}

impl Policy for Clock {
    fn reserve(&mut self, slots: usize) -> bool {
        self.links.reserve(slots)
    }

    fn insert(&mut self, slot: u32, _hash: u64) {
        self.ring.push_back(&mut self.links, slot);
    }

    fn remove(&mut self, slot: u32) {
        self.ring.remove(&mut self.links, slot);
    }

    fn victim(&mut self, pages: &dyn Pages, _hash: &dyn Fn(u32) -> u64) -> Option<u32> {
        const ROUNDS: usize = MAX_POPULARITY.ilog2() as usize + 2;
        sweep(&mut self.ring, &mut self.links, pages, ROUNDS, |popularity| {
            popularity / 2
        })
    }

    fn bytes(&self) -> usize {
        self.links.bytes()
    }
}

/// Turns the ring until a page of popularity 0 that is not pinned is at its front, and removes it. Every other unpinned
/// page has its popularity `aged` as it passes. [`None`] if all pages are pinned.
///
/// Each turn except those over pinned pages uses up hits, so the amortized number of turns is small. After `rounds`
/// full rounds, which takes hits that come as fast as the ring turns, the first unpinned page is evicted.
pub(crate) fn sweep(
    ring: &mut Ring,
    links: &mut Links,
    pages: &dyn Pages,
    rounds: usize,
    aged: impl Fn(u8) -> u8,
) -> Option<u32> {
    let mut patience = ring.len() * rounds;
    let mut pinned_in_a_row = 0;
    while let Some(slot) = ring.front() {
        if pages.is_pinned(slot) {
            pinned_in_a_row += 1;
        } else {
            pinned_in_a_row = 0;
            let popularity = pages.popularity(slot);
            if popularity == 0 || patience == 0 {
                ring.remove(links, slot);
                return Some(slot);
            }
            pages.set_popularity(slot, aged(popularity));
        }
        ring.turn(links);
        if pinned_in_a_row >= ring.len() {
            return None;
        }
        patience = patience.saturating_sub(1);
    }
    None
}
