//! Range scans.
//!
//! A scan reads a batch of records from one leaf at a time, under a guard that is dropped before the records are handed out, and goes on
//! at the key where the batch ended. Ranges of leaves partition the keys, so that a key that is there for the whole scan is seen
//! exactly once, and records come in order.

use std::ops::Bound;

use super::Error;
use super::core::Core;
use super::landing::{Change, Entry, newest_by_key};
use super::large::Large;
use super::layout::{HASHED, Sections};
use super::leaf::{Decoder, Leaf, Value};
use super::shard::Shard;
use crate::codec::Scratch;

/// Records of the first batch; later ones double up to [`MAX_BATCH`].
const FIRST_BATCH: usize = 16;
const MAX_BATCH: usize = 1024;
/// A batch ends early when its large values reach this.
const MAX_BATCH_LARGE_BYTES: usize = 4 << 20;

type Record = (Vec<u8>, Vec<u8>);
/// The keys of a range, both ends.
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// An iterator over the records of a key range, in key order, from either end. See [`Tree::range`](super::Tree::range).
///
/// An item is an error when a frame could not be decoded or memory ran out; the iterator ends after it.
pub struct Range<'t> {
    core: &'t Core,
    cursors: Vec<Cursor>,
    failed: bool,
}

impl std::fmt::Debug for Range<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Range")
            .field("shards", &self.cursors.len())
            .finish_non_exhaustive()
    }
}

/// Records in key order, taken from both ends.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where each record starts, and where its value does.
    at: Vec<(usize, usize)>,
    head: usize,
    tail: usize,
}

impl Batch {
    fn push(&mut self, key: &[u8], value: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> Result<(), Error> {
        let start = self.bytes.len();
        self.bytes
            .try_reserve(key.len())
            .map_err(|_| Error::OutOfMemory { bytes: key.len() })?;
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        value(&mut self.bytes)?;
        self.at.push((start, middle));
        self.tail = self.at.len();
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    fn key(&self, index: usize) -> &[u8] {
        let (start, middle) = self.at[index];
        &self.bytes[start..middle]
    }

    fn value(&self, index: usize) -> &[u8] {
        let end = self.at.get(index + 1).map_or(self.bytes.len(), |(start, _)| *start);
        &self.bytes[self.at[index].1..end]
    }

    fn record(&self, index: usize) -> Record {
        (self.key(index).to_vec(), self.value(index).to_vec())
    }
}

/// What is left of a scan in one shard.
struct Cursor {
    shard: usize,
    front: Batch,
    back: Batch,
    /// What no batch covers yet; `None` when nothing is left.
    rest: Option<Bounds>,
    limit: usize,
}

fn not_below(start: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match start {
        Bound::Included(start) => start.as_slice() <= key,
        Bound::Excluded(start) => start.as_slice() < key,
        Bound::Unbounded => true,
    }
}

fn not_above(end: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match end {
        Bound::Included(end) => key <= end.as_slice(),
        Bound::Excluded(end) => key < end.as_slice(),
        Bound::Unbounded => true,
    }
}

/// Whether no key can be between the bounds.
fn is_empty(start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>) -> bool {
    match (start, end) {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end) | Bound::Included(end)) => start >= end,
        (_, Bound::Excluded(end)) => end.is_empty(),
        _ => false,
    }
}

impl<'t> Range<'t> {
    pub(super) fn new(core: &'t Core, start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Self {
        let limit = (FIRST_BATCH / core.shards.len()).max(2);
        let cursors = (0..core.shards.len())
            .map(|shard| Cursor {
                shard,
                front: Batch::default(),
                back: Batch::default(),
                rest: (!is_empty(&start, &end)).then(|| (start.clone(), end.clone())),
                limit,
            })
            .collect();
        Self {
            core,
            cursors,
            failed: false,
        }
    }

    fn fail(&mut self, error: Error) -> Option<Result<Record, Error>> {
        self.failed = true;
        Some(Err(error))
    }
}

impl Iterator for Range<'_> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let mut least: Option<usize> = None;
        for index in 0..self.cursors.len() {
            if let Err(error) = self.cursors[index].fill_front(self.core) {
                return self.fail(error);
            }
            if let Some(key) = self.cursors[index].first()
                && least.is_none_or(|least| self.cursors[least].first().is_none_or(|other| key < other))
            {
                least = Some(index);
            }
        }
        least.map(|index| Ok(self.cursors[index].pop_first()))
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let mut greatest: Option<usize> = None;
        for index in 0..self.cursors.len() {
            if let Err(error) = self.cursors[index].fill_back(self.core) {
                return self.fail(error);
            }
            if let Some(key) = self.cursors[index].last()
                && greatest.is_none_or(|greatest| self.cursors[greatest].last().is_none_or(|other| key > other))
            {
                greatest = Some(index);
            }
        }
        greatest.map(|index| Ok(self.cursors[index].pop_last()))
    }
}

impl std::iter::FusedIterator for Range<'_> {}

impl Cursor {
    /// The batch the next record comes from: when nothing lies between, the back batch's start.
    fn first_batch(&self) -> &Batch {
        if self.front.is_empty() { &self.back } else { &self.front }
    }

    fn last_batch(&self) -> &Batch {
        if self.back.is_empty() { &self.front } else { &self.back }
    }

    fn first(&self) -> Option<&[u8]> {
        let batch = self.first_batch();
        (!batch.is_empty()).then(|| batch.key(batch.head))
    }

    fn last(&self) -> Option<&[u8]> {
        let batch = self.last_batch();
        (!batch.is_empty()).then(|| batch.key(batch.tail - 1))
    }

    fn pop_first(&mut self) -> Record {
        let batch = if self.front.is_empty() {
            &mut self.back
        } else {
            &mut self.front
        };
        batch.head += 1;
        batch.record(batch.head - 1)
    }

    fn pop_last(&mut self) -> Record {
        let batch = if self.back.is_empty() {
            &mut self.front
        } else {
            &mut self.back
        };
        batch.tail -= 1;
        batch.record(batch.tail)
    }

    fn next_limit(&mut self) -> usize {
        let limit = self.limit;
        self.limit = (limit * 2).min(MAX_BATCH);
        limit
    }

    fn fill_front(&mut self, core: &Core) -> Result<(), Error> {
        while self.front.is_empty() {
            let Some((start, end)) = self.rest.take() else {
                return Ok(());
            };
            let limit = self.next_limit();
            let (batch, covered) = Reader::new(core, self.shard).read_up(&start, &end, limit)?;
            self.front = batch;
            self.rest = covered
                .map(|covered| (Bound::Included(covered), end))
                .filter(|(start, end)| !is_empty(start, end));
        }
        Ok(())
    }

    fn fill_back(&mut self, core: &Core) -> Result<(), Error> {
        while self.back.is_empty() {
            let Some((start, end)) = self.rest.take() else {
                return Ok(());
            };
            let limit = self.next_limit();
            let (batch, covered) = Reader::new(core, self.shard).read_down(&start, &end, limit)?;
            self.back = batch;
            self.rest = covered
                .map(|covered| (start, Bound::Excluded(covered)))
                .filter(|(start, end)| !is_empty(start, end));
        }
        Ok(())
    }
}

/// Reads batches from one shard.
struct Reader<'c> {
    core: &'c Core,
    shard: &'c Shard,
}

/// The part of a leaf that a batch is read from, and the keys it may hold.
struct Span<'s> {
    frames: std::ops::Range<usize>,
    /// Landed entries are taken from here (inclusive) ...
    low: Option<&'s [u8]>,
    /// ... to here (exclusive).
    high: Option<&'s [u8]>,
    start: &'s Bound<Vec<u8>>,
    end: &'s Bound<Vec<u8>>,
}

/// Records and bytes of large values that a batch will hold.
#[derive(Default)]
struct Taken {
    records: usize,
    large_bytes: usize,
}

impl Taken {
    fn add(&mut self, leaf: &Leaf, sections: &Sections, frame: usize) {
        let slots = leaf.slots(sections, frame);
        self.records += slots.len();
        if leaf.header().shape.large > 0 {
            self.large_bytes += slots.map(|slot| leaf.value_len(sections, slot)).sum::<usize>();
        }
    }

    fn enough(&self, limit: usize) -> bool {
        self.records >= limit || self.large_bytes >= MAX_BATCH_LARGE_BYTES
    }
}

impl<'c> Reader<'c> {
    fn new(core: &'c Core, shard: usize) -> Self {
        Self {
            core,
            shard: &core.shards[shard],
        }
    }

    /// A batch from the first leaf of the range, and the key up to which (exclusive) it covers the range; `None` for all of it.
    fn read_up(
        &self,
        start: &Bound<Vec<u8>>,
        end: &Bound<Vec<u8>>,
        limit: usize,
    ) -> Result<(Batch, Option<Vec<u8>>), Error> {
        let guard = self.core.collector.enter();
        let from: &[u8] = match start {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => &[],
        };
        let (leaf, leaf_end) = self.shard.descend_up(from, &guard);
        let landed = self.landed(leaf, &guard);
        let sections = leaf.sections();
        let ordered = !leaf.has(HASHED) && leaf.count() > 0;
        let first = if ordered { leaf.frame_for(&sections, from) } else { 0 };
        let mut last = first;
        let mut taken = Taken::default();
        while last < leaf.frames() && (!taken.enough(limit) || !ordered) {
            taken.add(&leaf, &sections, last);
            last += 1;
        }
        let covered = if last < leaf.frames() {
            Some(leaf.first_key(&sections, last))
        } else {
            leaf_end
        };
        let span = Span {
            frames: first..last,
            low: None,
            high: covered.as_deref(),
            start,
            end,
        };
        Ok((self.read(leaf, &landed, &span)?, covered))
    }

    /// A batch from the last leaf of the range, and the key from which (inclusive) it covers the range; `None` for all of it.
    fn read_down(
        &self,
        start: &Bound<Vec<u8>>,
        end: &Bound<Vec<u8>>,
        limit: usize,
    ) -> Result<(Batch, Option<Vec<u8>>), Error> {
        let guard = self.core.collector.enter();
        // The least key above an inclusive end is the end and a zero byte.
        let below = match end {
            Bound::Included(key) => Some([key.as_slice(), &[0]].concat()),
            Bound::Excluded(key) => Some(key.clone()),
            Bound::Unbounded => None,
        };
        let (leaf, leaf_start) = self.shard.descend_down(below.as_deref(), &guard);
        let landed = self.landed(leaf, &guard);
        let sections = leaf.sections();
        let ordered = !leaf.has(HASHED) && leaf.count() > 0;
        let last = match &below {
            Some(key) if ordered => {
                let frame = leaf.frame_for(&sections, key);
                // A frame that starts at the end holds nothing of the range: taken, it could fill the batch by itself, for ever.
                frame + usize::from(leaf.first_key(&sections, frame) < *key)
            }
            _ => leaf.frames(),
        };
        let mut first = last;
        let mut taken = Taken::default();
        while first > 0 && (!taken.enough(limit) || !ordered) {
            first -= 1;
            taken.add(&leaf, &sections, first);
        }
        let covered = if first > 0 {
            Some(leaf.first_key(&sections, first))
        } else {
            leaf_start
        };
        let span = Span {
            frames: first..last,
            low: covered.as_deref(),
            high: None,
            start,
            end,
        };
        Ok((self.read(leaf, &landed, &span)?, covered))
    }

    /// The leaf's landed changes, newest of each key, in key order.
    fn landed<'g>(&self, leaf: Leaf, guard: &'g seize::LocalGuard<'_>) -> Vec<Entry<'g>> {
        let mut entries = Vec::new();
        if let Some(landing) = leaf.landing(guard) {
            // SAFETY: the guard protects the buffer and the large values it points to.
            unsafe { landing.read_all(&mut entries) };
            newest_by_key(&mut entries, |_| {});
        }
        entries
    }

    fn read(&self, leaf: Leaf, landed: &[Entry<'_>], span: &Span<'_>) -> Result<Batch, Error> {
        let mut scratch = Scratch::default();
        let mut decoder = Decoder::new(&*self.core.engine, &mut scratch);
        let landed = self.unpress(leaf, landed, &mut decoder)?;
        let mut batch = Batch::default();
        let wanted = |key: &[u8]| not_below(span.start, key) && not_above(span.end, key);
        let mut landed = landed
            .iter()
            .filter(|(entry, _)| {
                span.low.is_none_or(|low| low <= entry.key)
                    && span.high.is_none_or(|high| entry.key < high)
                    && wanted(entry.key)
            })
            .peekable();
        let mut emit = |batch: &mut Batch, key: &[u8], value: Value<'_>| -> Result<(), Error> {
            while let Some(entry) = landed.next_if(|(entry, _)| entry.key < key) {
                self.push_entry(batch, entry)?;
            }
            match landed.next_if(|(entry, _)| entry.key == key) {
                Some(entry) => self.push_entry(batch, entry),
                None if wanted(key) => self.push(batch, key, value),
                None => Ok(()),
            }
        };
        let sections = leaf.sections();
        let mut buffer = Vec::new();
        if leaf.has(HASHED) {
            let mut records: Vec<(Vec<u8>, Vec<u8>, Option<Large>)> = Vec::with_capacity(leaf.count());
            for frame in span.frames.clone() {
                leaf.visit_frame(&sections, frame, &mut decoder, &mut buffer, |_, key, value| {
                    records.push(match value {
                        Value::Inline(value) => (key.to_vec(), value.to_vec(), None),
                        Value::Large(large) => (key.to_vec(), Vec::new(), Some(large)),
                    });
                    Ok(())
                })?;
            }
            records.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            for (key, value, large) in &records {
                emit(&mut batch, key, large.map_or(Value::Inline(value), Value::Large))?;
            }
        } else {
            for frame in span.frames.clone() {
                leaf.visit_frame(&sections, frame, &mut decoder, &mut buffer, |_, key, value| {
                    emit(&mut batch, key, value)
                })?;
            }
        }
        for entry in landed {
            self.push_entry(&mut batch, entry)?;
        }
        Ok(batch)
    }

    /// `landed` with pressed values decoded.
    fn unpress<'e>(
        &self,
        leaf: Leaf,
        landed: &[Entry<'e>],
        decoder: &mut Decoder<'_>,
    ) -> Result<Vec<(Entry<'e>, Vec<u8>)>, Error> {
        landed
            .iter()
            .map(|entry| {
                let value = match entry.change {
                    Change::Pressed { block, raw_len } => leaf.decode_block(block, raw_len, raw_len, decoder)?.to_vec(),
                    _ => Vec::new(),
                };
                Ok((*entry, value))
            })
            .collect()
    }

    fn push_entry(&self, batch: &mut Batch, (entry, value): &(Entry<'_>, Vec<u8>)) -> Result<(), Error> {
        match entry.change {
            Change::Put(value) => self.push(batch, entry.key, Value::Inline(value)),
            Change::PutLarge(large) => self.push(batch, entry.key, Value::Large(large)),
            Change::Pressed { .. } => self.push(batch, entry.key, Value::Inline(value)),
            Change::Remove => Ok(()),
        }
    }

    fn push(&self, batch: &mut Batch, key: &[u8], value: Value<'_>) -> Result<(), Error> {
        batch.push(key, |bytes| match value {
            Value::Inline(value) => {
                bytes
                    .try_reserve(value.len())
                    .map_err(|_| Error::OutOfMemory { bytes: value.len() })?;
                bytes.extend_from_slice(value);
                Ok(())
            }
            // SAFETY: the guard of `read_up` or `read_down` protects the value.
            Value::Large(large) => unsafe { large.read_into(&*self.core.engine, bytes) },
        })
    }
}
