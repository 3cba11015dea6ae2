//! Order of keys: their first and last bytes as numbers with the same order, common prefixes, and separators.

use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::copied;

/// Returns the first eight bytes of `bytes`, zero-padded, as a number with the same order.
pub(crate) fn head(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(padded)
}

/// Returns the [`head`] of `key` after its first `from` bytes.
#[inline(always)]
pub(crate) fn head_behind(key: &[u8], from: usize) -> u64 {
    match key.len().saturating_sub(from) {
        0 => 0,
        // The bytes are among the last eight of the key, so they need not be copied.
        len @ 1..8 => key_number(key) << (64 - 8 * len),
        _ => head(&key[from..]),
    }
}

/// Returns whether `key` begins with a prefix of this length and [`head`].
#[inline(always)]
pub(crate) fn begins_with<'p>(
    key: &[u8],
    prefix_len: usize,
    prefix_head: u64,
    prefix: impl FnOnce() -> &'p [u8],
) -> bool {
    match prefix_len {
        0 => true,
        // Decided without reading the prefix's bytes, which are at the node's other end.
        1..=8 if key.len() >= prefix_len => (head_behind(key, 0) ^ prefix_head) >> (64 - 8 * prefix_len) == 0,
        _ => key.starts_with(prefix()),
    }
}

/// Returns the last eight bytes of `key`, or all of a shorter one, as a number with the same order.
#[inline(always)]
pub(crate) fn key_number(key: &[u8]) -> u64 {
    if let Some(last) = key.last_chunk::<8>() {
        return u64::from_be_bytes(*last);
    }
    key.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns the length of the common prefix of two byte strings.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Returns the shortest byte string above `left` and at most `right`; `right` is above `left`.
pub(crate) fn separator(left: &[u8], right: &[u8]) -> Result<Vec<u8>, OutOfMemory> {
    let common = common_prefix(left, right);
    copied(&right[..right.len().min(common + 1)])
}
