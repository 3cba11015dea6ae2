//! Random sampling of records of a range, without a scan.
//!
//! Inner nodes give the number of leaves of a range, and lead to any of them. A leaf is drawn, and then one of its
//! records, of which only the frame is decoded: so that records of leaves with few records are not over-represented,
//! the leaf is drawn from several candidates, weighted by their record counts. A record that is not in the range, as
//! some of the first and the last leaf, is drawn again.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use bumpalo::Bump;

use crate::tree::error::TreeError;
use crate::tree::in_range::{InRange, keys_of, records_in};
use crate::tree::inner::TreeInner;
use crate::tree::key_range::KeyRange;
use crate::tree::node::decoder::Decoder;
use crate::tree::node::inner::{InnerNode, Node};
use crate::tree::node::landing::{LandedWrite, newest_by_key};
use crate::tree::node::leaf::Leaf;
use crate::tree::scan::{Bounds, is_empty, not_above, not_below};
use crate::tree::{Record, Tree};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, copied, room_for};
use leafpress_base::random::Random;
use leafpress_base::reclaim::guard::Guard;

/// Number of candidate leaves, one of which is drawn by weight. With more of them the distribution approaches the
/// uniform one.
const DRAWN_FROM: usize = 8;
/// Up to this number of leaves, all are visited, and the weights are exact.
const FEW_LEAVES: usize = 256;
/// Attempts per record: it may turn out not to be in the range.
const TRIES: usize = 64;
/// Attempts per record of a range without a leaf for itself: it takes less time then to list all records of its leaves.
const FEW_TRIES: usize = 8;
/// Attempts per leaf: slots and landed changes may turn out to be of removed or overwritten records.
const TRIES_IN_LEAF: usize = 32;

impl Tree {
    /// Returns up to `count` random records of a range, copied, drawn independently with replacement. `seed`
    /// initialises the random number generator.
    ///
    /// Records are drawn with nearly equal probability: exactly equal where the range has up to some hundred leaves and
    /// is not written meanwhile, and within some per cent elsewhere. A draw takes about as long as two reads, however
    /// long the range is. Fewer than `count` records are returned only where the range is empty or nearly so, or is
    /// emptied meanwhile.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// let sample = tree.sample_range(.., 100, 7)?;
    /// assert!(sample.iter().all(|(key, _)| key.len() >= 5));
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::range`].
    pub fn sample_range(&self, range: impl KeyRange, count: usize, seed: u64) -> Result<Vec<Record>, TreeError> {
        self.core.sample_range(&range.into_bounds()?, count, seed)
    }
}

/// Neighbouring leaves of a range.
enum Run<'g> {
    Leaf(Leaf<'g>),
    /// A number of children of an inner node (third field), from an index on (second field).
    Children(InnerNode<'g>, usize, usize),
}

impl<'g> Run<'g> {
    fn len(&self) -> usize {
        match self {
            Self::Leaf(_) => 1,
            Self::Children(_, _, len) => *len,
        }
    }

    fn leaf(&self, index: usize, guard: &'g Guard<'_>) -> Option<Leaf<'g>> {
        match self {
            Self::Leaf(leaf) => Some(*leaf),
            Self::Children(inner, first, _) => match inner.load_child(first + index, guard) {
                Node::Leaf(leaf) => Some(leaf),
                Node::Inner(_) => None,
            },
        }
    }
}

/// The leaves that may have records of a range.
pub(super) struct Leaves<'g> {
    runs: Vec<Run<'g>>,
    /// Cumulative number of leaves up to the end of each run.
    ends: Vec<usize>,
    /// The first and the last leaf of each shard, which may have only a part of their records in the range.
    edges: Vec<usize>,
}

impl<'g> Leaves<'g> {
    pub(super) fn of(core: &'g TreeInner, (start, end): &Bounds, guard: &'g Guard<'_>) -> Result<Self, OutOfMemory> {
        let (start, end) = (key_of(start), key_of(end));
        let mut leaves = Self {
            runs: Vec::new(),
            ends: Vec::new(),
            edges: Vec::new(),
        };
        for shard in &core.shards {
            let (before, runs) = (leaves.len(), leaves.runs.len());
            runs_below(shard.root(guard), start, end, guard, &mut leaves.runs)?;
            leaves.ends.try_room(leaves.runs.len() - runs)?;
            for run in &leaves.runs[runs..] {
                leaves
                    .ends
                    .push(leaves.ends.last().copied().unwrap_or_default() + run.len());
            }
            for edge in [before, leaves.len().saturating_sub(1)] {
                if edge < leaves.len() && leaves.edges.last().is_none_or(|last| *last < edge) {
                    leaves.edges.try_push(edge)?;
                }
            }
        }
        Ok(leaves)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or_default()
    }

    pub(super) fn leaf(&self, index: usize, guard: &'g Guard<'_>) -> Option<Leaf<'g>> {
        let run = self.ends.partition_point(|end| *end <= index);
        let before = run.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.runs.get(run)?.leaf(index - before, guard)
    }
}

/// Returns the key of a bound.
pub(super) fn key_of(bound: &Bound<Vec<u8>>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

/// Adds the runs of leaves below a node that may have keys from `start` to `end`.
fn runs_below<'g>(
    node: Node<'g>,
    start: Option<&[u8]>,
    end: Option<&[u8]>,
    guard: &'g Guard<'_>,
    runs: &mut Vec<Run<'g>>,
) -> Result<(), OutOfMemory> {
    let inner = match node {
        Node::Leaf(leaf) => return runs.try_push(Run::Leaf(leaf)),
        Node::Inner(inner) => inner,
    };
    let first = start.map_or(0, |key| inner.search(key));
    let last = end.map_or(inner.children() - 1, |key| inner.search(key));
    if inner.header().level == 1 {
        return runs.try_push(Run::Children(inner, first, (last + 1).saturating_sub(first)));
    }
    for index in first..=last {
        let child = inner.load_child(index, guard);
        let (start, end) = (start.filter(|_| index == first), end.filter(|_| index == last));
        runs_below(child, start, end, guard, runs)?;
    }
    Ok(())
}

/// The weights of leaves: their numbers of records, in the range or not.
enum Weights {
    /// Cumulative, of all leaves.
    Exact(Vec<usize>),
    /// To be read of each candidate.
    Unknown,
}

impl Weights {
    fn of<'g>(leaves: &Leaves<'g>, guard: &'g Guard<'_>) -> Result<Self, OutOfMemory> {
        if leaves.len() > FEW_LEAVES {
            return Ok(Self::Unknown);
        }
        let mut sums = room_for(leaves.len())?;
        let mut sum = 0;
        sums.extend((0..leaves.len()).map(|index| {
            sum += weight(leaves, index, guard);
            sum
        }));
        Ok(Self::Exact(sums))
    }

    /// Draws a leaf.
    fn draw<'g>(&self, leaves: &Leaves<'g>, random: &mut Random, guard: &'g Guard<'_>) -> Option<Leaf<'g>> {
        let index = match self {
            Self::Exact(sums) => {
                let record = random.below(*sums.last()?);
                sums.partition_point(|end| *end <= record)
            }
            Self::Unknown => {
                let candidates: [(usize, usize); DRAWN_FROM] = std::array::from_fn(|_| {
                    let index = random.below(leaves.len());
                    (index, weight(leaves, index, guard))
                });
                let mut record = random.below(candidates.iter().map(|(_, weight)| weight).sum());
                let drawn = candidates.iter().find(|(_, weight)| {
                    let is_here = record < *weight;
                    record = record.saturating_sub(*weight);
                    is_here
                });
                drawn?.0
            }
        };
        leaves.leaf(index, guard)
    }
}

fn weight<'g>(leaves: &Leaves<'g>, index: usize, guard: &'g Guard<'_>) -> usize {
    let leaf = leaves.leaf(index, guard);
    leaf.map_or(0, |leaf| leaf.header().live.load(Ordering::Relaxed) as usize)
}

/// Draws one of the keys that a reader finds in a leaf. `landed` are the changes in the leaf's landing buffer, the
/// newest of each key, in key order.
fn draw_key(
    leaf: Leaf<'_>,
    landed: &[LandedWrite<'_>],
    random: &mut Random,
    decoder: &mut Decoder<'_>,
) -> Result<Option<Vec<u8>>, TreeError> {
    let sections = leaf.sections();
    let slots = leaf.count();
    if slots + landed.len() == 0 {
        return Ok(None);
    }
    let mut key_buffer = Vec::new();
    for _ in 0..TRIES_IN_LEAF {
        let drawn = random.below(slots + landed.len());
        if let Some(index) = drawn.checked_sub(slots) {
            let entry = &landed[index];
            if entry.change.value_len().is_some() {
                return Ok(Some(copied(entry.key)?));
            }
            continue;
        }
        let mut key = None;
        let frame = leaf.frame_of(&sections, drawn);
        keys_of(leaf, &sections, frame, decoder, &mut key_buffer, |slot, found| {
            if slot == drawn {
                key = Some(copied(found)?);
            }
            Ok(())
        })?;
        if let Some(key) = key
            && landed.binary_search_by(|entry| entry.key.cmp(key.as_slice())).is_err()
        {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

impl TreeInner {
    fn sample_range(&self, bounds: &Bounds, count: usize, seed: u64) -> Result<Vec<Record>, TreeError> {
        let mut sampled = Vec::new();
        if count == 0 || is_empty(&bounds.0, &bounds.1) {
            return Ok(sampled);
        }
        let mut random = Random::new(seed);
        let guard = self.memory.enter()?;
        let leaves = Leaves::of(self, bounds, &guard)?;
        let mut value = Vec::new();
        // A range in one or two leaves may have few of their records.
        let tries = match leaves.len() > leaves.edges.len() {
            true => TRIES,
            false => FEW_TRIES,
        };
        let weights = Weights::of(&leaves, &guard)?;
        for _ in 0..count.saturating_mul(tries) {
            if sampled.len() == count {
                return Ok(sampled);
            }
            let Some(leaf) = weights.draw(&leaves, &mut random, &guard) else {
                continue;
            };
            let key = self.key_of_leaf(leaf, &mut random, &guard)?;
            let key = key.filter(|key| not_below(&bounds.0, key) && not_above(&bounds.1, key));
            // Skipped if it was removed since.
            if let Some(key) = key
                && self.get_into(&key, &mut value)?
            {
                sampled.try_push((key, std::mem::take(&mut value)))?;
            }
        }
        if leaves.len() > FEW_LEAVES {
            return Ok(sampled);
        }
        // The leaves have few records of the range: they are listed.
        let arena = Bump::new();
        let mut keys: Vec<&[u8]> = Vec::new();
        for leaf in (0..leaves.len()).filter_map(|index| leaves.leaf(index, &guard)) {
            for InRange { key, .. } in self.records_of_range(leaf, bounds, &arena, &guard)? {
                keys.try_push(key)?;
            }
        }
        while sampled.len() < count && !keys.is_empty() {
            let index = random.below(keys.len());
            match self.get_into(keys[index], &mut value)? {
                true => sampled.try_push((copied(keys[index])?, std::mem::take(&mut value)))?,
                false => drop(keys.swap_remove(index)),
            }
        }
        Ok(sampled)
    }

    /// Draws one of the keys that a reader finds in a leaf; [`None`] if it has hardly any.
    fn key_of_leaf(
        &self,
        leaf: Leaf<'_>,
        random: &mut Random,
        guard: &Guard<'_>,
    ) -> Result<Option<Vec<u8>>, TreeError> {
        let mut landed = match leaf.landing(guard) {
            Some(landing) => landing.read_all()?,
            None => Vec::new(),
        };
        newest_by_key(&mut landed, |_| {});
        let context = self.contexts.get()?;
        let mut tools = self.take_tools(context, guard)?;
        let mut decoder = Decoder::new(&self.engines, &mut tools.scratch);
        let key = draw_key(leaf, &landed, random, &mut decoder);
        self.return_tools(context, tools, guard);
        key
    }

    /// Returns the records of a range that a reader finds in a leaf.
    pub(super) fn records_of_range<'r>(
        &self,
        leaf: Leaf<'_>,
        bounds: &Bounds,
        arena: &'r Bump,
        guard: &Guard<'_>,
    ) -> Result<Vec<InRange<'r>>, TreeError> {
        let context = self.contexts.get()?;
        let mut landed = match leaf.landing(guard) {
            Some(landing) => landing.read_all()?,
            None => Vec::new(),
        };
        newest_by_key(&mut landed, |_| {});
        let mut tools = self.take_tools(context, guard)?;
        let mut decoder = Decoder::new(&self.engines, &mut tools.scratch);
        let records = records_in(leaf, &landed, bounds, usize::MAX, arena, &mut decoder);
        self.return_tools(context, tools, guard);
        records
    }
}
