//! The hash of keys.

/// Returns the hash from which landing buffers, fingerprints and sub-pages take their bits.
#[inline]
pub(crate) fn hash(key: &[u8]) -> u64 {
    rapidhash::v3::rapidhash_v3(key)
}
