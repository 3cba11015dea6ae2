//! A run: records in the order of their keys' hashes, in consecutive pages.

use std::ops::Range;

use super::filter::Filter;

/// Size of a chunk, the unit of allocation: contiguous blocks of the store.
pub(super) const CHUNK_BLOCKS: u64 = 8;

/// The index entry of a run, in memory.
pub(super) struct Run {
    /// Blocks that the tier had written before it: unique, and larger for later runs.
    pub position: u64,
    pub blocks: u32,
    pub records: u32,
    pub filter: Filter,
    /// The rank of each page's first record.
    pub pages: Vec<u32>,
    /// Each page's first block, relative to the run's; empty if each page is one block.
    pub starts: Vec<u32>,
    /// The run's chunks, of [`CHUNK_BLOCKS`] each.
    pub chunks: Vec<u32>,
}

/// Returns the block of the store for a block of a run.
pub(super) fn block_at(chunks: &[u32], block: u64) -> u64 {
    // A damaged run would read a block that is not its own, which the checksum detects.
    let chunk = chunks.get((block / CHUNK_BLOCKS) as usize).copied().unwrap_or_default();
    u64::from(chunk) * CHUNK_BLOCKS + block % CHUNK_BLOCKS
}

impl Run {
    /// Returns the pages in which a hash's record may be.
    pub(super) fn find(&self, hash: u64) -> Range<usize> {
        let ranks = self.filter.find(hash);
        if ranks.is_empty() {
            return 0..0;
        }
        let page_of = |rank: usize| self.pages.partition_point(|first| *first as usize <= rank).max(1) - 1;
        page_of(ranks.start)..page_of(ranks.end - 1) + 1
    }

    /// Returns a page's first block, relative to the run's, and its number of blocks.
    pub(super) fn page(&self, index: usize) -> (u64, usize) {
        if self.starts.is_empty() {
            return (index as u64, 1);
        }
        let start = |index: usize| self.starts.get(index).copied().unwrap_or(self.blocks);
        let (start, end) = (start(index), start(index + 1));
        (u64::from(start), end.saturating_sub(start) as usize)
    }

    /// Returns the blocks of the store.
    pub(super) fn blocks_from(&self, block: u64) -> impl Iterator<Item = u64> {
        (block..).map(|block| block_at(&self.chunks, block))
    }

    pub(super) fn held_bytes(&self) -> usize {
        let lists = self.pages.capacity() + self.starts.capacity() + self.chunks.capacity();
        size_of::<Self>() + self.filter.held_bytes() + lists * size_of::<u32>()
    }
}
