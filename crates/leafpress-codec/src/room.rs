//! Room for a block, which need not be zeroed before a codec writes it.

use std::mem::MaybeUninit;

use super::{CodecError, output};

/// Writable bytes, the first `len` of which are initialised and are the block so far.
pub(super) struct Room<'o> {
    bytes: &'o mut [MaybeUninit<u8>],
    len: usize,
}

impl<'o> Room<'o> {
    /// Room for a block in bytes that are initialised already.
    pub(super) fn of(bytes: &'o mut [u8]) -> Self {
        // SAFETY: the layouts are the same, and no byte of a room is ever made uninitialised: writers copy initialised bytes here, and
        // the bindings' promise to `spare` and `as_mut_ptr` is to do no other.
        let bytes = unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [MaybeUninit<u8>]) };
        Self { bytes, len: 0 }
    }

    /// Bytes there is room for.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Length of the block.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The block.
    #[inline]
    pub(super) fn block(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are initialised.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }

    /// Cuts the block off at `len` bytes.
    #[inline]
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes a copy of `bytes` the block; returns whether there was room for it.
    pub(super) fn put(&mut self, bytes: &[u8]) -> bool {
        self.len = 0;
        self.push(bytes)
    }

    /// Appends `bytes` to the block; returns whether there was room for them.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        let Some(to) = self
            .bytes
            .get_mut(self.len..)
            .and_then(|rest| rest.get_mut(..bytes.len()))
        else {
            return false;
        };
        // SAFETY: the layouts are the same, and initialised bytes may be taken for ones that need not be.
        to.copy_from_slice(unsafe { &*(std::ptr::from_ref(bytes) as *const [MaybeUninit<u8>]) });
        self.len += bytes.len();
        true
    }

    /// The room, to be written from its start. Only initialised bytes may be written to it; [`Room::set_len`] says how many were.
    #[inline]
    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr().cast()
    }

    /// The room as a slice.
    ///
    /// # Safety
    /// Only initialised bytes are written to it.
    pub(super) unsafe fn spare(&mut self) -> &mut [MaybeUninit<u8>] {
        self.bytes
    }

    /// Makes the first `len` bytes the block.
    ///
    /// # Safety
    /// They are within the room and initialised.
    #[inline]
    pub(super) unsafe fn set_len(&mut self, len: usize) {
        debug_assert!(len <= self.capacity());
        self.len = len;
    }
}

/// Appends the block that `write` writes to `out`, for which it is given `bound` bytes of room; returns the block's length. On an error
/// `out` is as it was.
#[inline]
pub(super) fn append(
    out: &mut Vec<u8>,
    bound: usize,
    write: impl FnOnce(&mut Room<'_>) -> Result<(), CodecError>,
) -> Result<usize, CodecError> {
    output::reserve(out, bound)?;
    let before = out.len();
    let mut room = Room {
        bytes: &mut out.spare_capacity_mut()[..bound],
        len: 0,
    };
    write(&mut room)?;
    let written = room.len;
    // SAFETY: the room is the `bound` bytes behind `before`, which were reserved, and `written` of them are initialised.
    unsafe { out.set_len(before + written) };
    Ok(written)
}

/// Where the bytes stand that tables of a C library point to.
///
/// Such tables may be used only while the bytes are there. So whoever uses them brings the bytes: if they stand in the same place, they
/// are there. What they hold may have changed meanwhile; then a block is decoded wrong, within their bounds all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    start: usize,
    len: usize,
}

impl Place {
    #[inline]
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self {
            start: bytes.as_ptr().addr(),
            len: bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_appended() {
        let mut out = vec![1, 2];
        let write = |room: &mut Room<'_>| {
            assert_eq!(room.capacity(), 4);
            assert!(room.put(&[9]) && room.put(&[3, 4, 5]) && !room.push(&[6, 7]));
            room.truncate(2);
            assert_eq!(room.block(), [3, 4]);
            Ok(())
        };
        assert_eq!(append(&mut out, 4, write).unwrap(), 2);
        assert_eq!(out, [1, 2, 3, 4]);
        let refused = append(&mut out, 4, |room| {
            room.put(&[5]);
            Err(output::failed("none", "refused"))
        });
        assert!(refused.is_err());
        assert_eq!(out, [1, 2, 3, 4]);
    }
}
