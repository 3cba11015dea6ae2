//! Eviction policies of a space.

mod clock;
mod links;
mod lru;
mod s3fifo;
#[cfg(feature = "testing")]
mod simulation;
pub(crate) mod sketch;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "testing")]
pub use self::simulation::PolicySimulation;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::boxed;

/// The eviction policy of the raw space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PolicyKind {
    /// CLOCK: a page's popularity counts its hits and is halved as the hand passes; at 0 the page is evicted.
    #[default]
    Clock,
    /// LRU: the least recently used page is evicted.
    Lru,
    /// S3-FIFO: a small queue for new pages, a main queue, and a ghost queue of pages evicted from the small one (Yang
    /// et al., "FIFO queues are all you need for cache eviction", SOSP 2023).
    S3Fifo,
}

impl PolicyKind {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Clock, Self::Lru, Self::S3Fifo];

    /// Returns a policy of this kind, without pages.
    pub(crate) fn build(self) -> Result<Box<dyn Policy>, OutOfMemory> {
        Ok(match self {
            Self::Clock => boxed(clock::Clock::default())? as Box<dyn Policy>,
            Self::Lru => boxed(lru::Lru::default())?,
            Self::S3Fifo => boxed(s3fifo::S3Fifo::default())?,
        })
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clock => "clock",
            Self::Lru => "lru",
            Self::S3Fifo => "s3-fifo",
        })
    }
}

/// The error of an unknown policy name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown policy {0:?}: it is clock, lru or s3-fifo")]
pub struct ParsePolicyError(String);

impl FromStr for PolicyKind {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| ParsePolicyError(text.to_owned()))
    }
}

/// Access of a policy to the pages in slots: the number of hits, up to [`MAX_POPULARITY`].
pub(crate) trait Pages {
    /// Hits since the page entered, halved periodically.
    fn popularity(&self, slot: u32) -> u8;
    /// Sets the page's hits to `popularity`; concurrent hits may be lost.
    fn set_popularity(&self, slot: u32, popularity: u8);
    /// Returns true if the page cannot be evicted now.
    fn is_pinned(&self, slot: u32) -> bool;
}

/// Maximum of the hit counter.
pub(crate) const MAX_POPULARITY: u8 = 63;

/// The eviction order of the pages of a space. Pages are identified by slots, small numbers that index tables; `hash`
/// is that of the page's id. A slot is inserted once, and again only after it was removed or evicted.
pub(crate) trait Policy: Send {
    /// Reserves memory for slots below `slots`; returns true on success.
    fn reserve(&mut self, slots: usize) -> bool;

    /// Inserts a page, as the last of those present. Slots that were not reserved are reserved now, and a failed
    /// allocation aborts.
    fn insert(&mut self, slot: u32, hash: u64);

    /// Records a hit. Only called if [`Policy::wants_hits`] returns true, with a delay and not for every hit.
    fn hit(&mut self, slot: u32) {
        let _ = slot;
    }

    /// Returns true if [`Policy::hit`] has to be called.
    fn wants_hits(&self) -> bool {
        false
    }

    /// Removes a page that left the space other than by [`Policy::victim`]; does nothing if it was not in it.
    fn remove(&mut self, slot: u32);

    /// Removes and returns the next page to evict; [`None`] if every page is pinned. `hash` returns the hash of a
    /// slot's page id.
    fn victim(&mut self, pages: &dyn Pages, hash: &dyn Fn(u32) -> u64) -> Option<u32>;

    /// Memory held, in bytes.
    fn bytes(&self) -> usize;
}

/// Returns the new popularity of a compressed page that stays for another round when its turn comes; [`None`] if it is
/// evicted.
pub(crate) fn another_round(kind: PolicyKind, popularity: u8) -> Option<u8> {
    match (kind, popularity) {
        (_, 0) => None,
        (PolicyKind::Clock, hits) => Some(hits / 2),
        (PolicyKind::Lru, _) => Some(0),
        (PolicyKind::S3Fifo, hits) => Some(hits.min(3) - 1),
    }
}
