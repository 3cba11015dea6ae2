//! Bytes for a moment.
//!
//! Training a dictionary takes some megabytes that are gone when it is done, more than a small tree holds. Allocators keep what is freed for the
//! next that asks, often for the thread that freed it, so that a process which trains once holds them for good. These go back to
//! the system at once.

use crate::mem::mapping::{Mapping, page_bytes};

/// Bytes written one behind the other, in room that was asked for at the start.
pub struct Transient {
    room: Option<Mapping>,
    len: usize,
}

impl Transient {
    /// Room for `bytes`; [`None`] when there is no memory.
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
        // SAFETY: the room is ours alone, writable, and reaches at least as far behind `len`, which is never beyond it.
        unsafe {
            let to = room.start().add(self.len);
            to.copy_from_nonoverlapping(std::ptr::NonNull::from(bytes).cast(), bytes.len());
        }
        self.len += bytes.len();
        true
    }

    /// All of the room, zeroes where nothing was written, as what was written.
    pub fn whole(&mut self) -> &mut [u8] {
        match &self.room {
            None => &mut [],
            Some(room) => {
                self.len = room.byte_len();
                // SAFETY: the room is ours alone for the borrow, and the system gave it filled with zeroes.
                unsafe { std::slice::from_raw_parts_mut(room.start().as_ptr(), room.byte_len()) }
            }
        }
    }

    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        match &self.room {
            None => &[],
            // SAFETY: the first `len` bytes were written, and are written to no more as long as they are borrowed.
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
