//! The state of the tier in memory: the list of runs, and the batches of records on their way to disk.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use super::batch::{Batch, MAX_EPOCH};
use super::run::Run;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, room_for};

/// A super-leaf: a range of keys, up to the next leaf's first key.
#[derive(Clone)]
pub(super) struct SuperLeaf {
    pub from: Arc<[u8]>,
    /// Newest first, by descending position: older runs were written earlier.
    pub runs: Vec<Arc<Run>>,
}

/// Up to this number of leaves, empty ones are not removed.
const LITTLE_LEAVES: usize = 16;

/// Runs in which a key may be, newest first, with the pages it may be in.
pub(super) type Candidates = Vec<(Arc<Run>, Range<usize>)>;

pub(super) struct TierState {
    /// The batch that admits records.
    pub open: Batch,
    /// A written batch kept for its allocation.
    pub spare: Option<Batch>,
    /// Full batches that wait to be written, oldest first.
    pub sealed: VecDeque<Arc<Batch>>,
    /// In key order; the first begins with the empty key.
    leaves: Vec<SuperLeaf>,
    /// Heap of the oldest run's position of each leaf, with the leaf's first key. Entries of dropped runs are deleted
    /// lazily: when they reach the top, or when there are too many.
    oldest: BinaryHeap<Reverse<(u64, Arc<[u8]>)>>,
    /// Set if the heap lacks an entry for lack of memory.
    lacks_oldest: bool,
    /// Bytes of the leaves' keys and lists.
    leaves_bytes: usize,
    /// Leaves without a run.
    empty_leaves: usize,
    /// Incremented when everything is forgotten.
    pub generation: u64,
    /// Free chunks that were in use before, the most recently freed last.
    free: Vec<u32>,
    /// Chunks from this one on were never in use.
    unused: u32,
    /// Total number of chunks.
    pub most_chunks: u32,
    runs_bytes: usize,
    pub runs: u64,
    pub blocks: u64,
    pub records: u64,
    /// Number of leaves examined individually, for tests: this work must not grow with the store.
    #[cfg(test)]
    pub visits: u64,
}

/// Bytes of a leaf's key and list.
fn bytes_of(leaf: &SuperLeaf) -> usize {
    leaf.from.len() + leaf.runs.capacity() * size_of::<usize>()
}

impl TierState {
    pub(super) fn new(most_chunks: u32) -> Self {
        Self {
            free: Vec::new(),
            unused: 0,
            most_chunks,
            open: Batch::default(),
            spare: None,
            sealed: VecDeque::new(),
            leaves: vec![SuperLeaf {
                from: Arc::from([]),
                runs: Vec::new(),
            }],
            oldest: BinaryHeap::new(),
            lacks_oldest: false,
            leaves_bytes: 0,
            empty_leaves: 1,
            generation: 0,
            runs_bytes: 0,
            runs: 0,
            blocks: 0,
            records: 0,
            #[cfg(test)]
            visits: 0,
        }
    }

    /// The leaves in key order; the first begins with the empty key.
    pub(super) fn leaves(&self) -> &[SuperLeaf] {
        &self.leaves
    }

    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        let (generation, epoch) = (self.generation + 1, self.next_epoch());
        *self = Self {
            generation,
            ..Self::new(self.most_chunks)
        };
        self.open.epoch = epoch;
    }

    fn next_epoch(&self) -> u32 {
        (self.open.epoch + 1).min(MAX_EPOCH)
    }

    /// Seals the open batch, which then waits to be written, and opens another.
    pub(super) fn seal(&mut self) -> Result<(), OutOfMemory> {
        self.sealed.try_reserve(1).map_err(|_| OutOfMemory {
            bytes: size_of::<Arc<Batch>>(),
        })?;
        let mut next = self.spare.take().unwrap_or_default();
        next.epoch = self.next_epoch();
        let open = std::mem::replace(&mut self.open, next);
        self.sealed.push_back(Arc::new(open));
        Ok(())
    }

    /// Returns the leaf of a key.
    pub(super) fn leaf_of(&self, key: &[u8]) -> usize {
        self.leaves.partition_point(|leaf| *leaf.from <= *key).max(1) - 1
    }

    /// Returns the newest record of a key in the batches.
    pub(super) fn on_its_way(&self, hash: u64, key: &[u8]) -> Option<&[u8]> {
        let batches = [&self.open]
            .into_iter()
            .chain(self.sealed.iter().rev().map(|batch| &**batch));
        batches
            .filter(|batch| !batch.is_empty())
            .find_map(|batch| batch.find(hash, key))
    }

    /// Returns true if the tier may have a record of the key; false is definite.
    pub(super) fn may_have(&self, hash: u64, key: &[u8]) -> bool {
        self.on_its_way(hash, key).is_some() || self.is_in_runs(hash, key)
    }

    /// Returns true if a look-up of the key reads pages: it is in no batch, and may be in a run.
    pub(super) fn may_read_device(&self, hash: u64, key: &[u8]) -> bool {
        self.on_its_way(hash, key).is_none() && self.is_in_runs(hash, key)
    }

    fn is_in_runs(&self, hash: u64, key: &[u8]) -> bool {
        let runs = &self.leaves[self.leaf_of(key)].runs;
        runs.iter().any(|run| !run.filter.find(hash).is_empty())
    }

    pub(super) fn candidates(&self, hash: u64, key: &[u8]) -> Result<Candidates, OutOfMemory> {
        let mut candidates = Vec::new();
        for run in &self.leaves[self.leaf_of(key)].runs {
            let pages = run.find(hash);
            if !pages.is_empty() {
                candidates.try_push((Arc::clone(run), pages))?;
            }
        }
        Ok(candidates)
    }

    /// Returns true if a run still belongs to a key's leaf.
    pub(super) fn has_run(&self, key: &[u8], run: &Arc<Run>) -> bool {
        let runs = &self.leaves[self.leaf_of(key)].runs;
        runs.iter().any(|other| Arc::ptr_eq(other, run))
    }

    /// Restores the list of runs of an earlier tier; returns false if it is inconsistent.
    pub(super) fn restore(&mut self, leaves: Vec<SuperLeaf>) -> Result<bool, OutOfMemory> {
        let in_order = |leaf: &SuperLeaf, next: &SuperLeaf| leaf.from < next.from;
        if leaves.first().is_none_or(|leaf| !leaf.from.is_empty()) || !leaves.is_sorted_by(in_order) {
            return Ok(false);
        }
        let runs = || leaves.iter().flat_map(|leaf| &leaf.runs);
        let mut used = room_for(self.most_chunks as usize)?;
        used.resize(self.most_chunks as usize, false);
        for chunk in runs().flat_map(|run| &run.chunks) {
            match used.get_mut(*chunk as usize) {
                Some(used) if !*used => *used = true,
                _ => return Ok(false),
            }
        }
        self.unused = used.iter().rposition(|used| *used).map_or(0, |last| last as u32 + 1);
        let free = (0..self.unused).rev().filter(|chunk| !used[*chunk as usize]);
        self.free.try_extend(free)?;
        runs().for_each(|run| self.count(run, false));
        self.set_leaves(leaves);
        Ok(true)
    }

    fn set_leaves(&mut self, leaves: Vec<SuperLeaf>) {
        self.leaves = leaves;
        self.leaves_bytes = self.leaves.iter().map(bytes_of).sum();
        self.empty_leaves = self.leaves.iter().filter(|leaf| leaf.runs.is_empty()).count();
        self.list_oldest();
    }

    /// Returns true if most leaves have no run: with keys that increase over time the oldest leaves are dropped, and no
    /// leaf shrinks.
    pub(super) fn has_many_empty_leaves(&self) -> bool {
        self.empty_leaves > self.leaves.len() / 2 + LITTLE_LEAVES
    }

    /// Returns the leaves that have runs. The range of an empty leaf is added to the leaf before it, or for the first
    /// to the one after it.
    pub(super) fn leaves_with_runs(&self) -> Result<Vec<SuperLeaf>, OutOfMemory> {
        let mut leaves = room_for(self.leaves.len() - self.empty_leaves + 1)?;
        for leaf in self.leaves.iter().filter(|leaf| !leaf.runs.is_empty()) {
            let mut runs = room_for(leaf.runs.len())?;
            runs.extend(leaf.runs.iter().map(Arc::clone));
            let from = if leaves.is_empty() {
                Arc::from([])
            } else {
                Arc::clone(&leaf.from)
            };
            leaves.push(SuperLeaf { from, runs });
        }
        if leaves.is_empty() {
            leaves.push(SuperLeaf {
                from: Arc::from([]),
                runs: Vec::new(),
            });
        }
        Ok(leaves)
    }

    /// Replaces all leaves by the result of [`TierState::leaves_with_runs`]. No leaf may have changed since.
    pub(super) fn drop_empty_leaves(&mut self, with_runs: Vec<SuperLeaf>) {
        self.set_leaves(with_runs);
    }

    /// Changes a leaf's runs, and updates the totals.
    fn change_leaf<R>(&mut self, leaf: usize, change: impl FnOnce(&mut Vec<Arc<Run>>) -> R) -> R {
        let SuperLeaf { runs, .. } = &self.leaves[leaf];
        let (bytes, is_empty, oldest) = (
            bytes_of(&self.leaves[leaf]),
            runs.is_empty(),
            runs.last().map(|run| run.position),
        );
        let changed = change(&mut self.leaves[leaf].runs);
        let leaf = &self.leaves[leaf];
        self.leaves_bytes = self.leaves_bytes - bytes + bytes_of(leaf);
        self.empty_leaves = self.empty_leaves - usize::from(is_empty) + usize::from(leaf.runs.is_empty());
        if let Some(run) = leaf.runs.last().filter(|run| Some(run.position) != oldest) {
            let entry = Reverse((run.position, Arc::clone(&leaf.from)));
            self.note_oldest(entry);
        }
        changed
    }

    fn note_oldest(&mut self, entry: Reverse<(u64, Arc<[u8]>)>) {
        if self.oldest.try_reserve(1).is_err() {
            self.lacks_oldest = true;
            return;
        }
        self.oldest.push(entry);
        if self.oldest.len() > 2 * self.leaves.len() + LITTLE_LEAVES {
            self.list_oldest();
        }
    }

    /// Rebuilds the heap of oldest runs.
    fn list_oldest(&mut self) {
        #[cfg(test)]
        {
            self.visits += self.leaves.len() as u64;
        }
        self.oldest.clear();
        self.lacks_oldest = self.oldest.try_reserve(self.leaves.len()).is_err();
        if !self.lacks_oldest {
            let oldest = |leaf: &SuperLeaf| Some(Reverse((leaf.runs.last()?.position, Arc::clone(&leaf.from))));
            self.oldest.extend(self.leaves.iter().filter_map(oldest));
        }
    }

    /// Number of chunks that can be allocated.
    pub(super) fn free_chunks(&self) -> u64 {
        self.free.len() as u64 + u64::from(self.most_chunks.saturating_sub(self.unused))
    }

    pub(super) fn take_chunk(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let chunk = self.unused;
            let is_one = chunk < self.most_chunks;
            self.unused += u32::from(is_one);
            is_one.then_some(chunk)
        })
    }

    /// Frees chunks. If the list cannot grow for lack of memory they are lost until everything is forgotten.
    pub(super) fn give_chunks(&mut self, chunks: &[u32]) {
        let _ = self.free.try_append(chunks);
    }

    /// Handles a full store: chunks that were never in use never will be.
    pub(super) fn shrink(&mut self) {
        self.most_chunks = self.unused;
    }

    fn count(&mut self, run: &Run, is_gone: bool) {
        if is_gone {
            self.give_chunks(&run.chunks);
        }
        let add = |sum: &mut u64, more: u64| *sum = if is_gone { *sum - more } else { *sum + more };
        add(&mut self.runs, 1);
        add(&mut self.blocks, u64::from(run.blocks));
        add(&mut self.records, u64::from(run.records));
        let bytes = run.held_bytes();
        self.runs_bytes = if is_gone {
            self.runs_bytes - bytes
        } else {
            self.runs_bytes + bytes
        };
    }

    /// Replaces some of a leaf's runs by one.
    pub(super) fn replace(
        &mut self,
        leaf: usize,
        runs: Range<usize>,
        with: Option<Arc<Run>>,
    ) -> Result<(), OutOfMemory> {
        self.change_leaf(leaf, |runs| runs.try_room(1))?;
        if let Some(run) = &with {
            self.count(run, false);
        }
        let gone: Vec<Arc<Run>> = self.change_leaf(leaf, |all| all.splice(runs, with).collect());
        gone.iter().for_each(|run| self.count(run, true));
        Ok(())
    }

    /// Splits a leaf at `key`.
    pub(super) fn split(
        &mut self,
        leaf: usize,
        key: &[u8],
        low: Option<Arc<Run>>,
        high: Option<Arc<Run>>,
    ) -> Result<(), OutOfMemory> {
        let mut runs = room_for(1)?;
        self.leaves.try_grow(1)?;
        self.change_leaf(leaf, |runs| runs.try_room(1))?;
        if let Some(run) = high {
            self.count(&run, false);
            runs.push(run);
        }
        let all = self.leaves[leaf].runs.len();
        self.replace(leaf, 0..all, low)?;
        let high = SuperLeaf {
            from: Arc::from(key),
            runs,
        };
        let oldest = high
            .runs
            .last()
            .map(|run| Reverse((run.position, Arc::clone(&high.from))));
        self.leaves_bytes += bytes_of(&high);
        self.empty_leaves += usize::from(high.runs.is_empty());
        self.leaves.insert(leaf + 1, high);
        if let Some(oldest) = oldest {
            self.note_oldest(oldest);
        }
        Ok(())
    }

    /// Drops a leaf's runs from one on to the oldest.
    pub(super) fn forget_from(&mut self, leaf: usize, run: usize) {
        let gone = self.change_leaf(leaf, |runs| runs.split_off(run.min(runs.len())));
        gone.iter().for_each(|run| self.count(run, true));
    }

    /// Returns the position of the oldest run, and its leaf.
    pub(super) fn oldest(&mut self) -> Option<(u64, usize)> {
        if self.lacks_oldest {
            self.list_oldest();
        }
        if self.lacks_oldest {
            let oldest = |leaf: &SuperLeaf| leaf.runs.last().map(|run| run.position);
            let leaves = self.leaves.iter().enumerate();
            return leaves.filter_map(|(index, leaf)| Some((oldest(leaf)?, index))).min();
        }
        while let Some(Reverse((position, from))) = self.oldest.peek() {
            let leaf = self.leaf_of(from);
            let position = *position;
            #[cfg(test)]
            {
                self.visits += 1;
            }
            if self.leaves[leaf]
                .runs
                .last()
                .is_some_and(|run| run.position == position)
            {
                return Some((position, leaf));
            }
            self.oldest.pop();
        }
        None
    }

    /// Memory of the index of the disk, in bytes.
    pub(super) fn index_bytes(&self) -> usize {
        let free = self.free.capacity() * size_of::<u32>();
        let oldest = self.oldest.capacity() * size_of::<Reverse<(u64, Arc<[u8]>)>>();
        free + oldest + self.runs_bytes + self.leaves.capacity() * size_of::<SuperLeaf>() + self.leaves_bytes
    }

    /// Bytes of the batches.
    pub(super) fn batches_bytes(&self) -> usize {
        let sealed = self.sealed.iter().map(|batch| batch.held_bytes());
        let spare = self.spare.as_ref().map_or(0, Batch::held_bytes);
        self.open.held_bytes() + spare + sealed.sum::<usize>()
    }
}
