//! Ordered walk of the tier: the records of a range of keys, part by part.
//!
//! A part covers at most one super-leaf. Its runs are read sequentially instead of by one read per key, and the records
//! found are sorted by key. The writer's lock is held meanwhile, so no other thread writes to the store or merges runs,
//! and all listed runs stay readable.
//!
//! The order of steps makes a walk complete. A present key is in memory, in a batch, or in a run. Runs are listed
//! first, then the keys in memory, then the batches: a record that moves from disk to memory stays in the listed run,
//! and one that moves from memory to disk is either still in memory when that is read, or already in a batch when those
//! are read.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::failure::Failure;
use super::key_hash::DiskHash;
use super::merge::{READ_BLOCKS, ReadBuffers, RunReader};
use super::page::BLOCK_BYTES;
use super::run::Run;
use super::tier::{Tier, VERSIONS};
use crate::cache::record::{self, TOMBSTONE};
use crate::tree::{Bounds, copied_bound, not_above, not_below};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, copied, room_for};

/// Rank of a key found in memory: a copy on disk takes precedence, since it has a value.
const IN_MEMORY: u32 = u32::MAX;
/// Approximate overhead of a record in a part, in bytes.
const FOUND_BYTES: usize = size_of::<FoundRecord>() + 32;

/// Direction and requirements of a walk.
#[derive(Debug, Clone, Copy)]
pub(in crate::cache) struct Course {
    pub is_backwards: bool,
    /// Whether only keys are needed.
    pub keys_only: bool,
    /// Whether runs that cannot be read are forgotten, so that no record in them can be found later.
    pub forgets_unreadable: bool,
    /// Maximum size of a part, in bytes.
    pub most_bytes: usize,
}

/// A key, and its newest record in the tier, if that could be read. The value is omitted if it is not needed.
pub(in crate::cache) struct FoundRecord {
    pub key: Vec<u8>,
    pub stored: Option<Vec<u8>>,
    /// Newer records of a key have lower ranks.
    rank: u32,
}

/// The keys of a part, in order of arrival.
pub(in crate::cache) struct Part {
    course: Course,
    /// The range of the part. It is shortened if the part would exceed its size.
    bounds: Bounds,
    found: Vec<FoundRecord>,
    bytes: usize,
}

impl Part {
    pub(in crate::cache) fn new(course: Course, bounds: Bounds) -> Self {
        Self {
            course,
            bounds,
            found: Vec::new(),
            bytes: 0,
        }
    }

    pub(in crate::cache) fn copied_bounds(&self) -> Result<Bounds, OutOfMemory> {
        Ok((copied_bound(&self.bounds.0)?, copied_bound(&self.bounds.1)?))
    }

    /// Adds a key that is in memory.
    pub(in crate::cache) fn push_key(&mut self, key: &[u8]) -> Result<(), OutOfMemory> {
        self.push(IN_MEMORY, key, None)
    }

    /// Returns true if the key is behind the end of the part, and belongs to a later one.
    pub(in crate::cache) fn excludes(&self, key: &[u8]) -> bool {
        !not_below(&self.bounds.0, key) || !not_above(&self.bounds.1, key)
    }

    fn push(&mut self, rank: u32, key: &[u8], stored: Option<&[u8]>) -> Result<(), OutOfMemory> {
        if self.excludes(key) {
            return Ok(());
        }
        let stored = stored.map(|stored| {
            let value = if self.course.keys_only {
                record::read(stored).0.len()
            } else {
                0
            };
            copied(&stored[..stored.len() - value])
        });
        let stored = stored.transpose()?;
        self.bytes += FOUND_BYTES + key.len() + stored.as_ref().map_or(0, Vec::len);
        self.found.try_push(FoundRecord {
            key: copied(key)?,
            stored,
            rank,
        })?;
        if self.bytes > self.course.most_bytes {
            self.shorten()?;
        }
        Ok(())
    }

    /// Sorts in the order of the walk and keeps each key once, with its newest record.
    fn sort(&mut self) {
        let is_backwards = self.course.is_backwards;
        self.found.sort_unstable_by(|one, other| {
            let keys = one.key.cmp(&other.key);
            let keys = if is_backwards { keys.reverse() } else { keys };
            keys.then(one.rank.cmp(&other.rank))
        });
        self.found.dedup_by(|older, newer| older.key == newer.key);
    }

    /// Keeps the first keys, about half of the maximum size: the next part begins after them.
    fn shorten(&mut self) -> Result<(), OutOfMemory> {
        self.sort();
        let most = self.course.most_bytes / 2;
        let (mut bytes, mut kept) = (0, 0);
        for found in &self.found {
            bytes += FOUND_BYTES + found.key.len() + found.stored.as_ref().map_or(0, Vec::len);
            if kept > 0 && bytes > most {
                break;
            }
            self.bytes = bytes;
            kept += 1;
        }
        if kept < self.found.len() {
            self.found.truncate(kept);
            if let Some(last) = self.found.last() {
                let end = Bound::Included(copied(&last.key)?);
                if self.course.is_backwards {
                    self.bounds.0 = end;
                } else {
                    self.bounds.1 = end;
                }
            }
        }
        Ok(())
    }
}

/// A part that was read.
pub(in crate::cache) struct Walked {
    /// In the order of the walk, each key once.
    pub found: Vec<FoundRecord>,
    /// The tier's versions before the part was read: see [`Tier::version`].
    versions: Vec<u64>,
    /// The range after the part; [`None`] at the end.
    pub rest: Option<Bounds>,
    /// Whether runs were forgotten because they could not be read. A record in them may have been promoted to memory
    /// after the keys there were read.
    pub has_forgotten: bool,
}

impl Walked {
    /// Returns true if no record of a key has left memory since the part was read.
    pub(in crate::cache) fn is_newest(&self, disk: &Tier, hash: DiskHash) -> bool {
        self.versions.get(Tier::version_index(hash)) == Some(&disk.version(hash))
    }
}

/// Reads a part in a cache without a disk tier.
pub(in crate::cache) fn walk_memory<E: From<OutOfMemory>>(
    course: Course,
    (low, high): &Bounds,
    in_memory: impl FnOnce(&mut Part) -> Result<(), E>,
) -> Result<Walked, E> {
    let listed = Listed {
        leaf: 0,
        generation: 0,
        from: Arc::from([]),
        to: None,
        runs: Vec::new(),
    };
    let mut part = Part::new(course, listed.within(low, high)?);
    in_memory(&mut part)?;
    part.sort();
    Ok(Walked {
        rest: listed.behind(course, low, high, &part.bounds)?,
        found: part.found,
        versions: Vec::new(),
        has_forgotten: false,
    })
}

/// The runs of a leaf, newest first, and its range of keys.
struct Listed {
    leaf: usize,
    generation: u64,
    from: Arc<[u8]>,
    to: Option<Arc<[u8]>>,
    runs: Vec<Arc<Run>>,
}

impl Tier {
    /// Reads the first part of a non-empty range, or its last part if the walk is backwards. `in_memory` adds the keys
    /// in memory to the part. The caller holds no latch.
    pub(in crate::cache) fn walk<E: From<OutOfMemory>>(
        &self,
        course: Course,
        (low, high): &Bounds,
        in_memory: impl FnOnce(&mut Part) -> Result<(), E>,
    ) -> Result<Walked, E> {
        let _writer = self.writer.lock();
        let mut versions = room_for(VERSIONS)?;
        versions.extend(self.versions().iter().map(|version| version.load(Ordering::SeqCst)));
        let listed = self.list(course, low, high)?;
        let mut part = Part::new(course, listed.within(low, high)?);
        in_memory(&mut part)?;
        let mut unreadable = None;
        if !self.has_failed() {
            self.add_batches(&mut part)?;
            unreadable = self.add_runs(&listed.runs, &mut part)?;
        }
        part.sort();
        let rest = listed.behind(course, low, high, &part.bounds)?;
        let forgotten = unreadable.filter(|_| course.forgets_unreadable);
        if let Some(run) = forgotten {
            // Older runs may have older records of its keys.
            self.forget_runs(listed.leaf, run, listed.generation);
            self.raise_versions();
        }
        Ok(Walked {
            found: part.found,
            versions,
            rest,
            has_forgotten: forgotten.is_some(),
        })
    }

    /// Lists the leaf at the walk's position.
    fn list(&self, course: Course, low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>) -> Result<Listed, OutOfMemory> {
        let state = self.state.read();
        let leaves = state.leaves();
        let at = match (course.is_backwards, low, high) {
            (false, Bound::Unbounded, _) => 0,
            (false, Bound::Included(key) | Bound::Excluded(key), _) => state.leaf_of(key),
            (true, _, Bound::Unbounded) => leaves.len() - 1,
            (true, _, Bound::Included(key)) => state.leaf_of(key),
            // A leaf that begins with the key has no key before it.
            (true, _, Bound::Excluded(key)) => leaves.partition_point(|leaf| *leaf.from < **key).max(1) - 1,
        };
        let mut runs = room_for(leaves[at].runs.len())?;
        runs.extend(leaves[at].runs.iter().map(Arc::clone));
        Ok(Listed {
            leaf: at,
            generation: state.generation,
            from: Arc::clone(&leaves[at].from),
            to: leaves.get(at + 1).map(|leaf| Arc::clone(&leaf.from)),
            runs,
        })
    }

    fn add_batches(&self, part: &mut Part) -> Result<(), OutOfMemory> {
        let state = self.state.read();
        let sealed = state.sealed.iter().rev().map(|batch| &**batch);
        for (rank, batch) in (0..).zip([&state.open].into_iter().chain(sealed)) {
            for entry in batch.entries()? {
                part.push(rank, batch.key(entry), Some(self.without_epoch(batch.record(entry))))?;
            }
        }
        Ok(())
    }

    /// Adds the records of runs; returns the newest run of which some cannot be read. The others' records of their keys
    /// may then be outdated: those keys are looked up individually.
    fn add_runs(&self, runs: &[Arc<Run>], part: &mut Part) -> Result<Option<usize>, OutOfMemory> {
        if runs.is_empty() {
            return Ok(None);
        }
        let mut unreadable = None;
        let bytes = READ_BLOCKS * BLOCK_BYTES;
        let mut buffers = ReadBuffers::new(&self.device).map_err(|_| OutOfMemory { bytes })?;
        let newer_ranks = self.state.read().sealed.len() as u32 + 1;
        for (index, run) in runs.iter().enumerate() {
            let rank = newer_ranks + index as u32;
            let mut reader = RunReader::new(
                &self.device,
                &*self.engine,
                &self.hasher,
                self.id,
                Arc::clone(run),
                &mut buffers,
            );
            loop {
                match reader.advance() {
                    Ok(()) => {}
                    Err(Failure::OutOfMemory { bytes }) => return Err(OutOfMemory { bytes }),
                    Err(failure) => {
                        self.count_read_failure(&failure);
                        unreadable.get_or_insert(index);
                        continue;
                    }
                }
                let Some((key, record)) = reader.record() else { break };
                let is_refused = self.refuses(run, reader.hash(), record);
                let stored = if is_refused {
                    TOMBSTONE
                } else {
                    self.without_epoch(record)
                };
                part.push(rank, key, Some(stored))?;
            }
            buffers.trim();
        }
        if unreadable.is_some() {
            part.found.iter_mut().for_each(|found| found.stored = None);
        }
        Ok(unreadable)
    }
}

impl Listed {
    /// Returns the intersection of a range with the leaf.
    fn within(&self, low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>) -> Result<Bounds, OutOfMemory> {
        let low = match low {
            Bound::Included(key) | Bound::Excluded(key) if **key >= *self.from => copied_bound(low)?,
            _ => Bound::Included(copied(&self.from)?),
        };
        let high = match (&self.to, high) {
            (None, high) => copied_bound(high)?,
            (Some(to), Bound::Included(key) | Bound::Excluded(key)) if **key < **to => copied_bound(high)?,
            (Some(to), _) => Bound::Excluded(copied(to)?),
        };
        Ok((low, high))
    }

    /// Returns the remainder of a range after a part of it.
    fn behind(
        &self,
        course: Course,
        low: &Bound<Vec<u8>>,
        high: &Bound<Vec<u8>>,
        part: &Bounds,
    ) -> Result<Option<Bounds>, OutOfMemory> {
        let beyond = |end: &Bound<Vec<u8>>| {
            Ok(match end {
                Bound::Included(key) => Bound::Excluded(copied(key)?),
                Bound::Excluded(key) => Bound::Included(copied(key)?),
                Bound::Unbounded => Bound::Unbounded,
            })
        };
        if course.is_backwards {
            let is_last = part.0 == *low || matches!(&part.0, Bound::Included(key) if key.is_empty());
            return Ok(if is_last {
                None
            } else {
                Some((copied_bound(low)?, beyond(&part.0)?))
            });
        }
        let is_last = part.1 == *high;
        Ok(if is_last {
            None
        } else {
            Some((beyond(&part.1)?, copied_bound(high)?))
        })
    }
}
