//! The format of SST files: block types and the size prefix. It may be extended, but does not change: see
//! `docs/formats.md`.

use leafpress::codec::Codec;

/// The format of a block's bytes, as in RocksDB's `CompressionType`.
///
/// The numbers differ from each other in two bits and from RocksDB's own types in two or more, so that one flipped bit
/// turns no type into another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockType {
    /// One LZ4 block.
    Lz4 = 0xC1,
    /// Leafpress's zstd block.
    Zstd = 0xC2,
    /// One raw deflate stream that looks back at most 4 KiB.
    Deflate = 0xC4,
}

/// Every type, in the order of their numbers.
pub(crate) const BLOCK_TYPES: [BlockType; 3] = [BlockType::Lz4, BlockType::Zstd, BlockType::Deflate];

impl BlockType {
    /// Returns the type of a codec's blocks; `None` for `none`, and for a codec without a type here: then nothing is
    /// compressed.
    pub(crate) fn of(codec: Codec) -> Option<Self> {
        match codec {
            Codec::None => None,
            Codec::Lz4 { .. } | Codec::Lz4Hc { .. } => Some(Self::Lz4),
            Codec::Zstd { .. } => Some(Self::Zstd),
            Codec::Deflate { .. } | Codec::Zlib { .. } | Codec::Qpl { .. } => Some(Self::Deflate),
            _ => None,
        }
    }

    /// Returns the type of a number that a file holds.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        BLOCK_TYPES.into_iter().find(|known| *known as u8 == number)
    }

    /// Returns the name in messages and in table properties.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
            Self::Deflate => "deflate",
        }
    }

    /// Returns the most raw bytes that a block of `block_bytes` can hold: a damaged size must not make RocksDB allocate
    /// more.
    pub(crate) fn most_raw_bytes(self, block_bytes: usize) -> u64 {
        let block = block_bytes as u64;
        let most = match self {
            // A length's continuation byte adds 255.
            Self::Lz4 => block.saturating_mul(255).saturating_add(64),
            // 128 KiB in every block of a frame, which has three bytes of header and at least one more.
            Self::Zstd => (block / 4).saturating_add(1).saturating_mul(128 << 10),
            // 258 bytes take two bits at best.
            Self::Deflate => block.saturating_mul(1032),
        };
        most.min(MAX_RAW_BYTES)
    }
}

/// RocksDB compresses no longer blocks (`kCompressionSizeLimit`).
pub(crate) const MAX_RAW_BYTES: u64 = i32::MAX as u64;

/// The longest size prefix, in bytes.
pub(crate) const MAX_PREFIX_BYTES: usize = 5;

/// Writes the size prefix, a little-endian base 128 number, and returns its length. `out` has [`MAX_PREFIX_BYTES`] or
/// more.
pub(crate) fn write_prefix(raw_bytes: u32, out: &mut [u8]) -> usize {
    let mut rest = raw_bytes;
    let mut at = 0;
    for byte in out.iter_mut().take(MAX_PREFIX_BYTES) {
        *byte = (rest & 0x7F) as u8;
        rest >>= 7;
        at += 1;
        if rest == 0 {
            break;
        }
        *byte |= 0x80;
    }
    at
}

/// Reads the size prefix: the raw size and the prefix's length. `None` when it is cut short or too long.
pub(crate) fn read_prefix(stored: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (at, byte) in stored.iter().take(MAX_PREFIX_BYTES).enumerate() {
        value |= u64::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_read_back() {
        for size in [0, 1, 127, 128, 16_383, 16_384, 1 << 20, u32::MAX] {
            let mut out = [0xFF; 8];
            let written = write_prefix(size, &mut out);
            assert_eq!(read_prefix(&out[..written]), Some((u64::from(size), written)));
            assert_eq!(read_prefix(&out[..written - 1]), None);
        }
        assert_eq!(read_prefix(&[0x80; 9]), None);
    }

    #[test]
    fn one_flipped_bit_makes_no_other_type() {
        for known in BLOCK_TYPES {
            for bit in 0..8 {
                let flipped = known as u8 ^ (1 << bit);
                assert!(BlockType::from_number(flipped).is_none(), "{flipped:#x}");
                assert!(flipped > 7, "{flipped:#x} is one of RocksDB's own");
            }
        }
    }
}
