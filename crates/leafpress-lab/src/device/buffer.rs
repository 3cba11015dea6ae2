//! Buffers at addresses that direct I/O takes, filled with bytes that nothing can compress or find twice.

use std::io;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// Direct I/O wants buffers at multiples of the device's block at most; no file system of Linux wants more than a page.
const ALIGNMENT: usize = 4096;
/// What devices and file systems that look for duplicates compare is no shorter.
const SECTOR: usize = 512;

/// Bytes at a multiple of 4096. They stay where they are while the buffer lives, moved or not.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// `len` zeroes.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(len + ALIGNMENT)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // Within the capacity: the bytes stay where they are.
        bytes.resize(len + ALIGNMENT, 0);
        let address = bytes.as_ptr().addr();
        let start = address.next_multiple_of(ALIGNMENT) - address;
        Ok(Self { bytes, start, len })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }

    /// Random bytes all over.
    pub(super) fn fill(&mut self, random: &mut Xoshiro256PlusPlus) {
        random.fill_bytes(self.bytes_mut());
    }

    /// Makes every sector differ from what it was, in far less time than [`Buffer::fill`].
    pub(super) fn stamp(&mut self, random: &mut Xoshiro256PlusPlus) {
        for sector in self.bytes_mut().chunks_mut(SECTOR) {
            if let Some(head) = sector.first_chunk_mut::<8>() {
                *head = random.next_u64().to_le_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn a_buffer_is_aligned_and_a_stamp_changes_every_sector() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for len in [512, 4096, 128 << 10] {
            let mut buffer = Buffer::new(len).unwrap();
            assert_eq!(
                (buffer.bytes().as_ptr().addr() % ALIGNMENT, buffer.bytes().len()),
                (0, len)
            );
            buffer.fill(&mut random);
            let before = buffer.bytes().to_vec();
            buffer.stamp(&mut random);
            let changed = buffer.bytes().chunks(SECTOR).zip(before.chunks(SECTOR));
            assert!(changed.into_iter().all(|(now, then)| now != then));
        }
        assert!(Buffer::new(isize::MAX as usize - 8192).is_err());
    }
}
