//! An output buffer for a block, which need not be zeroed before a codec writes it.

use std::mem::MaybeUninit;

use super::{CodecError, output};

/// Writable bytes. The first `len` are initialised and are the block so far.
pub(super) struct Room<'o> {
    bytes: &'o mut [MaybeUninit<u8>],
    len: usize,
}

impl<'o> Room<'o> {
    /// Returns a room in initialised bytes.
    pub(super) fn of(bytes: &'o mut [u8]) -> Self {
        // SAFETY: the layouts are the same, and no byte of a room is ever made uninitialised: writers in this module
        // copy initialised bytes, and the bindings that use `spare` and `as_mut_ptr` guarantee to write no others.
        let bytes = unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [MaybeUninit<u8>]) };
        Self { bytes, len: 0 }
    }

    /// Returns the capacity in bytes.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the length of the block.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the block.
    #[inline]
    pub(super) fn block(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are initialised.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }

    /// Truncates the block to `len` bytes.
    #[inline]
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Copies `bytes` as the block; returns true if there was room for it.
    pub(super) fn put(&mut self, bytes: &[u8]) -> bool {
        self.len = 0;
        self.push(bytes)
    }

    /// Appends `bytes` to the block; returns true if there was room for them.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        let Some(to) = self
            .bytes
            .get_mut(self.len..)
            .and_then(|rest| rest.get_mut(..bytes.len()))
        else {
            return false;
        };
        // SAFETY: the layouts are the same, and initialised bytes are valid as `MaybeUninit`.
        to.copy_from_slice(unsafe { &*(std::ptr::from_ref(bytes) as *const [MaybeUninit<u8>]) });
        self.len += bytes.len();
        true
    }

    /// Returns a pointer to the start of the room. Only initialised bytes may be written to it; [`Room::set_len`] sets
    /// their number.
    #[inline]
    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr().cast()
    }

    /// Returns the room as a slice.
    ///
    /// # Safety
    /// Only initialised bytes may be written to it.
    pub(super) unsafe fn spare(&mut self) -> &mut [MaybeUninit<u8>] {
        self.bytes
    }

    /// Sets the length of the block to `len` bytes.
    ///
    /// # Safety
    /// They must be within the room and initialised.
    #[inline]
    pub(super) unsafe fn set_len(&mut self, len: usize) {
        debug_assert!(len <= self.capacity());
        self.len = len;
    }
}

/// Appends the block that `write` writes into `bound` bytes of room to `out`; returns the block's length. On an error
/// `out` is unchanged.
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
    // SAFETY: the room is the `bound` bytes after `before`, which were reserved, and `written` of them are initialised.
    unsafe { out.set_len(before + written) };
    Ok(written)
}

/// The address of bytes to which tables of a C library point.
///
/// Such tables may be used only while the bytes are alive. So their user passes the bytes: if they are at the same
/// address, they are alive. Their contents may have changed meanwhile; then a block is decoded to wrong bytes, but
/// within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BytesIdentity {
    start: usize,
    len: usize,
}

impl BytesIdentity {
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
