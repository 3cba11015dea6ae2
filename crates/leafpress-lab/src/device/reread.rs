//! Reads blocks that were not read before, then the same ones again, one at a time. A device takes as long for both; a
//! cache does not.

use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::Reread;
use super::buffer::Buffer;
use super::target::Target;
use crate::core::keys::below;
use crate::core::statistics::upper_median;

/// Blocks that are read twice at most.
const BLOCKS: usize = 256;
/// Minimum number of reads.
const MIN_BLOCKS: usize = 16;
/// Maximum time of the first reads: about a hundred on a rotating disk.
const PATIENCE: Duration = Duration::from_secs(1);

/// Measures; `None` if that is not possible: through a page cache, in a small file, after a failure (which the
/// measurements report).
pub(super) fn reread(target: &Target, block_bytes: u64, seed: u64, cancel: &AtomicBool) -> Option<Reread> {
    let blocks = target.bytes / block_bytes;
    if target.direct.is_err() || blocks < 4 * BLOCKS as u64 {
        return None;
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x4ead);
    let mut chosen = Vec::with_capacity(BLOCKS);
    let mut seen = HashSet::with_capacity(BLOCKS);
    while chosen.len() < BLOCKS {
        let block = below(random.next_u64(), blocks);
        if seen.insert(block) {
            chosen.push(block);
        }
    }
    let mut buffer = Buffer::new(block_bytes as usize).ok()?;
    let mut read = |block: u64| {
        let started = Instant::now();
        target
            .file
            .read_exact_at(buffer.bytes_mut(), block * block_bytes)
            .ok()?;
        Some(started.elapsed().as_nanos() as f64 / 1e3)
    };
    let begin = Instant::now();
    let mut first = Vec::with_capacity(BLOCKS);
    for &block in &chosen {
        if begin.elapsed() >= PATIENCE || cancel.load(Ordering::Relaxed) {
            break;
        }
        first.push(read(block)?);
    }
    if first.len() < MIN_BLOCKS {
        return None;
    }
    let again = chosen[..first.len()].iter().map(|&block| read(block));
    let second = again.collect::<Option<Vec<f64>>>()?;
    Some(Reread {
        blocks: first.len() as u64,
        block_bytes,
        first_us: upper_median(first)?,
        second_us: upper_median(second)?,
    })
}
