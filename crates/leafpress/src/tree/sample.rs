//! Random sampling of records of a range, without a scan.
//!
//! Inner nodes give the number of leaves of a range, and lead to any of them. A leaf is drawn, and then one of its
//! records: so that records of leaves with few records are not over-represented, the leaf is drawn from several
//! candidates, weighted by their record counts.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use bumpalo::Bump;

use crate::tree::error::TreeError;
use crate::tree::in_range::{InRange, records_in};
use crate::tree::inner::TreeInner;
use crate::tree::key_range::KeyRange;
use crate::tree::node::decoder::Decoder;
use crate::tree::node::inner::{Inner, Node};
use crate::tree::node::landing::newest_by_key;
use crate::tree::node::leaf::Leaf;
use crate::tree::scan::{Bounds, is_empty};
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
/// Attempts per record: leaves may turn out to have no records of the range.
const TRIES: usize = 16;

impl Tree {
    /// Returns up to `count` random records of a range, copied, drawn independently with replacement. `seed`
    /// initialises the random number generator.
    ///
    /// Records are drawn with nearly equal probability: exactly equal where the range has up to some hundred leaves and
    /// is not written meanwhile, and within some per cent elsewhere. A draw takes about as long as a scan of a leaf,
    /// however long the range is. Fewer than `count` records are returned only where the range is empty or nearly so,
    /// or is emptied meanwhile.
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
    Children(Inner<'g>, usize, usize),
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

impl TreeInner {
    fn sample_range(&self, bounds: &Bounds, count: usize, seed: u64) -> Result<Vec<Record>, TreeError> {
        let mut sampled = Vec::new();
        if count == 0 || is_empty(&bounds.0, &bounds.1) {
            return Ok(sampled);
        }
        let mut random = Random::new(seed);
        let guard = self.memory.enter()?;
        let leaves = Leaves::of(self, bounds, &guard)?;
        // Draws are grouped by leaf: each is visited once.
        let mut arena = Bump::new();
        let mut drawn = self.draw(&leaves, bounds, count, &mut random, &guard)?;
        drawn.sort_unstable();
        let mut value = Vec::new();
        for draws in drawn.chunk_by(|a, b| a == b) {
            let Some(leaf) = leaves.leaf(draws[0], &guard) else {
                continue;
            };
            arena.reset();
            let records = self.records_of_range(leaf, bounds, &arena, &guard)?;
            if records.is_empty() {
                continue;
            }
            for _ in draws {
                let InRange { key, .. } = records[random.below(records.len())];
                // Skipped if it was removed since.
                if self.get_into(key, &mut value)? {
                    sampled.try_push((copied(key)?, std::mem::take(&mut value)))?;
                }
            }
        }
        // Shuffled, since the records of a leaf are adjacent.
        for index in (1..sampled.len()).rev() {
            sampled.swap(index, random.below(index + 1));
        }
        Ok(sampled)
    }

    /// Draws `count` leaves, each weighted by its number of records of the range.
    fn draw<'g>(
        &self,
        leaves: &Leaves<'g>,
        bounds: &Bounds,
        count: usize,
        random: &mut Random,
        guard: &'g Guard<'_>,
    ) -> Result<Vec<usize>, TreeError> {
        let total = leaves.len();
        let mut known: Vec<(usize, usize)> = room_for(leaves.edges.len())?;
        let mut arena = Bump::new();
        for &edge in &leaves.edges {
            arena.reset();
            let records = match leaves.leaf(edge, guard) {
                Some(leaf) => self.records_of_range(leaf, bounds, &arena, guard)?.len(),
                None => 0,
            };
            known.push((edge, records));
        }
        let weight = |index: usize| match known.binary_search_by_key(&index, |(index, _)| *index) {
            Ok(at) => known[at].1,
            Err(_) => leaves
                .leaf(index, guard)
                .map_or(0, |leaf| leaf.header().live.load(Ordering::Relaxed) as usize),
        };
        let mut drawn = Vec::new();
        if total <= FEW_LEAVES {
            let mut sums = room_for(total)?;
            let mut sum = 0;
            sums.extend((0..total).map(|index| {
                sum += weight(index);
                sum
            }));
            if sum > 0 {
                for _ in 0..count {
                    let record = random.below(sum);
                    drawn.try_push(sums.partition_point(|end| *end <= record))?;
                }
            }
            return Ok(drawn);
        }
        for _ in 0..count {
            for _ in 0..TRIES {
                let candidates: [(usize, usize); DRAWN_FROM] = std::array::from_fn(|_| {
                    let index = random.below(total);
                    (index, weight(index))
                });
                let sum: usize = candidates.iter().map(|(_, weight)| weight).sum();
                if sum == 0 {
                    continue;
                }
                let mut record = random.below(sum);
                for (index, weight) in candidates {
                    if record < weight {
                        drawn.try_push(index)?;
                        break;
                    }
                    record -= weight;
                }
                break;
            }
        }
        Ok(drawn)
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
