//! Tagged pointers: a child's address, with a hint about the child in the unused address bits.
//!
//! In a tree far larger than the caches, a read waits for memory at every step, and learns the next address only when
//! the previous node's lines have arrived. The hint gives the child's approximate size before its first line is read;
//! together with the position of the key between the separators around the child it predicts where in the child the
//! search will end. Those lines are prefetched together with the first ones. A stale hint or a wrong prediction costs
//! time and nothing else.

/// Whether addresses have room for hints. On x86-64 the system returns no address of more than 47 bits that was not
/// requested explicitly, and [`fits`] rejects others. Elsewhere a child's word is its plain address: on AArch64 the
/// processor ignores the upper byte, which allocators use (the memory tags of glibc and Android), and addresses have up
/// to 52 bits.
const HINTS: bool = cfg!(target_arch = "x86_64");
const ADDRESS_BITS: u32 = 48;
/// Low bits of an address that are zero, since nodes are aligned.
const LOW_BITS: u32 = 2;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - (1 << LOW_BITS);

/// A hint about a child before it is read; 0 means no hint was computed.
pub type Hint = u32;

/// Width of a hint in bits.
pub const HINT_BITS: u32 = u64::BITS - ADDRESS_BITS + LOW_BITS;

/// A hint that was computed but carries no information.
pub const NO_HINT: Hint = 1;

/// Returns whether a node may have this address.
#[inline]
pub fn fits(node: *const u8) -> bool {
    !HINTS || (node.addr() as u64) < 1 << ADDRESS_BITS
}

/// Adds a hint to the address of a node.
#[inline]
pub fn with_hint(node: *mut u8, hint: Hint) -> *mut u8 {
    if HINTS {
        let (high, low) = (hint >> LOW_BITS, hint & ((1 << LOW_BITS) - 1));
        node.map_addr(|address| address | (u64::from(high) << ADDRESS_BITS | u64::from(low)) as usize)
    } else {
        node
    }
}

/// Splits a tagged pointer into the address and the hint.
#[inline(always)]
pub fn split(child: *mut u8) -> (*mut u8, Hint) {
    if HINTS {
        let word = child.addr() as u64;
        let hint = ((word >> ADDRESS_BITS << LOW_BITS) | word & ((1 << LOW_BITS) - 1)) as Hint;
        (child.map_addr(|address| address & ADDRESS as usize), hint)
    } else {
        (child, 0)
    }
}

/// Returns the address without the hint.
#[inline(always)]
pub fn address(child: *mut u8) -> *mut u8 {
    split(child).0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses as returned by systems on AArch64: 48 bits, 52 bits, and tags in the upper byte.
    #[cfg(not(target_arch = "x86_64"))]
    #[test]
    fn every_address_is_accepted_unchanged() {
        for at in [
            0xFFFF_FFFF_FFF0,
            0xF_FFFF_FFFF_FFF0,
            0x0A00_FFFF_1234_5670,
            usize::MAX - 15,
        ] {
            let node = std::ptr::without_provenance_mut::<u8>(at);
            assert!(fits(node));
            assert_eq!(with_hint(node, (1 << HINT_BITS) - 1), node);
            assert_eq!(split(node), (node, 0));
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn an_address_that_needs_the_bits_of_a_hint_is_refused() {
        for at in [1 << 48, 0xF_FFFF_FFFF_FFF0, 0x0A00_FFFF_1234_5670] {
            assert!(!fits(std::ptr::without_provenance(at)));
        }
    }

    #[test]
    fn an_address_and_its_hint_are_separated() {
        for at in [0, 16, 48, 0x7FFF_FFFF_FFF0, ADDRESS as usize - 12] {
            let node = std::ptr::without_provenance_mut::<u8>(at);
            for hint in [0, NO_HINT, 2, 3, 0x2_AAAA, (1 << HINT_BITS) - 1] {
                let child = with_hint(node, hint);
                assert_eq!(split(child), (node, if HINTS { hint } else { 0 }), "{at:x} {hint:x}");
                assert_eq!(address(child), node);
            }
        }
    }
}
