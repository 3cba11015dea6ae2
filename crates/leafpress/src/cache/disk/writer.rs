//! The writer: writes batches, merges runs, and drops the oldest runs to make room.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::batch::{Batch, BatchSlot};
use super::change::Change;
use super::counters::Count;
use super::merge::{MergeFailure, ReadBuffers, RunReader, Source, merge};
use super::page::{self, BLOCK_BYTES, ChecksumSeed, Records};
use super::run::{CHUNK_BLOCKS, Run};
use super::run_writer::{Chunks, RunWriter, WriteBuffers};
use super::state::TierState;
use super::tier::Tier;
use super::writer_state::Writer;
use crate::cache::record;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, room_for};
use leafpress_base::mem::trim;
use leafpress_base::sync::worker::{Health, Worker};
use leafpress_codec::Scratch;

/// Number of runs of about the same size in a leaf at which they are merged.
const SAME_SIZE: usize = 6;
/// Runs are of about the same size if their ratio is at most this.
const SIZE_STEP: u64 = 6;
/// Maximum number of runs of a leaf.
const MAX_RUNS: usize = 24;
/// Fraction of the store in use from which on merges leave records out.
const FULL: f64 = 0.8;
/// Consecutive write failures after which the tier is given up.
const MAX_WRITE_FAILURES: u32 = 8;
/// Estimated memory of a run's reader.
const READER_BYTES: usize = 96 << 10;
/// Maximum number of read buffers kept between merges.
const MAX_KEPT_READERS: usize = 12;

/// A batch's records, and the range of them for each leaf they fall into.
type Groups = (Vec<BatchSlot>, Vec<(usize, Range<usize>)>);

/// The records of a batch that fall into one leaf.
struct Group<'g> {
    batch: &'g Batch,
    entries: &'g [BatchSlot],
}

impl Group<'_> {
    fn raw_blocks(&self) -> u64 {
        let framed = |entry: &BatchSlot| page::framed_bytes(self.batch.key(*entry), self.batch.record(*entry));
        let bytes: usize = self.entries.iter().map(framed).sum();
        // The last block of a multi-block record is partially used.
        let blocks = bytes / BLOCK_BYTES;
        (blocks + blocks.min(self.entries.len() / 2) + 2) as u64
    }
}

/// The keys that go into a run.
#[derive(Clone, Copy)]
enum Part<'k> {
    All,
    Below(&'k [u8]),
    From(&'k [u8]),
}

impl Part<'_> {
    fn has(self, key: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Below(end) => key < end,
            Self::From(start) => key >= start,
        }
    }
}

/// Returns the number of a leaf's newest runs to merge with `new_blocks` blocks: all runs of about the same size, once
/// there are several.
fn runs_to_merge(new_blocks: u64, runs: &[Arc<Run>]) -> usize {
    let (mut count, mut blocks) = (0, new_blocks.max(1));
    loop {
        let rest = &runs[count..];
        let same = rest
            .iter()
            .take_while(|run| u64::from(run.blocks) < blocks * SIZE_STEP)
            .count();
        if same < SAME_SIZE && runs.len() - count < MAX_RUNS || same == 0 && rest.is_empty() {
            return count;
        }
        let taken = same.max(1).min(rest.len());
        blocks += rest[..taken].iter().map(|run| u64::from(run.blocks)).sum::<u64>();
        count += taken;
        if count == runs.len() {
            return count;
        }
    }
}

impl Tier {
    /// Writes the oldest waiting batch; returns false if there is none.
    pub(super) fn write_next(&self) -> bool {
        let mut writer = self.writer.lock();
        let (batch, generation) = {
            let state = self.state.read();
            (state.sealed.front().map(Arc::clone), state.generation)
        };
        let Some(batch) = batch else { return false };
        enter_span!("leafpress_disk_write", cache = %self.observer.name, bytes = batch.bytes());
        self.write_batch(&mut writer, &batch, generation);
        let kept = READER_BYTES * writer.read_buffers.len() + writer.write_buffers.held_bytes();
        self.writing_bytes.store(kept, Ordering::Relaxed);
        self.tend_leaves(writer.head, generation);
        self.note_written(batch);
        // Freed filters of merged runs are of all sizes, and total some megabytes.
        trim::return_freed();
        true
    }

    /// Frees the buffers that the writer keeps between batches, unless it is at work. The caller holds no lock of the
    /// tier's.
    pub(in crate::cache) fn free_buffers(&self) {
        if let Some(mut writer) = self.writer.try_lock() {
            writer.write_buffers = WriteBuffers::default();
            writer.read_buffers = Vec::new();
            self.writing_bytes.store(0, Ordering::Relaxed);
        }
    }

    fn write_batch(&self, writer: &mut Writer, batch: &Batch, generation: u64) {
        let groups = self.groups(batch);
        let Ok((entries, groups)) = groups else {
            // Without the batch's newer records everything else may be outdated.
            self.give_up("no memory to write a batch");
            return;
        };
        // From the last leaf to the first, so that a split does not shift the indices of those still to come.
        for (leaf, range) in groups.into_iter().rev() {
            let entries = &entries[range];
            let is_over = self.state.read().generation != generation || self.has_failed();
            if is_over || self.orders.lock().is_stopped {
                return;
            }
            self.update(writer, leaf, &Group { batch, entries }, generation);
        }
    }

    /// Returns the records of a batch in the order in which they are written, grouped by leaf. Only the affected leaves
    /// are examined: there may be very many.
    fn groups(&self, batch: &Batch) -> Result<Groups, OutOfMemory> {
        let mut entries = batch.entries()?;
        let (mut groups, mut start) = (Vec::new(), 0);
        while let Some(first) = entries.get(start) {
            // Only the writer changes the leaves, except for a thread that forgets everything.
            let (leaf, next) = {
                let state = self.state.read();
                let leaf = state.leaf_of(batch.key(*first));
                let next = state.leaves().get(leaf + 1);
                (leaf, next.map(|next| Arc::clone(&next.from)))
            };
            let is_in = |entry: &BatchSlot| next.as_deref().is_none_or(|next| batch.key(*entry) < next);
            let end = start + entries[start..].partition_point(is_in);
            batch.sort_for_run(&mut entries[start..end]);
            groups.try_push((leaf, start..end))?;
            start = end;
        }
        Ok((entries, groups))
    }

    fn runs_of(&self, leaf: usize) -> Vec<Arc<Run>> {
        let state = self.state.read();
        state.leaves().get(leaf).map_or(Vec::new(), |leaf| leaf.runs.clone())
    }

    /// Writes a group into its leaf, merging the runs that are due.
    fn update(&self, writer: &mut Writer, leaf: usize, group: &Group<'_>, generation: u64) {
        let raw_blocks = group.raw_blocks();
        let new_blocks = (raw_blocks as f64 * writer.ratio.unwrap_or(0.5)).ceil() as u64;
        let blocks_of = |runs: &[Arc<Run>]| runs.iter().map(|run| u64::from(run.blocks)).sum::<u64>();
        loop {
            if most_blocks(raw_blocks + blocks_of(&self.runs_of(leaf))) > self.device.blocks / 2 {
                // Values so long that the leaf cannot be split.
                self.forget_runs(leaf, 0, generation);
            }
            let runs = self.runs_of(leaf);
            let count = if most_blocks(raw_blocks + blocks_of(&runs)) > self.device.blocks * 3 / 8 {
                // All runs, so that the leaf is split while there is room for that: at half of the device there is
                // none.
                runs.len()
            } else {
                runs_to_merge(new_blocks, &runs)
            };
            let merged = blocks_of(&runs[..count]);
            self.make_space(most_blocks(raw_blocks + merged), generation);
            let runs = self.runs_of(leaf);
            let count = count.min(runs.len());
            let work = Work {
                generation,
                tier: self,
                writer,
                group,
                runs: &runs[..count],
                is_whole: count == runs.len(),
            };
            enter_span!("leafpress_disk_merge", cache = %self.observer.name, leaf, runs = count, blocks = merged);
            let is_large = work.is_whole && merged + new_blocks > self.leaf_blocks.load(Ordering::Relaxed);
            let key = if is_large { self.middle_of(&runs, group) } else { None };
            let outcome = match &key {
                Some(key) => work.write_both(leaf, key),
                None => work.write_one(leaf),
            };
            match outcome {
                Ok(()) => {
                    writer.failures_in_a_row = 0;
                    if count > 0 {
                        self.counters.add(Count::Merges, 1);
                    }
                    return;
                }
                Err(MergeFailure::Read(unreadable)) => {
                    self.count_read_failure(&unreadable.failure);
                    let run = unreadable.source.saturating_sub(1);
                    // Everything older than the lost records may be outdated.
                    self.forget_runs(leaf, run, generation);
                }
                Err(MergeFailure::Write(_)) if self.state.read().generation != generation => return,
                Err(MergeFailure::Write(failure)) => {
                    self.counters.add(Count::WriteErrors, 1);
                    *self.last_error.lock() = failure.to_string();
                    warn_event!(cache = %self.observer.name, error = %failure, "disk write failed");
                    // The group is lost, so that everything older may be outdated.
                    self.forget_runs(leaf, 0, generation);
                    writer.failures_in_a_row += 1;
                    if writer.failures_in_a_row >= MAX_WRITE_FAILURES {
                        self.give_up("repeated write errors");
                    }
                    return;
                }
            }
        }
    }

    pub(super) fn forget_runs(&self, leaf: usize, run: usize, generation: u64) {
        let runs = self.runs_of(leaf);
        let gone = runs.get(run..).unwrap_or_default();
        if gone.is_empty() {
            return;
        }
        // This change needs no memory, so it cannot fail.
        let _ = self.change(generation, &Change::ForgetFrom { leaf, run });
        self.counters.add(Count::RunsDropped, gone.len() as u64);
        let records = gone.iter().map(|run| u64::from(run.records)).sum();
        self.counters.add(Count::RecordsDropped, records);
    }

    /// Returns a key near the median, estimated from the keys of one page and of the group.
    fn middle_of(&self, runs: &[Arc<Run>], group: &Group<'_>) -> Option<Vec<u8>> {
        let largest = runs.iter().max_by_key(|run| run.blocks);
        let mut raw = Vec::new();
        if let Some(run) = largest {
            let (first, blocks) = run.page(run.pages.len() / 2);
            let seed = ChecksumSeed {
                tier: self.id,
                position: run.position + first,
            };
            let mut buffer = self.device.buffer(blocks).ok()?;
            let transfer = self.device.begin_transfer();
            self.device.read(run.blocks_from(first), buffer.bytes_mut()).ok()?;
            drop(transfer);
            page::read(
                buffer.bytes(),
                seed,
                &*self.engine,
                self.device.most_raw_bytes(),
                &mut raw,
                &mut Scratch::default(),
            )
            .ok()?;
        }
        let mut keys: Vec<&[u8]> = Records(&raw).map(|(key, _)| key).collect();
        keys.extend(group.entries.iter().take(64).map(|entry| group.batch.key(*entry)));
        keys.sort_unstable();
        let middle = *keys.get(keys.len() / 2)?;
        // At least one key has to be before it.
        (middle > *keys.first()?).then(|| middle.to_vec())
    }

    /// Makes room for `blocks` and keeps the index within its limit by dropping the oldest runs.
    pub(super) fn make_space(&self, blocks: u64, generation: u64) {
        let has_space = |state: &TierState| {
            let is_free = state.free_chunks() * CHUNK_BLOCKS >= blocks;
            let is_known = state.index_bytes() <= self.most_index_bytes.load(Ordering::Relaxed);
            state.generation != generation || is_free && is_known
        };
        while !has_space(&self.state.read()) {
            let oldest = self.state.write().oldest();
            let Some((_, leaf)) = oldest else { return };
            self.forget_runs(leaf, self.runs_of(leaf).len().saturating_sub(1), generation);
        }
    }

    /// Returns the fraction of a leaf's oldest run that is kept when all of its runs are merged: it decreases as the
    /// store fills.
    fn part_kept(&self) -> f64 {
        let state = self.state.read();
        let used = 1.0 - state.free_chunks() as f64 / f64::from(state.most_chunks.max(1));
        (1.0 - (used - FULL) * 4.0).clamp(0.3, 1.0)
    }
}

/// Returns the maximum number of blocks after rewriting this number of blocks.
fn most_blocks(blocks: u64) -> u64 {
    blocks + blocks / 4 + 4 * CHUNK_BLOCKS
}

/// A merge in progress.
struct Work<'w> {
    tier: &'w Tier,
    writer: &'w mut Writer,
    group: &'w Group<'w>,
    runs: &'w [Arc<Run>],
    /// Whether these are all of the leaf's runs.
    is_whole: bool,
    generation: u64,
}

impl Work<'_> {
    /// Writes the records of a part into a run that is not listed yet.
    fn write_part(&mut self, part: Part<'_>) -> Result<Option<Arc<Run>>, MergeFailure> {
        let head = self.writer.head;
        // Positions are not reused, even if the store panics.
        self.writer.head += self.tier.device.blocks;
        let run = self.try_part(part, head);
        if let Ok(run) = &run {
            self.writer.head = head + run.as_ref().map_or(0, |run| u64::from(run.blocks));
        }
        self.writer.write_buffers.trim();
        self.writer.read_buffers.truncate(MAX_KEPT_READERS);
        self.writer.read_buffers.iter_mut().for_each(ReadBuffers::trim);
        run
    }

    fn try_part(&mut self, part: Part<'_>, head: u64) -> Result<Option<Arc<Run>>, MergeFailure> {
        let tier = self.tier;
        let of_runs: u64 = self.runs.iter().map(|run| u64::from(run.records)).sum();
        let records = of_runs as usize + self.group.entries.len();
        let records = if matches!(part, Part::All) {
            records
        } else {
            records / 2
        };
        let writer = &mut *self.writer;
        let now = writer.clock.now();
        while writer.read_buffers.len() < self.runs.len() {
            let buffers = ReadBuffers::new(&tier.device).map_err(MergeFailure::Write)?;
            writer.read_buffers.push(buffers);
        }
        let failed_to_read =
            |source: usize| move |failure| MergeFailure::Read(super::merge::Unreadable { source, failure });
        let mut sources = room_for(1 + self.runs.len()).map_err(|error| MergeFailure::Write(error.into()))?;
        sources.push(Source::Batch(self.group.batch, self.group.entries));
        let read_bytes = READER_BYTES * writer.read_buffers.len();
        for (run, buffers) in self.runs.iter().zip(&mut writer.read_buffers) {
            let mut reader = RunReader::new(
                &tier.device,
                &*tier.engine,
                &tier.hasher,
                tier.id,
                Arc::clone(run),
                buffers,
            );
            reader.advance().map_err(failed_to_read(sources.len()))?;
            sources.push(Source::Run(Box::new(reader)));
        }
        let chunks = Chunks::new(&tier.state, self.generation);
        let buffers = &mut writer.write_buffers;
        let out = RunWriter::new(&tier.device, &*tier.engine, tier.id, head, chunks, records, buffers);
        let mut out = out.map_err(MergeFailure::Write)?;
        let using = out.held_bytes() + read_bytes;
        tier.writing_bytes.store(using, Ordering::Relaxed);
        let is_over = |record: &[u8]| record::is_expired(record::read(record).1, || now);
        let kept = if self.is_whole { tier.part_kept() } else { 1.0 };
        // Depends on the key's hash and the run's position, so that each merge leaves out other records.
        let chance = head.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let is_left_out =
            |hash: u64| ((hash ^ chance).wrapping_mul(0x2545_F491_4F6C_DD1D) >> 40) as f64 >= kept * (1 << 24) as f64;
        let (oldest, mut left_out) = (self.runs.len(), 0);
        merge(&mut sources, |from, hash, key, record| {
            // Without older records there is nothing to hide.
            let is_left_out = self.is_whole && from == oldest && oldest > 0 && is_left_out(hash);
            left_out += u64::from(is_left_out);
            let goes = is_left_out || self.is_whole && is_over(record);
            let is_refused = from > 0 && tier.refuses(&self.runs[from - 1], hash, record);
            if goes || is_refused || !part.has(key) {
                // If a record of a key is refused, all older ones are too.
                return Ok(());
            }
            out.push(hash, key, record)
        })?;
        tier.counters.add(Count::LeftOut, left_out);
        let run = out.finish().map_err(MergeFailure::Write)?;
        if let Some(run) = &run {
            tier.counters.add(Count::WrittenBlocks, u64::from(run.blocks));
        }
        Ok(run.map(Arc::new))
    }

    fn write_one(mut self, leaf: usize) -> Result<(), MergeFailure> {
        let run = self.write_part(Part::All)?;
        if let (Some(run), true) = (&run, self.runs.is_empty()) {
            let ratio = f64::from(run.blocks) / self.group.raw_blocks() as f64;
            let before = self.writer.ratio.unwrap_or(ratio);
            self.writer.ratio = Some(before + (ratio - before) / 8.0);
        }
        let change = Change::Replace {
            leaf,
            newest: self.runs.len(),
            with: run,
        };
        let replaced = self.tier.change(self.generation, &change);
        replaced.map_err(|error| MergeFailure::Write(error.into()))
    }

    /// Writes two runs, of the keys before `key` and of the others, and splits the leaf.
    fn write_both(mut self, leaf: usize, key: &[u8]) -> Result<(), MergeFailure> {
        let low = Unlisted {
            tier: self.tier,
            generation: self.generation,
            run: self.write_part(Part::Below(key))?,
        };
        let high = self.write_part(Part::From(key))?;
        let low = low.into_run();
        let change = Change::Split { leaf, key, low, high };
        let split = self.tier.change(self.generation, &change);
        split.map_err(|error| MergeFailure::Write(error.into()))
    }
}

/// A run that was written and is in no leaf yet: its chunks are freed unless it is added to one.
struct Unlisted<'w> {
    tier: &'w Tier,
    generation: u64,
    run: Option<Arc<Run>>,
}

impl Unlisted<'_> {
    fn into_run(mut self) -> Option<Arc<Run>> {
        self.run.take()
    }
}

impl Drop for Unlisted<'_> {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            let mut state = self.tier.state.write();
            if state.generation == self.generation {
                state.give_chunks(&run.chunks);
            }
        }
    }
}

/// The writer thread.
pub(super) struct WriterThread {
    pub tier: Arc<Tier>,
    pub health: Arc<Health>,
}

impl Worker for WriterThread {
    fn work(&mut self) -> ControlFlow<()> {
        {
            let mut orders = self.tier.orders.lock();
            while !orders.has_work && !orders.is_stopped {
                self.tier.ordered.wait(&mut orders);
            }
            if orders.is_stopped {
                return ControlFlow::Break(());
            }
            orders.has_work = false;
        }
        while self.tier.write_next() && !self.tier.orders.lock().is_stopped {}
        ControlFlow::Continue(())
    }

    fn health(&self) -> &Health {
        &self.health
    }

    fn give_up(&mut self) {
        // Nothing would write the waiting batches.
        self.tier.give_up("its thread has ended");
    }
}

#[cfg(test)]
mod tests;
