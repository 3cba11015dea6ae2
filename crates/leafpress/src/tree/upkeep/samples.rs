//! Samples that a dictionary is trained from: raw frames, spread over a tree.

use crate::tree::error::TreeError;
use crate::tree::node::decoder::{Decoder, Engines};
use crate::tree::node::layout::FINGERPRINTS;
use crate::tree::node::leaf::Leaf;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::TryGrow;
use leafpress_base::mem::transient::Transient;
use leafpress_codec::Scratch;

/// A frame is no longer than this.
const MAX_SAMPLE_BYTES: usize = 64 << 10;

/// Takes raw frames as samples, spread over a tree.
pub(super) struct Sampler {
    step: usize,
    seen: usize,
    pub samples: Samples,
}

impl Sampler {
    /// One that takes about `bytes` of a tree whose leaves hold so many.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`].
    pub(super) fn new(bytes: usize, held: usize) -> Result<Self, TreeError> {
        Ok(Self {
            // Every nth frame of every leaf, with n such that they come to about `bytes`; a step that is no multiple of the frames
            // a leaf has, so that all places in a leaf are sampled.
            step: held.div_ceil(bytes.max(1)).max(1),
            seen: 0,
            samples: Samples::for_frames(bytes.min(held))?,
        })
    }

    /// Takes those of the leaf's frames that are next.
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

/// Raw bytes of a leaf's frames: in packed leaves keys are not in the frames.
pub(super) fn raw_bytes_of(leaf: Leaf<'_>) -> u64 {
    let header = leaf.header();
    let keys = if leaf.has(FINGERPRINTS) {
        0
    } else {
        leaf.count() * usize::from(header.key_len)
    };
    u64::from(header.inline_bytes).saturating_sub(keys as u64)
}

/// What is known of frames that are yet to come into a tree.
pub(crate) struct Ahead {
    pub samples: Samples,
    /// Of all of them.
    pub raw_bytes: u64,
}

/// Samples, back to back.
pub(crate) struct Samples {
    bytes: Transient,
    ends: Vec<usize>,
}

impl Samples {
    /// Room for samples of about so many bytes: a frame more at a leaf's end, and another where the tree has grown
    /// since, fit as well.
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

    /// Takes a sample, unless it is empty or there are enough.
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
