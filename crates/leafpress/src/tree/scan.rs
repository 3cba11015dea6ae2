//! Range scans.
//!
//! A scan reads a batch of records from one leaf at a time, under a guard that is dropped before the records are
//! returned, and continues at the key where the batch ended. The ranges of leaves partition the keys, so that a key
//! that is present during the whole scan is returned exactly once, and records are in order.

mod batch;
mod visit;

use std::ops::Bound;

use leafpress_base::reclaim::guard::Guard;

pub(super) use self::batch::End;
use crate::tree::error::TreeError;
use crate::tree::index::shard::Shard;
use crate::tree::inner::TreeInner;
use crate::tree::node::decoder::{Decoder, Value, corrupt};
use crate::tree::node::landing::{Change, LandedWrite, newest_by_key};
use crate::tree::node::large::Large;
use crate::tree::node::layout::{FINGERPRINTS, HASHED, KEYED, Sections};
use crate::tree::node::leaf::Leaf;
use crate::tree::node::leaf::frame::Ascending;
use crate::tree::scan::batch::{Batch, Gathered, Record};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, copied, joined, room_for};
use leafpress_codec::Scratch;

/// Records of the first batch; later ones double up to [`MAX_BATCH`].
const FIRST_BATCH: usize = 16;
const MIN_BATCH: usize = 2;
const MAX_BATCH: usize = 1024;
/// The keys of a range, both ends.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// An iterator over the records of a key range, in key order, from either end. See
/// [`Tree::range`](crate::tree::Tree::range).
///
/// An item is an error when a frame could not be decoded or memory ran out; the iterator ends after it.
pub struct Range<'t> {
    core: &'t TreeInner,
    cursors: Vec<Cursor>,
    /// Maximum number of records still to be read, where that is known.
    left: Option<usize>,
    failed: bool,
    /// An error from before the first step, not yet returned.
    unsaid: Option<TreeError>,
}

impl std::fmt::Debug for Range<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Range")
            .field("shards", &self.cursors.len())
            .finish_non_exhaustive()
    }
}

/// The rest of a scan in one shard.
struct Cursor {
    shard: usize,
    front: Batch,
    back: Batch,
    /// The part that no batch covers yet; `None` when nothing is left.
    rest: Option<Bounds>,
    /// Whether a batch has been read.
    begun: bool,
    limit: usize,
}

pub(crate) fn not_below(start: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match start {
        Bound::Included(start) => start.as_slice() <= key,
        Bound::Excluded(start) => start.as_slice() < key,
        Bound::Unbounded => true,
    }
}

pub(crate) fn not_above(end: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match end {
        Bound::Included(end) => key <= end.as_slice(),
        Bound::Excluded(end) => key < end.as_slice(),
        Bound::Unbounded => true,
    }
}

pub(crate) fn copied_bound(bound: &Bound<Vec<u8>>) -> Result<Bound<Vec<u8>>, OutOfMemory> {
    Ok(match bound {
        Bound::Included(key) => Bound::Included(copied(key)?),
        Bound::Excluded(key) => Bound::Excluded(copied(key)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

/// Returns whether no key can be between the bounds.
pub(crate) fn is_empty(start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>) -> bool {
    match (start, end) {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end) | Bound::Included(end)) => start >= end,
        (_, Bound::Excluded(end)) => end.is_empty(),
        _ => false,
    }
}

impl<'t> Range<'t> {
    pub(crate) fn new(core: &'t TreeInner, bounds: Result<Bounds, TreeError>) -> Self {
        let cursors = bounds.and_then(|bounds| Self::cursors(core, &bounds));
        let (cursors, unsaid) = cursors.map_or_else(|error| (Vec::new(), Some(error)), |cursors| (cursors, None));
        Self {
            core,
            cursors,
            left: None,
            failed: unsaid.is_some(),
            unsaid,
        }
    }

    fn cursors(core: &TreeInner, (start, end): &Bounds) -> Result<Vec<Cursor>, TreeError> {
        let limit = FIRST_BATCH.div_ceil(core.shards.len()).max(MIN_BATCH);
        let mut cursors = room_for(core.shards.len())?;
        for shard in 0..core.shards.len() {
            let rest = match is_empty(start, end) {
                true => None,
                false => Some((copied_bound(start)?, copied_bound(end)?)),
            };
            cursors.push(Cursor {
                shard,
                front: Batch::default(),
                back: Batch::default(),
                rest,
                begun: false,
                limit,
            });
        }
        Ok(cursors)
    }
}

impl Range<'_> {
    /// Returns the next record at `end`, copied.
    pub(crate) fn record(&mut self, end: End) -> Option<Result<Record, TreeError>> {
        let record = self.step(end, |key, value| Ok((copied(key)?, copied(value)?)))?;
        let record = record.and_then(|copied: Result<_, OutOfMemory>| Ok(copied?));
        self.failed |= record.is_err();
        Some(record)
    }

    /// Calls `read` with the next record at `end`: the first or the last of all shards'.
    #[inline]
    pub(crate) fn step<R>(&mut self, end: End, read: impl FnOnce(&[u8], &[u8]) -> R) -> Option<Result<R, TreeError>> {
        if self.failed || self.left == Some(0) {
            return self.unsaid.take().map(Err);
        }
        let share = self.left.map(|left| left.div_ceil(self.cursors.len()));
        let mut chosen: Option<(usize, &[u8])> = None;
        for (index, cursor) in self.cursors.iter_mut().enumerate() {
            if let Err(error) = cursor.fill(end, self.core, share) {
                self.failed = true;
                return Some(Err(error));
            }
            let Some(key) = cursor.peek(end) else {
                continue;
            };
            let sooner = chosen.is_none_or(|(_, other)| match end {
                End::Front => key < other,
                End::Back => key > other,
            });
            if sooner {
                chosen = Some((index, key));
            }
        }
        let (index, _) = chosen?;
        self.left = self.left.map(|left| left - 1);
        Some(Ok(self.cursors[index].pop(end, read)))
    }
}

impl Iterator for Range<'_> {
    type Item = Result<Record, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.record(End::Front)
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.record(End::Back)
    }
}

impl std::iter::FusedIterator for Range<'_> {}

impl Cursor {
    fn batches(&mut self, end: End) -> (&mut Batch, &mut Batch) {
        match end {
            End::Front => (&mut self.front, &mut self.back),
            End::Back => (&mut self.back, &mut self.front),
        }
    }

    /// Returns the key of the next record. When this end's batch is empty and nothing lies between, it is in the other
    /// end's.
    fn peek(&mut self, end: End) -> Option<&[u8]> {
        let (own, other) = self.batches(end);
        if own.is_empty() { other.peek(end) } else { own.peek(end) }
    }

    fn pop<R>(&mut self, end: End, read: impl FnOnce(&[u8], &[u8]) -> R) -> R {
        let (own, other) = self.batches(end);
        if own.is_empty() {
            other.pop(end, read)
        } else {
            own.pop(end, read)
        }
    }

    /// Ensures that this end's batch has a record, if any is left for it.
    #[inline]
    fn fill(&mut self, end: End, core: &TreeInner, share: Option<usize>) -> Result<(), TreeError> {
        if self.batches(end).0.is_empty() && self.rest.is_some() {
            self.refill(end, core, share)
        } else {
            Ok(())
        }
    }

    /// Reads batches until this end's has a record or nothing is left. `share` is this shard's part of the requested
    /// records, where that is known.
    #[inline(never)]
    fn refill(&mut self, end: End, core: &TreeInner, share: Option<usize>) -> Result<(), TreeError> {
        while self.batches(end).0.is_empty() {
            let Some(bounds) = self.rest.take() else {
                return Ok(());
            };
            // If consecutive keys are in one shard, that shard has more than its share of the next records.
            let limit = match share {
                Some(share) if self.begun => share.clamp(self.limit, MAX_BATCH),
                Some(share) => share.clamp(MIN_BATCH, MAX_BATCH),
                None => self.limit,
            };
            self.begun = true;
            self.limit = (self.limit * 2).min(MAX_BATCH);
            let (batch, covered) = Reader::new(core, self.shard).read(end, &bounds, limit)?;
            *self.batches(end).0 = batch;
            let (low, high) = bounds;
            self.rest = covered
                .map(|covered| match end {
                    End::Front => (Bound::Included(covered), high),
                    End::Back => (low, Bound::Excluded(covered)),
                })
                .filter(|(low, high)| !is_empty(low, high));
        }
        Ok(())
    }
}

/// A leaf, its frames that form a batch, and how far these cover a range.
type Part<'g> = (Leaf<'g>, std::ops::Range<usize>, Option<Vec<u8>>);

/// Reads batches from one shard.
struct Reader<'c> {
    core: &'c TreeInner,
    shard: &'c Shard,
}

/// The part of a leaf that a batch is read from, and the range of its keys.
struct Span<'s> {
    frames: std::ops::Range<usize>,
    /// Start of the range (inclusive).
    low: Option<&'s [u8]>,
    /// End of the range (exclusive).
    high: Option<&'s [u8]>,
    bounds: &'s Bounds,
}

impl Span<'_> {
    fn holds(&self, key: &[u8]) -> bool {
        self.low.is_none_or(|low| low <= key) && self.high.is_none_or(|high| key < high)
    }

    fn wants(&self, key: &[u8]) -> bool {
        not_below(&self.bounds.0, key) && not_above(&self.bounds.1, key)
    }
}

/// Returns how many of `frames`, in this order, are needed for `limit` records; the last frame may exceed it.
fn frames_for(leaf: &Leaf, sections: &Sections, frames: impl Iterator<Item = usize>, limit: usize) -> usize {
    let mut records = 0;
    frames
        .take_while(|frame| {
            let more = records < limit;
            records += leaf.slots(sections, *frame).len();
            more
        })
        .count()
}

impl<'c> Reader<'c> {
    fn new(core: &'c TreeInner, shard: usize) -> Self {
        Self {
            core,
            shard: &core.shards[shard],
        }
    }

    /// Reads a batch from the first or the last leaf of the range, and returns it with the key up to which it covers
    /// the range: exclusive from the front, inclusive from the back; `None` for all of it.
    fn read(&self, end: End, bounds: &Bounds, limit: usize) -> Result<(Batch, Option<Vec<u8>>), TreeError> {
        let guard = self.core.memory.enter()?;
        let context = self.core.contexts.get()?;
        let mut tools = self.core.take_tools(context, &guard)?;
        let read = self.read_by(end, bounds, limit, &mut tools.scratch, &guard);
        self.core.return_tools(context, tools, &guard);
        read
    }

    fn read_by(
        &self,
        end: End,
        bounds: &Bounds,
        limit: usize,
        scratch: &mut Scratch,
        guard: &Guard<'_>,
    ) -> Result<(Batch, Option<Vec<u8>>), TreeError> {
        let (leaf, span_frames, covered) = match end {
            End::Front => self.first_leaf(&bounds.0, limit, scratch, guard)?,
            End::Back => self.last_leaf(&bounds.1, limit, scratch, guard)?,
        };
        let (low, high) = match end {
            End::Front => (None, covered.as_deref()),
            End::Back => (covered.as_deref(), None),
        };
        let span = Span {
            frames: span_frames,
            low,
            high,
            bounds,
        };
        let landed = self.landed(leaf, &span, guard)?;
        let mut gathered = self.gather(leaf, &landed, &span, scratch)?;
        let trimmed = gathered.trim(end)?;
        let batch = gathered.read_large(&*self.core.engines.warm)?;
        Ok((batch, trimmed.or(covered)))
    }

    /// Returns the first leaf of a range with this start, its frames that form a batch, and where these or the leaf's
    /// range end.
    fn first_leaf<'g>(
        &self,
        start: &Bound<Vec<u8>>,
        limit: usize,
        scratch: &mut Scratch,
        guard: &'g Guard<'_>,
    ) -> Result<Part<'g>, TreeError> {
        let from: &[u8] = match start {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => &[],
        };
        let (leaf, leaf_end) = self.shard.descend_up(from, guard)?;
        let frames = leaf.frames();
        if leaf.has(HASHED) || leaf.count() == 0 {
            return Ok((leaf, 0..frames, leaf_end));
        }
        let sections = leaf.sections();
        let mut decoder = Decoder::new(&self.core.engines, scratch);
        let mut first = leaf.frame_for(&sections, from, &mut decoder)?;
        // The frame's last key may be below the range: then the frame is skipped. Frames of several records with keys
        // of different lengths are not decoded for that.
        let is_keyed = leaf.has(KEYED);
        if is_keyed || !leaf.has(FINGERPRINTS) {
            let mut last_key = Vec::new();
            match is_keyed {
                true => leaf.keyed_key(&sections, first, &mut decoder, &mut last_key)?,
                false => leaf.packed_key(&sections, leaf.slots(&sections, first).end - 1, &mut last_key)?,
            }
            first += usize::from(!not_below(start, &last_key));
        }
        let last = first + frames_for(&leaf, &sections, first..frames, limit);
        let covered = if last < frames {
            Some(leaf.first_key(&sections, last, &mut decoder)?)
        } else {
            leaf_end
        };
        Ok((leaf, first..last, covered))
    }

    /// Returns the last leaf of a range with this end, its frames that form a batch, and where these or the leaf's
    /// range start.
    fn last_leaf<'g>(
        &self,
        end: &Bound<Vec<u8>>,
        limit: usize,
        scratch: &mut Scratch,
        guard: &'g Guard<'_>,
    ) -> Result<Part<'g>, TreeError> {
        // The least key above an inclusive end is the end with a zero byte appended.
        let below = match end {
            Bound::Included(key) => Some(joined(key, &[0])?),
            Bound::Excluded(key) => Some(copied(key)?),
            Bound::Unbounded => None,
        };
        let (leaf, leaf_start) = self.shard.descend_down(below.as_deref(), guard)?;
        let frames = leaf.frames();
        if leaf.has(HASHED) || leaf.count() == 0 {
            return Ok((leaf, 0..frames, leaf_start));
        }
        let sections = leaf.sections();
        let mut decoder = Decoder::new(&self.core.engines, scratch);
        let last = match below {
            None => frames,
            Some(key) => {
                let frame = leaf.frame_for(&sections, &key, &mut decoder)?;
                // A frame that starts at the end has no key in the range: if it were included, it could fill every
                // batch by itself.
                frame + usize::from(leaf.first_key(&sections, frame, &mut decoder)? < key)
            }
        };
        let first = last - frames_for(&leaf, &sections, (0..last).rev(), limit);
        let covered = if first > 0 {
            Some(leaf.first_key(&sections, first, &mut decoder)?)
        } else {
            leaf_start
        };
        Ok((leaf, first..last, covered))
    }

    /// Returns the changes of a part of a leaf that its landing buffer has, the newest of each key, in key order.
    fn landed<'g>(&self, leaf: Leaf, span: &Span<'_>, guard: &'g Guard<'_>) -> Result<Vec<LandedWrite<'g>>, TreeError> {
        let Some(landing) = leaf.landing(guard) else {
            return Ok(Vec::new());
        };
        let mut entries = landing.read_all()?;
        entries.retain(|entry| span.holds(entry.key) && span.wants(entry.key));
        newest_by_key(&mut entries, |_| {});
        Ok(entries)
    }

    /// Reads the records of a part of a leaf, with the changes in its landing buffer.
    fn gather<'g>(
        &self,
        leaf: Leaf<'g>,
        landed: &[LandedWrite<'g>],
        span: &Span<'_>,
        scratch: &mut Scratch,
    ) -> Result<Gathered<'g>, TreeError> {
        let mut decoder = Decoder::new(&self.core.engines, scratch);
        let landed = self.decompress(leaf, landed, &mut decoder)?;
        let mut gathered = Gathered::default();
        let mut landed = landed.iter().peekable();
        let decoded_keys = leaf.has(FINGERPRINTS);
        let mut ascending = Ascending::default();
        // Returns whether the key is past the range's end.
        let mut emit = |gathered: &mut Gathered<'g>, key: &[u8], value: Value<'_, 'g>| -> Result<bool, TreeError> {
            ascending.check(leaf, key)?;
            if decoded_keys && !span.holds(key) {
                return Err(corrupt("a key outside its leaf's range"));
            }
            while let Some(entry) = landed.next_if(|(entry, _)| entry.key < key) {
                gathered.push_entry(entry)?;
            }
            match landed.next_if(|(entry, _)| entry.key == key) {
                Some(entry) => gathered.push_entry(entry)?,
                None if span.wants(key) => gathered.push(key, value)?,
                None => {}
            }
            Ok(!not_above(&span.bounds.1, key))
        };
        let sections = leaf.sections();
        let mut buffer = Vec::new();
        if leaf.has(HASHED) {
            let mut records: Vec<(Vec<u8>, Vec<u8>, Option<Large>)> = room_for(leaf.count())?;
            for frame in span.frames.clone() {
                leaf.visit_frame(&sections, frame, &mut decoder, &mut buffer, |_, key, value| {
                    records.try_push(match value {
                        Value::Inline(value) => (copied(key)?, copied(value)?, None),
                        Value::Large(large) => (copied(key)?, Vec::new(), Some(large)),
                    })?;
                    Ok(())
                })?;
            }
            records.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            for (key, value, large) in &records {
                emit(&mut gathered, key, large.map_or(Value::Inline(value), Value::Large))?;
            }
        } else {
            let mut is_past_end = false;
            for frame in span.frames.clone() {
                leaf.visit_frame(&sections, frame, &mut decoder, &mut buffer, |_, key, value| {
                    is_past_end = emit(&mut gathered, key, value)?;
                    Ok(())
                })?;
                if is_past_end {
                    break;
                }
            }
        }
        for entry in landed {
            gathered.push_entry(entry)?;
        }
        Ok(gathered)
    }

    /// Returns `landed` with compressed values decoded.
    fn decompress<'e>(
        &self,
        leaf: Leaf,
        landed: &[LandedWrite<'e>],
        decoder: &mut Decoder<'_>,
    ) -> Result<Vec<(LandedWrite<'e>, Vec<u8>)>, TreeError> {
        let mut decompressed = room_for(landed.len())?;
        for entry in landed {
            let value = match entry.change {
                Change::Compressed { block, raw_len } => {
                    copied(leaf.landed_value(entry.key, block, raw_len, decoder)?)?
                }
                _ => Vec::new(),
            };
            decompressed.push((*entry, value));
        }
        Ok(decompressed)
    }
}
