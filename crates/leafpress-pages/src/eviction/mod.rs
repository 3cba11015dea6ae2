//! In which order pages leave a space.

mod clock;
mod ghost;
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

/// Which pages leave the raw space first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PolicyKind {
    /// A hand passes over the pages; a page's popularity counts its hits and is halved as the hand passes; at 0 it goes.
    #[default]
    Clock,
    /// The page whose last hit is longest ago goes.
    Lru,
    /// Three queues: a small one for new pages, a main one, and a memory of what left the small one (Yang et al., "FIFO queues are
    /// all you need for cache eviction", SOSP 2023).
    S3Fifo,
}

impl PolicyKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Clock, Self::Lru, Self::S3Fifo];

    /// An order of this kind, without pages.
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

/// A policy that is not one.
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

/// What a policy may know and change of the pages in slots: the number of hits, up to [`MAX_POPULARITY`].
pub(crate) trait Pages {
    /// Hits since the page came, halved now and then.
    fn popularity(&self, slot: u32) -> u8;
    /// Takes `popularity` for the page's hits so far; hits that come meanwhile may be lost.
    fn set_popularity(&self, slot: u32, popularity: u8);
    /// Whether the page cannot leave now.
    fn is_pinned(&self, slot: u32) -> bool;
}

/// Hits are counted up to this.
pub(crate) const MAX_POPULARITY: u8 = 63;

/// An order in which the pages of a space leave. Pages are known by small numbers, slots, which index tables; `hash` is that of
/// the page's id. A slot is inserted once, and again only after it was removed or a victim.
pub(crate) trait Policy: Send {
    /// Makes sure that slots below `slots` need no more memory; returns whether there was enough.
    fn reserve(&mut self, slots: usize) -> bool;

    /// A page came into the space: of those there it is the one whose turn comes last. Slots that were not reserved are, if
    /// need be by force.
    fn insert(&mut self, slot: u32, hash: u64);

    /// The page was hit. Only called where [`Policy::wants_hits`] says so, late and not for every hit.
    fn hit(&mut self, slot: u32) {
        let _ = slot;
    }

    /// Whether [`Policy::hit`] is to be called.
    fn wants_hits(&self) -> bool {
        false
    }

    /// A page left the space, other than by [`Policy::victim`]; nothing happens where it was not in it.
    fn remove(&mut self, slot: u32);

    /// Takes the page that is to leave next out of the order; [`None`] when there is no page that is not pinned. `hash` gives the
    /// hash of a slot's page id.
    fn victim(&mut self, pages: &dyn Pages, hash: &dyn Fn(u32) -> u64) -> Option<u32>;

    /// Memory held, in bytes.
    fn bytes(&self) -> usize;
}

/// Whether a compressed page whose turn to leave has come stays for another round, and with which popularity.
pub(crate) fn another_round(kind: PolicyKind, popularity: u8) -> Option<u8> {
    match (kind, popularity) {
        (_, 0) => None,
        (PolicyKind::Clock, hits) => Some(hits / 2),
        (PolicyKind::Lru, _) => Some(0),
        (PolicyKind::S3Fifo, hits) => Some(hits.min(3) - 1),
    }
}
