//! From an id to a key's bytes, as PiBench makes them.

/// Multiplier of the hash that scatters ids: 2^64 over the golden ratio, odd (Knuth, "The Art of Computer Programming" 3, 6.4).
const MULTIPLIER: u64 = 11_400_714_819_323_198_393;

/// How keys look: the prefix, then zero bytes, then the id times 11400714819323198393 mod 2^64, little-endian.
///
/// Sizes below 8 bytes keep the low bytes of the product, sizes above have zeros in front of it. As the multiplier is odd, ids below
/// `256^size` have different keys.
#[derive(Debug, Clone)]
pub struct KeyFormat {
    blank: Vec<u8>,
    /// Where the id goes.
    at: usize,
    /// How many bytes of it.
    len: usize,
}

impl KeyFormat {
    /// Keys of `size` bytes behind `prefix`.
    pub fn new(prefix: &[u8], size: usize) -> Self {
        let len = size.min(8);
        let mut blank = prefix.to_vec();
        blank.resize(prefix.len() + size, 0);
        Self {
            at: blank.len() - len,
            blank,
            len,
        }
    }

    /// Length of a key with its prefix, in bytes.
    pub fn key_bytes(&self) -> usize {
        self.blank.len()
    }

    /// A key without an id, for [`KeyFormat::fill`].
    pub fn blank(&self) -> &[u8] {
        &self.blank
    }

    /// Puts an id into a key made from [`KeyFormat::blank`].
    #[inline]
    pub fn fill(&self, id: u64, key: &mut [u8]) {
        #[cfg(test)]
        super::slow::make();
        let hashed = id.wrapping_mul(MULTIPLIER).to_le_bytes();
        key[self.at..].copy_from_slice(&hashed[..self.len]);
    }

    /// The key of an id.
    pub fn key(&self, id: u64) -> Vec<u8> {
        let mut key = self.blank.clone();
        self.fill(id, &mut key);
        key
    }
}

/// A key for people: as text where it is text, else in hexadecimal.
pub(super) fn readable(key: &[u8]) -> String {
    if !key.is_empty() && key.iter().all(|byte| byte.is_ascii_graphic()) {
        return String::from_utf8_lossy(key).into_owned();
    }
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_pibenchs() {
        // 5 times 0x9e37_79b9_7f4a_7bb9, mod 2^64.
        assert_eq!(MULTIPLIER, 0x9e37_79b9_7f4a_7bb9);
        let hashed = 0x1715_609f_7c74_6a9d_u64;
        let bytes = hashed.to_le_bytes();
        assert_eq!(KeyFormat::new(b"", 8).key(5), bytes);
        assert_eq!(KeyFormat::new(b"", 3).key(5), bytes[..3]);
        let long = [b"user_".as_slice(), &[0; 4], &bytes].concat();
        assert_eq!(KeyFormat::new(b"user_", 12).key(5), long);
        assert_eq!(KeyFormat::new(b"", 8).key(0), [0; 8]);
    }

    #[test]
    fn short_keys_are_all_different() {
        for (size, ids) in [(1, 256_u64), (2, 65_536)] {
            let format = KeyFormat::new(b"p", size);
            let keys: std::collections::HashSet<_> = (1..=ids).map(|id| format.key(id)).collect();
            assert_eq!(keys.len() as u64, ids);
        }
    }

    #[test]
    fn keys_are_readable() {
        assert_eq!(readable(b"user_1"), "user_1");
        assert_eq!(readable(&[0, 255]), "0x00ff");
        assert_eq!(readable(b""), "0x");
    }
}
