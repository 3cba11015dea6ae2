//! Samples for training a dictionary: raw frames and records, spread over a tree.

use crate::tree::error::TreeError;
use crate::tree::node::decoder::{Decoder, Engines, Value};
use crate::tree::node::layout::{FINGERPRINTS, KEYED};
use crate::tree::node::leaf::Leaf;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::TryGrow;
use leafpress_base::mem::transient::Transient;
use leafpress_codec::Scratch;

/// Maximum length of a frame.
const MAX_SAMPLE_BYTES: usize = 64 << 10;

/// Maximum length of a dictionary.
pub(super) const LARGEST_DICTIONARY_BYTES: u64 = 32 << 10;
/// Bytes of samples per byte of the dictionary. Beyond [`MANY_SAMPLE_BYTES`] in total the second, lower ratio applies:
/// more samples improve little and take time.
const SAMPLE_BYTES_PER_DICTIONARY_BYTE: usize = 100;
const FEW_SAMPLE_BYTES_PER_DICTIONARY_BYTE: usize = 50;
const MANY_SAMPLE_BYTES: usize = FEW_SAMPLE_BYTES_PER_DICTIONARY_BYTE * LARGEST_DICTIONARY_BYTES as usize;

/// Samples for the dictionaries of a tree.
pub(crate) struct Sampled {
    /// Bytes of the dictionary that the number of samples fits.
    pub dictionary_bytes: usize,
    /// Raw frames.
    pub frames: Samples,
    /// What the frames of one record, with their keys, would be; `None` where no codec needs them.
    pub records: Option<Samples>,
}

/// Collects samples spread over a tree.
pub(super) struct Sampler {
    step: usize,
    seen: usize,
    pub sampled: Sampled,
}

impl Sampler {
    /// Creates a sampler for a dictionary of a tree whose leaves hold `held` bytes, which takes records too if they are
    /// of use.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`].
    pub(super) fn new(dictionary_bytes: usize, held: usize, takes_records: bool) -> Result<Self, TreeError> {
        let bytes = sample_bytes_for(dictionary_bytes, takes_records);
        let samples = || Samples::for_frames(bytes.min(held));
        Ok(Self {
            // Takes every nth frame of every leaf, with n such that they sum to about `bytes`; the step should not be a
            // multiple of the frames per leaf, so that all positions in a leaf are sampled.
            step: held.div_ceil(bytes.max(1)).max(1),
            seen: 0,
            sampled: Sampled {
                dictionary_bytes,
                frames: samples()?,
                records: takes_records.then(samples).transpose()?,
            },
        })
    }

    /// Takes those of the leaf's frames whose turn it is.
    pub(super) fn visit(&mut self, leaf: Leaf<'_>, engines: &Engines, scratch: &mut Scratch) -> Result<(), TreeError> {
        let sections = leaf.sections();
        let mut decoder = Decoder::new(engines, scratch);
        let (mut key, mut record) = (Vec::new(), Vec::new());
        for frame in 0..leaf.frames() {
            self.seen += 1;
            if self.seen.is_multiple_of(self.step) {
                let raw_len = leaf.raw_len(&sections, frame);
                let raw = leaf.decode(&sections, frame, raw_len, &mut decoder)?;
                self.sampled.frames.push(raw)?;
                let Some(records) = &mut self.sampled.records else {
                    continue;
                };
                if leaf.has(KEYED) {
                    records.push(raw)?;
                    continue;
                }
                let prefix_len = match leaf.has(FINGERPRINTS) {
                    true => leaf.prefix(&sections).len(),
                    false => usize::MAX,
                };
                leaf.visit_frame(&sections, frame, &mut decoder, &mut key, |_, key, value| {
                    record.clear();
                    record.try_append(key.get(prefix_len..).unwrap_or_default())?;
                    if let Value::Inline(value) = value {
                        record.try_append(value)?;
                    }
                    Ok(records.push(&record)?)
                })?;
            }
        }
        Ok(())
    }
}

/// Returns the raw bytes of a leaf's frames: in packed leaves keys are not in the frames.
pub(super) fn raw_bytes_of(leaf: Leaf<'_>) -> u64 {
    let header = leaf.header();
    let keys = if leaf.has(FINGERPRINTS) {
        0
    } else {
        leaf.count() * usize::from(header.key_len)
    };
    u64::from(header.inline_bytes).saturating_sub(keys as u64)
}

/// What is known of frames that will be loaded into a tree.
pub(crate) struct Ahead {
    pub sampled: Sampled,
    /// Total raw bytes of the frames.
    pub raw_bytes: u64,
}

/// Samples, back to back.
pub(crate) struct Samples {
    bytes: Transient,
    ends: Vec<usize>,
}

impl Samples {
    /// Reserves room for samples of about `bytes`, and for two more frames: one that exceeds the target at a leaf's
    /// end, and one for growth of the tree meanwhile.
    pub(crate) fn for_frames(bytes: usize) -> Result<Self, TreeError> {
        Self::with_capacity(bytes + bytes / 4 + MAX_SAMPLE_BYTES)
    }

    fn with_capacity(bytes: usize) -> Result<Self, TreeError> {
        let room = Transient::with_capacity(bytes).ok_or(TreeError::OutOfMemory { bytes })?;
        Ok(Self {
            bytes: room,
            ends: Vec::new(),
        })
    }

    /// Adds a sample, unless it is empty or there are enough.
    pub(crate) fn push(&mut self, sample: &[u8]) -> Result<(), OutOfMemory> {
        if !sample.is_empty() && self.bytes.push(sample) {
            self.ends.try_push(self.bytes.bytes().len())?;
        }
        Ok(())
    }

    pub(super) fn each(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.bytes.bytes()[start..end])
    }
}

/// Returns the bytes of samples for a dictionary of `bytes`, of each kind if records are sampled as well as frames:
/// both together take no more memory than one does.
pub(crate) fn sample_bytes_for(bytes: usize, takes_records: bool) -> usize {
    let both = (bytes * SAMPLE_BYTES_PER_DICTIONARY_BYTE)
        .min(MANY_SAMPLE_BYTES)
        .max(bytes * FEW_SAMPLE_BYTES_PER_DICTIONARY_BYTE);
    if takes_records { both / 2 } else { both }
}
