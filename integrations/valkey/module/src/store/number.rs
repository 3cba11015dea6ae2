//! Numbers in text, as the servers read and write them.

use std::ffi::{c_char, c_int};

/// Parses a 64-bit integer without spaces, redundant signs or leading zeros, as the servers do.
pub fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    match digits {
        [b'0'] => return (digits.len() == text.len()).then_some(0),
        [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => {}
        _ => return None,
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The reason why floats cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatError {
    /// The text is not a number.
    NotANumber,
    /// It is infinite.
    NotFinite,
}

unsafe extern "C" {
    fn leafpress_float_check(text: *const c_char, len: usize) -> c_int;
    fn leafpress_float_add(
        a: *const c_char,
        a_len: usize,
        b: *const c_char,
        b_len: usize,
        out: *mut c_char,
        room: usize,
    ) -> c_int;
}

const NOT_FINITE: c_int = -2;

/// Longer than the digits of any `long double`.
const ROOM: usize = 5 * 1024;

fn error(outcome: c_int) -> FloatError {
    match outcome {
        NOT_FINITE => FloatError::NotFinite,
        _ => FloatError::NotANumber,
    }
}

/// Checks that text is a finite number.
pub fn check_float(text: &[u8]) -> Result<(), FloatError> {
    // SAFETY: the function reads `len` bytes.
    match unsafe { leafpress_float_check(text.as_ptr().cast(), text.len()) } {
        0 => Ok(()),
        outcome => Err(error(outcome)),
    }
}

/// Returns the sum of two numbers in the servers' precision and notation.
pub fn add_floats(a: &[u8], b: &[u8]) -> Result<Vec<u8>, FloatError> {
    let mut sum = vec![0; ROOM];
    // SAFETY: the function reads the two texts and writes no more than there is room.
    let outcome = unsafe {
        leafpress_float_add(
            a.as_ptr().cast(),
            a.len(),
            b.as_ptr().cast(),
            b.len(),
            sum.as_mut_ptr().cast(),
            sum.len(),
        )
    };
    let len = usize::try_from(outcome).map_err(|_| error(outcome))?;
    sum.truncate(len);
    Ok(sum)
}
