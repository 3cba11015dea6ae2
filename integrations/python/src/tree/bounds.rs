//! Ranges of keys from slices, pairs and prefixes.

use std::ops::Bound as End;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PySlice;

use crate::input::Encoding;

/// A range of keys.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub low: End<Vec<u8>>,
    pub high: End<Vec<u8>>,
}

impl Bounds {
    pub fn all() -> Self {
        Self {
            low: End::Unbounded,
            high: End::Unbounded,
        }
    }

    /// # Errors
    /// `TypeError` for a step, or an end that is not a key.
    pub fn of_slice(keys: &Encoding, slice: &Bound<'_, PySlice>) -> PyResult<Self> {
        if !slice.getattr("step")?.is_none() {
            return Err(PyTypeError::new_err(
                "a slice of keys takes no step: irange() has reverse=",
            ));
        }
        let (low, high) = (slice.getattr("start")?, slice.getattr("stop")?);
        Self::of_ends(keys, Some(&low), Some(&high), (true, false))
    }

    /// Makes bounds from the ends and whether they are in the range; `None` stands for an open end.
    ///
    /// # Errors
    /// `TypeError` for an end that is not a key.
    pub fn of_ends(
        keys: &Encoding,
        low: Option<&Bound<'_, PyAny>>,
        high: Option<&Bound<'_, PyAny>>,
        inclusive: (bool, bool),
    ) -> PyResult<Self> {
        let end = |key: Option<&Bound<'_, PyAny>>, inclusive: bool| -> PyResult<End<Vec<u8>>> {
            let Some(key) = key.filter(|key| !key.is_none()) else {
                return Ok(End::Unbounded);
            };
            let key = keys.input(key, "an end of a range")?.to_vec();
            Ok(match inclusive {
                true => End::Included(key),
                false => End::Excluded(key),
            })
        };
        Ok(Self {
            low: end(low, inclusive.0)?,
            high: end(high, inclusive.1)?,
        })
    }

    /// Returns the range of the keys that begin with `prefix`.
    pub fn of_prefix(prefix: &[u8]) -> Self {
        // The least key above them all: the prefix without the 255s at its end, the last byte one more.
        let mut above = prefix.to_vec();
        while above.last() == Some(&u8::MAX) {
            above.pop();
        }
        let high = match above.last_mut() {
            Some(last) => {
                *last += 1;
                End::Excluded(above)
            }
            None => End::Unbounded,
        };
        Self {
            low: End::Included(prefix.to_vec()),
            high,
        }
    }

    /// Returns the range in the library's form.
    pub fn as_ref(&self) -> (End<&[u8]>, End<&[u8]>) {
        (
            self.low.as_ref().map(Vec::as_slice),
            self.high.as_ref().map(Vec::as_slice),
        )
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        let is_above = match &self.low {
            End::Included(low) => low.as_slice() <= key,
            End::Excluded(low) => low.as_slice() < key,
            End::Unbounded => true,
        };
        is_above
            && match &self.high {
                End::Included(high) => key <= high.as_slice(),
                End::Excluded(high) => key < high.as_slice(),
                End::Unbounded => true,
            }
    }

    /// Returns the intersection.
    pub fn within(&self, outer: &Self) -> Self {
        // Of two ends at one key the exclusive one is narrower.
        let low = narrower(&self.low, &outer.low, |inner, outer| inner > outer);
        let high = narrower(&self.high, &outer.high, |inner, outer| inner < outer);
        Self { low, high }
    }
}

fn narrower(inner: &End<Vec<u8>>, outer: &End<Vec<u8>>, is_narrower: impl Fn(&[u8], &[u8]) -> bool) -> End<Vec<u8>> {
    let (End::Included(a) | End::Excluded(a)) = inner else {
        return outer.clone();
    };
    let (End::Included(b) | End::Excluded(b)) = outer else {
        return inner.clone();
    };
    if is_narrower(a, b) || (a == b && matches!(inner, End::Excluded(_))) {
        inner.clone()
    } else {
        outer.clone()
    }
}
