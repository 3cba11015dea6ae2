//! The plan of an interpolation index: the bounds between leaves, as places.

use crate::tree::index::interpolation::entry::{BucketWord, PLACE_BITS};
use crate::tree::node::key_order::{common_prefix, head};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, collected, copied, room_for};
use leafpress_base::sync::AtomicPtr;

/// Maximum number of buckets: a table of 16 MiB, and a prefetch summary of 6 MiB, for a shard of a hundred million
/// records.
const MAX_BUCKETS: usize = 2 << 20;
/// Buckets per four leaves. Leaves have different widths: those that cover no bucket's start and are not the next after
/// one are found by descending from the root. With this many buckets these are 3% of the keys where widths vary by a
/// third, and far fewer where they do not.
const BUCKETS_FOR_4_LEAVES: usize = 5;
/// Shift that yields a place from a position multiplied by the scale.
pub(super) const PLACE_SHIFT: u32 = u32::BITS - PLACE_BITS;
/// Entries after the last bucket, in which a search for the end of a leaf's range ends.
pub(super) const ENTRIES_BEHIND: usize = 3;
/// Bytes of leaves per byte of a table, without the prefetch summary: a limit of the table's memory.
const LEAF_BYTES_A_TABLE_BYTE: usize = if cfg!(any(shuttle, miri)) { 1 } else { 128 };

/// The bound between two neighbouring leaves, as a number.
#[derive(Clone, Copy)]
pub(crate) struct Bound {
    number: u64,
    /// Whether every key with this number is after the bound.
    exact: bool,
}

/// The bounds between a shard's leaves, collected in order.
pub(crate) struct Bounds {
    pub(crate) prefix: Vec<u8>,
    pub(crate) bounds: Vec<Bound>,
}

impl Bounds {
    /// Creates an empty collection for separators from `first` to `last`.
    pub(crate) fn new(first: &[u8], last: &[u8]) -> Result<Self, OutOfMemory> {
        Ok(Self {
            prefix: copied(&first[..common_prefix(first, last)])?,
            bounds: Vec::new(),
        })
    }

    /// Adds the next separator.
    pub(crate) fn push(&mut self, separator: &[u8]) -> Result<(), OutOfMemory> {
        let suffix = separator.get(self.prefix.len()..).unwrap_or_default();
        // A key with the same number is below the separator only if it lacks zeros that the separator ends with, or
        // differs after the bytes that form the number.
        let exact = suffix.len() <= size_of::<u64>() && suffix.last() != Some(&0);
        self.bounds.try_push(Bound {
            number: head(suffix),
            exact,
        })
    }
}

/// A bound in places: keys at places below `below` are before it, those from `from` on after it.
#[derive(Clone, Copy)]
struct Edge {
    below: u64,
    from: u64,
}

/// The plan of a table.
pub(crate) struct Plan {
    pub(crate) base: u64,
    pub(crate) shift: u32,
    pub(crate) end: u32,
    pub(crate) scale: u64,
    pub(crate) buckets: usize,
    /// The bounds, in order.
    edges: Vec<Edge>,
}

impl Plan {
    /// Returns `None` where numbers distinguish too few leaves, memory allows too few buckets, or there is none.
    pub(crate) fn new(bounds: &[Bound], leaf_bytes: usize) -> Option<Self> {
        let (first, last) = (bounds.first()?, bounds.last()?);
        let leaves = bounds.len() - 1;
        let allowed = leaf_bytes / LEAF_BYTES_A_TABLE_BYTE / size_of::<AtomicPtr<u8>>();
        let buckets = (leaves * BUCKETS_FOR_4_LEAVES / 4).min(allowed).min(MAX_BUCKETS);
        // Every key in the span is after the first bound.
        let base = first.number.checked_add(u64::from(!first.exact))?;
        let span = last.number.checked_sub(base)?;
        let behind_base = |bound: &Bound| bound.number.saturating_sub(base);
        // Low bits that are zero in all bounds are dropped, so that the bounds between numbered keys are at adjacent
        // positions.
        let spare = bounds
            .iter()
            .fold(0, |bits, bound| bits | behind_base(bound))
            .trailing_zeros();
        let shift = (u64::BITS - span.leading_zeros()).saturating_sub(u32::BITS).max(spare);
        let end = u32::try_from(span.checked_shr(shift)?).ok()?;
        if usize::BITS < u64::BITS || buckets == 0 || buckets < leaves / 2 || (end as usize) < buckets {
            return None;
        }
        let mut plan = Self {
            base,
            shift,
            end,
            scale: ((buckets as u64) << u32::BITS) / u64::from(end),
            buckets,
            edges: room_for(bounds.len()).ok()?,
        };
        plan.edges.push(Edge { below: 0, from: 0 });
        for bound in &bounds[1..] {
            let number = behind_base(bound);
            let position = number >> shift;
            let place = plan.place(position);
            // The bound falls exactly on a place if every key with its position is after it, and the position before is
            // at an earlier place.
            let exact =
                bound.exact && position << shift == number && (position == 0 || plan.place(position - 1) < place);
            plan.edges.push(Edge {
                below: place,
                from: place + u64::from(!exact),
            });
        }
        let ranges = plan.edges.windows(2);
        let known = ranges.filter(|pair| pair[0].from < pair[1].below).count();
        (known >= leaves / 2).then_some(plan)
    }

    fn place(&self, position: u64) -> u64 {
        (position * self.scale) >> PLACE_SHIFT
    }

    /// Returns for each bucket the leaf that covers its start, or all of its first places but one.
    pub(crate) fn leaves(&self) -> Result<Vec<u32>, OutOfMemory> {
        let mut leaf = 0;
        let buckets = 0..self.buckets as u64;
        let leaves = buckets.map(|bucket| {
            while leaf + 2 < self.edges.len() && self.edges[leaf + 1].from <= bucket << PLACE_BITS {
                leaf += 1;
            }
            leaf as u32
        });
        collected(leaves)
    }

    /// Returns the entries, the first ones with the leaves of `leaves`.
    pub(crate) fn entries(&self, leaves: &[u32]) -> impl Iterator<Item = BucketWord> {
        (0..self.buckets + ENTRIES_BEHIND).map(|bucket| {
            let start = (bucket as u64) << PLACE_BITS;
            let before = bucket.checked_sub(1).and_then(|before| leaves.get(before)).copied();
            let from = match leaves.get(bucket) {
                Some(&leaf) => self.edges[leaf as usize].from,
                // After the span.
                None => start,
            };
            let flags = before.map_or(0, |before| {
                match from.saturating_sub(self.edges[before as usize + 1].below) {
                    0 => BucketWord::FOLLOWS,
                    1 => BucketWord::FOLLOWS | BucketWord::BLURRED,
                    _ => 0,
                }
            });
            BucketWord::without_leaf(start - from, flags)
        })
    }
}
