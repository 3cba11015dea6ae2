//! Encoder of LZ4 blocks for single short records with a dictionary.
//!
//! liblz4 spends most of its time for a short record on cache misses in its tables: 16 KiB for the record and 16 for
//! the dictionary, which other work evicts from the first-level cache between calls. Here the record has a table of 256
//! or 512 positions, and the dictionary one of 4,096 that hold the best of its positions ([`ShortTable`]). A position
//! is looked up in the dictionary first, then in the record; every position is tried, and a match is taken greedily and
//! extended both ways.
//!
//! The tail of the block is cut off (see [`lz4`](super)): the record ends with literals, to which the tail's twelve are
//! added. So a match may begin and end anywhere in the record, and the block still obeys LZ4's end-of-block rules.
//! Blocks are decoded by liblz4.
//!
//! Candidates are verified by comparing their bytes, so that any position in a table is safe: a table cannot be wrong.

mod table;

use std::mem::MaybeUninit;

use self::table::hash;

pub(crate) use self::table::{MAX_SHORT_BYTES, ShortTable};
use crate::room::Room;

/// Maximum length of a block beyond its record's length while it is written, in bytes.
pub(crate) const ROOM_BYTES: usize = 64;

/// Bytes read before the record when a match is extended backwards.
const FRONT_BYTES: usize = WORD_BYTES;
/// Bytes read after the record when matches and literals are handled in wide strides.
const SLACK_BYTES: usize = STRIDE_BYTES;
const WORD_BYTES: usize = size_of::<u64>();
/// Bytes compared at once.
const STRIDE_BYTES: usize = 32;
/// Minimum match length. Five bytes are hashed, so shorter ones are not found.
const MIN_MATCH_BYTES: usize = 5;
/// The bias that the format subtracts from the length of a match.
const MATCH_BIAS: usize = 4;
/// The length value in a token after which more length bytes follow.
const LONG: usize = 15;
/// A length above this has more than one additional length byte.
const LONGER: usize = LONG + 255;
/// The literals that the tail provides.
const TAIL_BYTES: usize = 12;

/// A dictionary with its table.
#[derive(Clone, Copy)]
pub(crate) struct History<'d> {
    bytes: &'d [u8],
    table: &'d ShortTable,
}

impl<'d> History<'d> {
    /// Returns a history. `table` must be of `bytes`; otherwise blocks are larger or there is no history.
    pub(crate) fn new(bytes: &'d [u8], table: &'d ShortTable) -> Option<Self> {
        (bytes.len() >= table.least_bytes()).then_some(Self { bytes, table })
    }
}

/// Compresses `raw` into the room, with the tail cut off, or copies it if the block would not be shorter. Returns false
/// if `raw` is longer than [`MAX_SHORT_BYTES`] or the room is smaller than its length plus [`ROOM_BYTES`].
#[inline]
pub(crate) fn encode(raw: &[u8], history: History<'_>, room: &mut Room<'_>) -> bool {
    if raw.len() > MAX_SHORT_BYTES || room.capacity() < raw.len() + ROOM_BYTES {
        return false;
    }
    let out = room.as_mut_ptr();
    // SAFETY: `raw` has at most `MAX_SHORT_BYTES` and the room at least `ROOM_BYTES` more, as just checked.
    let written = unsafe {
        if raw.len() <= 256 {
            block::<256>(raw, history, out)
        } else {
            block::<512>(raw, history, out)
        }
    };
    let Some(written) = written else {
        return room.put(raw);
    };
    // SAFETY: `written` bytes were written from the room's start on.
    unsafe { room.set_len(written) };
    true
}

/// A record with initialised bytes around it.
struct Padded(MaybeUninit<[u8; FRONT_BYTES + MAX_SHORT_BYTES + SLACK_BYTES]>);

impl Padded {
    /// Returns a pointer to the record: from [`FRONT_BYTES`] before it to [`SLACK_BYTES`] after it all bytes are
    /// initialised.
    ///
    /// # Safety
    /// `raw` must have at most [`MAX_SHORT_BYTES`].
    #[inline(always)]
    unsafe fn fill(&mut self, raw: &[u8]) -> *const u8 {
        let start = self.0.as_mut_ptr().cast::<u8>();
        // SAFETY: the buffer has room for a record of at most `MAX_SHORT_BYTES` and for the bytes around it.
        unsafe {
            start.cast::<u64>().write_unaligned(0);
            let record = start.add(FRONT_BYTES);
            record.copy_from_nonoverlapping(raw.as_ptr(), raw.len());
            record
                .add(raw.len())
                .cast::<[u8; SLACK_BYTES]>()
                .write([0; SLACK_BYTES]);
            record
        }
    }
}

/// A match: bytes that occur earlier too.
struct Match {
    /// Length from the position where it was found.
    len: usize,
    /// Length before that position, at most eight bytes.
    before: usize,
    /// Distance to the earlier occurrence. The dictionary precedes the record directly.
    offset: usize,
}

/// Writes the block of `raw` to `out` and returns its length; `None` if it would not be shorter than `raw`.
///
/// # Safety
/// `raw` must have at most [`MAX_SHORT_BYTES`]; `out` must have [`ROOM_BYTES`] more writable bytes than `raw` has.
#[inline(never)]
unsafe fn block<const SLOTS: usize>(raw: &[u8], history: History<'_>, out: *mut u8) -> Option<usize> {
    let mut padded = Padded(MaybeUninit::uninit());
    let mut slots = [0_u16; SLOTS];
    // SAFETY: `raw` has at most `MAX_SHORT_BYTES` and `out` has `ROOM_BYTES` more writable bytes (the function's
    // contract). Then:
    // - positions in the record are below its length, and 32 bytes after it and eight before it can be read;
    // - so can 32 bytes from, and eight before, every position of the dictionary in its table, by `History::new`;
    // - positions in `slots` are of the record, or 0, its start;
    // - a match has at least five bytes, so that the output is never longer than the input it encodes: see `Output`.
    unsafe {
        let record = padded.fill(raw);
        let history_end = history.bytes.as_ptr().add(history.bytes.len());
        let mut output = Output(out);
        let (mut anchor, mut at) = (0, 0);
        // The record's first byte has no byte of the record before it.
        let mut first = 1;
        let end = raw.len().saturating_sub(MIN_MATCH_BYTES - 1);
        'record: while at < end {
            let found = loop {
                let here = record.add(at);
                let word = load(here);
                let hash = hash(word);
                let distance = history.table.distance(hash);
                let slot = slots.get_unchecked_mut(hash % SLOTS);
                let earlier = usize::from(*slot);
                *slot = at as u16;
                let candidate = history_end.sub(distance);
                if is_match(load(candidate) ^ word) {
                    break Match {
                        len: equal_bytes(here, candidate, distance.min(raw.len() - at)),
                        before: equal_bytes_before(here, candidate),
                        offset: at + distance,
                    };
                }
                let candidate = record.add(earlier);
                if is_match(load(candidate) ^ word | first) {
                    break Match {
                        len: equal_bytes(here, candidate, raw.len() - at),
                        before: equal_bytes_before(here, candidate).min(earlier),
                        offset: at - earlier,
                    };
                }
                first = 0;
                at += 1;
                if at >= end {
                    break 'record;
                }
            };
            first = 0;
            let before = found.before.min(at - anchor);
            let literals = at - before - anchor;
            output.sequence(record.add(anchor), literals, before + found.len, found.offset);
            at += found.len;
            anchor = at;
        }
        let written = output.0.offset_from_unsigned(out);
        output.last(record.add(anchor), raw.len() - anchor, raw.len() - written)?;
        Some(output.0.offset_from_unsigned(out))
    }
}

/// The write position. Between sequences the block is never longer than the part of the record that it encodes: a match
/// has at least five bytes, its token and offset take three, and its lengths two more only if literals and match have
/// 19.
struct Output(*mut u8);

impl Output {
    /// Writes literals and a match.
    ///
    /// # Safety
    /// There must be room for the literals and 36 more bytes, and 32 bytes beyond `literals` must be readable.
    #[inline(always)]
    unsafe fn sequence(&mut self, from: *const u8, literals: usize, len: usize, offset: usize) {
        let len = len - MATCH_BIAS;
        // SAFETY: the literals and 36 more bytes fit: token, offset, lengths, and the wide stores after them; the loads
        // stay within the 32 readable bytes beyond `literals`.
        unsafe {
            self.0.write((literals.min(LONG) << 4 | len.min(LONG)) as u8);
            self.0 = self.0.add(1);
            self.length(literals);
            self.literals(from, literals);
            self.0.cast::<[u8; 2]>().write((offset as u16).to_le_bytes());
            self.0 = self.0.add(2);
            self.length(len);
        }
    }

    /// Writes the last literals, including those of the tail; returns without writing if that would take `limit` bytes
    /// or more.
    ///
    /// # Safety
    /// There must be room for the literals and 36 more bytes, and 32 bytes beyond `literals` must be readable.
    #[inline(always)]
    unsafe fn last(&mut self, from: *const u8, literals: usize, limit: usize) -> Option<()> {
        let with_tail = literals + TAIL_BYTES;
        let lengths = if with_tail < LONG {
            0
        } else {
            1 + (with_tail - LONG) / 255
        };
        if 1 + lengths + literals >= limit {
            return None;
        }
        // SAFETY: the literals and 36 more bytes fit: token, length, and the wide stores after them; the loads stay
        // within the 32 readable bytes beyond `literals`.
        unsafe {
            self.0.write((with_tail.min(LONG) << 4) as u8);
            self.0 = self.0.add(1);
            self.length(with_tail);
            self.literals(from, literals);
        }
        Some(())
    }

    /// Writes the part of a length that exceeds the token.
    ///
    /// # Safety
    /// There must be room for the length bytes, at least one.
    #[inline(always)]
    unsafe fn length(&mut self, length: usize) {
        // SAFETY: the callers have reserved room for the length bytes, and one byte in any case.
        unsafe {
            if length >= LONGER {
                self.longer(length - LONG);
            } else {
                // Written unconditionally and skipped if it is part of the block, which is faster than a branch.
                self.0.write(length.wrapping_sub(LONG) as u8);
                self.0 = self.0.add(usize::from(length >= LONG));
            }
        }
    }

    /// Writes the rest of a length that takes several bytes.
    ///
    /// # Safety
    /// There must be room for these bytes.
    #[cold]
    #[inline(never)]
    unsafe fn longer(&mut self, mut rest: usize) {
        // SAFETY: the callers have reserved a byte for each 255 of the length, and one more.
        unsafe {
            while rest >= 255 {
                self.0.write(255);
                self.0 = self.0.add(1);
                rest -= 255;
            }
            self.0.write(rest as u8);
            self.0 = self.0.add(1);
        }
    }

    /// Copies literals.
    ///
    /// # Safety
    /// There must be room for the literals and 32 more bytes, and as many must be readable.
    #[inline(always)]
    unsafe fn literals(&mut self, from: *const u8, literals: usize) {
        // SAFETY: the callers have reserved 32 bytes more than there are literals.
        unsafe {
            self.0.copy_from_nonoverlapping(from, STRIDE_BYTES);
            if literals > STRIDE_BYTES {
                let rest = literals - STRIDE_BYTES;
                self.0
                    .add(STRIDE_BYTES)
                    .copy_from_nonoverlapping(from.add(STRIDE_BYTES), rest);
            }
            self.0 = self.0.add(literals);
        }
    }
}

/// Loads eight bytes, little-endian.
///
/// # Safety
/// The eight bytes must be readable.
#[inline(always)]
unsafe fn load(from: *const u8) -> u64 {
    // SAFETY: the caller guarantees eight readable bytes.
    u64::from_le(unsafe { from.cast::<u64>().read_unaligned() })
}

/// Returns true if the five hashed bytes are equal.
#[inline(always)]
fn is_match(difference: u64) -> bool {
    difference << (64 - 8 * MIN_MATCH_BYTES) == 0
}

/// Returns how many of the eight bytes before two positions are equal.
///
/// # Safety
/// The eight bytes before each must be readable.
#[inline(always)]
unsafe fn equal_bytes_before(one: *const u8, other: *const u8) -> usize {
    // SAFETY: the caller guarantees eight readable bytes before each position.
    let difference = unsafe { load(one.sub(WORD_BYTES)) ^ load(other.sub(WORD_BYTES)) };
    difference.leading_zeros() as usize / 8
}

/// Returns the number of equal bytes at two positions, at most `most`.
///
/// # Safety
/// [`STRIDE_BYTES`] and `most` bytes at each position must be readable.
#[inline(always)]
unsafe fn equal_bytes(one: *const u8, other: *const u8, most: usize) -> usize {
    // SAFETY: a stride and `most` bytes are readable at each position.
    let len = unsafe {
        match equal_in_stride(one, other) {
            STRIDE_BYTES => equal_past_stride(one, other, most),
            len => len,
        }
    };
    // Rare, so it is kept out of the dependency chain of what follows.
    if len > most { clipped(most) } else { len }
}

#[cold]
#[inline(never)]
fn clipped(most: usize) -> usize {
    most
}

#[inline(always)]
unsafe fn equal_past_stride(one: *const u8, other: *const u8, most: usize) -> usize {
    let mut len = STRIDE_BYTES;
    // SAFETY: no byte at or past `most` is read.
    unsafe {
        while len + WORD_BYTES <= most {
            let difference = load(one.add(len)) ^ load(other.add(len));
            if difference != 0 {
                return len + difference.trailing_zeros() as usize / 8;
            }
            len += WORD_BYTES;
        }
        while len < most && *one.add(len) == *other.add(len) {
            len += 1;
        }
    }
    len
}

/// Returns the number of equal bytes among 32 at two positions.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn equal_in_stride(one: *const u8, other: *const u8) -> usize {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8};
    // SAFETY: the caller guarantees 32 readable bytes at each position; SSE2 is part of the architecture.
    let equal = |at: usize| unsafe {
        let (one, other) = (
            _mm_loadu_si128(one.add(at).cast()),
            _mm_loadu_si128(other.add(at).cast()),
        );
        _mm_movemask_epi8(_mm_cmpeq_epi8(one, other)) as u32
    };
    (equal(0) | equal(16) << 16).trailing_ones() as usize
}

/// Returns the number of equal bytes among 32 at two positions.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn equal_in_stride(one: *const u8, other: *const u8) -> usize {
    let mut len = 0;
    while len < STRIDE_BYTES {
        // SAFETY: the caller guarantees 32 readable bytes at each position.
        let difference = unsafe { load(one.add(len)) ^ load(other.add(len)) };
        if difference != 0 {
            return len + difference.trailing_zeros() as usize / 8;
        }
        len += WORD_BYTES;
    }
    STRIDE_BYTES
}

#[cfg(test)]
mod tests;
