//! Sizes and times as Python objects.

use std::time::Duration;

use leafpress::cache::MAX_TAGS;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

use crate::call;
use crate::errors::Class;

/// Units of sizes, and their bytes. A letter alone is binary, as everywhere in Leafpress.
const UNITS: [(&str, u64); 13] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1_000),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1_000_000),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1_000_000_000),
    ("gib", 1 << 30),
    ("tb", 1_000_000_000_000),
    ("tib", 1 << 40),
];

fn name_of(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().name();
    name.map_or_else(|_| "something else".into(), |name| name.to_string())
}

/// Returns a number of bytes: an int, or text as in `"64MiB"` and `"1.5GB"`.
///
/// # Errors
/// `TypeError` for other types, `InvalidOption` for text that is not a size and for numbers below 0 or past 2^63.
pub fn bytes(option: &str, object: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(text) = object.cast::<PyString>() {
        let text = text.to_str()?;
        return parsed(text).ok_or_else(|| {
            Class::InvalidOption.error(format!(
                "{option}: {text:?} is not a size: write a number and a unit, as in \"64MiB\" or \"2GB\""
            ))
        });
    }
    if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
        let bytes = object.extract::<u64>().ok().filter(|&bytes| bytes < 1 << 63);
        return bytes.ok_or_else(|| {
            Class::InvalidOption.error(format!("{option}: the number of bytes is below 0 or past 2^63"))
        });
    }
    Err(PyTypeError::new_err(format!(
        "{option} must be an int of bytes or text as \"64MiB\", not {}",
        name_of(object)
    )))
}

/// Returns a percentage, or 0 for `None`. The library checks its bounds.
///
/// # Errors
/// `TypeError` for other types than int, `InvalidOption` for numbers out of range.
pub fn percent_or_zero(option: &str, object: Option<&Bound<'_, PyAny>>) -> PyResult<u8> {
    let Some(object) = object else { return Ok(0) };
    if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
        let percent = object.extract::<u8>().ok().filter(|percent| *percent <= 100);
        return percent.ok_or_else(|| Class::InvalidOption.error(format!("{option}: it is a percentage, 0 to 90")));
    }
    Err(PyTypeError::new_err(format!(
        "{option} must be an int, not {}",
        name_of(object)
    )))
}

/// Returns the bytes of a tag: of a `str` in UTF-8, or of `bytes`.
///
/// # Errors
/// `TypeError` for other types.
pub fn tag(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(text.to_str()?.as_bytes().to_vec());
    }
    let bytes = object.cast::<PyBytes>().map(|bytes| bytes.as_bytes().to_vec());
    bytes.map_err(|_| PyTypeError::new_err(format!("a tag must be str or bytes, not {}", name_of(object))))
}

/// Returns the tags of a record: one, or an iterable of several.
///
/// # Errors
/// `TypeError` for other types, `InvalidOption` for more than a record may have.
pub fn tags(object: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Vec<u8>>> {
    let mut tags = Vec::new();
    let Some(object) = object else { return Ok(tags) };
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        tags.push(tag(object)?);
        return Ok(tags);
    }
    for object in call::iterate(object)? {
        let tag = tag(&object?)?;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
        if tags.len() > MAX_TAGS {
            return Err(Class::InvalidOption.error(format!("tags: a record has at most {MAX_TAGS} tags")));
        }
    }
    Ok(tags)
}

/// Parses a size.
fn parsed(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start().to_ascii_lowercase();
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let number = number.replace('_', "");
    if let Ok(number) = number.parse::<u64>() {
        return number.checked_mul(*factor).filter(|&bytes| bytes < 1 << 63);
    }
    let bytes = number.parse::<f64>().ok()? * *factor as f64;
    (bytes < 9e18).then_some(bytes as u64)
}

/// Returns a time: seconds as int or float, or a `datetime.timedelta`.
///
/// # Errors
/// `TypeError` for other types, `InvalidOption` unless it is above 0 and finite. The library checks the bounds.
pub fn time(option: &str, object: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds: f64 = if object.is_instance_of::<PyBool>() {
        return Err(wrong_time(option, object));
    } else if object.is_instance_of::<PyInt>() || object.is_instance_of::<PyFloat>() {
        object.extract().unwrap_or(f64::INFINITY)
    } else {
        let total = object.call_method0("total_seconds").and_then(|total| total.extract());
        total.map_err(|_| wrong_time(option, object))?
    };
    let least = match option {
        "miss_cost" => "0 s",
        "time_to_idle" => "1 s",
        _ => "1 ms",
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        Class::InvalidOption.error(format!(
            "{option}: {seconds} s is out of bounds: from {least} to 10 years are allowed"
        ))
    })
}

fn wrong_time(option: &str, object: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "{option} must be seconds (int or float) or a timedelta, not {}",
        name_of(object)
    ))
}

/// Returns an optional time.
///
/// # Errors
/// As [`time`].
pub fn time_or_none(option: &str, object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Duration>> {
    object
        .filter(|object| !object.is_none())
        .map(|object| time(option, object))
        .transpose()
}
