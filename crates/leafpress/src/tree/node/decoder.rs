//! The engines that decode frames, and the buffers for decoded frames.

use std::sync::Arc;

use crate::tree::error::TreeError;
use crate::tree::node::large::Large;
use leafpress_codec::{CodecError, Engine, Scratch};

/// A record's value.
pub(crate) enum Value<'a, 'g> {
    Inline(&'a [u8]),
    Large(Large<'g>),
}

/// The engines that compress and decode leaves, by temperature: the same engine for both in a tree of one codec.
pub(crate) struct Engines {
    /// Also used for large values.
    pub warm: Arc<dyn Engine>,
    pub cold: Arc<dyn Engine>,
}

/// Decodes frames into one buffer, and counts its work.
pub(crate) struct Decoder<'a> {
    pub engines: &'a Engines,
    pub scratch: &'a mut Scratch,
    pub frames: u64,
    pub bytes: u64,
    /// The address of the block whose complete raw bytes are still in the buffer; 0 for none. A guard keeps the block
    /// from being freed while a decoder is used.
    pub(super) whole: usize,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(engines: &'a Engines, scratch: &'a mut Scratch) -> Self {
        Self {
            engines,
            scratch,
            frames: 0,
            bytes: 0,
            whole: 0,
        }
    }

    /// Records that `block` was decoded last, to the `raw_len` bytes at `raw`: a search for a key in them is often
    /// followed by a read of its value.
    #[inline(never)]
    pub(crate) fn note_whole(&mut self, block: &[u8], raw: *const u8, raw_len: usize) {
        let kept = self.scratch.last(raw_len);
        if kept.len() == raw_len && std::ptr::eq(kept.as_ptr(), raw) {
            self.whole = block.as_ptr().addr();
        }
    }
}

/// Returns the error for decoded bytes that differ from what was compressed.
#[cold]
pub(crate) fn corrupt(reason: &'static str) -> TreeError {
    TreeError::Codec(CodecError::Corrupt {
        codec: "leaf",
        reason: reason.into(),
    })
}
