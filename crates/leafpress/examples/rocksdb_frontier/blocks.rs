//! Data blocks in the format of RocksDB's block-based table.

use std::ops::Range;

use leafpress_base::bytes::put_leb128;

const RESTART_INTERVAL: usize = 16;
/// An 8-byte number and eight zeroes, like db_bench's keys of 16 bytes, then the sequence number and the type.
const INTERNAL_KEY_BYTES: usize = 24;

/// Returns the blocks of a table of `values` in key order, each at most about `block_bytes` long.
pub fn blocks<'v>(values: impl Iterator<Item = &'v [u8]>, block_bytes: usize) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    let mut block = Block::default();
    for (number, value) in values.enumerate() {
        let estimate = block.len() + INTERNAL_KEY_BYTES + value.len() + 8;
        // `block_size_deviation` is ten percent: a block that is nearly full is closed before it overflows.
        if block.len() >= block_bytes || (estimate > block_bytes && block.len() * 10 > block_bytes * 9) {
            blocks.push(std::mem::take(&mut block).finish());
        }
        block.add(&internal_key(number as u64), value);
    }
    if block.entries > 0 {
        blocks.push(block.finish());
    }
    blocks
}

fn internal_key(number: u64) -> [u8; INTERNAL_KEY_BYTES] {
    let mut key = [b'0'; INTERNAL_KEY_BYTES];
    key[..8].copy_from_slice(&number.to_be_bytes());
    let put = 1;
    key[16..].copy_from_slice(&(((number + 1) << 8) | put).to_le_bytes());
    key
}

#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    last_key: Vec<u8>,
    entries: usize,
}

impl Block {
    fn len(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + 4
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        let shared = if self.entries.is_multiple_of(RESTART_INTERVAL) {
            self.restarts.push(self.bytes.len() as u32);
            0
        } else {
            key.iter().zip(&self.last_key).take_while(|(a, b)| a == b).count()
        };
        for length in [shared, key.len() - shared, value.len()] {
            put_leb128(&mut self.bytes, length);
        }
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.last_key = key.to_vec();
        self.entries += 1;
    }

    fn finish(mut self) -> Vec<u8> {
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        self.bytes
            .extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.bytes
    }
}

/// Returns values cut from a file one after another, starting again at its end, `total_bytes` in total.
pub fn values(file: &[u8], value_bytes: usize, total_bytes: usize) -> impl Iterator<Item = &[u8]> {
    file.chunks_exact(value_bytes).cycle().take(total_bytes / value_bytes)
}

/// Returns values cut at random positions: the contents of a database whose records were overwritten in random order.
pub fn scattered_values(file: &[u8], value_bytes: usize, total_bytes: usize) -> impl Iterator<Item = &[u8]> {
    let mut random = fastrand::Rng::with_seed(1);
    (0..total_bytes / value_bytes).map(move |_| &file[random.usize(..=file.len() - value_bytes)..][..value_bytes])
}

/// Divides the file into two disjoint parts, alternating extents of `extent_bytes`: one for training, one for
/// compression.
pub fn halves(file: &[u8], extent_bytes: usize) -> [Vec<u8>; 2] {
    let every_other = |from: usize| {
        file.chunks(extent_bytes)
            .skip(from)
            .step_by(2)
            .collect::<Vec<_>>()
            .concat()
    };
    [every_other(0), every_other(1)]
}

/// Returns `count` of `all`, evenly spread.
pub fn spread(all: usize, count: usize) -> impl Iterator<Item = usize> {
    let count = count.clamp(1, all);
    let range: Range<usize> = 0..count;
    range.map(move |i| i * all / count)
}
