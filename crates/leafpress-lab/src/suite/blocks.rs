//! The sample cut into blocks of one length, and the blocks gathered into tasks and batches.

use super::sample::Sample;

/// Raw bytes of a task: enough to make distribution of tasks cheap, few enough to balance them.
const TASK_BYTES: usize = 256 << 10;
/// Maximum raw bytes of a batch, unless a single task has more: more than the caches of a CPU hold, little compared to
/// its memory.
pub(super) const BATCH_BYTES: usize = 64 << 20;
/// Minimum raw bytes of a pass per thread; a smaller sample is processed several times.
const MIN_BYTES: usize = 8 << 20;
/// Minimum bytes that a block counts for in a batch, since short ones have buffers too.
const MIN_BLOCK_BYTES: usize = 2048;

/// A separately compressed block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block<'s> {
    /// The file's place in the sample.
    pub file: usize,
    /// The block's number in the whole file.
    pub number: u64,
    pub raw: &'s [u8],
}

/// The blocks of a sample.
#[derive(Debug)]
pub(super) struct Blocks<'s> {
    pub block_bytes: usize,
    all: Vec<Block<'s>>,
    raw_bytes: usize,
}

impl<'s> Blocks<'s> {
    /// Cuts each file separately: the remainder at its end is a short block.
    pub(super) fn new(sample: &'s Sample, block_bytes: usize) -> Self {
        let mut all = Vec::new();
        for file in 0..sample.files.len() {
            for piece in sample.pieces(file) {
                let first = piece.offset / block_bytes as u64;
                let chunks = piece.bytes.chunks(block_bytes).zip(first..);
                all.extend(chunks.map(|(raw, number)| Block { file, number, raw }));
            }
        }
        Self::from_blocks(all, block_bytes)
    }

    /// Blocks that are cut already.
    pub(super) fn of(blocks: &[&'s [u8]]) -> Self {
        let block_bytes = blocks.iter().map(|block| block.len()).max().unwrap_or(0);
        let all = blocks.iter().zip(0..);
        let all = all.map(|(raw, number)| Block { file: 0, number, raw });
        Self::from_blocks(all.collect(), block_bytes)
    }

    fn from_blocks(all: Vec<Block<'s>>, block_bytes: usize) -> Self {
        Self {
            block_bytes,
            raw_bytes: all.iter().map(|block| block.raw.len()).sum(),
            all,
        }
    }

    /// How often a pass processes the sample.
    pub(super) fn rounds(&self, threads: usize) -> usize {
        (MIN_BYTES * threads.min(64)).div_ceil(self.raw_bytes.max(1)).max(1)
    }

    /// Raw bytes of the sample.
    pub(super) fn raw_bytes(&self) -> usize {
        self.raw_bytes
    }

    /// The blocks in tasks, the tasks in batches, repeated this many times.
    pub(super) fn batches(&self, rounds: usize) -> Vec<Vec<&[Block<'s>]>> {
        let tasks = gather(&self.all, TASK_BYTES, |block| block.raw.len());
        let tasks: Vec<&[Block<'s>]> = std::iter::repeat_n(tasks, rounds).flatten().collect();
        let batches = gather(&tasks, BATCH_BYTES, |task| {
            raw_bytes(task).max(task.len() * MIN_BLOCK_BYTES)
        });
        batches.into_iter().map(<[_]>::to_vec).collect()
    }
}

/// Raw bytes of some blocks.
pub(super) fn raw_bytes(blocks: &[Block<'_>]) -> usize {
    blocks.iter().map(|block| block.raw.len()).sum()
}

/// Groups items into runs of at most this many bytes, at least one item each.
fn gather<T>(things: &[T], most: usize, bytes: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let (mut runs, mut start, mut sum) = (Vec::new(), 0, 0);
    for (at, thing) in things.iter().enumerate() {
        let more = bytes(thing);
        if sum + more > most && at > start {
            runs.push(&things[start..at]);
            (start, sum) = (at, 0);
        }
        sum += more;
    }
    if start < things.len() {
        runs.push(&things[start..]);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::gather;

    #[test]
    fn runs_have_what_fits_and_one_at_least() {
        let bytes = [3_usize, 3, 3, 9, 1, 1];
        let runs = gather(&bytes, 6, |bytes| *bytes);
        assert_eq!(runs, [&[3_usize, 3][..], &[3], &[9], &[1, 1]]);
        assert!(gather(&[], 6, |bytes: &usize| *bytes).is_empty());
    }
}
