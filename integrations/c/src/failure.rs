//! Errors and panics, as a status and a message that the thread keeps.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use leafpress_core::cache::CacheError;
use leafpress_core::codec::CodecError;
use leafpress_core::tree;

use crate::lp_status;
use crate::lp_status::*;

/// The reason for which a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub status: lp_status,
    message: Message,
}

#[derive(Debug)]
enum Message {
    /// A fixed message, without allocation, for frequent failures.
    Fixed(&'static CStr),
    Made(CString),
}

thread_local! {
    static LAST: RefCell<Message> = const { RefCell::new(Message::Fixed(c"")) };
}

impl Failure {
    pub fn new(status: lp_status, message: impl Into<String>) -> Self {
        let mut message = message.into().into_bytes();
        // A name within may have one.
        message.retain(|byte| *byte != 0);
        Self {
            status,
            message: CString::new(message).map_or(Message::Fixed(c"no message"), Message::Made),
        }
    }

    pub const fn fixed(status: lp_status, message: &'static CStr) -> Self {
        Self {
            status,
            message: Message::Fixed(message),
        }
    }

    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(LP_INVALID_ARGUMENT, message)
    }

    /// Returns this failure with a message that begins with the name.
    pub fn under(self, name: &str) -> Self {
        let text = match &self.message {
            Message::Fixed(text) => text.to_string_lossy(),
            Message::Made(text) => text.to_string_lossy(),
        };
        if text.starts_with(&format!("{name}:")) {
            return self;
        }
        Self::new(self.status, format!("{name}: {text}"))
    }

    /// Makes a failure of an error of the library. If there is no memory, its message is lost.
    fn of(status: lp_status, error: &impl std::fmt::Display) -> Self {
        match status {
            LP_OUT_OF_MEMORY => OUT_OF_MEMORY,
            status => Self::new(status, error.to_string()),
        }
    }
}

/// The failure of an allocation.
pub(crate) const OUT_OF_MEMORY: Failure = Failure::fixed(LP_OUT_OF_MEMORY, c"out of memory");

/// The failure to find a record.
pub(crate) const NOT_FOUND: Failure = Failure::fixed(LP_NOT_FOUND, c"there is no such record");
/// The failure to replace a value that is not the expected one.
pub(crate) const MISMATCH: Failure = Failure::fixed(LP_MISMATCH, c"the record has another value than was expected");
/// The failure of a call that a callback stopped.
pub(crate) const STOPPED: Failure = Failure::fixed(LP_STOPPED, c"the callback returned other than 0");

/// Returns [`NOT_FOUND`] unless something was found.
pub(crate) fn found(is_found: bool) -> Result<(), Failure> {
    if is_found { Ok(()) } else { Err(NOT_FOUND) }
}

impl From<CodecError> for Failure {
    fn from(error: CodecError) -> Self {
        let status = match &error {
            CodecError::UnknownName(_) => LP_INVALID_ARGUMENT,
            CodecError::Unavailable { .. } => LP_UNAVAILABLE,
            CodecError::Corrupt { .. } => LP_CORRUPT,
            CodecError::UnknownDictionary { .. } => LP_UNKNOWN_DICTIONARY,
            CodecError::TooLong { .. } => LP_TOO_LONG,
            CodecError::OutOfMemory { .. } => LP_OUT_OF_MEMORY,
            _ => LP_FAILED,
        };
        Self::of(status, &error)
    }
}

impl From<tree::TreeError> for Failure {
    fn from(error: tree::TreeError) -> Self {
        use tree::TreeError;
        let status = match error {
            TreeError::Codec(error) => return error.into(),
            TreeError::KeyTooLong { .. } | TreeError::ValueTooLong { .. } => LP_TOO_LONG,
            TreeError::Option { .. } | TreeError::Unsorted { .. } => LP_INVALID_ARGUMENT,
            TreeError::OutOfMemory { .. } => LP_OUT_OF_MEMORY,
            TreeError::Thread { .. } | TreeError::Background { .. } => LP_BACKGROUND,
            TreeError::Invalid(_) => LP_CORRUPT,
            _ => LP_FAILED,
        };
        Self::of(status, &error)
    }
}

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Self {
        let status = match error {
            CacheError::Codec(error) => return error.into(),
            CacheError::KeyTooLong { .. } | CacheError::ValueTooLong { .. } => LP_TOO_LONG,
            CacheError::Option { .. } => LP_INVALID_ARGUMENT,
            CacheError::Disk { .. } | CacheError::NotACache { .. } => LP_IO,
            CacheError::OutOfMemory { .. } => LP_OUT_OF_MEMORY,
            CacheError::Background { .. } => LP_BACKGROUND,
            CacheError::Invalid(_) => LP_CORRUPT,
            _ => LP_FAILED,
        };
        Self::of(status, &error)
    }
}

/// Runs a call. A failure or a panic becomes a status, and its message the thread's last.
#[inline]
pub(crate) fn call(work: impl FnOnce() -> Result<(), Failure>) -> lp_status {
    // After a panic only the library's own data may be inconsistent, and the library keeps it consistent.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => LP_OK,
        Ok(Err(failure)) => keep(failure),
        Err(panic) => keep(of_panic(&*panic)),
    }
}

#[cold]
fn of_panic(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::new(
        LP_PANIC,
        format!("a bug in the library, please report it: {}", text.unwrap_or("unknown")),
    )
}

fn keep(failure: Failure) -> lp_status {
    let Failure { status, message } = failure;
    // A thread that ends may have dropped it already.
    let _ = LAST.try_with(|last| last.replace(message));
    status
}

/// Returns the message of the thread's last failure, which is valid until the next one.
pub(crate) fn last_message() -> *const c_char {
    let found = LAST.try_with(|last| match &*last.borrow() {
        Message::Fixed(text) => text.as_ptr(),
        Message::Made(text) => text.as_ptr(),
    });
    found.unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> String {
        // SAFETY: it is a string that this thread keeps.
        unsafe { CStr::from_ptr(last_message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_ends_at_the_border() {
        assert_eq!(call(|| panic!("of {}", 7)), LP_PANIC);
        assert_eq!(message(), "a bug in the library, please report it: of 7");
        assert_eq!(call(|| std::panic::panic_any(7)), LP_PANIC);
        assert!(message().ends_with("unknown"));
    }

    #[test]
    fn a_message_stays_until_the_next_and_is_the_threads_own() {
        assert_eq!(call(|| Err(Failure::argument("one\0two"))), LP_INVALID_ARGUMENT);
        assert_eq!(call(|| Ok(())), LP_OK);
        assert_eq!(message(), "onetwo");
        std::thread::spawn(|| assert_eq!(message(), "")).join().unwrap();
        assert_eq!(call(|| Err(NOT_FOUND)), LP_NOT_FOUND);
        assert_eq!(message(), "there is no such record");
    }

    #[test]
    fn each_error_has_its_status() {
        let of = |error: CodecError| Failure::from(tree::TreeError::Codec(error)).status;
        let corrupt = CodecError::Corrupt {
            codec: "lz4",
            reason: "cut".into(),
        };
        assert_eq!(of(corrupt), LP_CORRUPT);
        assert_eq!(of(CodecError::OutOfMemory { bytes: 1 }), LP_OUT_OF_MEMORY);
        assert_eq!(of(CodecError::UnknownDictionary { id: 1 }), LP_UNKNOWN_DICTIONARY);
        let reason = || "why".to_owned();
        for (error, status) in [
            (tree::TreeError::Thread { reason: reason() }, LP_BACKGROUND),
            (tree::TreeError::Background { reason: reason() }, LP_BACKGROUND),
            (tree::TreeError::Invalid(reason()), LP_CORRUPT),
            (tree::TreeError::Unsorted { index: 3 }, LP_INVALID_ARGUMENT),
        ] {
            assert_eq!(Failure::from(error).status, status);
        }
        for (error, status) in [
            (CacheError::Background { reason: reason() }, LP_BACKGROUND),
            (CacheError::Invalid(reason()), LP_CORRUPT),
            (CacheError::Disk { reason: reason() }, LP_IO),
        ] {
            assert_eq!(Failure::from(error).status, status);
        }
    }
}
