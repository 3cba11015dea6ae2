//! The uses of the bits of a key's hash in a leaf.

/// Returns the filter bit for a key with this hash among the keys in the landing buffer.
#[inline(always)]
pub(crate) fn landed_bit(hash: u64) -> u64 {
    // These bits differ from those used for shards, fingerprints and the landing buffer's index.
    1 << (hash >> 34 & 63)
}

/// Returns the fingerprint of a key with this hash.
pub(crate) fn fingerprint(hash: u64) -> u8 {
    (hash >> 40) as u8
}

/// Returns the sub-page of a key with this hash in a hashed leaf.
pub(crate) fn sub_page(hash: u64, sub_pages: usize) -> usize {
    ((hash >> 8) & 0xFFFF_FFFF) as usize % sub_pages
}
