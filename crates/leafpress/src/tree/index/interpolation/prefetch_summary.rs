//! What an interpolation index that has left the caches says, about, in less than half the room.
//!
//! The line of a bucket of a large table comes from memory, and a read waits for it before it knows which lines of which leaf it will wait for. the prefetch summary
//! is small enough to stay nearer: for each bucket about where its leaf is and where the leaf's range begins. The lines that this leads to are asked for beside the
//! bucket's. It is right for leaves that lie together in the order of keys, as in a tree that was defragmented; where it is wrong, or has nothing, that costs time
//! and nothing else, since nobody follows it.
//!
//! ```text
//! a group of 20 buckets, a cache line:
//! 32 bits   where the leaves of the group are, in units from the table's origin
//! 24 bits   for each bucket: 12 bits how much further its leaf is, 12 bits how far before the bucket's start the range begins, in 1024ths of a bucket
//! ```

use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU16, Ordering};

use crate::tree::index::interpolation::entry::{LINE_BITS, PLACE_BITS};
use leafpress_base::mem::prefetch::LINE_BYTES;

pub(crate) const BUCKETS: usize = 20;

const BEFORE_BITS: u32 = 12;
/// Bits of a place that are left out of where a range begins.
const LEFT_OUT_BITS: u32 = PLACE_BITS - 10;
const MAX_BEFORE: u64 = (1 << BEFORE_BITS) - 1;
/// Bits of how much further a leaf is that are with where its range begins; the others are apart.
const LOW_BITS: u32 = u16::BITS - BEFORE_BITS;
const FURTHER_BITS: u32 = LOW_BITS + u8::BITS;
const MAX_FURTHER: u64 = NOWHERE as u64 - 1;
/// In place of how much further: unknown.
const NOWHERE: u32 = (1 << FURTHER_BITS) - 1;
/// In place of where a group is.
const UNSET: i32 = i32::MIN;

/// The power of two that a unit's bytes are: the least, from a line, with which the leaves of a group mostly fit, of which a bucket's take so many bytes.
pub(crate) fn unit_bits(bytes_a_bucket: usize) -> u32 {
    // With room for leaves that are larger than others.
    let units = (bytes_a_bucket * BUCKETS) as u64 * 5 / 4 / (MAX_FURTHER + 1);
    (u64::BITS - units.leading_zeros()).max(LINE_BITS)
}

/// The the prefetch summary of so many neighbouring buckets.
#[repr(C, align(64))]
pub(crate) struct Group {
    at: AtomicI32,
    /// Before the bucket's start, and the low bits of how much further. With the high bits it is stored in two steps: whoever looks between them
    /// asks for lines in vain.
    buckets: [AtomicU16; BUCKETS],
    high: [AtomicU8; BUCKETS],
}

const _: () = assert!(size_of::<Group>() == LINE_BYTES);

/// What is known of a bucket's leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// About its address, in units from the origin.
    pub unit: i32,
    /// The place where its range begins, about.
    pub start: u64,
}

impl Group {
    pub(crate) fn new() -> Self {
        Self {
            at: AtomicI32::new(UNSET),
            buckets: [const { AtomicU16::new((1 << LOW_BITS) - 1) }; BUCKETS],
            high: [const { AtomicU8::new(u8::MAX) }; BUCKETS],
        }
    }

    /// Of the bucket `bucket`, which is the group's `index`th.
    #[inline(always)]
    pub(crate) fn seen(&self, index: usize, bucket: usize) -> Option<Seen> {
        let word = u32::from(self.buckets[index].load(Ordering::Relaxed));
        let high = u32::from(self.high[index].load(Ordering::Relaxed));
        let further = high << LOW_BITS | word & ((1 << LOW_BITS) - 1);
        let before = u64::from(word >> LOW_BITS) << LEFT_OUT_BITS;
        (further != NOWHERE).then(|| Seen {
            unit: self.at.load(Ordering::Relaxed).wrapping_add(further as i32),
            start: ((bucket as u64) << PLACE_BITS).saturating_sub(before),
        })
    }

    /// Says of the bucket's leaf that it is at this unit, if it is anywhere, and its range begins so many places before the bucket's start.
    pub(crate) fn store(&self, index: usize, unit: Option<i32>, before: u64) {
        let further = unit.and_then(|unit| {
            let at = match self
                .at
                .compare_exchange(UNSET, unit, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => unit,
                Err(at) => at,
            };
            u64::try_from(i64::from(unit) - i64::from(at))
                .ok()
                .filter(|&further| further <= MAX_FURTHER)
        });
        // Rounded such that the least number at the place stays the same, where numbers are further apart: leaves begin with a run of neighbours.
        let before = before.div_ceil(1 << LEFT_OUT_BITS).min(MAX_BEFORE) as u16;
        let further = further.map_or(NOWHERE, |further| further as u32);
        self.high[index].store((further >> LOW_BITS) as u8, Ordering::Relaxed);
        self.buckets[index].store(
            before << LOW_BITS | further as u16 & ((1 << LOW_BITS) - 1),
            Ordering::Relaxed,
        );
    }
}
