//! Keys of several types in one order of bytes.
//!
//! A cache with a serializer takes str, bytes, int, float, None and tuples of these. What is equal in Python is one key: `True`, `1` and `1.0`
//! are. A key is a tag and what the type needs, so that keys of one type are in its own order:
//!
//! ```text
//! 1 None   2 bytes   3 str, UTF-8   5 tuple   16..48 int: 32 + (or -) the number of bytes, big-endian (below 0: complemented)
//! 64 float that is no whole number, big-endian, so turned that the order of the bytes is that of the numbers
//! ```
//!
//! In a tuple, bytes and str end by a zero, and a zero of theirs has 255 behind it; the tuple ends by a zero.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString, PyTuple};

use crate::errors::Class;
use crate::input::Input;

const END: u8 = 0;
const NONE: u8 = 1;
const BYTES: u8 = 2;
const STR: u8 = 3;
const TUPLE: u8 = 5;
const INT: u8 = 32;
const INT_BYTES: u8 = 16;
const FLOAT: u8 = 64;
/// Tuples in tuples. It bounds the stack.
const MOST_DEPTH: usize = 32;

/// The bytes of a key.
///
/// # Errors
/// `TypeError` for other types, `OverflowError` for ints past 127 bits, `InvalidOption` for NaN and for tuples in more than 32 tuples.
pub fn encoded(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::with_capacity(64);
    put(&mut bytes, object, 0)?;
    Ok(bytes)
}

/// The keys that begin with this one, text that goes on or tuples that have more: from where, and up to where if that is known.
///
/// # Errors
/// As [`encoded`].
pub fn prefix(object: &Bound<'_, PyAny>) -> PyResult<(Vec<u8>, Option<Vec<u8>>)> {
    let mut low = encoded(object)?;
    if !object.is_instance_of::<PyTuple>() {
        return Ok((low, None));
    }
    low.pop();
    let mut high = low.clone();
    // An element begins by a tag. 255 would go on with the text before.
    high.push(u8::MAX);
    Ok((low, Some(high)))
}

fn put(bytes: &mut Vec<u8>, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
    if let Ok(text) = object.cast::<PyString>() {
        bytes.push(STR);
        put_text(bytes, text.to_str()?.as_bytes(), depth);
    } else if object.is_instance_of::<PyInt>() {
        let number = object
            .extract::<i128>()
            .map_err(|_| PyOverflowError::new_err("an int as a key must be within 127 bits and a sign"))?;
        put_int(bytes, number);
    } else if object.is_instance_of::<PyFloat>() {
        put_float(bytes, object)?;
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        if depth == MOST_DEPTH {
            return Err(Class::InvalidOption.error(format!("a key may have tuples in tuples {MOST_DEPTH} deep")));
        }
        bytes.push(TUPLE);
        for element in tuple.iter() {
            put(bytes, &element, depth + 1)?;
        }
        bytes.push(END);
    } else if object.is_none() {
        bytes.push(NONE);
    } else {
        let raw = Input::of_buffer(object, "key").map_err(|_| wrong_type(object))?;
        bytes.push(BYTES);
        put_text(bytes, &raw, depth);
    }
    Ok(())
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

fn put_int(bytes: &mut Vec<u8>, number: i128) {
    let size = number.unsigned_abs();
    let count = INT_BYTES - (size.leading_zeros() / 8) as u8;
    let is_below = number < 0;
    bytes.push(if is_below { INT - count } else { INT + count });
    let whole = if is_below { !size } else { size };
    bytes.extend_from_slice(&whole.to_be_bytes()[usize::from(INT_BYTES - count)..]);
}

fn put_float(bytes: &mut Vec<u8>, object: &Bound<'_, PyAny>) -> PyResult<()> {
    let number: f64 = object.extract()?;
    if number.is_nan() {
        return Err(Class::InvalidOption.error("NaN is equal to nothing and cannot be a key"));
    }
    if number.fract() == 0.0 && number.abs() < 1e38 {
        put_int(bytes, number as i128);
        return Ok(());
    }
    let bits = number.to_bits();
    let turned = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
    bytes.push(FLOAT);
    bytes.extend_from_slice(&turned.to_be_bytes());
    Ok(())
}

/// The key of bytes that [`encoded`] made.
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
        TUPLE if depth < MOST_DEPTH => take_tuple(py, rest, depth),
        FLOAT => {
            let (turned, rest) = rest.split_first_chunk::<8>().ok_or_else(foreign)?;
            let turned = u64::from_be_bytes(*turned);
            let bits = if turned >> 63 == 1 {
                turned & !(1 << 63)
            } else {
                !turned
            };
            Ok((PyFloat::new(py, f64::from_bits(bits)).into_any(), rest))
        }
        tag if tag.abs_diff(INT) <= INT_BYTES => {
            let count = usize::from(tag.abs_diff(INT));
            let (digits, rest) = rest.split_at_checked(count).ok_or_else(foreign)?;
            let mut whole = [if tag < INT { u8::MAX } else { 0 }; INT_BYTES as usize];
            whole[usize::from(INT_BYTES) - count..].copy_from_slice(digits);
            let whole = u128::from_be_bytes(whole);
            // Of a number below 0 the complement of its size.
            let number = if tag < INT { (!whole).wrapping_neg() } else { whole }.cast_signed();
            Ok((number.into_pyobject(py)?.into_any(), rest))
        }
        _ => Err(foreign()),
    }
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
