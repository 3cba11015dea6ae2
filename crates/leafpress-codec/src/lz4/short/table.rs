//! The dictionary positions at which [the encoder of short records](super) looks for matches.

use rapidhash::v3::rapidhash_v3;

/// Maximum record length, in bytes. For longer ones the small tables save less than they lose.
pub(crate) const MAX_SHORT_BYTES: usize = 512;

/// Readable bytes from every position in a table on.
const AHEAD_BYTES: usize = 32;
/// Readable bytes before every position in a table.
const BEFORE_BYTES: usize = 8;
/// Maximum distance of a match.
const MAX_OFFSET: usize = u16::MAX as usize;
/// Slots of the table for a dictionary of 4 to 16 KiB: with fewer, blocks are 2 to 5% larger; with twice as many, 1 to
/// 4% smaller, but compression takes 3 to 10% longer.
const SLOTS: usize = 4096;
const BYTES_PER_SLOT: usize = 4;
/// Bits of a hash.
const HASH_BITS: u32 = 14;
/// A position is rated by how often the bytes that follow it occur elsewhere in the dictionary, over these lengths.
const LENGTHS: [usize; 8] = [5, 6, 8, 12, 16, 24, 32, 48];

/// A hash of a word's first five bytes, below 2^[`HASH_BITS`]: Fibonacci hashing (Knuth, "The Art of Computer
/// Programming", volume 3, section 6.4).
#[inline(always)]
pub(crate) fn hash(word: u64) -> usize {
    ((word << 24).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - HASH_BITS)) as usize
}

/// For each hash of five bytes the best position of the dictionary.
///
/// Several positions share a slot. The best is the one whose next bytes, up to 48, are the most frequent in the
/// dictionary, which was trained on what is frequent in records: matches that begin there are the longest.
pub(crate) struct ShortTable {
    /// 65,536 minus the distance from the dictionary's end: the distance is at least 32 and at most 64 KiB less the
    /// maximum record length. The number of slots is a power of two, at most 2^[`HASH_BITS`].
    slots: Box<[u16]>,
    /// The number of slots minus one.
    mask: usize,
    /// Minimum length of a dictionary such that all distances are within it, with eight bytes before.
    least_bytes: usize,
}

impl ShortTable {
    /// Builds the table of a dictionary; `None` if it is too short or there is no memory.
    pub(crate) fn new(dictionary: &[u8]) -> Option<Self> {
        let reachable = dictionary.len().min(MAX_OFFSET - MAX_SHORT_BYTES);
        let bytes = &dictionary[dictionary.len() - reachable..];
        let last = reachable.checked_sub(AHEAD_BYTES)?;
        if last < BEFORE_BYTES {
            return None;
        }
        let slots = reachable
            .next_power_of_two()
            .min(SLOTS)
            .max((reachable / BYTES_PER_SLOT).next_power_of_two());
        let mask = slots - 1;
        let scores = scores(bytes)?;
        // An empty slot may have any position.
        let mut best = filled(last as u32, slots)?;
        for position in BEFORE_BYTES..=last {
            let word = bytes[position..].first_chunk().copied().map_or(0, u64::from_le_bytes);
            let slot = &mut best[hash(word) & mask];
            let taken = *slot as usize;
            let is_empty = taken == last;
            if is_empty || scores[position] > scores[taken] {
                *slot = position as u32;
            }
        }
        let mut slots = filled(0_u16, best.len())?;
        for (slot, position) in slots.iter_mut().zip(best) {
            *slot = (u16::MAX as usize + 1 - (reachable - position as usize)) as u16;
        }
        Some(Self {
            slots: slots.into_boxed_slice(),
            mask,
            least_bytes: reachable,
        })
    }

    /// Returns the distance from the dictionary's end of the candidate for a hash: at least 32 bytes, and at most
    /// [`ShortTable::least_bytes`] minus eight.
    #[inline(always)]
    pub(crate) fn distance(&self, hash: usize) -> usize {
        // SAFETY: the mask is the number of slots minus one, so the index is in bounds.
        let slot = unsafe { *self.slots.get_unchecked(hash & self.mask) };
        usize::from(u16::MAX) + 1 - usize::from(slot)
    }

    /// Returns the minimum length of a dictionary that this table can be used with.
    pub(crate) fn least_bytes(&self) -> usize {
        self.least_bytes
    }

    /// Heap memory, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }
}

/// Returns `len` copies of `value`; `None` if there is no memory.
fn filled<T: Clone>(value: T, len: usize) -> Option<Vec<T>> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).ok()?;
    vec.resize(len, value);
    Some(vec)
}

/// Returns for each position how often the bytes after it occur elsewhere, over [`LENGTHS`]. Counters may collide,
/// which makes a choice worse but not wrong.
fn scores(bytes: &[u8]) -> Option<Vec<u32>> {
    let mut scores = filled(0_u32, bytes.len())?;
    let mut counts = filled(0_u32, bytes.len().next_power_of_two() * 4)?;
    let mask = counts.len() - 1;
    for length in LENGTHS {
        counts.fill(0);
        let cell = |window: &[u8]| rapidhash_v3(window) as usize & mask;
        for window in bytes.windows(length) {
            counts[cell(window)] += 1;
        }
        for (score, window) in scores.iter_mut().zip(bytes.windows(length)) {
            *score += counts[cell(window)];
        }
    }
    Some(scores)
}
