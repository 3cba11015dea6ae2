//! What the bits of a key's hash stand for in a leaf.

/// The bit that stands for a key with this hash among those that landed.
#[inline(always)]
pub(crate) fn landed_bit(hash: u64) -> u64 {
    // Other bits than those that shards, fingerprints and the landing buffer's index are taken from.
    1 << (hash >> 34 & 63)
}

/// The fingerprint of a key with this hash.
pub(crate) fn fingerprint(hash: u64) -> u8 {
    (hash >> 40) as u8
}

/// The sub-page of a key with this hash in a hashed leaf.
pub(crate) fn sub_page(hash: u64, sub_pages: usize) -> usize {
    ((hash >> 8) & 0xFFFF_FFFF) as usize % sub_pages
}
