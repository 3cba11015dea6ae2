//! Key shapes: each maps small numbers to distinct keys, so that random operations use the same keys.

/// A family of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyShape {
    /// 8 big-endian bytes of consecutive integers.
    Dense,
    /// 8 bytes without any order or common prefix.
    Scattered,
    /// 16 bytes: eight in common, then an integer with gaps.
    Prefixed,
    /// Three-byte integers.
    Short,
    /// 8-byte integers, but one key in 29 has another length.
    AlmostDense,
    /// One byte; at most 256 keys.
    OneByte,
    /// Hundreds of bytes in common, the difference at the end; up to the longest key.
    LongPrefix,
    /// `a`, `aa`, `aaa`...: each key is a prefix of the next, the first one is empty.
    Nested,
    /// All strings over 0x00, 0x61 and 0xff by length: the empty key, prefixes of one another, extremes.
    Extremes,
    /// Readable fields of varying length.
    Fields,
    /// One of the others for each key.
    Mixed,
}

impl KeyShape {
    pub const ALL: [KeyShape; 11] = [
        KeyShape::Dense,
        KeyShape::Scattered,
        KeyShape::Prefixed,
        KeyShape::Short,
        KeyShape::AlmostDense,
        KeyShape::OneByte,
        KeyShape::LongPrefix,
        KeyShape::Nested,
        KeyShape::Extremes,
        KeyShape::Fields,
        KeyShape::Mixed,
    ];

    /// Returns the key of number `n`.
    pub fn key(self, n: u16) -> Vec<u8> {
        let n = u64::from(n);
        match self {
            KeyShape::Dense => n.to_be_bytes().to_vec(),
            KeyShape::Scattered => mix(n).to_be_bytes().to_vec(),
            KeyShape::Prefixed => [*b"account:", (n * n * 1009).to_be_bytes()].concat(),
            KeyShape::Short => (n as u32 * 5).to_be_bytes()[1..].to_vec(),
            KeyShape::AlmostDense if n % 29 == 7 => [&[0; 6], n.to_be_bytes().as_slice(), &[1; 3]].concat(),
            KeyShape::AlmostDense => n.to_be_bytes().to_vec(),
            KeyShape::OneByte => vec![n as u8],
            KeyShape::LongPrefix => {
                // Four prefix lengths, the last of which makes keys of exactly the maximum length.
                let mut key = vec![b'p'; [200, 600, 1000, leafpress::tree::MAX_KEY_BYTES - 4][(n % 4) as usize]];
                key.extend_from_slice(&(n as u32).to_be_bytes());
                key
            }
            KeyShape::Nested => vec![b'a'; (n % 1025) as usize],
            KeyShape::Extremes => {
                let mut key = Vec::new();
                let mut rest = n;
                while rest > 0 {
                    key.push([0x00, 0x61, 0xff][((rest - 1) % 3) as usize]);
                    rest = (rest - 1) / 3;
                }
                key
            }
            KeyShape::Fields => format!("user:{n:05}:{}", ["id", "name", "e-mail", "q"][(n % 4) as usize]).into_bytes(),
            KeyShape::Mixed => KeyShape::ALL[(mix(n) % 10) as usize].key(n as u16),
        }
    }
}

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection without visible order.
pub fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
