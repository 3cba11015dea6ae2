//! Long replies, which end when their client no longer waits for them.

use super::context::Context;

/// Bytes of a reply between two checks of its client.
const LOOK_EVERY: usize = 1 << 20;
/// The overhead of a part of a reply, in bytes.
const PART: usize = 16;

/// The progress of a reply whose length depends on the data.
///
/// The server discards replies to a client whose connection it is about to close, for example if it exceeded an output
/// limit, and does not report it. A command with a long reply checks [`Output::is_closing`].
pub struct Output {
    context: Context,
    bytes: usize,
    is_closing: bool,
}

impl Output {
    /// Makes an empty one.
    pub fn new(context: Context) -> Self {
        Self {
            context,
            bytes: 0,
            is_closing: false,
        }
    }

    /// Counts a part of a reply.
    pub fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes).saturating_add(PART);
    }

    /// Returns whether the connection is about to be closed. This is checked after each mebibyte.
    pub fn is_closing(&mut self) -> bool {
        if self.bytes >= LOOK_EVERY {
            self.bytes = 0;
            self.is_closing = self.context.is_closing();
        }
        self.is_closing
    }
}
