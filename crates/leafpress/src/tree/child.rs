//! A child's address, with a hint about the child in the bits that addresses do not use.
//!
//! In a tree far larger than the caches a read waits for memory at every step, and knows where the next one leads only when the
//! last one's lines are there. The hint says before the first of them is what the child's size is; with the place of the key
//! between the separators around the child, that tells about where in the child the search will end. Those lines are asked for
//! together with the first ones. A hint that is out of date or a guess that is wrong costs time and nothing else.

/// Whether addresses have room for hints: on x86-64 the system gives a program no address of more than 47 bits that it did not
/// ask for, and [`fits`] refuses it.
const HINTS: bool = cfg!(target_arch = "x86_64");
const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;

/// What is known of a child before it is read; 0 is nothing.
pub(crate) type Hint = u16;

/// A hint that says nothing but that there is nothing to say.
pub(crate) const NO_HINT: Hint = 1;

/// Whether a node may be at this address.
#[inline]
pub(crate) fn fits(node: *const u8) -> bool {
    !HINTS || node.addr() as u64 <= ADDRESS
}

/// The address of a node, with a hint.
#[inline]
pub(crate) fn with_hint(node: *mut u8, hint: Hint) -> *mut u8 {
    if HINTS {
        node.map_addr(|address| address | (u64::from(hint) << ADDRESS_BITS) as usize)
    } else {
        node
    }
}

/// The address of a node, and the hint.
#[inline(always)]
pub(crate) fn split(child: *mut u8) -> (*mut u8, Hint) {
    if HINTS {
        let hint = (child.addr() as u64 >> ADDRESS_BITS) as Hint;
        (child.map_addr(|address| address & ADDRESS as usize), hint)
    } else {
        (child, 0)
    }
}

/// The address of a node without the hint.
#[inline(always)]
pub(crate) fn address(child: *mut u8) -> *mut u8 {
    split(child).0
}
