//! Hints about a leaf before it is loaded, and the prefetching of the lines that a read needs.
//!
//! A read of a leaf in memory would wait for it three times: for its header, for the position of the block, and for the
//! block. A hint (see `mem::tagged_ptr`) gives the leaf's length and where its data starts. The key's position among
//! those of the leaf is interpolated from its bounds, and so are the lines that the read will need; they are prefetched
//! all at once. Each line delays the following ones by some nanoseconds, so predictions are as narrow as their inputs
//! allow, and what the read needs first is prefetched first.

use crate::tree::node::descent_step::DescentStep;
use crate::tree::node::layout::{FINGERPRINTS, HEADER_BYTES, READ_AT, SINGLE};
use crate::tree::node::leaf::Leaf;
use leafpress_base::mem::prefetch::{DIRECTORY_LINES, LINE_BYTES, prefetch};
use leafpress_base::mem::tagged_ptr::{HINT_BITS, Hint, NO_HINT};

/// Bits of a hint that hold the leaf's length in cache lines.
const LENGTH_BITS: u32 = 9;
const LENGTH: Hint = (1 << LENGTH_BITS) - 1;
/// Bit of a hint: every frame is one record.
const SINGLE_HINT: Hint = 1 << LENGTH_BITS;
/// First bit of the data's start in a hint.
const DATA_BIT: u32 = LENGTH_BITS + 1;
/// Unit of the data's start.
const DATA_UNIT_BYTES: usize = 16;
/// Average bytes after the data: the slop, and the padding of the last line.
const BEHIND_DATA_BYTES: usize = 56;

/// Assumed error in bytes of the prediction of a block in the middle of a leaf; at the ends it is half of that. Blocks
/// differ in length: in a leaf of 120 blocks of 10 to 60 bytes, 98% are within this distance of their predicted
/// position, if their keys are numbers without gaps.
const BLOCK_OFF_BYTES: usize = 208;
/// Lines to both sides of the predicted one within that distance.
const BLOCK_OFF_LINES: usize = BLOCK_OFF_BYTES.div_ceil(LINE_BYTES);
/// The middle of a short block.
const BLOCK_MIDDLE_BYTES: usize = 16;

impl<'g> Leaf<'g> {
    /// Returns the leaf's hint: its length in lines and where its data starts; [`NO_HINT`] where positions do not
    /// follow from the order of keys, or the numbers do not fit.
    pub(crate) fn hint(&self) -> Hint {
        let header = self.header();
        let (lines, data) = (header.node.lines(), header.data_at as usize / DATA_UNIT_BYTES);
        if self.has(FINGERPRINTS) || lines > LENGTH as usize || data >= 1 << (HINT_BITS - DATA_BIT) {
            return NO_HINT;
        }
        let single = if self.has(SINGLE) { SINGLE_HINT } else { 0 };
        (data << DATA_BIT | lines) as Hint | single
    }

    /// Returns the hint of a leaf of `lines` lines that is otherwise like the leaf of hint `like`. If `lines` is
    /// implausible, the length of `like` is used.
    #[inline(always)]
    pub(crate) fn hint_of_length(like: Hint, lines: usize) -> Hint {
        let likely = (like & LENGTH) as usize;
        if lines > 2 * likely || 2 * lines < likely {
            like
        } else {
            like & !LENGTH | (lines as Hint).min(LENGTH)
        }
    }

    /// Prefetches the lines that a read most likely needs of the leaf that a step leads to.
    #[inline(always)]
    pub(crate) fn prefetch_step(step: &DescentStep) {
        Self::likely_lines(step, prefetch);
    }

    /// Calls `add` with an address in each of the lines that a read most likely needs of the leaf that a step leads to:
    /// those of its directory, and around the predicted block.
    #[inline(always)]
    fn likely_lines(step: &DescentStep, mut add: impl FnMut(*const u8)) {
        let mut at = |offset: usize| add(step.address().wrapping_add(offset));
        let lines = (step.hint & LENGTH) as usize;
        let data = (step.hint >> DATA_BIT) as usize * DATA_UNIT_BYTES;
        let Some(share) = step.share.filter(|_| data > 0) else {
            let directory = if data == 0 {
                DIRECTORY_LINES
            } else {
                DIRECTORY_LINES.min(data / LINE_BYTES + 1)
            };
            return (0..directory).for_each(|line| at(READ_AT + line * LINE_BYTES));
        };
        let data = data + DATA_UNIT_BYTES / 2;
        // The actual length may be less than an estimated one.
        let bytes = (lines * LINE_BYTES).saturating_sub(data + BEHIND_DATA_BYTES);
        let block = data + share.times(bytes) + BLOCK_MIDDLE_BYTES;
        at(READ_AT);
        if step.hint & SINGLE_HINT != 0 {
            let directory = data.saturating_sub(HEADER_BYTES);
            let offsets = size_of::<u16>() * (usize::from(step.records) + 1);
            let keys = if step.records > 0 && offsets < directory {
                directory - offsets
            } else {
                // About five bytes in eight are offsets.
                directory * 3 / 8
            };
            // An offset or a key near the end of a line may be in the next.
            let offset = HEADER_BYTES + keys + share.times(directory - keys);
            at(offset - 6);
            at(offset + 10);
            near(block).for_each(&mut at);
            // Their bases, a tenth of them, are stored before them.
            let key = HEADER_BYTES + keys / 10 + share.times(keys * 9 / 10);
            at(key - 8);
            at(key + 16);
            at(READ_AT + LINE_BYTES);
        } else {
            let directory = DIRECTORY_LINES.min(data / LINE_BYTES + 1);
            (1..directory).for_each(|line| at(READ_AT + line * LINE_BYTES));
            near(block).for_each(&mut at);
        }
        // Towards the leaf's ends, where predictions are better, the outer lines repeat previous ones: a loop with a
        // fixed number of iterations is never mispredicted.
        let off = BLOCK_OFF_BYTES / 2 + share.of_middle(BLOCK_OFF_BYTES / 2);
        for line in 2..=BLOCK_OFF_LINES {
            at(block + off.min(line * LINE_BYTES));
            at(block.saturating_sub(off.min(line * LINE_BYTES)));
        }
    }
}

/// Returns the predicted line and its neighbours.
#[inline(always)]
fn near(block: usize) -> impl Iterator<Item = usize> {
    [block, block.saturating_sub(LINE_BYTES), block + LINE_BYTES].into_iter()
}

// Elsewhere pointers have no room for hints.
#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tree::Tree;
    use crate::tree::node::packed;

    /// Generates a value of 128 bytes whose block has between a fifth and half of its length.
    fn value(rng: &mut fastrand::Rng) -> Vec<u8> {
        let fresh = rng.usize(10..50);
        let mut value: Vec<u8> = std::iter::repeat_with(|| rng.alphanumeric() as u8)
            .take(fresh)
            .collect();
        value.resize(128, b'.');
        value
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many keys")]
    fn prefetches_what_a_read_needs_of_a_leaf_and_little_more() {
        const KEYS: u64 = 60_000;
        let mut rng = fastrand::Rng::with_seed(1);
        let tree = Tree::builder().codec("lz4".parse().unwrap()).shards(1).build().unwrap();
        for key in 0..KEYS {
            tree.insert(&key.to_be_bytes(), &value(&mut rng)).unwrap();
        }
        tree.settle().unwrap();
        let guard = tree.core.memory.enter().unwrap();
        let (mut reads, mut directory, mut block, mut requested) = (0, 0, 0, 0);
        for key in (0..KEYS).step_by(7).map(u64::to_be_bytes) {
            let step = tree.core.shard(&key).descend_to_read(&key, &guard);
            let mut lines = BTreeSet::new();
            Leaf::likely_lines(&step, |address| {
                lines.insert(address.addr() / LINE_BYTES);
            });
            // SAFETY: the guard protects the leaf.
            let leaf = step.leaf();
            let (sections, shape) = (leaf.sections(), leaf.header().shape);
            // The key may be in the landing buffer only.
            let Some(place) = leaf.search_exact(&sections, &key, step.share).unwrap() else {
                continue;
            };
            let bits = usize::from(shape.keys.key_bits);
            let bases = shape.keys.bytes(leaf.count()) - packed::bytes_for(leaf.count(), shape.keys.key_bits);
            let built = leaf.block(&sections, place.frame);
            let start = built.as_ptr().addr() - step.address().addr();
            let are_requested = |offsets: &[usize]| {
                let line = |offset: &usize| (step.address().addr() + offset) / LINE_BYTES;
                offsets.iter().map(line).all(|line| lines.contains(&line))
            };
            reads += 1;
            requested += lines.len();
            directory += usize::from(are_requested(&[
                READ_AT,
                sections.offsets + size_of::<u16>() * place.frame,
                sections.keys + bases + place.slot * bits / 8,
            ]));
            block += usize::from(are_requested(&[start, start + built.len() - 1]));
        }
        assert!(reads * 7 >= KEYS as usize * 9 / 10, "{reads} of {KEYS} / 7");
        assert!(directory * 100 >= reads * 95, "{directory} of {reads}");
        assert!(block * 100 >= reads * 95, "{block} of {reads}");
        assert!(requested <= reads * 13, "{requested} for {reads}");
    }
}
