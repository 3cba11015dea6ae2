//! Dictionary training from samples: the choice of the size, and the decision whether the dictionary pays off.

use crate::tree::error::TreeError;
use crate::tree::upkeep::samples::{LARGEST_DICTIONARY_BYTES, Samples};
use leafpress_base::mem::room::collected;
use leafpress_codec::{Codec, Dictionary, Engine, saves_enough};

/// User bytes of the tree per byte of the dictionary; its size is the next power of two, as that of the tables derived
/// from it.
const USER_BYTES_PER_DICTIONARY_BYTE: u64 = 256;
const SMALLEST_BYTES: u64 = 4 << 10;
/// Maximum for LZ4, whose lookup tables should stay in the L1 cache together with the dictionary.
const LARGEST_LZ4_BYTES: u64 = 16 << 10;
/// Bytes of a dictionary of OnPair for each token, half of the maximum: few tokens are as long.
const ONPAIR_BYTES_PER_TOKEN: u64 = 8;
/// Number of sizes tried, each half of the previous one: in a small tree a smaller dictionary may be better.
const SIZES_TRIED: usize = 3;
/// A new dictionary must save at least `1 / MIN_SAVED_IN` of the bytes, since every leaf is recompressed with it.
const MIN_SAVED_IN: u64 = 100;
/// One in this number of samples is held out from the training to evaluate the result.
const HELD_OUT: usize = 5;

/// Estimated size of a tree.
struct Judged {
    pressed_bytes: u64,
    /// The dictionary and its tables, unless other trees hold them anyway.
    dictionary_bytes: u64,
}

impl Judged {
    fn held(&self) -> u64 {
        self.pressed_bytes + self.dictionary_bytes
    }
}

/// Properties of the tree that a dictionary is trained for.
#[derive(Clone, Copy)]
pub(super) struct Aim {
    /// Maximum bytes of the dictionary.
    pub bytes: usize,
    /// Bytes of the dictionary that the number of samples fits.
    pub sampled_bytes: usize,
    pub user_bytes: u64,
    /// Raw bytes in its frames.
    pub raw_bytes: u64,
}

/// An existing dictionary.
pub(super) struct Candidate {
    /// The dictionary to evaluate, or a copy for a thread that shares nothing with the tree's readers.
    pub judged: Dictionary,
    pub taken: Dictionary,
    /// Whether other trees hold it anyway.
    pub is_shared: bool,
}

/// The existing dictionaries at the start of a training.
pub(super) struct Standing {
    pub current: Option<Candidate>,
    /// Dictionaries of other trees that this one does not have, with their codecs.
    pub shared: Vec<(Codec, Candidate)>,
}

impl Standing {
    /// Returns the dictionaries for a codec, of which the current one is one if it `is_current`.
    pub(super) fn among(&self, codec: Codec, is_current: bool) -> Among<'_> {
        Among {
            current: self.current.as_ref().filter(|_| is_current),
            shared: &self.shared,
            codec,
        }
    }
}

/// The existing dictionaries for one codec.
pub(super) struct Among<'s> {
    current: Option<&'s Candidate>,
    shared: &'s [(Codec, Candidate)],
    codec: Codec,
}

impl Among<'_> {
    fn shared(&self) -> impl Iterator<Item = &Candidate> {
        let of_codec = self.shared.iter().filter(|(codec, _)| *codec == self.codec);
        of_codec.map(|(_, candidate)| candidate)
    }
}

/// A dictionary that is better than the current one.
pub(super) struct Trained {
    pub dictionary: Dictionary,
    /// Whether no tree has it yet.
    pub is_new: bool,
}

/// The engine and limits of a training.
pub(super) struct Trainer<'t> {
    pub engine: &'t dyn Engine,
    /// The codec to train for: the engine's, or one of its candidates.
    pub codec: Codec,
    /// Configured maximum bytes of a dictionary.
    pub max_bytes: Option<usize>,
    /// Maximum bytes of a dictionary where none is configured.
    pub largest_bytes: u64,
}

impl Trainer<'_> {
    /// Returns the maximum bytes of a dictionary for a tree of `user_bytes`.
    pub(super) fn bytes_for(&self, user_bytes: u64) -> usize {
        self.max_bytes.unwrap_or_else(|| {
            let share = user_bytes / USER_BYTES_PER_DICTIONARY_BYTE;
            share.next_power_of_two().clamp(SMALLEST_BYTES, self.largest_bytes) as usize
        })
    }

    /// Returns a dictionary of at most `bytes`, trained from these frames, if it saves more than it costs in a tree
    /// with these user bytes and raw frame bytes; `None` where it does not, or it `is_stopped`.
    pub(super) fn train(
        &self,
        samples: &Samples,
        standing: &Among<'_>,
        Aim {
            bytes,
            sampled_bytes,
            user_bytes,
            raw_bytes,
        }: Aim,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Trained>, TreeError> {
        let parts = |held_out: bool| {
            let samples = samples.each().enumerate();
            samples
                .filter(move |(index, _)| (index % HELD_OUT == 0) == held_out)
                .map(|(_, sample)| sample)
        };
        let training: Vec<&[u8]> = collected(parts(false))?;
        let judges: Vec<&[u8]> = collected(parts(true))?;
        let judge = |candidate: &Candidate| {
            let held_bytes = |dictionary: &Dictionary| {
                if candidate.is_shared {
                    0
                } else {
                    dictionary.held_bytes()
                }
            };
            self.judge(&judges, raw_bytes, Some(&candidate.judged), held_bytes)
        };
        let before = match standing.current {
            Some(current) => judge(current)?,
            None => self.judge(&judges, raw_bytes, None, |_| 0)?,
        };
        let mut best: Option<(Judged, Trained)> = None;
        for shared in standing.shared() {
            // A dictionary that the codec rejects is skipped.
            let Ok(judged) = judge(shared) else {
                continue;
            };
            if best.as_ref().is_none_or(|(least, _)| judged.held() < least.held()) {
                let dictionary = shared.taken.clone();
                best = Some((
                    judged,
                    Trained {
                        dictionary,
                        is_new: false,
                    },
                ));
            }
        }
        let sizes: Vec<usize> = collected(self.sizes_to_try(bytes, user_bytes))?;
        // One training of OnPair finds the tokens of all sizes.
        let at_once = match self.codec {
            Codec::OnPair { .. } | Codec::OnPairHuffman => sizes.len(),
            _ => 1,
        };
        for sizes in sizes.chunks(at_once.max(1)) {
            if is_stopped() {
                return Ok(None);
            }
            let largest = sizes[0];
            let training: Vec<&[u8]> = collected(training.iter().step_by((sampled_bytes / largest).max(1)).copied())?;
            // Too little data, or data without anything in common, is not an error: the tree has no dictionary then.
            let Ok(trained) = Dictionary::train_sizes(self.codec, &training, sizes) else {
                continue;
            };
            for dictionary in trained {
                let judged = self.judge(&judges, raw_bytes, Some(&dictionary), Dictionary::held_bytes)?;
                if best.as_ref().is_none_or(|(least, _)| judged.held() < least.held()) {
                    best = Some((
                        judged,
                        Trained {
                            dictionary,
                            is_new: true,
                        },
                    ));
                }
            }
        }
        let best = best.filter(|(after, _)| {
            let saved = before.pressed_bytes.saturating_sub(after.pressed_bytes);
            saved * MIN_SAVED_IN > before.pressed_bytes && after.held() < before.held()
        });
        Ok(best.map(|(_, trained)| trained))
    }

    /// Returns `bytes`, and smaller sizes if a dictionary is large compared to the tree and the size is not configured.
    fn sizes_to_try(&self, bytes: usize, user_bytes: u64) -> impl Iterator<Item = usize> {
        let small_tree = user_bytes <= bytes as u64 * USER_BYTES_PER_DICTIONARY_BYTE;
        let least = if small_tree && self.max_bytes.is_none() {
            SMALLEST_BYTES as usize
        } else {
            bytes
        };
        let sizes = (0..SIZES_TRIED).map(move |halved| bytes >> halved);
        sizes.take_while(move |size| *size >= least)
    }

    /// Estimates the size of a tree with `raw_bytes` in its frames with `dictionary`, from held-out frames.
    fn judge(
        &self,
        frames: &[&[u8]],
        raw_bytes: u64,
        dictionary: Option<&Dictionary>,
        dictionary_bytes: impl FnOnce(&Dictionary) -> usize,
    ) -> Result<Judged, TreeError> {
        let (mut raw, mut built) = (0u64, 0u64);
        let mut block = Vec::new();
        for frame in frames {
            raw += frame.len() as u64;
            built += self.pressed_len(frame, dictionary, &mut block)?;
        }
        Ok(Judged {
            pressed_bytes: (u128::from(built) * u128::from(raw_bytes) / u128::from(raw.max(1))) as u64,
            // Its tables exist by now.
            dictionary_bytes: dictionary.map_or(0, dictionary_bytes) as u64,
        })
    }

    fn pressed_len(&self, raw: &[u8], dictionary: Option<&Dictionary>, block: &mut Vec<u8>) -> Result<u64, TreeError> {
        block.clear();
        let stored = self.engine.compress(raw, dictionary, block)?;
        Ok(if saves_enough(stored, raw.len()) {
            stored
        } else {
            raw.len()
        } as u64)
    }
}

/// Returns the codecs that a tree of this codec may use, at least one.
pub(super) fn codecs_of(codec: &Codec) -> &[Codec] {
    match codec.candidates() {
        [] => std::slice::from_ref(codec),
        candidates => candidates,
    }
}

/// Returns the maximum bytes of a dictionary for a codec, where none is configured.
pub(super) fn largest_bytes(codec: Codec) -> u64 {
    match codec {
        Codec::Lz4 { .. } | Codec::Lz4Hc { .. } => LARGEST_LZ4_BYTES,
        Codec::OnPair { bits } => ONPAIR_BYTES_PER_TOKEN << bits,
        Codec::OnPairHuffman => ONPAIR_BYTES_PER_TOKEN << 12,
        Codec::Trial { .. } => {
            let of_each = codec.candidates().iter().map(|candidate| largest_bytes(*candidate));
            of_each.max().unwrap_or(LARGEST_DICTIONARY_BYTES)
        }
        _ => LARGEST_DICTIONARY_BYTES,
    }
}
