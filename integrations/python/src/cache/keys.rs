//! Keys of several types in one order of bytes.
//!
//! A cache with a serializer takes str, bytes, int, float, None and tuples of these. What is equal in Python is one
//! key: `True`, `1` and `1.0` are. A key is a tag and what the type needs, so that keys of one kind are in its own
//! order, and numbers in one, whatever their types:
//!
//! ```text
//! 1   None
//! 2   bytes
//! 3   str, in UTF-8
//! 5   tuple: its elements, then 0
//! 14  number from -2^127 down, infinity included: 64 bits of the float, complemented
//! 15..31 number below 0: 31 less the number of bytes of its whole part, those bytes, big-endian, and its fraction,
//!     all complemented
//! 32..48 number from 0 on: 32 and the number of bytes of its whole part, those bytes, big-endian, and its fraction
//! 49  number from 2^127 on, infinity included: 64 bits of the float
//! ```
//!
//! A fraction is the 64 bits of it as a float, whose first bit is 0, and is set here. A number from 0 on without one
//! ends with its whole part: what comes next in a tuple is less than 128. A number below 0 without one ends by 255,
//! which is more than the complement of any fraction.
//!
//! In a tuple, bytes and str end by a zero, and a zero of theirs has 255 behind it.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyFloat, PyInt, PyMemoryView, PyString, PyTuple};

use crate::call;
use crate::errors::Class;
use crate::input::Input;

const END: u8 = 0;
const NONE: u8 = 1;
const BYTES: u8 = 2;
const STR: u8 = 3;
const TUPLE: u8 = 5;
/// Numbers from 0 on, and below.
const UP: u8 = 32;
const DOWN: u8 = 31;
const MAX_BYTES: u8 = 16;
/// Beyond what an int may be.
const FAR_UP: u8 = UP + MAX_BYTES + 1;
const FAR_DOWN: u8 = DOWN - MAX_BYTES - 1;
/// Ends a number below 0 that has no fraction.
const NO_FRACTION: u8 = 255;
/// In the first byte of a fraction.
const IS_FRACTION: u8 = 128;
/// 2^127: ints are kept up to it, and it is one below 0.
const LIMIT: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
/// Maximum depth of nested tuples, which bounds the stack.
const MAX_DEPTH: usize = 32;

/// Returns the bytes of a key.
///
/// # Errors
/// `TypeError` for other types, `OverflowError` for ints beyond 127 bits, `InvalidOption` for NaN and for tuples in
/// more than 32 tuples.
pub fn encoded(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::with_capacity(64);
    put(&mut bytes, object, 0)?;
    Ok(bytes)
}

/// Returns the keys that begin with this one, text that goes on or tuples that have more: from where, and up to where
/// if that is known.
///
/// # Errors
/// As [`encoded`].
pub fn prefix(object: &Bound<'_, PyAny>) -> PyResult<(Vec<u8>, Option<Vec<u8>>)> {
    let mut low = encoded(object)?;
    let mut high = low.clone();
    match low[0] {
        STR | BYTES => return Ok((low, None)),
        TUPLE => {}
        // Nothing but the key itself: a fraction of a number is no longer text.
        _ => {
            high.push(END);
            return Ok((low, Some(high)));
        }
    }
    low.pop();
    high.pop();
    // What comes next is a tag, or the end. More than that goes on with the last element: a fraction of a number, a
    // zero in text.
    high.push(IS_FRACTION);
    Ok((low, Some(high)))
}

fn put(bytes: &mut Vec<u8>, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
    if let Ok(text) = object.cast::<PyString>() {
        bytes.push(STR);
        put_text(bytes, text.to_str()?.as_bytes(), depth);
    } else if object.is_instance_of::<PyInt>() {
        put_int(bytes, object)?;
    } else if object.is_instance_of::<PyFloat>() {
        put_float(bytes, object)?;
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        if depth == MAX_DEPTH {
            return Err(Class::InvalidOption.error(format!("a key may have tuples in tuples {MAX_DEPTH} deep")));
        }
        bytes.push(TUPLE);
        for element in tuple.iter() {
            put(bytes, &element, depth + 1)?;
        }
        bytes.push(END);
    } else if object.is_none() {
        bytes.push(NONE);
    } else if is_bytes(object)? {
        let raw = Input::of_buffer(object, "key").map_err(|_| wrong_type(object))?;
        bytes.push(BYTES);
        put_text(bytes, &raw, depth);
    } else {
        let number = number(object)?;
        let number = number
            .filter(|number| !number.is_none())
            .ok_or_else(|| wrong_type(object))?;
        put(bytes, &number, depth)?;
    }
    Ok(())
}

/// Returns whether an object is equal to the bytes that it has. Other buffers may have the bytes of another object that
/// is not equal.
fn is_bytes(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>() {
        return Ok(true);
    }
    let Ok(view) = object.cast::<PyMemoryView>() else {
        return Ok(false);
    };
    let format: String = view.getattr("format")?.extract()?;
    Ok(format == "B")
}

/// Returns the int or float that a scalar of NumPy is equal to; None, or nothing, for any other object.
#[cold]
fn number<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let module = object.get_type().module()?;
    if module.to_str().ok() != Some("numpy") {
        return Ok(None);
    }
    static NUMBER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let number = NUMBER.import(object.py(), "leafpress._keys", "plain_number")?;
    call::with(number, (object,)).map(Some)
}

fn wrong_type(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name();
    let name = name.map_or_else(|_| "something else".into(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "key must be str, bytes, int, float, None or a tuple of these, not {name}"
    ))
}

fn put_text(bytes: &mut Vec<u8>, text: &[u8], depth: usize) {
    if depth == 0 {
        bytes.extend_from_slice(text);
        return;
    }
    for &byte in text {
        bytes.push(byte);
        if byte == END {
            bytes.push(u8::MAX);
        }
    }
    bytes.push(END);
}

fn put_int(bytes: &mut Vec<u8>, object: &Bound<'_, PyAny>) -> PyResult<()> {
    let number: i128 = object
        .extract()
        .map_err(|_| PyOverflowError::new_err("an int as a key must be within 127 bits and a sign"))?;
    put_number(bytes, number < 0, number.unsigned_abs(), 0.0);
    Ok(())
}

fn put_float(bytes: &mut Vec<u8>, object: &Bound<'_, PyAny>) -> PyResult<()> {
    let number: f64 = object.extract()?;
    if number.is_nan() {
        return Err(Class::InvalidOption.error("NaN is equal to nothing and cannot be a key"));
    }
    let size = number.abs();
    if size < LIMIT || number == -LIMIT {
        put_number(bytes, number < 0.0, size.trunc() as u128, size.fract());
        return Ok(());
    }
    let (tag, bits) = if number > 0.0 {
        (FAR_UP, size.to_bits())
    } else {
        (FAR_DOWN, !size.to_bits())
    };
    bytes.push(tag);
    bytes.extend_from_slice(&bits.to_be_bytes());
    Ok(())
}

fn put_number(bytes: &mut Vec<u8>, is_below: bool, whole: u128, fraction: f64) {
    let count = MAX_BYTES - (whole.leading_zeros() / 8) as u8;
    bytes.push(if is_below { DOWN - count } else { UP + count });
    let from = bytes.len();
    bytes.extend_from_slice(&whole.to_be_bytes()[usize::from(MAX_BYTES - count)..]);
    if fraction > 0.0 {
        let mut bits = fraction.to_bits().to_be_bytes();
        bits[0] |= IS_FRACTION;
        bytes.extend_from_slice(&bits);
    }
    if is_below {
        bytes[from..].iter_mut().for_each(|byte| *byte = !*byte);
        if fraction == 0.0 {
            bytes.push(NO_FRACTION);
        }
    }
}

/// Returns the key of bytes that [`encoded`] made.
///
/// # Errors
/// `CorruptBlock` for any other bytes.
pub fn decoded<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (object, rest) = take(py, bytes, 0)?;
    if rest.is_empty() { Ok(object) } else { Err(foreign()) }
}

fn foreign() -> PyErr {
    Class::CorruptBlock.error(
        "a key in the cache was not written by a cache with a serializer: open it with the options it was made with",
    )
}

fn take<'py, 'b>(py: Python<'py>, bytes: &'b [u8], depth: usize) -> PyResult<(Bound<'py, PyAny>, &'b [u8])> {
    let (&tag, rest) = bytes.split_first().ok_or_else(foreign)?;
    match tag {
        NONE => Ok((py.None().into_bound(py), rest)),
        BYTES => {
            let (raw, rest) = take_text(rest, depth)?;
            Ok((PyBytes::new(py, &raw).into_any(), rest))
        }
        STR => {
            let (raw, rest) = take_text(rest, depth)?;
            let text = std::str::from_utf8(&raw).map_err(|_| foreign())?;
            Ok((PyString::new(py, text).into_any(), rest))
        }
        TUPLE if depth < MAX_DEPTH => take_tuple(py, rest, depth),
        FAR_UP | FAR_DOWN => {
            let (bits, rest) = rest.split_first_chunk::<8>().ok_or_else(foreign)?;
            let bits = u64::from_be_bytes(*bits);
            let number = if tag == FAR_UP {
                f64::from_bits(bits)
            } else {
                -f64::from_bits(!bits)
            };
            Ok((PyFloat::new(py, number).into_any(), rest))
        }
        UP..FAR_UP => take_number(py, rest, tag - UP, false),
        FAR_DOWN..=DOWN => take_number(py, rest, DOWN - tag, true),
        _ => Err(foreign()),
    }
}

/// Returns a number whose whole part has `count` bytes.
fn take_number<'py, 'b>(
    py: Python<'py>,
    bytes: &'b [u8],
    count: u8,
    is_below: bool,
) -> PyResult<(Bound<'py, PyAny>, &'b [u8])> {
    let turn = |byte: u8| if is_below { !byte } else { byte };
    let (digits, rest) = bytes.split_at_checked(usize::from(count)).ok_or_else(foreign)?;
    let whole = digits
        .iter()
        .fold(0, |whole: u128, byte| whole << 8 | u128::from(turn(*byte)));
    let has_fraction = match rest.first() {
        Some(&NO_FRACTION) if is_below => false,
        None if is_below => return Err(foreign()),
        Some(&first) => turn(first) & IS_FRACTION != 0,
        None => false,
    };
    if has_fraction {
        let (bits, rest) = rest.split_first_chunk::<8>().ok_or_else(foreign)?;
        let mut bits = bits.map(turn);
        bits[0] &= !IS_FRACTION;
        // The float that was put in: its two parts were exact.
        let size = whole as f64 + f64::from_bits(u64::from_be_bytes(bits));
        let number = if is_below { -size } else { size };
        return Ok((PyFloat::new(py, number).into_any(), rest));
    }
    let number = if is_below { whole.wrapping_neg() } else { whole }.cast_signed();
    let rest = if is_below { &rest[1..] } else { rest };
    Ok((number.into_pyobject(py)?.into_any(), rest))
}

fn take_tuple<'py, 'b>(py: Python<'py>, mut rest: &'b [u8], depth: usize) -> PyResult<(Bound<'py, PyAny>, &'b [u8])> {
    let mut elements = Vec::new();
    loop {
        match rest.split_first() {
            None => return Err(foreign()),
            Some((&END, behind)) => return Ok((PyTuple::new(py, elements)?.into_any(), behind)),
            Some(_) => {
                let (element, behind) = take(py, rest, depth + 1)?;
                elements.push(element);
                rest = behind;
            }
        }
    }
}

fn take_text(bytes: &[u8], depth: usize) -> PyResult<(Vec<u8>, &[u8])> {
    if depth == 0 {
        return Ok((bytes.to_vec(), &[]));
    }
    let (mut text, mut at) = (Vec::new(), 0);
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (None, _) => return Err(foreign()),
            (Some(&END), Some(&u8::MAX)) => {
                text.push(END);
                at += 2;
            }
            (Some(&END), _) => return Ok((text, &bytes[at + 1..])),
            (Some(&byte), _) => {
                text.push(byte);
                at += 1;
            }
        }
    }
}
