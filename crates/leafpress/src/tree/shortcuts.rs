//! A table that leads from a key to its leaf past the inner nodes.
//!
//! In a tree of many leaves the inner nodes above them fall out of the nearer caches, and each level is a search in lines that a
//! read waits for. Where the leaves divide the keys evenly, arithmetic says where among them a key is. The table divides the span
//! from a shard's first separator to its last into buckets of equal width. A bucket has a leaf, the one that covers its start, and the
//! leaf's range. A key's leaf is its bucket's, or the next one's; the ranges say which, or that it is neither: then the way
//! goes down from the root. The numbers that stand for keys are the eight bytes behind what all separators begin with, and ranges
//! are rounded inwards, so that a key within a rounded range is within the range.
//!
//! **Ranges never change, leaves do.** A leaf that is replaced by one that covers the same range is replaced in its buckets too, under
//! its parent's lock: its buckets are emptied, its parent's child pointer is stored to, its buckets are filled. So no reader sees
//! through the table what the tree no longer or not yet says. When a leaf's range changes, its buckets are emptied for good, under its
//! parent's lock and before the change is published; the next table has them again. Whoever finds a leaf in a table that was the
//! shard's when it was loaded finds what was in the tree at that time or later.
//!
//! ```text
//! header | entries, one a bucket and an empty one | the common prefix
//! ```

use std::mem::offset_of;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use seize::LocalGuard;

use super::Error;
use super::child;
use super::inner::{Share, Step, begins_with, common_prefix, head, head_behind};
use super::memory::{Kind, Memory, NodeHeader};
use super::prefetch::prefetch;
use super::sync::{AtomicPtr, load};

/// Most buckets: a table of 32 MiB, for a shard of a hundred million records.
const MAX_BUCKETS: usize = 2 << 20;
/// Buckets for four leaves. Leaves are of different widths: those that cover no bucket's start and are not the next behind it are found
/// by the way down. With so many buckets they are 3% of the keys where widths differ by a third, and far fewer where they do not.
const BUCKETS_FOR_4_LEAVES: usize = 5;
/// Most of the memory that a table takes: one part in so many of what the leaves take.
const LEAF_BYTES_A_TABLE_BYTE: usize = if cfg!(any(shuttle, miri)) { 1 } else { 128 };

#[repr(C)]
struct Header {
    node: NodeHeader,
    /// The head of the prefix.
    prefix_head: u64,
    /// The number that the first bucket starts at.
    base: u64,
    /// Buckets for a unit of `position`, times 2^32.
    scale: u64,
    /// The position that the last bucket ends at.
    end: u32,
    prefix_len: u32,
    buckets: u32,
    /// A position is a number behind the base without its lowest bits, so many.
    shift: u32,
}

#[repr(C)]
struct Entry {
    /// With its hint, as its parent has it. Null when none is known.
    leaf: AtomicPtr<u8>,
    /// Positions of which the leaf surely holds the keys: from `low` to below `high`.
    low: u32,
    high: u32,
}

/// A table, borrowed for as long as a guard protects it.
#[derive(Clone, Copy)]
pub(crate) struct Shortcuts(NonNull<u8>);

/// Where one leaf's range ends and the next one's begins, as numbers.
#[derive(Clone, Copy)]
struct Bound {
    number: u64,
    /// Whether every key of this number is behind the bound.
    exact: bool,
}

/// The bounds between a shard's leaves, collected in order.
pub(crate) struct Bounds {
    prefix: Vec<u8>,
    bounds: Vec<Bound>,
}

impl Bounds {
    /// For separators from `first` to `last`.
    pub(crate) fn new(first: &[u8], last: &[u8]) -> Self {
        Self {
            prefix: first[..common_prefix(first, last)].to_vec(),
            bounds: Vec::new(),
        }
    }

    /// Takes the next separator.
    pub(crate) fn push(&mut self, separator: &[u8]) {
        let suffix = separator.get(self.prefix.len()..).unwrap_or_default();
        // A key of the same number is below the separator only if it lacks zeros that the separator ends with, or differs behind what
        // the number is of.
        let exact = suffix.len() <= size_of::<u64>() && suffix.last() != Some(&0);
        self.bounds.push(Bound {
            number: head(suffix),
            exact,
        });
    }
}

/// What a table is made from: for each leaf between two bounds its range in positions.
struct Plan {
    base: u64,
    shift: u32,
    end: u32,
    scale: u64,
    buckets: usize,
    ranges: Vec<Range<u32>>,
}

impl Plan {
    /// Nothing where numbers tell too few leaves apart, or memory allows too few buckets.
    fn new(bounds: &[Bound], leaf_bytes: usize) -> Option<Self> {
        let (first, last) = (bounds.first()?, bounds.last()?);
        let leaves = bounds.len() - 1;
        let allowed = leaf_bytes / LEAF_BYTES_A_TABLE_BYTE / size_of::<Entry>();
        let buckets = (leaves * BUCKETS_FOR_4_LEAVES / 4).min(allowed).min(MAX_BUCKETS);
        let span = last.number.checked_sub(first.number)?;
        let shift = (u64::BITS - span.leading_zeros()).saturating_sub(u32::BITS);
        let end = u32::try_from(span >> shift).ok()?;
        if buckets == 0 || buckets < leaves / 2 || (end as usize) < buckets {
            return None;
        }
        let unit = (1u64 << shift) - 1;
        let ranges = bounds.windows(2).map(|pair| {
            let low = pair[0]
                .number
                .saturating_sub(first.number)
                .saturating_add(u64::from(!pair[0].exact));
            let high = pair[1].number.saturating_sub(first.number);
            // Upwards and downwards; a low above 32 bits is that of no position.
            let low = (low.saturating_add(unit) >> shift).min(u64::from(u32::MAX));
            low as u32..(high >> shift) as u32
        });
        let ranges: Vec<_> = ranges.collect();
        let known = ranges.iter().filter(|range| !range.is_empty()).count();
        (known >= leaves / 2).then_some(Self {
            base: first.number,
            shift,
            end,
            scale: ((buckets as u64) << u32::BITS) / u64::from(end),
            buckets,
            ranges,
        })
    }

    /// For each bucket the leaf that covers its start, or the first one behind it.
    fn leaves(&self) -> Vec<u32> {
        let mut leaf = 0;
        let buckets = 0..self.buckets as u64;
        let leaves = buckets.map(|bucket| {
            let start = (bucket << u32::BITS).div_ceil(self.scale);
            while leaf + 1 < self.ranges.len() && u64::from(self.ranges[leaf].end) <= start {
                leaf += 1;
            }
            leaf as u32
        });
        leaves.collect()
    }
}

impl Shortcuts {
    /// # Safety
    /// `pointer` is a live table's.
    pub(crate) unsafe fn from_ptr(pointer: *mut u8) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }

    pub(crate) fn node(self) -> NonNull<u8> {
        self.0
    }

    /// A table without leaves for those between the bounds, which take `leaf_bytes` of memory, and for each bucket the leaf that it is to
    /// have, counted from the one between the first two bounds. Nothing where it would not help.
    ///
    /// # Safety
    /// `memory` outlives the table.
    pub(crate) unsafe fn new(
        bounds: &Bounds,
        leaf_bytes: usize,
        memory: &Memory,
    ) -> Result<Option<(Self, Vec<u32>)>, Error> {
        let Some(plan) = Plan::new(&bounds.bounds, leaf_bytes) else {
            return Ok(None);
        };
        let leaves = plan.leaves();
        let entries = plan.buckets + 1;
        let bytes = size_of::<Header>() + entries * size_of::<Entry>() + bounds.prefix.len();
        // SAFETY: every section is written into the room counted for it. Nodes are aligned to 16 bytes, of which the header is a multiple.
        unsafe {
            let node = memory.allocate(bytes, Kind::Shortcuts)?;
            let header = node.cast::<Header>().as_ptr();
            (&raw mut (*header).prefix_head).write(head(&bounds.prefix));
            (&raw mut (*header).base).write(plan.base);
            (&raw mut (*header).scale).write(plan.scale);
            (&raw mut (*header).end).write(plan.end);
            (&raw mut (*header).prefix_len).write(bounds.prefix.len() as u32);
            (&raw mut (*header).buckets).write(plan.buckets as u32);
            (&raw mut (*header).shift).write(plan.shift);
            let table = Self(node);
            for bucket in 0..entries {
                // No position is in the entry behind the last bucket.
                let (low, high) = leaves.get(bucket).map_or((u32::MAX, 0), |&leaf| {
                    let range = &plan.ranges[leaf as usize];
                    (range.start, range.end)
                });
                table.entry_at(bucket).write(Entry {
                    leaf: AtomicPtr::new(std::ptr::null_mut()),
                    low,
                    high,
                });
            }
            let prefix = table.entry_at(entries).cast::<u8>();
            prefix.copy_from_nonoverlapping(bounds.prefix.as_ptr(), bounds.prefix.len());
            Ok(Some((table, leaves)))
        }
    }

    #[inline(always)]
    fn header(&self) -> &Header {
        // SAFETY: a live table begins with its header.
        unsafe { self.0.cast().as_ref() }
    }

    #[inline(always)]
    fn entry_at(&self, bucket: usize) -> *mut Entry {
        const { assert!(size_of::<Header>().is_multiple_of(align_of::<Entry>()) && offset_of!(Entry, leaf) == 0) };
        // SAFETY: the entries follow the header; callers pass no more than their number.
        unsafe { self.0.add(size_of::<Header>()).cast::<Entry>().add(bucket).as_ptr() }
    }

    #[inline(always)]
    fn entry(&self, bucket: usize) -> &Entry {
        debug_assert!(bucket <= self.header().buckets as usize);
        // SAFETY: there is an entry for every bucket and one more; but for the pointers they do not change.
        unsafe { &*self.entry_at(bucket) }
    }

    fn prefix(&self) -> &[u8] {
        let header = self.header();
        let start = self.entry_at(header.buckets as usize + 1).cast::<u8>();
        // SAFETY: the prefix is immutable and follows the entries.
        unsafe { std::slice::from_raw_parts(start, header.prefix_len as usize) }
    }

    /// Where the key is behind the start of the table's span, if it begins as all keys in the span do.
    #[inline(always)]
    fn position_from_base(&self, key: &[u8]) -> Option<u64> {
        let header = self.header();
        let prefix_len = header.prefix_len as usize;
        if !begins_with(key, prefix_len, header.prefix_head, || self.prefix()) {
            return None;
        }
        let number = head_behind(key, prefix_len).checked_sub(header.base)?;
        Some(number >> header.shift)
    }

    /// Where the key is in the table's span, if it is in it.
    #[inline(always)]
    fn position(&self, key: &[u8]) -> Option<u32> {
        let position = self.position_from_base(key)?;
        (position < u64::from(self.header().end)).then_some(position as u32)
    }

    #[inline(always)]
    fn bucket(&self, position: u32) -> usize {
        // The position is below the end, so that the result is below the number of buckets.
        ((u64::from(position) * self.header().scale) >> u32::BITS) as usize
    }

    /// Asks for the line of the key's bucket.
    #[inline(always)]
    pub(crate) fn prefetch(&self, key: &[u8]) {
        if let Some(position) = self.position(key) {
            prefetch(self.entry_at(self.bucket(position)).cast());
        }
    }

    /// The step to the leaf whose range holds `key`, if the table has it.
    #[inline(always)]
    pub(crate) fn find(&self, key: &[u8], guard: &LocalGuard<'_>) -> Option<Step> {
        let position = self.position(key)?;
        let bucket = self.bucket(position);
        let entry = self.entry(bucket + usize::from(position >= self.entry(bucket).high));
        if position < entry.low || position >= entry.high {
            return None;
        }
        let (leaf, hint) = child::split(load(&entry.leaf, guard));
        if leaf.is_null() {
            return None;
        }
        let share = Share::of((position - entry.low) as f32, (entry.high - entry.low) as f32);
        Some(Step {
            child: leaf,
            hint,
            share: Some(share),
        })
    }

    /// The buckets that have `leaf`, of whose range `key` is. They change under its parent's lock.
    pub(crate) fn buckets_of(&self, leaf: *mut u8, key: &[u8]) -> Range<usize> {
        // The range of a leaf in the table is within its span.
        let Some(position) = self.position_from_base(key) else {
            return 0..0;
        };
        let buckets = self.header().buckets as usize;
        let here = self.bucket(position.min(u64::from(self.header().end) - 1) as u32);
        let has = |bucket: &usize| child::address(self.entry(*bucket).leaf.load(Ordering::Relaxed)) == leaf;
        // Rounding may have put the leaf's last bucket before the key's, and the leaf may not cover the start of the key's bucket.
        let near = here.saturating_sub(1)..(here + 2).min(buckets);
        let Some(known) = near.into_iter().find(has) else {
            return 0..0;
        };
        let before = (0..known).rev().take_while(has).count();
        let after = (known + 1..buckets).take_while(has).count();
        known - before..known + 1 + after
    }

    /// Gives the buckets a leaf, with its hint, or none.
    pub(crate) fn store(&self, buckets: Range<usize>, leaf: *mut u8) {
        for bucket in buckets {
            self.entry(bucket).leaf.store(leaf, Ordering::Release);
        }
    }

    /// The leaves in the table.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = *mut u8> {
        let entries = (0..self.header().buckets as usize).map(|bucket| self.entry(bucket));
        let leaves = entries.map(|entry| child::address(entry.leaf.load(Ordering::Acquire)));
        leaves.filter(|leaf| !leaf.is_null())
    }
}

#[cfg(test)]
mod tests {
    use seize::Collector;

    use super::super::memory::Memory;
    use super::{Bounds, Shortcuts};

    /// Keys of all kinds: few numbers, so that many keys share one, and lengths around that of a number.
    fn key(rng: &mut fastrand::Rng, prefix: &[u8], wide: bool) -> Vec<u8> {
        let number = if wide { rng.u64(..) } else { rng.u64(..4000) * 25 };
        let len = *rng.choice(&[6, 7, 8, 8, 8, 9, 10]).unwrap();
        let tail = [rng.u8(..2), rng.u8(..2)];
        let mut key = prefix.to_vec();
        key.extend(number.to_be_bytes().iter().chain(&tail).take(len));
        key
    }

    /// An address that no node has.
    fn address(leaf: usize) -> *mut u8 {
        std::ptr::without_provenance_mut((leaf + 1) * 16)
    }

    #[test]
    fn there_is_no_table_without_buckets() {
        let memory = Memory::new();
        for (first, last) in [(b"a", b"b"), (b"a", b"a")] {
            let mut bounds = Bounds::new(first, last);
            [first, last].into_iter().for_each(|bound| bounds.push(bound));
            // SAFETY: no table is made that could outlive the memory.
            assert!(unsafe { Shortcuts::new(&bounds, 0, &memory) }.unwrap().is_none());
        }
    }

    #[test]
    fn every_key_leads_to_its_leaf_or_nowhere_and_knows_its_buckets() {
        let (memory, collector) = (Memory::new(), Collector::new());
        let mut rng = fastrand::Rng::with_seed(1);
        let mut found = 0;
        for round in 0..300 {
            let wide = round % 2 == 0;
            let prefix = &b"a prefix, which is longer"[..*rng.choice(&[0, 3, 8, 20]).unwrap()];
            let mut bounds: Vec<_> = (0..rng.usize(2..200)).map(|_| key(&mut rng, prefix, wide)).collect();
            bounds.sort();
            bounds.dedup();
            let mut of_bounds = Bounds::new(&bounds[0], &bounds[bounds.len() - 1]);
            bounds.iter().for_each(|bound| of_bounds.push(bound));
            // SAFETY: the memory outlives the table.
            let Some((table, leaves)) = unsafe { Shortcuts::new(&of_bounds, 1 << 20, &memory) }.unwrap() else {
                continue;
            };
            for (bucket, &leaf) in leaves.iter().enumerate() {
                table.store(bucket..bucket + 1, address(leaf as usize));
            }
            let guard = collector.enter();
            for _ in 0..2000 {
                // Anywhere, at the bounds, and just below them: without the last byte, which numbers need not tell.
                let bound = rng.choice(&bounds).unwrap();
                let key = match rng.u8(..3) {
                    0 => key(&mut rng, prefix, wide),
                    1 => bound.clone(),
                    _ => bound[..bound.len() - 1].to_vec(),
                };
                let leaf = bounds.partition_point(|bound| *bound <= key).checked_sub(1);
                let step = table.find(&key, &guard);
                let Some(leaf) = leaf.filter(|leaf| leaf + 1 < bounds.len()) else {
                    assert!(step.is_none(), "{key:?} is outside the span {bounds:?}");
                    continue;
                };
                assert!(
                    step.is_none_or(|step| step.child == address(leaf)),
                    "{key:?} in {bounds:?}"
                );
                found += usize::from(step.is_some());
                let known: Vec<_> = (0..leaves.len())
                    .filter(|&bucket| leaves[bucket] as usize == leaf)
                    .collect();
                assert_eq!(
                    table.buckets_of(address(leaf), &key).collect::<Vec<_>>(),
                    known,
                    "{key:?} in {bounds:?}"
                );
            }
            // SAFETY: nobody else has seen the table.
            unsafe { Memory::free(table.node()) };
        }
        assert!(found > 100_000, "{found} of 600,000 keys were found");
    }
}
