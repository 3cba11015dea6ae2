//! What a cache keeps in front of a value: a byte of flags, and when the record expires, where it does.
//!
//! ```text
//! flags u8 (bit 0: expires)   expiry u32, little endian (if it expires)   value
//! ```

use std::time::Duration;

use super::clock::Expiry;
use crate::mem::OutOfMemory;
use crate::mem::room::TryGrow;

const EXPIRES: u8 = 1;
/// Longest value, in bytes. One that holds more than an eighth of the memory is taken, and not kept.
pub const MAX_VALUE_BYTES: usize = crate::tree::MAX_VALUE_BYTES - MAX_HEADER_BYTES;
/// Most bytes in front of a value.
const MAX_HEADER_BYTES: usize = 1 + size_of::<u32>();

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
        Some((&EXPIRES, rest)) => match rest.split_first_chunk() {
            Some((ticks, value)) => (value, Some(Expiry(u32::from_le_bytes(*ticks)))),
            None => (rest, None),
        },
        Some((_, value)) => (value, None),
        None => (stored, None),
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
        // No record is so, and none makes a reader fail.
        assert_eq!(read(b""), (&b""[..], None));
        assert_eq!(read(&[1, 2, 3]), (&[2, 3][..], None));
    }
}
