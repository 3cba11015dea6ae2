//! Miss-ratio curves: hit ratios of all cache sizes, from one pass over the requests, with records uncompressed and
//! compressed as ours keeps them.
//!
//! An LRU cache's hits of every size follow from the requests between two reads of a key. Only a sample of the keys is
//! used, by hash ([`shards`]). S3-FIFO, to which our cache's eviction is closer, is simulated by small caches on a
//! sample, one for each size ([`miniatures`]). The memory of a compressed record is measured in a cache of ours
//! ([`record_footprint`]).

mod chart;
mod curves;
mod miniatures;
mod pass;
mod record_footprint;
mod shards;
mod table;

use serde::{Deserialize, Serialize};

pub(super) use chart::add;
pub use curves::{Curve, HitCurves, HitRatios, SizePoint};
pub(super) use pass::run;
#[cfg(feature = "plan")]
pub(super) use pass::run_of_all_sizes;
pub use record_footprint::Held;
#[cfg(feature = "plan")]
pub(in crate::cache) use record_footprint::measure as measure_record_footprint;
pub(super) use table::{sentences, tsv};

use crate::core::words::between;
use crate::core::{Bytes, LabError};

/// The sampling of keys.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// This share of them, over 0 to 1: SHARDS with a fixed rate.
    Rate(f64),
    /// At most this many: SHARDS with a fixed size, whose rate falls as keys arrive.
    Keys(u64),
}

/// Options of the curves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MrcOptions {
    /// The sampling of keys.
    pub sampling: Sampling,
    /// Overhead of an uncompressed entry in bytes, in addition to key and value.
    pub entry_bytes: u64,
}

/// Fewest and most keys of a sample.
const SAMPLED_KEYS: (u64, u64) = (1000, 1 << 24);
/// Maximum overhead of an entry.
const MAX_ENTRY_BYTES: u64 = 1 << 16;

impl Default for MrcOptions {
    /// 65,536 keys, and 64 bytes an entry: memcached's header of an item is 56, plus the rounding of its size classes.
    fn default() -> Self {
        Self {
            sampling: Sampling::Keys(1 << 16),
            entry_bytes: 64,
        }
    }
}

impl MrcOptions {
    /// # Errors
    /// [`LabError::Option`] with the name of the option on the command line.
    pub(super) fn validate(&self) -> Result<(), LabError> {
        match self.sampling {
            Sampling::Rate(rate) if !(rate > 0.0 && rate <= 1.0) => {
                let reason = format!("{rate} must be greater than 0 and at most 1");
                return Err(LabError::option("mrc-rate", reason));
            }
            Sampling::Rate(_) => {}
            Sampling::Keys(keys) => between("mrc-keys", keys, SAMPLED_KEYS.0, SAMPLED_KEYS.1)?,
        }
        between(
            "mrc-overhead",
            Bytes(self.entry_bytes),
            Bytes(0),
            Bytes(MAX_ENTRY_BYTES),
        )
    }
}

#[cfg(test)]
mod tests;
