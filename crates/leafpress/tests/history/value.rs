//! Values that contain their key and their number, so that a torn value, or another key's, is detected.

use crate::keys::mix;

const HEAD_BYTES: usize = 16;

/// Returns the value of this length, at least 16 bytes. Half of it is compressible.
pub fn value(key: u32, number: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + HEAD_BYTES);
    bytes.extend_from_slice(&u64::from(key).to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    let mut word = mix(number ^ u64::from(key) << 32);
    while bytes.len() < len {
        if word & 1 == 0 {
            bytes.extend_from_slice(b"the same words again");
        } else {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        word = mix(word);
    }
    bytes.truncate(len.max(HEAD_BYTES));
    bytes
}

/// Returns the number of a value that was found.
///
/// # Panics
/// If it is not one that was written for this key.
pub fn number(key: u32, found: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(found[at..at + 8].try_into().expect("eight bytes"));
    assert!(found.len() >= HEAD_BYTES, "key {key}: {} bytes", found.len());
    assert_eq!(word(0), u64::from(key), "another key's value");
    let number = word(8);
    assert!(found == value(key, number, found.len()), "key {key}: a torn value");
    number
}
