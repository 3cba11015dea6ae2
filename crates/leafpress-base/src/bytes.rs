//! A cursor over encoded bytes. Integers are little-endian.

/// Maximum number of bytes of a number in LEB128.
pub const MAX_LEB128_BYTES: usize = 5;

/// Encoded bytes that are consumed from the front. Every read returns [`None`] if too few are left.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'b>(pub &'b [u8]);

impl<'b> Bytes<'b> {
    /// Reads `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads as many bytes as the array has.
    #[inline]
    pub fn array<const LEN: usize>(&mut self) -> Option<[u8; LEN]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// Reads a number of 32 bits.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a number of 64 bits.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a number in LEB128, whose form need not be the shortest; [`None`] also if it has more than
    /// [`MAX_LEB128_BYTES`] bytes.
    #[inline]
    pub fn leb128(&mut self) -> Option<usize> {
        let mut number = 0;
        for index in 0..MAX_LEB128_BYTES {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7F) << (7 * index);
            if byte & 0x80 == 0 {
                return usize::try_from(number).ok();
            }
        }
        None
    }
}

/// Appends a number in LEB128.
#[inline]
pub fn put_leb128(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
