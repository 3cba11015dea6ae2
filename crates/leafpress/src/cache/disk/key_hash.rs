//! Keyed hashes, which determine the positions of records on disk.
//!
//! It must be infeasible to choose many keys with the same hash: a lookup would have to read their pages to distinguish
//! them. Each tier therefore hashes with a random number of its own as the seed, which is stored in the superblock, so
//! that it is known only with access to the tier's files. All constants of the hash depend on it: with rapidhash's own
//! constants there are keys whose hashes collide for every seed.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

/// A key's hash in one tier. It is meaningless to other tiers and to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cache) struct DiskHash(pub(super) u64);

pub(super) struct KeyHasher(RapidSecrets);

impl KeyHasher {
    /// Returns the hasher of the tier with this number.
    pub(super) fn of(tier: u64) -> Self {
        // A fixed seed, so that the findings of model checkers and fuzzers are reproducible.
        let seed = if cfg!(any(shuttle, feature = "fuzz")) { 1 } else { tier };
        Self(RapidSecrets::seed(seed))
    }

    /// A hasher with a known seed.
    #[cfg(test)]
    pub(super) fn public() -> Self {
        Self(rapidhash::v3::DEFAULT_RAPID_SECRETS)
    }

    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        rapidhash_v3_seeded(key, &self.0)
    }
}
