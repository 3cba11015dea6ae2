//! Encoding of lists, keys, runs and leaves in an image and in the log of runs.
//!
//! ```text
//! leaf: key, runs u32, each: run
//! run:  position u64, blocks u32, records u32, ranks, starts, chunks (lists of u32),
//!       buckets u32, counts (list of u64), remainders (bytes)
//! lists, keys and bytes: length u32, and as many
//! ```
//!
//! Integers are little-endian.

use std::sync::Arc;

use super::failure::Failure;
use super::filter::Filter;
use super::run::{CHUNK_BLOCKS, Run};
use super::state::SuperLeaf;
use leafpress_base::mem::room::{TryGrow, room_for};

/// Upper bounds that no valid tier exceeds: runs per super-leaf, blocks per page, buckets per filter.
pub(super) const MAX_RUNS: usize = 60;
const MAX_PAGE_BLOCKS: u32 = 1 << 15;
const MAX_BUCKETS: usize = 1 << 28;

/// A sink of encoded bytes.
pub(super) trait Put {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure>;

    fn put_u32(&mut self, value: usize) -> Result<(), Failure> {
        self.put(&(value as u32).to_le_bytes())
    }

    fn put_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.put_u32(bytes.len())?;
        self.put(bytes)
    }

    fn put_list(&mut self, list: &[u32]) -> Result<(), Failure> {
        self.put_u32(list.len())?;
        list.iter().try_for_each(|value| self.put(&value.to_le_bytes()))
    }

    fn put_run(&mut self, run: &Run) -> Result<(), Failure> {
        self.put(&run.position.to_le_bytes())?;
        self.put(&run.blocks.to_le_bytes())?;
        self.put(&run.records.to_le_bytes())?;
        for list in [&run.pages, &run.starts, &run.chunks] {
            self.put_list(list)?;
        }
        let (buckets, counts, remainders) = run.filter.parts();
        self.put_u32(buckets)?;
        self.put_u32(counts.len())?;
        counts.iter().try_for_each(|word| self.put(&word.to_le_bytes()))?;
        self.put_bytes(remainders)
    }

    fn put_leaf(&mut self, leaf: &SuperLeaf) -> Result<(), Failure> {
        self.put_bytes(&leaf.from)?;
        self.put_u32(leaf.runs.len())?;
        leaf.runs.iter().try_for_each(|run| self.put_run(run))
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.try_append(bytes)?)
    }
}

/// A source of encoded bytes. The input is untrusted: invalid data is [`Failure::Damaged`], and no memory is allocated
/// that was not charged first.
pub(super) trait Take {
    fn read(&mut self, into: &mut [u8]) -> Result<(), Failure>;

    /// Accounts for an allocation; fails if the limit would be exceeded.
    fn charge(&mut self, bytes: usize) -> Result<(), Failure>;

    /// Number of blocks of the store.
    fn device_blocks(&self) -> u64;

    fn u32(&mut self) -> Result<u32, Failure> {
        let mut word = [0; 4];
        self.read(&mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    fn u64(&mut self) -> Result<u64, Failure> {
        let mut word = [0; 8];
        self.read(&mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    /// Reads a length of at most `most`.
    fn len(&mut self, most: usize) -> Result<usize, Failure> {
        let len = self.u32()? as usize;
        if len > most { Err(Failure::Damaged) } else { Ok(len) }
    }

    fn bytes(&mut self, most: usize) -> Result<Vec<u8>, Failure> {
        let len = self.len(most)?;
        self.charge(len)?;
        let mut bytes = room_for(len)?;
        bytes.resize(len, 0);
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&mut self, most: usize) -> Result<Vec<u32>, Failure> {
        let len = self.len(most)?;
        self.charge(len * size_of::<u32>())?;
        let mut list = room_for(len)?;
        for _ in 0..len {
            list.push(self.u32()?);
        }
        Ok(list)
    }

    fn run(&mut self) -> Result<Run, Failure> {
        let (position, blocks, records) = (self.u64()?, self.u32()?, self.u32()?);
        let most = usize::try_from(self.device_blocks()).unwrap_or(usize::MAX);
        let (pages, starts, chunks) = (self.list(most)?, self.list(most)?, self.list(most)?);
        let buckets = self.len(MAX_BUCKETS)?;
        let words = self.len((buckets + records as usize).div_ceil(64))?;
        // The filter's select index, which is not read but computed, and the words that are read.
        self.charge(buckets / 16 + words * size_of::<u64>())?;
        let mut counts = room_for(words)?;
        for _ in 0..words {
            counts.push(self.u64()?);
        }
        let remainders = self.bytes(records as usize)?;
        let filter = Filter::of_parts(buckets, counts, remainders)?.ok_or(Failure::Damaged)?;
        let is_sound = filter.parts().2.len() == records as usize
            && chunks.len() as u64 == u64::from(blocks).div_ceil(CHUNK_BLOCKS)
            && (starts.is_empty() && pages.len() == blocks as usize || starts.len() == pages.len())
            && starts
                .windows(2)
                .all(|pair| (1..MAX_PAGE_BLOCKS).contains(&pair[1].saturating_sub(pair[0])))
            && starts.first().is_none_or(|start| *start == 0)
            && starts
                .last()
                .is_none_or(|start| blocks.saturating_sub(*start) < MAX_PAGE_BLOCKS)
            && starts.last().is_none_or(|start| *start < blocks);
        if !is_sound {
            return Err(Failure::Damaged);
        }
        Ok(Run {
            position,
            blocks,
            records,
            filter,
            pages,
            starts,
            chunks,
        })
    }

    fn leaf(&mut self) -> Result<SuperLeaf, Failure> {
        let from: Arc<[u8]> = Arc::from(self.bytes(crate::tree::MAX_KEY_BYTES)?);
        let mut runs = Vec::new();
        for _ in 0..self.len(MAX_RUNS)? {
            self.charge(size_of::<Run>())?;
            runs.try_push(Arc::new(self.run()?))?;
        }
        self.charge(size_of::<SuperLeaf>())?;
        Ok(SuperLeaf { from, runs })
    }
}

/// Returns true if runs are in the order of a leaf's, and all end before `head`.
pub(super) fn are_in_order(runs: &[Arc<Run>], head: u64) -> bool {
    runs.is_sorted_by(|newer, older| newer.position > older.position)
        && runs
            .iter()
            .all(|run| run.position.saturating_add(u64::from(run.blocks)) <= head)
}
