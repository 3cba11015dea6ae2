//! Keys in db_bench's format: the number, big-endian in at most 8 bytes, followed by `0` characters.

/// A buffer that turns a number into a key.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    bytes: Vec<u8>,
    number_bytes: usize,
}

impl Key {
    /// Keys of `len` bytes, at least 1.
    pub(crate) fn new(len: usize) -> Self {
        Self {
            bytes: vec![b'0'; len],
            number_bytes: len.min(8),
        }
    }

    /// Length of a key.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The key of a number, which must be below `256^len`.
    #[inline]
    pub(crate) fn encode(&mut self, number: u64) -> &[u8] {
        let digits = number.to_be_bytes();
        self.bytes[..self.number_bytes].copy_from_slice(&digits[8 - self.number_bytes..]);
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn keys_are_db_benchs() {
        assert_eq!(Key::new(16).encode(0x0102_0304), b"\0\0\0\0\x01\x02\x03\x0400000000");
        assert_eq!(Key::new(8).encode(5), b"\0\0\0\0\0\0\0\x05");
        assert_eq!(Key::new(3).encode(0x01_0203), b"\x01\x02\x03");
    }
}
