//! Values that identify their key and version: a reader detects a value of another key, a torn value, and an older
//! version.

use super::keys::mix;

/// Returns the key of number `n`: 2 to 10 bytes, scattered, with many common prefixes.
pub fn key(n: u64) -> Vec<u8> {
    let mut key = vec![b"abc"[(n % 3) as usize]];
    key.extend_from_slice(&mix(n).to_be_bytes()[..1 + (n % 8) as usize]);
    // The number makes it distinct.
    key.extend_from_slice(&(n as u16).to_be_bytes());
    key
}

/// Returns the value of key `n` at `version`: a header, then 0 to 200 bytes that depend on both; one in 64 is a large
/// value.
pub fn value(n: u64, version: u64) -> Vec<u8> {
    let seed = mix(n ^ mix(version));
    let len = if seed.is_multiple_of(64) {
        2500
    } else {
        (seed >> 8) as usize % 200
    };
    let mut value = Vec::with_capacity(16 + len);
    value.extend_from_slice(&n.to_le_bytes());
    value.extend_from_slice(&version.to_le_bytes());
    value.resize(16 + len, seed as u8);
    value
}

/// Returns the version of `value`, which must be whole and of key `n`.
pub fn version(n: u64, bytes: &[u8]) -> u64 {
    assert!(bytes.len() >= 16, "key {n}: a value of {} bytes", bytes.len());
    let (whose, rest) = bytes.split_at(8);
    let version = u64::from_le_bytes(rest[..8].try_into().unwrap());
    assert_eq!(
        u64::from_le_bytes(whose.try_into().unwrap()),
        n,
        "a value of another key"
    );
    assert!(bytes == value(n, version), "key {n}, version {version}: a torn value");
    version
}
