//! Samples for training a dictionary: raw frames, spread over a tree.

use crate::tree::error::TreeError;
use crate::tree::node::decoder::{Decoder, Engines};
use crate::tree::node::layout::FINGERPRINTS;
use crate::tree::node::leaf::Leaf;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::TryGrow;
use leafpress_base::mem::transient::Transient;
use leafpress_codec::Scratch;

/// Maximum length of a frame.
const MAX_SAMPLE_BYTES: usize = 64 << 10;

/// Collects raw frames as samples, spread over a tree.
pub(super) struct Sampler {
    step: usize,
    seen: usize,
    pub samples: Samples,
}

impl Sampler {
    /// Creates a sampler that takes about `bytes` of a tree whose leaves hold `held` bytes.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`].
    pub(super) fn new(bytes: usize, held: usize) -> Result<Self, TreeError> {
        Ok(Self {
            // Takes every nth frame of every leaf, with n such that they sum to about `bytes`; the step should not be a
            // multiple of the frames per leaf, so that all positions in a leaf are sampled.
            step: held.div_ceil(bytes.max(1)).max(1),
            seen: 0,
            samples: Samples::for_frames(bytes.min(held))?,
        })
    }

    /// Takes those of the leaf's frames whose turn it is.
    pub(super) fn visit(&mut self, leaf: Leaf<'_>, engines: &Engines, scratch: &mut Scratch) -> Result<(), TreeError> {
        let sections = leaf.sections();
        let mut decoder = Decoder::new(engines, scratch);
        for frame in 0..leaf.frames() {
            self.seen += 1;
            if self.seen.is_multiple_of(self.step) {
                let raw_len = leaf.raw_len(&sections, frame);
                let raw = leaf.decode(&sections, frame, raw_len, &mut decoder)?;
                self.samples.push(raw)?;
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
    pub samples: Samples,
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
