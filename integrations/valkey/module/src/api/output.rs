//! Long replies, which end where nobody waits for them any more.

use super::context::Context;

/// Bytes of a reply between two looks at its client.
const LOOK_EVERY: usize = 1 << 20;
/// What a part of a reply counts for besides its own bytes.
const PART: usize = 16;

/// What was replied so far to a client that says how long the reply is to be.
///
/// The server throws away what is replied to a client whose connection it is about to close, as where a limit of its output was passed,
/// and says nothing. Who would go on for long asks [`Output::is_closing`].
pub struct Output {
    context: Context,
    bytes: usize,
    is_closing: bool,
}

impl Output {
    /// Nothing so far.
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

    /// Whether the connection is about to be closed. The server is asked after each mebibyte.
    pub fn is_closing(&mut self) -> bool {
        if self.bytes >= LOOK_EVERY {
            self.bytes = 0;
            self.is_closing = self.context.is_closing();
        }
        self.is_closing
    }
}
