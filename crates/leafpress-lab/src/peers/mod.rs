//! The tree vs the registry's uncompressed concurrent ordered maps: operations per second and core, loads, memory per
//! record.
//!
//! Every sample is a run like any other, in its own process: the map is loaded, driven for a while, and at the end
//! every key is checked; of the reads, one batch in 64. Rounds go through the maps in alternating order, and medians
//! over the rounds are reported, so that a disturbance hits one sample and not one map.
//!
//! All maps run in this program, with its allocator, and have the same keys and values, of their real length: arrays
//! where all have one length, boxes where they have not. Two stores of compressed blocks stand for what block
//! compression holds; they are only read.

mod blocks;
mod document;
mod options;
mod outcome;
mod peer;
mod run;

pub use options::PeersConfig;
pub use outcome::{PeerLine, PeersOutcome};
pub use peer::Peer;
pub use run::{run_peers, run_peers_with};
pub(crate) use run::{run_sample, weigh_sample};

/// The job of a child that does one sample.
pub(crate) const SAMPLE: &str = "peers_sample";
/// The job of a child that loads a sample's map to measure its memory.
pub(crate) const WEIGH: &str = "peers_weigh";

#[cfg(test)]
mod tests;
