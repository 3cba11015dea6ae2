//! Our own encoder of LZ4 blocks, for single records with a dictionary.
//!
//! liblz4 spends most of a short record on its tables: 16 KiB for the record and 16 for the dictionary, which other work has
//! put out of the first-level cache by the next put. Here the record has a table of 256 or 512 positions, and the dictionary
//! one of 4,096 that hold the best of its positions ([`ShortTable`]). A position is looked up in the dictionary first, then in the
//! record; every position is tried, and a match is taken where it is found and extended both ways.
//!
//! The block is one whose tail was cut off (see [`lz4`](super)): the record ends with literals, to which the tail's twelve are counted.
//! So a match may begin and end anywhere in the record, and yet the block obeys LZ4's rules for its end. Decoding is liblz4's.
//!
//! Candidates are judged by their bytes alone, so that any position in a table is as good as another: a table cannot be wrong.

mod table;

use std::mem::MaybeUninit;

use self::table::hash;

pub(crate) use self::table::{MAX_SHORT_BYTES, ShortTable};
use crate::room::Room;

/// Room that a block may take beyond its record's length, in bytes, while it is written.
pub(crate) const ROOM_BYTES: usize = 64;

/// Bytes before the record that are read, when a match is extended backwards.
const FRONT_BYTES: usize = WORD_BYTES;
/// Bytes behind the record that are read, when matches and literals are taken in wide strides.
const SLACK_BYTES: usize = STRIDE_BYTES;
const WORD_BYTES: usize = size_of::<u64>();
/// Bytes compared at once.
const STRIDE_BYTES: usize = 32;
/// The shortest match. Five bytes are hashed, so shorter ones are not found.
const MIN_MATCH_BYTES: usize = 5;
/// What the format takes from the length of a match.
const MATCH_BIAS: usize = 4;
/// The length in a token that says that more bytes of length follow.
const LONG: usize = 15;
/// A length above this has more than one of these.
const LONGER: usize = LONG + 255;
/// The literals that the tail counts for.
const TAIL_BYTES: usize = 12;

/// A dictionary, as this encoder takes it.
#[derive(Clone, Copy)]
pub(crate) struct History<'d> {
    bytes: &'d [u8],
    table: &'d ShortTable,
}

impl<'d> History<'d> {
    /// `table` must be of `bytes`; if it is not, blocks are larger or there is no history.
    pub(crate) fn new(bytes: &'d [u8], table: &'d ShortTable) -> Option<Self> {
        (bytes.len() >= table.least_bytes()).then_some(Self { bytes, table })
    }
}

/// Makes the block of `raw`, whose tail is cut off, the room's; or `raw` itself where the block would be no shorter. False when `raw` is
/// longer than [`MAX_SHORT_BYTES`] or there is not [`ROOM_BYTES`] more room than `raw` has bytes.
#[inline]
pub(crate) fn encode(raw: &[u8], history: History<'_>, room: &mut Room<'_>) -> bool {
    if raw.len() > MAX_SHORT_BYTES || room.capacity() < raw.len() + ROOM_BYTES {
        return false;
    }
    let out = room.as_mut_ptr();
    // SAFETY: the lengths were just compared.
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
    // SAFETY: so many bytes were written, from the room's start on.
    unsafe { room.set_len(written) };
    true
}

/// A record with initialised bytes around it.
struct Padded(MaybeUninit<[u8; FRONT_BYTES + MAX_SHORT_BYTES + SLACK_BYTES]>);

impl Padded {
    /// Returns where the record is: from [`FRONT_BYTES`] before to [`SLACK_BYTES`] behind it all bytes are initialised.
    ///
    /// # Safety
    /// `raw` has at most [`MAX_SHORT_BYTES`].
    #[inline(always)]
    unsafe fn fill(&mut self, raw: &[u8]) -> *const u8 {
        let start = self.0.as_mut_ptr().cast::<u8>();
        // SAFETY: the buffer has room for a record of this length and what is around it.
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

/// Bytes that stand elsewhere too.
struct Match {
    /// Bytes from the place where it was found on.
    len: usize,
    /// Bytes before that, eight at most.
    before: usize,
    /// How far back the same bytes are. The dictionary lies directly before the record.
    offset: usize,
}

/// Writes the block of `raw` to `out` and returns its length, `None` when it would be no shorter than `raw`.
///
/// # Safety
/// `raw` has at most [`MAX_SHORT_BYTES`]; `out` has [`ROOM_BYTES`] more writable bytes than `raw` has.
#[inline(never)]
unsafe fn block<const SLOTS: usize>(raw: &[u8], history: History<'_>, out: *mut u8) -> Option<usize> {
    let mut padded = Padded(MaybeUninit::uninit());
    let mut slots = [0_u16; SLOTS];
    // SAFETY: `raw` and the room have the lengths that are asked for above; then, below:
    // - positions in the record are below its length, and 32 bytes behind it and eight before it can be read;
    // - so can 32 bytes from, and eight before, every position of the dictionary that its table has, as `History` was given;
    // - positions in `slots` are of the record, where they are not its start;
    // - a match has at least five bytes, so that what was written is never longer than what it stands for: see `Output`.
    unsafe {
        let record = padded.fill(raw);
        let history_end = history.bytes.as_ptr().add(history.bytes.len());
        let mut output = Output(out);
        let (mut anchor, mut at) = (0, 0);
        // The record's first byte has nothing before it that is its own.
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

/// Where the block goes on. Between sequences it is never longer than the part of the record that it stands for: a match has
/// five bytes at least, its token and offset take three, and its lengths two more only where literals and match have 19.
struct Output(*mut u8);

impl Output {
    /// Writes literals and a match.
    ///
    /// # Safety
    /// There is room for the literals and 36 more bytes, and 32 more bytes than `literals` can be read.
    #[inline(always)]
    unsafe fn sequence(&mut self, from: *const u8, literals: usize, len: usize, offset: usize) {
        let len = len - MATCH_BIAS;
        // SAFETY: there is room for token, literals, offset and lengths, and the wide stores behind them, as is asked for above.
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

    /// Writes the last literals, to which the tail's are counted, or nothing when that would take `limit` bytes or more.
    ///
    /// # Safety
    /// As [`Output::sequence`].
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
        // SAFETY: there is room for token, length and literals, and the wide stores behind them, as is asked for above.
        unsafe {
            self.0.write((with_tail.min(LONG) << 4) as u8);
            self.0 = self.0.add(1);
            self.length(with_tail);
            self.literals(from, literals);
        }
        Some(())
    }

    /// Writes what the token does not say of a length.
    ///
    /// # Safety
    /// There is room for what that takes, one byte at least.
    #[inline(always)]
    unsafe fn length(&mut self, length: usize) {
        // SAFETY: the callers have counted these bytes.
        unsafe {
            if length >= LONGER {
                self.longer(length - LONG);
            } else {
                // Written in any case, and skipped if it is part of the block, which is faster than a branch.
                self.0.write(length.wrapping_sub(LONG) as u8);
                self.0 = self.0.add(usize::from(length >= LONG));
            }
        }
    }

    /// Writes what is left of a length that takes several bytes.
    ///
    /// # Safety
    /// There is room for these.
    #[cold]
    #[inline(never)]
    unsafe fn longer(&mut self, mut rest: usize) {
        // SAFETY: the callers have counted a byte for each 255 of the length, and one.
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
    /// There is room for them and 32 bytes more, and as many can be read.
    #[inline(always)]
    unsafe fn literals(&mut self, from: *const u8, literals: usize) {
        // SAFETY: the callers have counted 32 bytes more than there are literals.
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

/// Eight bytes, the first the lowest.
///
/// # Safety
/// They can be read.
#[inline(always)]
unsafe fn load(from: *const u8) -> u64 {
    // SAFETY: the caller vouches for eight readable bytes.
    u64::from_le(unsafe { from.cast::<u64>().read_unaligned() })
}

/// Whether the five bytes that are hashed do not differ.
#[inline(always)]
fn is_match(difference: u64) -> bool {
    difference << (64 - 8 * MIN_MATCH_BYTES) == 0
}

/// How many of the eight bytes before two places are equal.
///
/// # Safety
/// They can be read.
#[inline(always)]
unsafe fn equal_bytes_before(one: *const u8, other: *const u8) -> usize {
    // SAFETY: the caller vouches for eight readable bytes before each.
    let difference = unsafe { load(one.sub(WORD_BYTES)) ^ load(other.sub(WORD_BYTES)) };
    difference.leading_zeros() as usize / 8
}

/// How many bytes at two places are equal, `most` at most.
///
/// # Safety
/// There are [`STRIDE_BYTES`] readable bytes at each place, and `most`.
#[inline(always)]
unsafe fn equal_bytes(one: *const u8, other: *const u8, most: usize) -> usize {
    // SAFETY: a stride can be read at each place, and as many bytes as `most`.
    let len = unsafe {
        match equal_in_stride(one, other) {
            STRIDE_BYTES => equal_past_stride(one, other, most),
            len => len,
        }
    };
    // Seldom, so that what comes next need not wait for it.
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

/// How many of 32 bytes at two places are equal.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn equal_in_stride(one: *const u8, other: *const u8) -> usize {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8};
    // SAFETY: the caller vouches for 32 readable bytes at each place; SSE2 is part of the architecture.
    let equal = |at: usize| unsafe {
        let (one, other) = (
            _mm_loadu_si128(one.add(at).cast()),
            _mm_loadu_si128(other.add(at).cast()),
        );
        _mm_movemask_epi8(_mm_cmpeq_epi8(one, other)) as u32
    };
    (equal(0) | equal(16) << 16).trailing_ones() as usize
}

/// How many of 32 bytes at two places are equal.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn equal_in_stride(one: *const u8, other: *const u8) -> usize {
    let mut len = 0;
    while len < STRIDE_BYTES {
        // SAFETY: the caller vouches for 32 readable bytes at each place.
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
