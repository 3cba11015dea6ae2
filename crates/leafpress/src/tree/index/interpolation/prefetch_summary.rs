//! The prefetch summary: an approximation of an interpolation index that exceeds the caches, in less than half the
//! memory.
//!
//! The bucket of a large table comes from memory, and a read has to wait for it before it knows which leaf to fetch.
//! The prefetch summary is small enough to stay in the caches: it holds for each bucket the approximate address of its
//! leaf and the approximate beginning of the leaf's range. The lines predicted by it are prefetched together with the
//! bucket's. It is accurate for leaves that are contiguous in key order, as in a defragmented tree; where it is wrong
//! or empty, that costs time and nothing else, since it is only used for prefetching.
//!
//! ```text
//! a group of 20 buckets, a cache line:
//! 32 bits   where the leaves of the group are, in units from the table's origin
//! 24 bits   for each bucket: 12 bits distance of its leaf from there, 12 bits distance of the range's start before
//!           the bucket's start, in 1024ths of a bucket
//! ```

use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU16, Ordering};

use crate::tree::index::interpolation::entry::{LINE_BITS, PLACE_BITS};
use leafpress_base::mem::prefetch::LINE_BYTES;

pub(crate) const BUCKETS: usize = 20;

const BEFORE_BITS: u32 = 12;
/// Low bits of a place that are dropped from the start of a range.
const LEFT_OUT_BITS: u32 = PLACE_BITS - 10;
const MAX_BEFORE: u64 = (1 << BEFORE_BITS) - 1;
/// Low bits of a leaf's distance that are stored together with the start of its range; the high bits are stored
/// separately.
const LOW_BITS: u32 = u16::BITS - BEFORE_BITS;
const FURTHER_BITS: u32 = LOW_BITS + u8::BITS;
const MAX_FURTHER: u64 = NOWHERE as u64 - 1;
/// Distance of a leaf that is unknown.
const NOWHERE: u32 = (1 << FURTHER_BITS) - 1;
/// Position of a group that is unknown.
const UNSET: i32 = i32::MIN;

/// Returns the binary logarithm of a unit's bytes: the least, at least a cache line, with which the leaves of a group
/// fit in most cases, given the leaf bytes per bucket.
pub(crate) fn unit_bits(bytes_a_bucket: usize) -> u32 {
    // A quarter is added for leaves that are larger than others.
    let units = (bytes_a_bucket * BUCKETS) as u64 * 5 / 4 / (MAX_FURTHER + 1);
    (u64::BITS - units.leading_zeros()).max(LINE_BITS)
}

/// The prefetch summary of `BUCKETS` neighbouring buckets.
#[repr(C, align(64))]
pub(crate) struct Group {
    at: AtomicI32,
    /// Distance before the bucket's start, and the low bits of the leaf's distance. High and low bits are stored
    /// separately: a reader in between prefetches wrong lines.
    buckets: [AtomicU16; BUCKETS],
    high: [AtomicU8; BUCKETS],
}

const _: () = assert!(size_of::<Group>() == LINE_BYTES);

/// The summary of a bucket's leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Approximate address, in units from the origin.
    pub unit: i32,
    /// Approximate place where its range begins.
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

    /// Returns the summary of bucket `bucket`, which is the group's `index`th.
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

    /// Stores the unit of the bucket's leaf, if there is one, and that its range begins `before` places before the
    /// bucket's start.
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
        // Rounded such that the least number at the place stays the same, where numbers are further apart: leaves begin
        // with a run of neighbours.
        let before = before.div_ceil(1 << LEFT_OUT_BITS).min(MAX_BEFORE) as u16;
        let further = further.map_or(NOWHERE, |further| further as u32);
        self.high[index].store((further >> LOW_BITS) as u8, Ordering::Relaxed);
        self.buckets[index].store(
            before << LOW_BITS | further as u16 & ((1 << LOW_BITS) - 1),
            Ordering::Relaxed,
        );
    }
}
