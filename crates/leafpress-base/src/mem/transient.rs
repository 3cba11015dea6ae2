//! Short-lived buffers that are mapped directly.
//!
//! Training a dictionary takes some megabytes temporarily, more than a small tree holds. Allocators keep freed memory
//! for later requests, often per thread, so that a process which trains once would hold it for good. These buffers are
//! returned to the system at once.

use crate::mem::mapping::{Mapping, page_bytes};

/// An append-only buffer with a fixed capacity.
pub struct Transient {
    room: Option<Mapping>,
    len: usize,
}

impl Transient {
    /// Creates a buffer with room for `bytes`; [`None`] when there is no memory.
    pub fn with_capacity(bytes: usize) -> Option<Self> {
        let room = match bytes {
            0 => None,
            _ => Some(Mapping::new(bytes.checked_next_multiple_of(page_bytes())?)?),
        };
        Some(Self { room, len: 0 })
    }

    /// Appends `bytes` if there is room for them; returns whether there was.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let Some(room) = &self.room else {
            return bytes.is_empty();
        };
        if bytes.len() > room.byte_len() - self.len {
            return false;
        }
        // SAFETY: the mapping is owned by this buffer, writable, and has room for the bytes after `len`, as checked
        // above.
        unsafe {
            let to = room.start().add(self.len);
            to.copy_from_nonoverlapping(std::ptr::NonNull::from(bytes).cast(), bytes.len());
        }
        self.len += bytes.len();
        true
    }

    /// Returns the whole capacity; bytes that were not written are zero.
    pub fn whole(&mut self) -> &mut [u8] {
        match &self.room {
            None => &mut [],
            Some(room) => {
                self.len = room.byte_len();
                // SAFETY: the mapping is borrowed exclusively, and the system initialised it with zeroes.
                unsafe { std::slice::from_raw_parts_mut(room.start().as_ptr(), room.byte_len()) }
            }
        }
    }

    /// Returns the written bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.room {
            None => &[],
            // SAFETY: the first `len` bytes were written, and cannot be written while they are borrowed.
            Some(room) => unsafe { std::slice::from_raw_parts(room.start().as_ptr(), self.len) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Transient;

    #[test]
    fn what_fits_is_kept_and_what_does_not_is_refused() {
        for capacity in [0, 1, 4096, 10_000] {
            let mut room = Transient::with_capacity(capacity).unwrap();
            let mut expected = Vec::new();
            while expected.len() + 7 <= capacity {
                let bytes = [expected.len() as u8; 7];
                assert!(room.push(&bytes));
                expected.extend(bytes);
            }
            assert!(room.push(&[]));
            assert!(!room.push(&vec![0; 1 << 20]));
            assert_eq!(room.bytes(), expected);
        }
        assert!(Transient::with_capacity(usize::MAX).is_none());
    }

    #[test]
    fn the_whole_room_can_be_written_to() {
        let mut room = Transient::with_capacity(10_000).unwrap();
        assert!(room.push(b"before"));
        assert!(room.whole().len() >= 10_000);
        room.whole()[9_999] = 7;
        assert_eq!((room.bytes()[0], room.bytes()[9_999]), (b'b', 7));
        assert!(Transient::with_capacity(0).unwrap().whole().is_empty());
    }
}
