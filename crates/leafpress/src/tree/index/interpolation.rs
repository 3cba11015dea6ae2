//! The interpolation index: a table that leads from a key to its leaf without the inner nodes.
//!
//! In a tree of many leaves the inner nodes above them fall out of the nearer caches, and each level is a search in
//! cache lines that a read waits for. Where the leaves divide the keys evenly, the position of a key's leaf can be
//! computed by interpolation. The table divides the span from a shard's first separator to its last into buckets of
//! equal width. A bucket stores the leaf that covers its start, and where that leaf's range begins. A key's leaf is its
//! bucket's, or the next bucket's if that leaf's range begins before the key; if a third leaf may lie between the two,
//! or the bound between them cannot be decided from the key's number, the search descends from the root. The numbers
//! that represent keys are the eight bytes after the common prefix of all separators.
//!
//! A read of a large tree waits for two cache misses: its bucket, and its leaf. Only a table that stays in the
//! processor's caches avoids the former, so a bucket is one word: the leaf's address relative to the origin of the
//! leaves, its hint, and the beginning of its range.
//!
//! **Ranges never change, leaves do.** A leaf that is replaced by one that covers the same range is replaced in its
//! buckets too, under its parent's lock: its buckets are cleared, its parent's child pointer is stored, its buckets are
//! filled. So no reader finds through the table a leaf that is not yet or no longer in the tree. When a leaf's range
//! changes, its buckets are cleared for good, under its parent's lock and before the change is published; the next
//! table includes them again. A reader that finds a leaf in a table that was the shard's when it was loaded finds a
//! leaf that was in the tree at that time or later.
//!
//! ```text
//! header | entries, one a bucket and three without a leaf | the common prefix | the prefetch summary, in large tables
//! ```

mod entry;
mod plan;
mod prefetch_summary;

use std::hint::select_unpredictable;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use leafpress_base::reclaim::guard::Guard;

pub(crate) use self::plan::Bounds;
use crate::tree::error::TreeError;
use crate::tree::index::interpolation::entry::{BucketWord, LINE_BITS, PLACE_BITS};
use crate::tree::index::interpolation::plan::{ENTRIES_BEHIND, PLACE_SHIFT, Plan};
use crate::tree::index::interpolation::prefetch_summary::{Group, Seen};
use crate::tree::node::descent_step::DescentStep;
use crate::tree::node::key_order::{begins_with, head, head_behind};
use crate::tree::node::leaf::Leaf;
use crate::tree::node::partition::ShardPartitioner;
use leafpress_base::mem::node::{Kind, NodeHeader};
use leafpress_base::mem::prefetch::{LINE_BYTES, prefetch};
use leafpress_base::mem::tagged_ptr;
use leafpress_base::mem::tagged_ptr::Hint;
use leafpress_base::reclaim::load;
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_base::sync::AtomicPtr;

/// Buckets of all shards' tables from which on they have a prefetch summary: smaller tables, of 256 KiB in total, stay
/// in the caches themselves. Builds with debug assertions always have it, for test coverage; without prefetch
/// instructions it is not used.
const PREFETCH_BUCKETS: usize = if cfg!(any(test, debug_assertions)) {
    1
} else if cfg!(target_arch = "x86_64") {
    32 << 10
} else {
    usize::MAX
};

#[repr(C)]
struct TableHeader {
    node: NodeHeader,
    /// The first bytes of the prefix.
    prefix_head: u64,
    /// The number at which the first bucket starts.
    base: u64,
    /// Buckets per unit of `position`, times 2^32.
    scale: u64,
    /// Positions per place, times 2^32.
    positions_of_place: u64,
    /// Base of the leaves' relative addresses.
    origin: usize,
    /// The position at which the last bucket ends.
    end: u32,
    prefix_len: u32,
    buckets: u32,
    /// A position is a number relative to the base, without its lowest `shift` bits.
    shift: u32,
    /// Offset of the prefetch summary; 0 without one.
    prefetch_summary_at: u32,
    /// Binary logarithm of the bytes of a unit of the prefetch summary.
    unit_bits: u32,
    /// The hint of one of the leaves; the prefetch summary assumes that all are like it.
    typical: Hint,
    /// The number of records of that leaf, also assumed for all.
    records: u16,
}

/// The leaves that a table is built for.
#[derive(Clone, Copy)]
pub(crate) struct Leaves {
    /// Their approximate size in bytes.
    pub bytes: usize,
    /// An address near theirs, with the same offset in a cache line.
    pub near: *const u8,
    /// The hint of one of them, and its number of records.
    pub hint: Hint,
    pub records: u16,
}

/// A table, borrowed for as long as a guard protects it.
#[derive(Clone, Copy)]
pub(crate) struct InterpolationIndex(NonNull<u8>);

impl InterpolationIndex {
    /// Borrows a table; [`None`] for null.
    ///
    /// # Safety
    /// `pointer` is null or a live table's.
    pub(crate) unsafe fn from_ptr(pointer: *mut u8) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }

    pub(crate) fn node(self) -> NonNull<u8> {
        self.0
    }

    /// Builds a table without leaves for the leaves between the bounds, and returns with it, for each bucket, the index
    /// of the leaf to store there, counted from the one between the first two bounds. Returns `None` where a table
    /// would not help. It is one of `shards` tables.
    ///
    /// # Safety
    /// `memory` outlives the table.
    pub(crate) unsafe fn new(
        bounds: &Bounds,
        leaves: Leaves,
        shards: usize,
        memory: &NodeHeap,
    ) -> Result<Option<(Self, Vec<u32>)>, TreeError> {
        let Some(plan) = Plan::new(&bounds.bounds, leaves.bytes) else {
            return Ok(None);
        };
        let of_buckets = plan.leaves()?;
        let entries = plan.buckets + ENTRIES_BEHIND;
        let known_bytes = size_of::<TableHeader>() + entries * size_of::<AtomicPtr<u8>>() + bounds.prefix.len();
        let groups = if plan.buckets * shards >= PREFETCH_BUCKETS {
            entries.div_ceil(prefetch_summary::BUCKETS)
        } else {
            0
        };
        // This includes padding before the first group, which begins at a cache line.
        let bytes = known_bytes + (groups + usize::from(groups > 0)) * size_of::<Group>();
        let unit_bits = prefetch_summary::unit_bits(leaves.bytes / plan.buckets);
        let places = (plan.buckets as u64) << PLACE_BITS;
        // SAFETY: every section is written into the room counted for it. Nodes are aligned to 16 bytes, and the header
        // is a multiple of an entry's 8.
        unsafe {
            let node = memory.allocate(bytes, Kind::InterpolationIndex)?;
            let header = node.cast::<TableHeader>().as_ptr();
            (&raw mut (*header).prefix_head).write(head(&bounds.prefix));
            (&raw mut (*header).base).write(plan.base);
            (&raw mut (*header).scale).write(plan.scale);
            (&raw mut (*header).positions_of_place).write((u64::from(plan.end) << u32::BITS) / places);
            (&raw mut (*header).origin).write(leaves.near.addr());
            (&raw mut (*header).end).write(plan.end);
            (&raw mut (*header).prefix_len).write(bounds.prefix.len() as u32);
            (&raw mut (*header).buckets).write(plan.buckets as u32);
            (&raw mut (*header).shift).write(plan.shift);
            (&raw mut (*header).unit_bits).write(unit_bits);
            (&raw mut (*header).typical).write(leaves.hint);
            (&raw mut (*header).records).write(leaves.records);
            let behind = node.addr().get() + known_bytes;
            let prefetch_summary_at = known_bytes + (behind.next_multiple_of(align_of::<Group>()) - behind);
            (&raw mut (*header).prefetch_summary_at).write(if groups > 0 { prefetch_summary_at as u32 } else { 0 });
            for group in 0..groups {
                node.add(prefetch_summary_at)
                    .cast::<Group>()
                    .add(group)
                    .write(Group::new());
            }
            let table = Self(node);
            for (bucket, entry) in plan.entries(&of_buckets).enumerate() {
                let word = std::ptr::without_provenance_mut(entry.0 as usize);
                table.word_at(bucket).write(AtomicPtr::new(word));
            }
            let prefix = table.word_at(entries).cast::<u8>();
            prefix.copy_from_nonoverlapping(bounds.prefix.as_ptr(), bounds.prefix.len());
            Ok(Some((table, of_buckets)))
        }
    }

    #[inline(always)]
    fn header(&self) -> &TableHeader {
        // SAFETY: a live table begins with its header.
        unsafe { self.0.cast().as_ref() }
    }

    /// Returns the bucket's word. Its type is a pointer, as the guard's protection requires, and its provenance is that
    /// of the leaf, whatever its bits are.
    #[inline(always)]
    fn word_at(&self, bucket: usize) -> *mut AtomicPtr<u8> {
        const { assert!(size_of::<TableHeader>().is_multiple_of(align_of::<AtomicPtr<u8>>())) };
        // SAFETY: the entries follow the header; callers pass a bucket below their number.
        unsafe {
            self.0
                .add(size_of::<TableHeader>())
                .cast::<AtomicPtr<u8>>()
                .add(bucket)
                .as_ptr()
        }
    }

    #[inline(always)]
    fn word(&self, bucket: usize) -> &AtomicPtr<u8> {
        debug_assert!(bucket < self.header().buckets as usize + ENTRIES_BEHIND);
        // SAFETY: there is an entry for every bucket, and `ENTRIES_BEHIND` more.
        unsafe { &*self.word_at(bucket) }
    }

    /// Returns the entry, for its immutable parts.
    #[inline(always)]
    fn entry(&self, bucket: usize) -> BucketWord {
        BucketWord(self.word(bucket).load(Ordering::Relaxed).addr() as u64)
    }

    fn prefix(&self) -> &[u8] {
        let header = self.header();
        let start = self.word_at(header.buckets as usize + ENTRIES_BEHIND).cast::<u8>();
        // SAFETY: the prefix is immutable and follows the entries.
        unsafe { std::slice::from_raw_parts(start, header.prefix_len as usize) }
    }

    /// Returns the key's number, if the key has the common prefix of the table's span.
    #[inline(always)]
    fn number(&self, key: &[u8]) -> Option<u64> {
        let header = self.header();
        let prefix_len = header.prefix_len as usize;
        let is_prefix = begins_with(key, prefix_len, header.prefix_head, || self.prefix());
        is_prefix.then(|| head_behind(key, prefix_len))
    }

    /// Returns the place of a key with this number, if it is in the table's span.
    #[inline(always)]
    fn place(&self, number: u64) -> Option<u64> {
        let header = self.header();
        let position = number.checked_sub(header.base)? >> header.shift;
        (position < u64::from(header.end)).then(|| self.place_of(position))
    }

    /// Returns the place of a position before the end, which is in a bucket.
    #[inline(always)]
    fn place_of(&self, position: u64) -> u64 {
        (position * self.header().scale) >> PLACE_SHIFT
    }

    /// Returns the least number at this place.
    #[inline(always)]
    fn number_at(&self, place: u64) -> u64 {
        let header = self.header();
        let position = (place * header.positions_of_place).wrapping_add(u64::from(u32::MAX)) >> u32::BITS;
        header.base.wrapping_add(position << header.shift)
    }

    /// Prefetches the line of the key's bucket.
    #[inline(always)]
    pub(crate) fn prefetch(&self, key: &[u8]) {
        if let Some(place) = self.number(key).and_then(|number| self.place(number)) {
            prefetch(self.word_at((place >> PLACE_BITS) as usize).cast());
        }
    }

    /// Returns the prefetch summary's entry for a bucket, also for the entries after the last bucket.
    #[inline(always)]
    fn prefetched(&self, bucket: usize) -> Option<Seen> {
        self.group(bucket).seen(bucket % prefetch_summary::BUCKETS, bucket)
    }

    #[inline(always)]
    fn group(&self, bucket: usize) -> &Group {
        debug_assert!(
            bucket < self.header().buckets as usize + ENTRIES_BEHIND && self.header().prefetch_summary_at > 0
        );
        // SAFETY: callers have checked that there is a prefetch summary, which has a group for every entry of the
        // table.
        unsafe {
            let groups = self.0.add(self.header().prefetch_summary_at as usize).cast::<Group>();
            groups.add(bucket / prefetch_summary::BUCKETS).as_ref()
        }
    }

    /// Returns the address that units are relative to.
    #[inline(always)]
    fn unit_origin(&self) -> usize {
        let header = self.header();
        header.origin >> header.unit_bits << header.unit_bits
    }

    /// Predicts the step that [`InterpolationIndex::find`] will return, for prefetching only.
    #[inline(always)]
    fn predict_step(
        &self,
        place: u64,
        number: u64,
        suffix_len: usize,
        partitioner: ShardPartitioner,
    ) -> Option<DescentStep<'_>> {
        let header = self.header();
        if header.prefetch_summary_at == 0 {
            return None;
        }
        let here = (place >> PLACE_BITS) as usize;
        let next = self.prefetched(here + 1);
        let in_next = next.is_some_and(|next| place >= next.start);
        let bucket = here + usize::from(in_next);
        let leaf = if in_next { next } else { self.prefetched(here) }?;
        let behind = self.prefetched(bucket + 1).filter(|behind| behind.unit != leaf.unit);
        let behind = behind.or_else(|| self.prefetched(bucket + 2))?;
        let units = behind.unit.wrapping_sub(leaf.unit);
        let lines = (units as usize) << (header.unit_bits - LINE_BITS);
        let share = partitioner.share(
            suffix_len,
            self.number_at(leaf.start),
            number,
            self.number_at(behind.start),
        );
        let unit = self
            .unit_origin()
            .wrapping_add_signed((leaf.unit as isize) << header.unit_bits);
        let address = if header.unit_bits == LINE_BITS {
            unit + header.origin % LINE_BYTES
        } else {
            // The middle of the unit.
            unit + (1 << header.unit_bits >> 1)
        };
        let hint = Leaf::hint_of_length(header.typical, lines);
        // SAFETY: the step is a prediction, and is only used to prefetch lines, never dereferenced.
        Some(unsafe {
            DescentStep::to_leaf(
                std::ptr::without_provenance_mut(address),
                hint,
                Some(share),
                header.records,
            )
        })
    }

    /// Returns the step to the leaf whose range holds `key`, if the table has it. With `ASK`, also prefetches what a
    /// read needs of the leaf, if possible before the leaf is known.
    #[inline(always)]
    pub(crate) fn find<'g, const ASK: bool>(
        &self,
        key: &[u8],
        partitioner: ShardPartitioner,
        guard: &'g Guard<'_>,
    ) -> Option<DescentStep<'g>> {
        let header = self.header();
        let number = self.number(key)?;
        let place = self.place(number)?;
        let mut predicted = None;
        if ASK && header.prefetch_summary_at > 0 {
            // Fetched while the prediction is computed.
            prefetch(self.word_at((place >> PLACE_BITS) as usize).cast());
            predicted = self.predict_step(place, number, key.len() - header.prefix_len as usize, partitioner);
            if let Some(step) = &predicted {
                Leaf::prefetch_step(step);
            }
        }
        let here = (place >> PLACE_BITS) as usize;
        let next = self.entry(here + 1);
        let next_start = next.start(here + 1);
        let in_next = place >= next_start;
        if !in_next && !next.follows(place, next_start) {
            return None;
        }
        let bucket = here + usize::from(in_next);
        let word = load(self.word(bucket), guard);
        let entry = BucketWord(word.addr() as u64);
        let leaf = entry.address(header.origin)?;
        let start = entry.start(bucket);
        // Where the next range begins: with few exceptions a leaf covers the starts of at most three buckets.
        let [second, third, fourth] = [1, 2, 3].map(|behind| self.entry(bucket + behind).start(bucket + behind));
        let end = select_unpredictable(third > start, third, fourth);
        let end = select_unpredictable(second > start, second, end);
        let suffix_len = key.len() - header.prefix_len as usize;
        let share = partitioner.share(suffix_len, self.number_at(start), number, self.number_at(end));
        // SAFETY: the guard protects the leaf, which was in the table when the bucket was loaded.
        let step = unsafe { DescentStep::to_leaf(word.map_addr(|_| leaf), entry.hint(), Some(share), header.records) };
        if ASK && predicted != Some(step) {
            Leaf::prefetch_step(&step);
        }
        Some(step)
    }

    /// Returns the buckets that store `leaf`, whose range contains `key`. They change under its parent's lock.
    pub(crate) fn buckets_of(&self, leaf: *mut u8, key: &[u8]) -> Range<usize> {
        // The range of a leaf in the table is within its span.
        let Some(number) = self.number(key) else {
            return 0..0;
        };
        let header = self.header();
        let buckets = header.buckets as usize;
        // The first keys of the range may have the number before the base.
        let position = number.saturating_sub(header.base) >> header.shift;
        let place = self.place_of(position.min(u64::from(header.end) - 1));
        let here = (place >> PLACE_BITS) as usize;
        let has = |bucket: &usize| self.entry(*bucket).address(header.origin) == Some(leaf.addr());
        // Rounding may have put the leaf's last bucket before the key's, and the leaf may not cover the start of the
        // key's bucket.
        let near = here.saturating_sub(1)..(here + 2).min(buckets);
        let Some(known) = near.into_iter().find(has) else {
            return 0..0;
        };
        let before = (0..known).rev().take_while(has).count();
        let after = (known + 1..buckets).take_while(has).count();
        known - before..known + 1 + after
    }

    /// Stores a leaf with its hint in the buckets, or clears them.
    pub(crate) fn store(&self, buckets: Range<usize>, leaf: *mut u8) {
        let header = self.header();
        let at = tagged_ptr::address(leaf);
        for bucket in buckets {
            let entry = self.entry(bucket).with_leaf(leaf, header.origin);
            let word = leaf.map_addr(|_| entry.0 as usize);
            self.word(bucket).store(word, Ordering::Release);
            if header.prefetch_summary_at > 0 {
                let distance = (at.addr() as i64).wrapping_sub(self.unit_origin() as i64) >> header.unit_bits;
                let unit = i32::try_from(distance).ok().filter(|_| !at.is_null());
                let before = ((bucket as u64) << PLACE_BITS) - entry.start(bucket);
                self.group(bucket)
                    .store(bucket % prefetch_summary::BUCKETS, unit, before);
            }
        }
    }

    /// Returns the leaves in the table.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = *mut u8> {
        let origin = self.header().origin;
        let words = (0..self.header().buckets as usize).map(|bucket| self.word(bucket).load(Ordering::Acquire));
        words.filter_map(move |word| {
            let leaf = BucketWord(word.addr() as u64).address(origin)?;
            Some(word.map_addr(|_| leaf))
        })
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests;
