//! The types that the library and the C++ shim exchange (`shim/abi.h`): borrowed bytes, text whose ownership is
//! transferred, and results of calls. No panic leaves a function that the shim calls.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

/// Borrowed bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct View {
    data: *const u8,
    len: usize,
}

impl View {
    pub(crate) const NONE: Self = Self {
        data: std::ptr::null(),
        len: 0,
    };

    pub(crate) fn of(bytes: &(impl AsRef<[u8]> + ?Sized)) -> Self {
        let bytes = bytes.as_ref();
        Self {
            data: bytes.as_ptr(),
            len: bytes.len(),
        }
    }

    /// # Safety
    /// The bytes are readable for as long as the result is used, or there are none.
    pub(crate) unsafe fn bytes<'v>(self) -> &'v [u8] {
        if self.data.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: `data` is not null and points to `len` readable bytes, which do not change while the result is used.
        unsafe { slice::from_raw_parts(self.data, self.len) }
    }

    /// # Safety
    /// As for [`View::bytes`].
    pub(crate) unsafe fn text<'v>(self) -> Cow<'v, str> {
        // SAFETY: the bytes, if there are any, are readable and do not change while the result is used.
        String::from_utf8_lossy(unsafe { self.bytes() })
    }
}

/// Text, or other bytes, that the shim owns and gives back to `leafpress_text_free`.
#[repr(C)]
pub(crate) struct Text {
    data: *mut u8,
    len: usize,
}

impl Text {
    pub(crate) const NONE: Self = Self {
        data: std::ptr::null_mut(),
        len: 0,
    };

    /// Transfers ownership of bytes.
    pub(crate) fn give(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into().into_boxed_slice();
        let len = bytes.len();
        Self {
            data: Box::into_raw(bytes).cast(),
            len,
        }
    }
}

/// Takes text back.
///
/// # Safety
/// `text` came from this library and was not given back before.
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_text_free(text: Text) {
    if !text.data.is_null() {
        // SAFETY: `data` and `len` are those of the boxed slice that `Text::give` released, and the shim gives each
        // text back once.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(text.data, text.len)) });
    }
}

/// The result of a call, which the shim converts to a `Status`.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Ok = 0,
    InvalidArgument = 1,
    Corruption = 2,
    NotSupported = 3,
    MemoryLimit = 4,
    IoError = 5,
}

/// The reason why a call failed.
pub(crate) struct Failure(pub(crate) Code, pub(crate) String);

/// Runs `work`; returns `failed` after a panic, which is a bug.
pub(crate) fn guarded<R>(failed: R, work: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(failed)
}

/// Runs `work` and returns its [`Code`]; writes the reason of a failure to `error`.
///
/// # Safety
/// `error` is writable.
pub(crate) unsafe fn reported(error: *mut Text, work: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Failure(Code::IoError, "leafpress: a bug; please report it".to_owned())));
    match result {
        Ok(()) => Code::Ok as i32,
        Err(Failure(code, message)) => {
            // SAFETY: `error` points to a `Text` of the shim that is writable, and no other call writes to it.
            unsafe { error.write(Text::give(message)) };
            code as i32
        }
    }
}
