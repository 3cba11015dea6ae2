//! Shapes of keys: from gapless integers, the best case of any index, to real text.

use serde::{Deserialize, Serialize};

use super::{KeySet, mix};
use crate::core::LabError;
use crate::core::words::words;

/// Shortest scattered key in bytes: 64 bits of a hash, so that all keys differ.
pub const MIN_SCATTERED_KEY_BYTES: usize = 8;

/// The shape of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyShape {
    /// The numbers 0, 1, 2, ... as big-endian integers with zeros in front: no gaps, no order of its own to find. The
    /// best case of an index that packs keys or interpolates between them.
    #[default]
    Dense,
    /// Hashes of the numbers: bytes without any pattern, as hashed keys and random identifiers have them.
    Scattered,
    /// Text of 22 to 48 bytes, as `session:eu-west:olivia.lindqvist:4h2k9x0q7b`.
    Text,
    /// Random UUIDs (version 4) as text of 36 bytes.
    Uuid,
    /// Paths of 57 to 80 bytes, as `/srv/media/photos/2023/11/07/olivia.lindqvist/IMG_7f3a9c21b04e.jpeg`.
    Path,
}

impl KeyShape {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Dense, Self::Scattered, Self::Text, Self::Uuid, Self::Path];

    /// Returns whether keys have the length `key_bytes`; the others have their own lengths.
    pub fn has_key_bytes(self) -> bool {
        matches!(self, Self::Dense | Self::Scattered)
    }

    /// Returns the length of the longest key in bytes; `key_bytes` is the length of keys that have no other.
    pub fn longest(self, key_bytes: usize) -> usize {
        match self {
            Self::Dense | Self::Scattered => key_bytes,
            Self::Text => 48,
            Self::Uuid => 36,
            Self::Path => 80,
        }
    }

    /// Returns the length of every key in bytes, if they have one.
    pub fn fixed(self, key_bytes: usize) -> Option<usize> {
        (!matches!(self, Self::Text | Self::Path)).then(|| self.longest(key_bytes))
    }

    /// Returns whether ascending numbers have ascending keys.
    pub fn keeps_order(self) -> bool {
        self == Self::Dense
    }

    /// Checks the length of keys with a configured length.
    ///
    /// # Errors
    /// [`LabError::Option`] when scattered keys are too short.
    pub fn validate(self, key_bytes: usize) -> Result<(), LabError> {
        if self == Self::Scattered && key_bytes < MIN_SCATTERED_KEY_BYTES {
            return Err(LabError::option(
                "key-bytes",
                format!("{key_bytes} is less than {MIN_SCATTERED_KEY_BYTES} bytes, the minimum of scattered keys"),
            ));
        }
        Ok(())
    }

    /// Replaces `key` by the key of number `id`. Numbers below 2^48 have keys that all differ; `seed` makes other keys.
    /// `key_bytes` is the length of keys that have no other, at least 8.
    pub fn write(self, id: u64, seed: u64, key_bytes: usize, key: &mut Vec<u8>) {
        key.clear();
        match self {
            Self::Dense => dense(id, key_bytes, key),
            Self::Scattered => scattered(id, seed, key_bytes, key),
            Self::Text => text(id, seed, key),
            Self::Uuid => uuid(id, seed, key),
            Self::Path => path(id, seed, key),
        }
    }

    /// Builds the keys of the numbers `0..count`, sorted.
    pub fn keys(self, count: u64, seed: u64, key_bytes: usize) -> KeySet {
        let (mut bytes, mut key) = (Vec::new(), Vec::new());
        let mut found: Vec<(u64, std::ops::Range<usize>)> = Vec::with_capacity(count as usize);
        for id in 0..count {
            self.write(id, seed, key_bytes, &mut key);
            let start = bytes.len();
            bytes.extend_from_slice(&key);
            found.push((head(&key), start..bytes.len()));
        }
        // Most comparisons end at the first eight bytes, which need not be fetched.
        found.sort_unstable_by(|(one_head, one), (other_head, other)| {
            let tail = || bytes[one.clone()].cmp(&bytes[other.clone()]);
            one_head.cmp(other_head).then_with(tail)
        });
        KeySet::from_ascending(found.iter().map(|(_, place)| &bytes[place.clone()]))
    }
}

/// The first eight bytes as a number, in whose order keys are.
fn head(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = key.len().min(8);
    first[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(first)
}

words!(
    KeyShape, "key-shape", "unknown shape `{}`; known: dense scattered text uuid path":
    Dense "dense", Scattered "scattered", Text "text", Uuid "uuid", Path "path"
);

fn dense(id: u64, key_bytes: usize, key: &mut Vec<u8>) {
    let number = id.to_be_bytes();
    key.resize(key_bytes.saturating_sub(number.len()), 0);
    key.extend_from_slice(&number[number.len().saturating_sub(key_bytes)..]);
}

/// `mix` is a bijection, so the first eight bytes differ already.
fn scattered(id: u64, seed: u64, key_bytes: usize, key: &mut Vec<u8>) {
    let mut hash = mix(id ^ mix(!seed));
    while key.len() < key_bytes {
        key.extend_from_slice(&hash.to_be_bytes());
        hash = mix(hash.wrapping_add(STEP));
    }
    key.truncate(key_bytes);
}

/// Increment of SplitMix64, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// All 64 bits of a hash that is a bijection are in it, so keys differ.
fn uuid(id: u64, seed: u64, key: &mut Vec<u8>) {
    let hash = mix(id ^ mix(!seed));
    let more = mix(hash.wrapping_add(STEP));
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&more.to_be_bytes());
    bytes[8..].copy_from_slice(&hash.to_be_bytes());
    // The version and the variant take six bits, of which the two in the hash's half move to where nothing else is.
    bytes[7] = bytes[7] & 0xfc | (hash >> 62) as u8;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    for (at, byte) in bytes.into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            key.push(b'-');
        }
        key.extend([byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]));
    }
}

const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const BITS: u32 = 48;

/// A bijection of the numbers below 2^48: every step is one.
fn scatter_48(id: u64, seed: u64) -> u64 {
    let mask = (1 << BITS) - 1;
    let mut x = (id ^ mix(seed)) & mask;
    x = x.wrapping_mul(0x9e37_79b9_7f4b) & mask;
    x ^= x >> 25;
    x = x.wrapping_mul(0xd1b5_4a32_d193) & mask;
    x ^ x >> 23
}

/// Draws words: the front of a list more often than its end, as names and places are used.
struct Words(u64);

impl Words {
    fn draw(&mut self, below: usize) -> usize {
        let half = u64::from(u32::MAX);
        let (one, other) = (self.0 >> 32, self.0 & half);
        self.0 = mix(self.0.wrapping_add(STEP));
        ((((one * other) >> 32) * below as u64) >> 32) as usize
    }

    fn push(&mut self, list: &[&str], key: &mut Vec<u8>) {
        key.extend_from_slice(list[self.draw(list.len())].as_bytes());
    }

    /// A number, each alike.
    fn number(&mut self, first: usize, count: usize, digits: usize, key: &mut Vec<u8>) {
        let number = first + super::below(self.0, count as u64) as usize;
        self.0 = mix(self.0.wrapping_add(STEP));
        key.extend_from_slice(format!("{number:0digits$}").as_bytes());
    }

    fn person(&mut self, key: &mut Vec<u8>) {
        self.push(&NAMES, key);
        key.push(b'.');
        self.push(&SURNAMES, key);
    }
}

/// The number after the last colon is a bijection, so keys differ.
fn text(id: u64, seed: u64, key: &mut Vec<u8>) {
    let number = scatter_48(id, seed);
    let mut words = Words(mix(number));
    words.push(&COLLECTIONS, key);
    key.push(b':');
    words.push(&REGIONS, key);
    key.push(b':');
    words.person(key);
    key.push(b':');
    let mut rest = number;
    for _ in 0..10 {
        key.push(DIGITS[(rest % 36) as usize]);
        rest /= 36;
        if rest == 0 {
            break;
        }
    }
}

/// As in [`text`]: the twelve digits before the ending are a bijection of the number.
fn path(id: u64, seed: u64, key: &mut Vec<u8>) {
    let number = scatter_48(id, seed);
    let mut words = Words(mix(number));
    words.push(&ROOTS, key);
    key.push(b'/');
    words.number(2015, 11, 4, key);
    key.push(b'/');
    words.number(1, 12, 2, key);
    key.push(b'/');
    words.number(1, 28, 2, key);
    key.push(b'/');
    words.person(key);
    key.push(b'/');
    let (stem, ending) = FILES[words.draw(FILES.len())];
    key.extend_from_slice(stem.as_bytes());
    for shift in (0..BITS).step_by(4).rev() {
        key.push(DIGITS[(number >> shift & 15) as usize]);
    }
    key.extend_from_slice(ending.as_bytes());
}

const COLLECTIONS: [&str; 8] = [
    "session", "user", "cart", "order", "profile", "product", "invoice", "shipment",
];
const REGIONS: [&str; 8] = [
    "eu-west", "us-east", "us-west", "eu-north", "ap-south", "ap-east", "sa-east", "af-south",
];
const ROOTS: [&str; 8] = [
    "/srv/media/photos",
    "/var/lib/uploads/images",
    "/srv/media/video",
    "/home/shared/documents",
    "/var/lib/uploads/files",
    "/mnt/archive/scans",
    "/home/shared/projects",
    "/mnt/archive/mail",
];
const FILES: [(&str, &str); 8] = [
    ("IMG_", ".jpeg"),
    ("photo-", ".jpg"),
    ("scan_", ".pdf"),
    ("clip-", ".mp4"),
    ("report-", ".docx"),
    ("thumb_", ".webp"),
    ("message-", ".eml"),
    ("data_", ".parquet"),
];
const NAMES: [&str; 32] = [
    "olivia", "noah", "emma", "liam", "amelia", "elias", "sofia", "lucas", "mia", "mateo", "hana", "yusuf", "ines",
    "omar", "lena", "tariq", "chloe", "ivan", "freya", "kofi", "aisha", "jonas", "priya", "bruno", "wei", "anton",
    "zoe", "marta", "diego", "nils", "giulia", "kwame",
];
const SURNAMES: [&str; 32] = [
    "smith",
    "garcia",
    "mueller",
    "nguyen",
    "kim",
    "rossi",
    "dubois",
    "silva",
    "kowalski",
    "novak",
    "jensen",
    "haddad",
    "okafor",
    "tanaka",
    "ivanova",
    "lindqvist",
    "fernandez",
    "schneider",
    "oconnor",
    "patel",
    "yilmaz",
    "costa",
    "weber",
    "moreau",
    "horvath",
    "mbeki",
    "andersson",
    "chen",
    "papadopoulos",
    "virtanen",
    "murphy",
    "santos",
];

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
