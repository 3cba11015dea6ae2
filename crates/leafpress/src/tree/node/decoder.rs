//! What frames are decoded by, and to.

use std::sync::Arc;

use crate::tree::error::TreeError;
use crate::tree::node::large::Large;
use leafpress_codec::{CodecError, Engine, Scratch};

/// A record's value.
pub(crate) enum Value<'a, 'g> {
    Inline(&'a [u8]),
    Large(Large<'g>),
}

/// What compresses and decodes leaves, by their temperature: the same for both in a tree of one codec.
pub(crate) struct Engines {
    /// Also that of large values.
    pub warm: Arc<dyn Engine>,
    pub cold: Arc<dyn Engine>,
}

/// Decodes frames into one buffer and counts what it did.
pub(crate) struct Decoder<'a> {
    pub engines: &'a Engines,
    pub scratch: &'a mut Scratch,
    pub frames: u64,
    pub bytes: u64,
    /// The address of the block whose raw bytes, all of them, are in the buffer still; 0 for none. A guard keeps the block where it is for
    /// as long as a decoder is used.
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

    /// Notes that `block` was decoded last, to the `raw_len` bytes at `raw`: who looked for a key in them may want its value next.
    #[inline(never)]
    pub(crate) fn note_whole(&mut self, block: &[u8], raw: *const u8, raw_len: usize) {
        let kept = self.scratch.last(raw_len);
        if kept.len() == raw_len && std::ptr::eq(kept.as_ptr(), raw) {
            self.whole = block.as_ptr().addr();
        }
    }
}

/// The error for decoded bytes that are not what was compressed.
#[cold]
pub(crate) fn corrupt(reason: &'static str) -> TreeError {
    TreeError::Codec(CodecError::Corrupt {
        codec: "leaf",
        reason: reason.into(),
    })
}
