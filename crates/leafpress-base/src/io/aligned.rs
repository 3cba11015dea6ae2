//! A buffer aligned for direct I/O.

use std::io;

/// A zeroed buffer whose address is a multiple of a power of two.
pub struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// Allocates `len` zeroed bytes at a multiple of `alignment`, a power of two.
    pub fn new(len: usize, alignment: usize) -> io::Result<Self> {
        let slack = alignment.max(1) - 1;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(len + slack)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // The length stays within the capacity, so the vector does not move.
        bytes.resize(len + slack, 0);
        let address = bytes.as_ptr().addr();
        let start = address.next_multiple_of(slack + 1) - address;
        Ok(Self { bytes, start, len })
    }

    /// Returns the bytes of the buffer.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    /// Returns the bytes of the buffer for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::AlignedBuffer;

    #[test]
    fn is_aligned_and_has_the_requested_length() {
        for alignment in [1, 4, 512, 4096, 65536] {
            for len in [1, 511, 4096, 1 << 20] {
                let mut buffer = AlignedBuffer::new(len, alignment).unwrap();
                assert_eq!(buffer.bytes().as_ptr().addr() % alignment, 0);
                assert_eq!(buffer.bytes().len(), len);
                assert_eq!(buffer.bytes_mut().len(), len);
            }
        }
    }

    #[test]
    fn too_much_memory_is_an_error() {
        let error = AlignedBuffer::new(isize::MAX as usize - 4096, 512).err().unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
    }
}
