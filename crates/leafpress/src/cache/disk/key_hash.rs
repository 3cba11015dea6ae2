//! Hashes of keys, which decide where on disk a record is.
//!
//! Whoever chooses keys must not be able to choose many with one hash: a lookup would have to tell them apart by reading their pages. So each
//! tier hashes in its own way, which follows from its number. That is random, in the superblock, and known to nobody who cannot read the tier's
//! files. All of the hash's constants depend on it: with rapidhash's own constants there are keys whose hashes are equal whatever the seed.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

/// A key's hash in one tier. It says nothing to another, nor to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cache) struct DiskHash(pub(super) u64);

pub(super) struct KeyHasher(RapidSecrets);

impl KeyHasher {
    /// That of the tier with this number.
    pub(super) fn of(tier: u64) -> Self {
        // What a model checker or a fuzzer found is to be found again.
        let seed = if cfg!(any(shuttle, feature = "fuzz")) { 1 } else { tier };
        Self(RapidSecrets::seed(seed))
    }

    /// One that everybody knows.
    #[cfg(test)]
    pub(super) fn public() -> Self {
        Self(rapidhash::v3::DEFAULT_RAPID_SECRETS)
    }

    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        rapidhash_v3_seeded(key, &self.0)
    }
}
