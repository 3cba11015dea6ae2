//! What a cache keeps in front of a value: a byte of flags, and when the record expires, where it does.
//!
//! ```text
//! flags u8   expiry u40, little endian (if bit 0 of the flags is set)   idle u40 (if bit 3 is set)   value
//! ```
//!
//! `idle` says when the record expires that is not read until then. Reads move it, now and then.
//!
//! A *clean* record is on disk as well. A *tombstone* says that there is none, whatever older record may be on disk. It is empty, which no
//! record is, so that the tree can count tombstones by the lengths of its values; readers take it for a record that has expired.

use std::time::Duration;

use super::expiry::Expiry;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::TryGrow;
use leafpress_base::mem::transient::Transient;

const EXPIRES: u8 = 1;
const CLEAN: u8 = 2;
const IDLES: u8 = 8;
/// Longest value, in bytes. One that holds more than an eighth of the memory is taken, and not kept.
pub const MAX_VALUE_BYTES: usize = crate::tree::MAX_VALUE_BYTES - MAX_HEADER_BYTES;
/// Most bytes in front of a value.
const MAX_HEADER_BYTES: usize = 1 + 2 * TIME_BYTES;
const TIME_BYTES: usize = Expiry::BYTES;
/// The whole of a tombstone.
pub(super) const TOMBSTONE: &[u8] = &[];

/// Writes a record's header and value into `out`, in place of what it holds.
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

/// The same for a long value, whose memory is the system's again when it is dropped.
pub(super) fn write_long(value: &[u8], expiry: Option<Expiry>, idle: Option<Expiry>) -> Result<Transient, OutOfMemory> {
    let (header, len) = header(expiry, idle);
    let bytes = len + value.len();
    let mut out = Transient::with_capacity(bytes).ok_or(OutOfMemory { bytes })?;
    out.push(&header[..len]);
    out.push(value);
    Ok(out)
}

/// What stands in front of a value, and its length.
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

/// The value, and when it expires, used or not. A tombstone has expired at any time.
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

/// When a record expires whether it is read or not.
pub(super) fn expiry(stored: &[u8]) -> Option<Expiry> {
    let (flags, rest) = stored.split_first()?;
    read_times(flags & EXPIRES, rest).1
}

/// Where the time stands at which a record expires that is not read until then.
fn idle_at(stored: &[u8]) -> Option<usize> {
    let flags = *stored.first()?;
    let at = 1 + if flags & EXPIRES != 0 { TIME_BYTES } else { 0 };
    (flags & IDLES != 0 && stored.len() >= at + TIME_BYTES).then_some(at)
}

/// When a record expires that is not read until then.
pub(super) fn idle(stored: &[u8]) -> Option<Expiry> {
    let ticks = stored[idle_at(stored)?..].first_chunk()?;
    Some(Expiry::from_bytes(*ticks))
}

/// Has a record with such a time expire then. It is then no longer what is on disk.
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

/// Says of a record that it is on disk as well.
pub(super) fn make_clean(stored: &mut [u8]) {
    if let Some(flags) = stored.first_mut() {
        *flags |= CLEAN;
    }
}

/// Whether a record is over. The clock is only asked where the record expires.
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
        // No record is so, and none makes a reader fail.
        assert_eq!(read(b""), (&b""[..], Some(Expiry::PAST)));
        assert_eq!(read(&[1, 2, 3]), (&[2, 3][..], None));
        assert_eq!(read(&[9, 0, 0, 0, 0, 0, 3]), (&[3][..], Some(Expiry::PAST)));
        assert_eq!((idle(&[8, 1]), idle(b"")), (None, None));
    }
}
