//! A child's address, with a hint about the child in the bits that addresses do not use.
//!
//! In a tree far larger than the caches a read waits for memory at every step, and knows where the next one leads only when the
//! last one's lines are there. The hint says before the first of them is what the child's size is; with the place of the key
//! between the separators around the child, that tells about where in the child the search will end. Those lines are asked for
//! together with the first ones. A hint that is out of date or a guess that is wrong costs time and nothing else.

/// Whether addresses have room for hints. On x86-64 the system gives a program no address of more than 47 bits that it did not
/// ask for, and [`fits`] refuses others. Elsewhere a child's word is its address and nothing else: on AArch64 the processor
/// ignores the upper byte, which allocators use (glibc's and Android's memory tags), and addresses have up to 52 bits.
const HINTS: bool = cfg!(target_arch = "x86_64");
const ADDRESS_BITS: u32 = 48;
/// Bits of an address that are none, since nodes are aligned.
const LOW_BITS: u32 = 2;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - (1 << LOW_BITS);

/// What is known of a child before it is read; 0 is nothing.
pub type Hint = u32;

/// Bits of a hint.
pub const HINT_BITS: u32 = u64::BITS - ADDRESS_BITS + LOW_BITS;

/// A hint that says nothing but that there is nothing to say.
pub const NO_HINT: Hint = 1;

/// Whether a node may be at this address.
#[inline]
pub fn fits(node: *const u8) -> bool {
    !HINTS || (node.addr() as u64) < 1 << ADDRESS_BITS
}

/// The address of a node, with a hint.
#[inline]
pub fn with_hint(node: *mut u8, hint: Hint) -> *mut u8 {
    if HINTS {
        let (high, low) = (hint >> LOW_BITS, hint & ((1 << LOW_BITS) - 1));
        node.map_addr(|address| address | (u64::from(high) << ADDRESS_BITS | u64::from(low)) as usize)
    } else {
        node
    }
}

/// The address of a node, and the hint.
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

/// The address of a node without the hint.
#[inline(always)]
pub fn address(child: *mut u8) -> *mut u8 {
    split(child).0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What systems on AArch64 hand out: 48 bits, 52 bits, and tags in the upper byte.
    #[cfg(not(target_arch = "x86_64"))]
    #[test]
    fn every_address_is_taken_as_it_is() {
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
    fn an_address_and_its_hint_are_told_apart() {
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
