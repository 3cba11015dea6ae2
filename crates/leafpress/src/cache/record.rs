//! What a cache keeps in front of a value: a byte of flags, and when the record expires, where it does.
//!
//! ```text
//! flags u8   expiry u32, little endian (if bit 0 of the flags is set)   value
//! ```
//!
//! A *clean* record is on disk as well. A *tombstone* says that there is none, whatever older record may be on disk: it is one that
//! expired long ago, so that readers need not know of it.

use std::time::Duration;

use super::clock::Expiry;
use crate::mem::OutOfMemory;
use crate::mem::room::TryGrow;

const EXPIRES: u8 = 1;
const CLEAN: u8 = 2;
const GONE: u8 = 4;
/// Longest value, in bytes. One that holds more than an eighth of the memory is taken, and not kept.
pub const MAX_VALUE_BYTES: usize = crate::tree::MAX_VALUE_BYTES - MAX_HEADER_BYTES;
/// Most bytes in front of a value.
const MAX_HEADER_BYTES: usize = 1 + size_of::<u32>();
/// The whole of a tombstone.
pub(super) const TOMBSTONE: &[u8] = &[EXPIRES | GONE, 0, 0, 0, 0];

/// Writes a record's header and value into `out`, in place of what it holds.
pub(super) fn write(value: &[u8], expiry: Option<Expiry>, out: &mut Vec<u8>) -> Result<(), OutOfMemory> {
    out.clear();
    out.try_grow(MAX_HEADER_BYTES + value.len())?;
    match expiry {
        None => out.push(0),
        Some(expiry) => {
            out.push(EXPIRES);
            out.extend_from_slice(&expiry.0.to_le_bytes());
        }
    }
    out.extend_from_slice(value);
    Ok(())
}

/// The value, and when it expires. What has no header, which nothing has that [`write()`] wrote, is a value that never does.
#[inline]
pub(super) fn read(stored: &[u8]) -> (&[u8], Option<Expiry>) {
    match stored.split_first() {
        Some((flags, rest)) if flags & EXPIRES != 0 => match rest.split_first_chunk() {
            Some((ticks, value)) => (value, Some(Expiry(u32::from_le_bytes(*ticks)))),
            None => (rest, None),
        },
        Some((_, value)) => (value, None),
        None => (stored, None),
    }
}

fn has(stored: &[u8], flag: u8) -> bool {
    stored.first().is_some_and(|flags| flags & flag != 0)
}

pub(super) fn is_tombstone(stored: &[u8]) -> bool {
    has(stored, GONE)
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
pub(super) fn is_over(expiry: Option<Expiry>, now: impl FnOnce() -> Duration) -> bool {
    expiry.is_some_and(|expiry| expiry.is_over(now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut stored = vec![9; 100];
        for value in [&b""[..], b"x", &[1; 5000]] {
            for expiry in [None, Some(Expiry(0)), Some(Expiry(u32::MAX))] {
                write(value, expiry, &mut stored).unwrap();
                assert_eq!(read(&stored), (value, expiry));
                assert!(stored.len() <= value.len() + MAX_HEADER_BYTES);
            }
        }
        assert!(is_over(read(TOMBSTONE).1, || Duration::ZERO));
        assert!(is_tombstone(TOMBSTONE) && !is_clean(TOMBSTONE) && !is_tombstone(&stored));
        make_clean(&mut stored);
        assert_eq!(read(&stored), (&[1; 5000][..], Some(Expiry(u32::MAX))));
        assert!(is_clean(&stored));
        // No record is so, and none makes a reader fail.
        assert_eq!(read(b""), (&b""[..], None));
        assert_eq!(read(&[1, 2, 3]), (&[2, 3][..], None));
    }
}
