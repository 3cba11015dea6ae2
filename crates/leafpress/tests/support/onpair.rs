//! A dictionary of `onpair` made by hand: model checkers and Miri are too slow for a training.

use leafpress::{Codec, Dictionary};
use rapidhash::v3::rapidhash_v3;

/// The codec that the dictionary is for.
pub const ONPAIR: Codec = Codec::OnPair { bits: 12 };
/// The tokens of more than one byte, at most 16 each.
const TOKENS: [&str; 11] = [
    "\"}",
    "\",\"name\":\"",
    "00",
    "000",
    "of record ",
    "ss",
    "user:",
    "user:0",
    "value ",
    "value of record ",
    "{\"version\":\"",
];

/// Returns the dictionary.
pub fn dictionary() -> Dictionary {
    let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    tokens.extend(TOKENS.iter().map(|token| token.as_bytes().to_vec()));
    tokens.sort();
    tokens.dedup();
    let mut bytes = b"LPO\x01".to_vec();
    bytes.extend_from_slice(&[12, 0]);
    bytes.extend_from_slice(&(tokens.len() as u16 - 1).to_le_bytes());
    for token in &tokens {
        bytes.push(token.len() as u8 - 1);
        bytes.extend_from_slice(token);
    }
    let check = rapidhash_v3(&bytes) as u32;
    bytes.extend_from_slice(&check.to_le_bytes());
    Dictionary::from_trained(Some(ONPAIR), bytes)
}

/// Returns the key of number `n`, below 10,000: of several lengths, in the order of the numbers.
pub fn key(n: u32) -> Vec<u8> {
    format!("user:{n:04}{}", "s".repeat(n as usize % 4)).into_bytes()
}

/// Returns a value that names its record and its version, and shrinks to a third.
pub fn value(n: u32, version: u8) -> Vec<u8> {
    format!("{{\"version\":\"{version:03}\",\"name\":\"value of record {n:04}\"}}").into_bytes()
}

/// Returns the version of a value of record `n`.
pub fn version(n: u32, value: &[u8]) -> u8 {
    let digits = std::str::from_utf8(&value[12..15]).unwrap();
    let version = digits.parse().unwrap();
    assert!(value == self::value(n, version), "{n}: another value");
    version
}
