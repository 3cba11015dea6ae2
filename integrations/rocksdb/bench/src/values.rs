//! Where values come from: db_bench's source, and the two of RocksDB's pull request 10395, which the white paper's
//! figures were taken with.
//!
//! Pieces are taken one after the other and round again, as db_bench does. Which piece a key holds is a function of its
//! number, so that a read can be compared with what it must be.

use std::fmt;
use std::str::FromStr;

use leafpress_lab::core::corpus::{Corpus, Cut, Source};
use leafpress_lab::core::keys::{below, mix};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::{BenchError, Shape};

/// Bytes that db_bench makes values from; more when a value is longer.
const GENERATED_BYTES: usize = 1 << 20;
/// Bytes of a fragment that db_bench repeats to reach its compression ratio.
const FRAGMENT_BYTES: usize = 100;
/// Its random bytes are below this, so that they shrink by an eighth too: on x86-64 it draws below `CHAR_MAX`.
const GENERATED_BELOW: u64 = 127;
/// Different values that updates give a key, besides the one it is loaded with.
pub(crate) const UPDATES: u64 = 3;

/// The way in which the data becomes values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceType {
    /// Fragments of random bytes, repeated to reach the compression ratio: db_bench's own.
    PureRandom,
    /// Fragments from random places of the data, repeated in the same way.
    FileRandom,
    /// The data itself, piece after piece.
    FileDirect,
}

impl SourceType {
    const NAMES: [(&'static str, Self); 3] = [
        ("pure_random", Self::PureRandom),
        ("file_random", Self::FileRandom),
        ("file_direct", Self::FileDirect),
    ];
}

impl fmt::Display for SourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMES.iter().find(|(_, kind)| kind == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

impl FromStr for SourceType {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self, BenchError> {
        let named = Self::NAMES.iter().find(|(name, _)| *name == text);
        named.map(|(_, kind)| *kind).ok_or_else(|| {
            BenchError::option(
                "value_src_data_type",
                format!("unknown type `{text}`; known: pure_random file_random file_direct"),
            )
        })
    }
}

/// The source of the values of a database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValueSource {
    /// The way in which values are made.
    pub kind: SourceType,
    /// A file, directory, archive or bundled sample; not used by `pure_random`.
    pub data: Source,
    /// The part of a generated value that is not a repetition.
    pub compression_ratio: f64,
}

/// Reads the data of a shape once, so that one that cannot be used is known before anything runs.
///
/// # Errors
/// [`BenchError`] when it is missing, unreadable or too small.
pub fn check_values(shape: &Shape) -> Result<(), BenchError> {
    Values::load(&shape.values, shape.value_bytes, shape.seed).map(drop)
}

/// The values of a database, all of one length.
#[derive(Debug)]
pub(crate) struct Values {
    bytes: Vec<u8>,
    value_bytes: usize,
    pieces: u64,
    seed: u64,
}

impl Values {
    /// Reads or makes the data; `value_bytes` is at least 1.
    pub(crate) fn load(source: &ValueSource, value_bytes: usize, seed: u64) -> Result<Self, BenchError> {
        let bytes = match source.kind {
            SourceType::FileDirect => all_of(&source.data, seed)?,
            SourceType::FileRandom => generated(
                value_bytes,
                source.compression_ratio,
                Some(&all_of(&source.data, seed)?),
            ),
            SourceType::PureRandom => generated(value_bytes, source.compression_ratio, None),
        };
        let pieces = (bytes.len() / value_bytes) as u64;
        if pieces == 0 {
            return Err(BenchError::option(
                "data",
                format!(
                    "{}: its {} bytes are less than one value of {value_bytes}",
                    source.data,
                    bytes.len()
                ),
            ));
        }
        Ok(Self {
            bytes,
            value_bytes,
            pieces,
            seed,
        })
    }

    #[inline]
    fn piece(&self, number: u64) -> &[u8] {
        let at = (number % self.pieces) as usize * self.value_bytes;
        &self.bytes[at..at + self.value_bytes]
    }

    /// Returns the value that key `number` of an instance is loaded with; `first` is the piece of the instance's key 0.
    #[inline]
    pub(crate) fn loaded(&self, first: u64, number: u64) -> &[u8] {
        self.piece(first.wrapping_add(number))
    }

    /// Returns a value that an update gives key `number`; `random` chooses one of [`UPDATES`].
    #[inline]
    pub(crate) fn update(&self, number: u64, random: u64) -> &[u8] {
        let which = below(random, UPDATES);
        self.piece(below(mix(self.seed ^ mix(number * UPDATES + which)), self.pieces))
    }

    /// Returns whether key `number` can hold `value`.
    pub(crate) fn can_be(&self, first: u64, number: u64, value: &[u8]) -> bool {
        let update = |which: u64| self.piece(below(mix(self.seed ^ mix(number * UPDATES + which)), self.pieces));
        value == self.loaded(first, number) || (0..UPDATES).any(|which| value == update(which))
    }
}

/// Reads all bytes of a source.
fn all_of(source: &Source, seed: u64) -> Result<Vec<u8>, BenchError> {
    let cut = match source {
        Source::Synthetic(_) => Cut::Fixed(4096),
        _ => Cut::Fixed(1),
    };
    let corpus = Corpus::load(source, cut, false, seed)?;
    let mut bytes = Vec::with_capacity(corpus.total_bytes() as usize);
    (0..corpus.count()).for_each(|at| bytes.extend_from_slice(corpus.get(at)));
    Ok(bytes)
}

/// Fragments of which a part is random, or from a random place of `data`, and the rest repeats it. The seed is fixed,
/// as in db_bench.
fn generated(value_bytes: usize, compression_ratio: f64, data: Option<&[u8]>) -> Vec<u8> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(301);
    let wanted = GENERATED_BYTES.max(value_bytes);
    let fresh = ((FRAGMENT_BYTES as f64 * compression_ratio) as usize).clamp(1, FRAGMENT_BYTES);
    let mut bytes = Vec::with_capacity(wanted + FRAGMENT_BYTES);
    let mut piece = vec![0; fresh];
    while bytes.len() < wanted {
        match data {
            Some(data) if data.len() >= fresh => {
                let at = below(random.next_u64(), (data.len() - fresh + 1) as u64) as usize;
                piece.copy_from_slice(&data[at..at + fresh]);
            }
            _ => piece
                .iter_mut()
                .for_each(|byte| *byte = below(random.next_u64(), GENERATED_BELOW) as u8),
        }
        bytes.extend(piece.iter().copied().cycle().take(FRAGMENT_BYTES));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(kind: SourceType) -> Values {
        let source = ValueSource {
            kind,
            data: Source::Synthetic(0.5),
            compression_ratio: 0.5,
        };
        Values::load(&source, 100, 7).unwrap()
    }

    #[test]
    fn a_key_can_hold_only_values_written_to_it() {
        for kind in [SourceType::PureRandom, SourceType::FileRandom, SourceType::FileDirect] {
            let values = values(kind);
            for key in 0..100 {
                assert!(values.can_be(5, key, values.loaded(5, key)));
                for random in [0, 1 << 62, u64::MAX / 2, u64::MAX] {
                    assert!(values.can_be(5, key, values.update(key, random)));
                }
                let mut wrong = values.loaded(5, key).to_vec();
                wrong[50] ^= 1;
                assert!(!values.can_be(5, key, &wrong) && !values.can_be(5, key, &wrong[..99]));
            }
        }
    }

    #[test]
    fn neighbours_are_loaded_with_neighbouring_pieces() {
        let values = values(SourceType::FileDirect);
        assert_eq!(values.loaded(0, 3), &values.bytes[300..400]);
        assert_eq!(values.loaded(2, values.pieces), values.loaded(0, 2));
    }
}
