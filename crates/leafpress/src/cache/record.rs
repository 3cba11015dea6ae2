//! The header of a record's value: a byte of flags, and the expiry if the record expires.
//!
//! ```text
//! flags u8   expiry u48, little endian (if bit 0 of the flags is set)   idle u48 (if bit 3 is set)   value
//! ```
//!
//! `idle` is the deadline at which the record expires unless it is read. Reads extend it occasionally.
//!
//! A *clean* record is on disk as well. A *tombstone* marks a removed key, whatever older record may be on disk. It is
//! empty, which no record is, so that the tree can count tombstones by the lengths of its values; readers treat it as
//! an expired record.

use std::time::Duration;

use super::expiry::Expiry;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::TryGrow;
use leafpress_base::mem::transient::Transient;

const EXPIRES: u8 = 1;
const CLEAN: u8 = 2;
const IDLES: u8 = 8;
/// The maximum length of a value, in bytes. A value that exceeds an eighth of the memory budget is accepted and not
/// kept.
pub const MAX_VALUE_BYTES: usize = crate::tree::MAX_VALUE_BYTES - MAX_HEADER_BYTES;
/// Maximum length of the header.
const MAX_HEADER_BYTES: usize = 1 + 2 * TIME_BYTES;
const TIME_BYTES: usize = Expiry::BYTES;
/// The complete encoding of a tombstone.
pub(super) const TOMBSTONE: &[u8] = &[];

/// Replaces the content of `out` by a record's header and value.
pub(super) fn write(
    value: &[u8],
    expiry: Option<Expiry>,
    idle: Option<Expiry>,
    out: &mut Vec<u8>,
) -> Result<(), OutOfMemory> {
    out.clear();
    out.try_grow(MAX_HEADER_BYTES + value.len())?;
    let (header, len) = header(expiry, idle);
    out.extend_from_slice(&header[..len]);
    out.extend_from_slice(value);
    Ok(())
}

/// Encodes a record with a long value in memory that returns to the system when it is dropped.
pub(super) fn write_long(value: &[u8], expiry: Option<Expiry>, idle: Option<Expiry>) -> Result<Transient, OutOfMemory> {
    let (header, len) = header(expiry, idle);
    let bytes = len + value.len();
    let mut out = Transient::with_capacity(bytes).ok_or(OutOfMemory { bytes })?;
    out.push(&header[..len]);
    out.push(value);
    Ok(out)
}

/// Returns the header of a value, and its length.
fn header(expiry: Option<Expiry>, idle: Option<Expiry>) -> ([u8; MAX_HEADER_BYTES], usize) {
    let (mut header, mut len) = ([0; MAX_HEADER_BYTES], 1);
    for (time, flag) in [(expiry, EXPIRES), (idle, IDLES)] {
        if let Some(time) = time {
            header[0] |= flag;
            header[len..len + TIME_BYTES].copy_from_slice(&time.to_bytes());
            len += TIME_BYTES;
        }
    }
    (header, len)
}

/// Returns the value and the record's expiry, by time to live or idleness. A tombstone has always expired.
#[inline]
pub(super) fn read(stored: &[u8]) -> (&[u8], Option<Expiry>) {
    match stored.split_first() {
        Some((flags, value)) if flags & (EXPIRES | IDLES) == 0 => (value, None),
        Some((flags, rest)) => read_times(*flags, rest),
        None => (stored, Some(Expiry::PAST)),
    }
}

fn read_times(flags: u8, mut rest: &[u8]) -> (&[u8], Option<Expiry>) {
    let mut expiry = None;
    for flag in [EXPIRES, IDLES] {
        if flags & flag != 0
            && let Some((ticks, behind)) = rest.split_first_chunk()
        {
            let time = Expiry::from_bytes(*ticks);
            expiry = Some(expiry.map_or(time, |expiry: Expiry| expiry.min(time)));
            rest = behind;
        }
    }
    (rest, expiry)
}

/// Returns the expiry by time to live.
pub(super) fn expiry(stored: &[u8]) -> Option<Expiry> {
    let (flags, rest) = stored.split_first()?;
    read_times(flags & EXPIRES, rest).1
}

/// Returns the offset of the idle deadline.
fn idle_at(stored: &[u8]) -> Option<usize> {
    let flags = *stored.first()?;
    let at = 1 + if flags & EXPIRES != 0 { TIME_BYTES } else { 0 };
    (flags & IDLES != 0 && stored.len() >= at + TIME_BYTES).then_some(at)
}

/// Returns the idle deadline.
pub(super) fn idle(stored: &[u8]) -> Option<Expiry> {
    let ticks = stored[idle_at(stored)?..].first_chunk()?;
    Some(Expiry::from_bytes(*ticks))
}

/// Sets the idle deadline of a record that has one. The record then differs from its copy on disk.
pub(super) fn set_idle(stored: &mut [u8], idle: Expiry) {
    if let Some(at) = idle_at(stored) {
        stored[at..at + TIME_BYTES].copy_from_slice(&idle.to_bytes());
        stored[0] &= !CLEAN;
    }
}

fn has(stored: &[u8], flag: u8) -> bool {
    stored.first().is_some_and(|flags| flags & flag != 0)
}

pub(super) fn is_tombstone(stored: &[u8]) -> bool {
    stored.is_empty()
}

pub(super) fn is_clean(stored: &[u8]) -> bool {
    has(stored, CLEAN)
}

/// Marks a record as being on disk as well.
pub(super) fn make_clean(stored: &mut [u8]) {
    if let Some(flags) = stored.first_mut() {
        *flags |= CLEAN;
    }
}

/// Returns true if a record has expired. The clock is only read if the record expires.
#[inline]
pub(super) fn is_expired(expiry: Option<Expiry>, now: impl FnOnce() -> Duration) -> bool {
    expiry.is_some_and(|expiry| expiry.is_expired(now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut stored = vec![9; 100];
        let times = [None, Some(Expiry::PAST), Some(Expiry(7)), Some(Expiry::NEVER)];
        for value in [&b""[..], b"x", &[1; 5000]] {
            for (expiry, until) in times.into_iter().flat_map(|expiry| times.map(|idle| (expiry, idle))) {
                write(value, expiry, until, &mut stored).unwrap();
                let first = [expiry, until].into_iter().flatten().min();
                assert_eq!(read(&stored), (value, first));
                assert_eq!((super::expiry(&stored), idle(&stored)), (expiry, until));
                assert_eq!(write_long(value, expiry, until).unwrap().bytes(), stored);
                assert!(stored.len() <= value.len() + MAX_HEADER_BYTES);
                make_clean(&mut stored);
                set_idle(&mut stored, Expiry(9));
                assert_eq!(idle(&stored), until.map(|_| Expiry(9)));
                assert_eq!(is_clean(&stored), until.is_none());
                let first = [expiry, idle(&stored)].into_iter().flatten().min();
                assert_eq!(read(&stored), (value, first));
            }
        }
        write(&[1; 5000], Some(Expiry::NEVER), None, &mut stored).unwrap();
        assert!(is_expired(read(TOMBSTONE).1, || Duration::ZERO));
        assert!(is_tombstone(TOMBSTONE) && !is_clean(TOMBSTONE) && !is_tombstone(&stored));
        make_clean(&mut stored);
        assert_eq!(read(&stored), (&[1; 5000][..], Some(Expiry::NEVER)));
        assert!(is_clean(&stored));
        // No valid record looks like these, and none makes a reader fail.
        assert_eq!(read(b""), (&b""[..], Some(Expiry::PAST)));
        assert_eq!(read(&[1, 2, 3]), (&[2, 3][..], None));
        assert_eq!(read(&[9, 0, 0, 0, 0, 0, 0, 3]), (&[3][..], Some(Expiry::PAST)));
        assert_eq!((idle(&[8, 1]), idle(b"")), (None, None));
    }
}
