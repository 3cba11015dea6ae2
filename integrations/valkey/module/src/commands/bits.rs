//! Commands that read bits of compressed strings in transparent mode; native strings are left to the server.

use std::ops::Range;

use super::access::Done;
use crate::api::native::{Server, Since};
use crate::api::{Context, Failure, Key, Str};
use crate::store::number::integer;
use crate::store::text::Text;
use crate::store::value::{Borrowed, BorrowedText};

/// The servers' own limit of offsets of bits, that of strings of 512 MiB.
const MAX_BITS: usize = 1 << 32;

/// The first version whose `BITCOUNT` takes a start without an end.
const START_WITHOUT_END: Since = Since {
    valkey: 0x08_00_00,
    redis: None,
};

/// Returns the key's string if it is compressed.
fn compressed<'k>(key: &'k Key<'_>) -> Result<BorrowedText<'k>, Failure> {
    match key.value() {
        Ok(Some(Borrowed::Text(text))) => Ok(text),
        _ => Err(Failure::LeftToServer),
    }
}

/// `GETBIT key offset`
pub fn getbit(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, offset] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, name);
    let text = compressed(&key)?;
    let offset = integer(offset.bytes())
        .and_then(|offset| usize::try_from(offset).ok())
        .filter(|offset| *offset < MAX_BITS)
        .ok_or(WRONG_OFFSET)?;
    let byte = offset / 8;
    let is_set = byte < text.length()?
        && part(&text, byte..byte + 1)?
            .first()
            .is_some_and(|byte| is_one(*byte, offset));
    context.integer(i64::from(is_set));
    Ok(())
}

/// `BITCOUNT key [start [end [BYTE | BIT]]]`
pub fn bitcount(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, range @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, *name);
    let text = compressed(&key)?;
    if range.len() == 1 && !Server::running().is(START_WITHOUT_END) {
        return Err(Failure::SYNTAX);
    }
    let bits = Span::of(range)?.bits(text.length()?, true);
    let bytes = bytes_of(&text, &bits)?;
    let all: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
    // Bits of the first and the last byte that are outside.
    let outside = edges(&bits)
        .filter(|bit| is_one(bytes[bit / 8 - bits.start / 8], *bit))
        .count();
    context.integer(i64::from(all) - outside as i64);
    Ok(())
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`
pub fn bitpos(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, bit, range @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, *name);
    let text = compressed(&key)?;
    let is_wanted = match integer(bit.bytes()).ok_or(Failure::NOT_INTEGER)? {
        0 => false,
        1 => true,
        _ => return Err(Failure::text("ERR The bit argument must be 1 or 0.")),
    };
    let bits = Span::of(range)?.bits(text.length()?, false);
    let bytes = bytes_of(&text, &bits)?;
    let first = bits.start / 8 * 8;
    // Bytes without the bit are passed as wholes.
    let without = if is_wanted { 0 } else { u8::MAX };
    let found = (0..bytes.len())
        .filter(|at| bytes[*at] != without)
        .flat_map(|at| first + at * 8..first + at * 8 + 8)
        .find(|bit| bits.contains(bit) && is_one(bytes[(bit - first) / 8], *bit) == is_wanted);
    // Zeros follow a string, unless the range has an end.
    let none = match !is_wanted && range.len() < 2 && !bits.is_empty() {
        true => bits.end as i64,
        false => -1,
    };
    context.integer(found.map_or(none, |bit| bit as i64));
    Ok(())
}

/// The error for a bit's offset that is not a number below [`MAX_BITS`], in the servers' words.
const WRONG_OFFSET: Failure = Failure::text("ERR bit offset is not an integer or out of range");

/// `BITFIELD_RO key [GET encoding offset ...]`
pub fn bitfield_ro(context: Context, arguments: &[Str<'_>]) -> Done {
    let key = Key::read(context, arguments[1]);
    let text = compressed(&key)?;
    let fields = fields_of(&arguments[2..])?;
    let mut values = Vec::with_capacity(fields.len());
    for field in fields {
        let mut bits = [0; 16];
        let first = field.offset / 8;
        let held = part(&text, first..text.length()?.min(first + 9).max(first))?;
        bits[..held.len()].copy_from_slice(&held);
        values.push(field.value(u128::from_be_bytes(bits)));
    }
    context.array(values.len());
    values.into_iter().for_each(|value| context.integer(value));
    Ok(())
}

/// An integer in a string.
struct BitField {
    is_signed: bool,
    bits: usize,
    offset: usize,
}

impl BitField {
    fn of(encoding: &[u8], offset: &[u8]) -> Result<Self, Failure> {
        const WRONG_TYPE: Failure = Failure::text(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        );
        let (is_signed, max) = match encoding.first() {
            Some(b'i') => (true, 64),
            Some(b'u') => (false, 63),
            _ => return Err(WRONG_TYPE),
        };
        let bits = integer(&encoding[1..]).and_then(|bits| usize::try_from(bits).ok());
        let bits = bits.filter(|bits| (1..=max).contains(bits)).ok_or(WRONG_TYPE)?;
        let (number, unit) = match offset.strip_prefix(b"#") {
            Some(number) => (number, bits),
            None => (offset, 1),
        };
        let offset = integer(number).and_then(|number| usize::try_from(number).ok()?.checked_mul(unit));
        let offset = offset.filter(|offset| *offset < MAX_BITS).ok_or(WRONG_OFFSET)?;
        Ok(Self {
            is_signed,
            bits,
            offset,
        })
    }

    /// Returns its value; `bytes` begin with the byte that it begins in.
    fn value(&self, bytes: u128) -> i64 {
        let left = bytes << (self.offset % 8);
        let unused = (u128::BITS as usize) - self.bits;
        match self.is_signed {
            true => ((left as i128) >> unused) as i64,
            false => (left >> unused) as i64,
        }
    }
}

/// Returns whether a word is of an `OVERFLOW` clause, which reads ignore.
fn is_overflow(word: &[u8]) -> bool {
    [&b"WRAP"[..], b"SAT", b"FAIL"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

/// Returns what `GET` clauses read. Clauses that write are refused by the server in its own words.
fn fields_of(mut clauses: &[Str<'_>]) -> Result<Vec<BitField>, Failure> {
    let mut fields = Vec::new();
    while let [clause, rest @ ..] = clauses {
        match rest {
            [encoding, offset, rest @ ..] if clause.bytes().eq_ignore_ascii_case(b"GET") => {
                fields.push(BitField::of(encoding.bytes(), offset.bytes())?);
                clauses = rest;
            }
            [word, rest @ ..] if clause.bytes().eq_ignore_ascii_case(b"OVERFLOW") && is_overflow(word.bytes()) => {
                clauses = rest;
            }
            _ => return Err(Failure::LeftToServer),
        }
    }
    Ok(fields)
}

fn is_one(byte: u8, bit: usize) -> bool {
    byte >> (7 - bit % 8) & 1 == 1
}

/// Returns the bits before and behind a range in its first and its last byte.
fn edges(bits: &Range<usize>) -> impl Iterator<Item = usize> {
    (bits.start / 8 * 8..bits.start).chain(bits.end..bits.end.next_multiple_of(8))
}

fn bytes_of(text: &Text, bits: &Range<usize>) -> Result<Vec<u8>, Failure> {
    part(text, bits.start / 8..bits.end.div_ceil(8))
}

fn part(text: &Text, bytes: Range<usize>) -> Result<Vec<u8>, Failure> {
    Ok(text.part_with(bytes, <[u8]>::to_vec)?.unwrap_or_default())
}

/// The range that arguments describe, counted from the end where negative.
struct Span {
    start: i64,
    end: i64,
    is_of_bits: bool,
}

impl Span {
    fn of(arguments: &[Str<'_>]) -> Result<Self, Failure> {
        let number = |index: usize, default: i64| {
            let Some(argument) = arguments.get(index) else {
                return Ok(default);
            };
            integer(argument.bytes()).ok_or(Failure::NOT_INTEGER)
        };
        if arguments.len() > 3 {
            return Err(Failure::SYNTAX);
        }
        let start = number(0, 0)?;
        let is_of_bits = match arguments.get(2).map(|unit| unit.bytes()) {
            Some(unit) if unit.eq_ignore_ascii_case(b"BIT") => true,
            Some(unit) if !unit.eq_ignore_ascii_case(b"BYTE") => return Err(Failure::SYNTAX),
            _ => false,
        };
        let end = number(1, -1)?;
        Ok(Self { start, end, is_of_bits })
    }

    /// Returns the range of bits in a string of `len` bytes.
    fn bits(&self, len: usize, is_empty_if_reversed: bool) -> Range<usize> {
        let (unit, total) = if self.is_of_bits { (1, len * 8) } else { (8, len) };
        let total = total as i64;
        if is_empty_if_reversed && self.start < 0 && self.end < 0 && self.start > self.end {
            return 0..0;
        }
        let from_begin = |index: i64| {
            if index < 0 {
                index.saturating_add(total).max(0)
            } else {
                index
            }
        };
        let (start, end) = (from_begin(self.start), from_begin(self.end).min(total - 1));
        match usize::try_from(start).ok().zip(usize::try_from(end).ok()) {
            Some((start, end)) if start <= end => start * unit..(end + 1) * unit,
            _ => 0..0,
        }
    }
}
