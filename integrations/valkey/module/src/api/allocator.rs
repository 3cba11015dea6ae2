//! The block lengths of the server's allocator.

use super::table::api;

/// The length from which on blocks are not tried out: the allocators round those up by a small part of it.
const TRIED_BELOW: u64 = 1 << 20;
const PAGE: u64 = 4096;
const ALIGNMENT: u64 = 16;

/// Returns the length of the block that the server gets for a request of `bytes`, by its own count.
pub fn usable_size(bytes: u64) -> u64 {
    if bytes >= TRIED_BELOW {
        return bytes.next_multiple_of(PAGE);
    }
    // SAFETY: the server takes any length, and answers null if there is no memory; the block is freed once, and not
    // used in between.
    unsafe {
        let block = (api().TryAlloc)(bytes as usize);
        let known = api().MallocSize.filter(|_| !block.is_null());
        let usable = known.map(|measure| measure(block) as u64);
        if !block.is_null() {
            (api().Free)(block);
        }
        usable.unwrap_or_else(|| bytes.next_multiple_of(ALIGNMENT))
    }
}
