//! Error replies of commands.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::MAX_BYTES;

/// The error of a command whose key holds another type.
pub const WRONG_TYPE_TEXT: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

static WRONG_TYPES: AtomicU64 = AtomicU64::new(0);

/// Returns how many replies were that the key holds another type.
pub fn wrong_types() -> u64 {
    WRONG_TYPES.load(Ordering::Relaxed)
}

/// An error reply. Texts are those of the native commands, where they have the same error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The number of arguments is wrong. The text names the command as the client sent it.
    Arity,
    /// A time to live is not valid. The text names the command as the client sent it.
    InvalidExpiry,
    /// Nothing was done, and the native command is to run instead of the one that stands for it.
    LeftToServer,
    /// Any other error, with the client's text.
    Text(Cow<'static, str>),
}

impl Failure {
    /// The key holds another type.
    pub const WRONG_TYPE: Self = Self::text(WRONG_TYPE_TEXT);
    /// An option is unknown, or two exclude each other.
    pub const SYNTAX: Self = Self::text("ERR syntax error");
    /// An argument is not a 64-bit integer.
    pub const NOT_INTEGER: Self = Self::text("ERR value is not an integer or out of range");
    /// An integer is too large for its purpose.
    pub const OUT_OF_RANGE: Self = Self::text("ERR value is out of range");

    /// Counts a reply with this error.
    pub fn count(&self) {
        if matches!(self, Self::LeftToServer) || *self == Self::WRONG_TYPE {
            WRONG_TYPES.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Makes an error with a constant text.
    pub const fn text(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// Makes an error with this text.
    pub fn formatted(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<leafpress::TreeError> for Failure {
    fn from(error: leafpress::TreeError) -> Self {
        match error {
            leafpress::TreeError::OutOfMemory { .. } => Self::formatted(format!("OOM {error}")),
            // This is the servers' text with the module's limit.
            leafpress::TreeError::ValueTooLong { .. } => {
                Self::formatted(format!("ERR string exceeds maximum allowed size ({MAX_BYTES} bytes)"))
            }
            error => Self::formatted(format!("ERR {error}")),
        }
    }
}
