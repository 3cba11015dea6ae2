//! The hash of keys.

/// The hash that landing buffers, fingerprints and sub-pages take their bits from.
#[inline]
pub(crate) fn hash(key: &[u8]) -> u64 {
    rapidhash::v3::rapidhash_v3(key)
}
