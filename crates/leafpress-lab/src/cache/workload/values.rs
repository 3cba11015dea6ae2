//! Values of each key and version, derived from a hash of both, so that every value can be verified without a copy.

use std::sync::Arc;

use super::cachebench::CacheBench;
use super::made::{Made, hash};
use crate::core::corpus::{Assignment, Corpus};
use crate::core::keys::below;

/// Values, by key and version.
pub(super) enum Values {
    /// The paper's: random bytes, followed by zeros.
    Made(Made),
    /// Values of a corpus, whole. The first `own` keys are loaded with the value of their own number, the others by
    /// `first`.
    Chosen {
        corpus: Arc<Corpus>,
        own: u64,
        first: Assignment,
    },
    /// A corpus's values, concatenated from a chosen one on, up to the key's length.
    Pieces {
        corpus: Arc<Corpus>,
        first: Assignment,
        lengths: Lengths,
    },
}

/// Lengths of values, in bytes.
pub(super) enum Lengths {
    /// A trace's, each by its key's number.
    Listed(Vec<u32>),
    /// The needs of a CacheBench file.
    Drawn(Arc<CacheBench>),
}

impl Lengths {
    #[inline]
    fn of(&self, id: u64) -> usize {
        match self {
            Self::Listed(lengths) => lengths[id as usize] as usize,
            Self::Drawn(cachebench) => cachebench.value_bytes(id),
        }
    }

    pub(super) fn mean(&self) -> f64 {
        match self {
            Self::Listed(lengths) => {
                lengths.iter().map(|len| f64::from(*len)).sum::<f64>() / lengths.len().max(1) as f64
            }
            Self::Drawn(cachebench) => cachebench.mean_bytes.1,
        }
    }

    fn longest(&self) -> usize {
        match self {
            Self::Listed(lengths) => lengths.iter().copied().max().unwrap_or(0) as usize,
            Self::Drawn(cachebench) => cachebench.longest_value(),
        }
    }
}

impl Values {
    /// Mean bytes of a value.
    pub(super) fn mean_bytes(&self) -> f64 {
        match self {
            Self::Made(made) => made.mean_bytes(),
            Self::Chosen { corpus, .. } => corpus.total_bytes() as f64 / corpus.count() as f64,
            Self::Pieces { lengths, .. } => lengths.mean(),
        }
    }

    /// Length of what a key holds first, in bytes.
    pub(super) fn len(&self, id: u64) -> u64 {
        match self {
            Self::Made(made) => made.len(id) as u64,
            Self::Chosen { corpus, own, first } => Self::chosen(corpus, *own, first, id, 0).len() as u64,
            Self::Pieces { lengths, .. } => lengths.of(id) as u64,
        }
    }

    /// Length of the longest, in bytes.
    pub(super) fn longest(&self) -> usize {
        match self {
            Self::Made(made) => made.longest(),
            Self::Chosen { corpus, .. } => corpus.longest(),
            Self::Pieces { lengths, .. } => lengths.longest(),
        }
    }

    #[inline]
    fn chosen<'c>(corpus: &'c Corpus, own: u64, first: &Assignment, id: u64, version: u32) -> &'c [u8] {
        if version == 0 && id < own {
            return corpus.get(id);
        }
        corpus.get(place(corpus, first, id, version))
    }

    /// Replaces `value` by what the key holds in a version.
    #[inline]
    pub(super) fn write(&self, id: u64, version: u32, value: &mut Vec<u8>) {
        value.clear();
        match self {
            Self::Made(made) => made.write(id, version, value),
            Self::Chosen { corpus, own, first } => {
                value.extend_from_slice(Self::chosen(corpus, *own, first, id, version));
            }
            Self::Pieces { corpus, first, lengths } => {
                pieces(corpus, place(corpus, first, id, version), lengths.of(id), |piece| {
                    value.extend_from_slice(piece);
                    true
                });
            }
        }
    }

    /// Whether this is what the key holds in a version.
    #[inline]
    pub(super) fn holds(&self, id: u64, version: u32, value: &[u8]) -> bool {
        match self {
            Self::Made(made) => made.holds(id, version, value),
            Self::Chosen { corpus, own, first } => value == Self::chosen(corpus, *own, first, id, version),
            Self::Pieces { corpus, first, lengths } => {
                let mut rest = value;
                let len = lengths.of(id);
                value.len() == len
                    && pieces(corpus, place(corpus, first, id, version), len, |piece| {
                        let (start, behind) = rest.split_at(piece.len());
                        rest = behind;
                        start == piece
                    })
            }
        }
    }
}

/// The value of the corpus that a version of a key is, or begins with. First versions are distinct while the corpus has
/// a value for every key.
#[inline]
fn place(corpus: &Corpus, first: &Assignment, id: u64, version: u32) -> u64 {
    match version {
        0 => first.value(id, 0),
        _ => below(hash(id, version), corpus.count()),
    }
}

/// Passes pieces of a value of `len` bytes, from the corpus's value at `at` on, until one is rejected; returns whether
/// none was.
fn pieces<'c>(corpus: &'c Corpus, mut at: u64, len: usize, mut take: impl FnMut(&'c [u8]) -> bool) -> bool {
    let mut left = len;
    // Empty values of a corpus bring it no further, but not all are empty.
    let mut idle = 0;
    while left > 0 && idle < corpus.count() {
        let piece = corpus.get(at);
        let piece = &piece[..piece.len().min(left)];
        if !take(piece) {
            return false;
        }
        idle = if piece.is_empty() { idle + 1 } else { 0 };
        left -= piece.len();
        at = (at + 1) % corpus.count();
    }
    true
}
