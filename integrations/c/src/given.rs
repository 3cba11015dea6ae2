//! What callers pass: bytes, room for bytes, places for results.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ops::Bound;

use crate::failure::{Failure, OUT_OF_MEMORY};
use crate::lp_bytes;
use crate::lp_status::LP_BUFFER_TOO_SMALL;

/// Bytes that are borrowed from the caller for the time of the call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    /// [`None`] if the pointer was NULL.
    bytes: Option<&'a [u8]>,
    /// The length that was passed.
    len: usize,
}

impl<'a> Given<'a> {
    /// # Safety
    /// `len` bytes are readable, or `data` is NULL, or `len` is impossible.
    #[inline]
    pub unsafe fn new(data: *const c_void, len: usize) -> Self {
        let is_there = !data.is_null() && isize::try_from(len).is_ok();
        Self {
            // SAFETY: `data` is not NULL and points to `len` bytes, which fit into `isize`; the caller keeps them
            // unchanged during the call.
            bytes: is_there.then(|| unsafe { std::slice::from_raw_parts(data.cast(), len) }),
            len,
        }
    }

    /// Returns the bytes: none if the pointer is NULL and the length 0.
    #[inline]
    pub fn get(self, what: &str) -> Result<&'a [u8], Failure> {
        match self.bytes {
            Some(bytes) => Ok(bytes),
            None if self.len == 0 => Ok(&[]),
            None => Err(no_bytes(what, self.len)),
        }
    }

    /// Returns them as the start or the end of a range, which is open if the pointer is NULL.
    pub fn bound(self, what: &str, bound: fn(Vec<u8>) -> Bound<Vec<u8>>) -> Result<Bound<Vec<u8>>, Failure> {
        match self.bytes {
            None => self.get(what).map(|_| Bound::Unbounded),
            Some(bytes) => copied(bytes).map(bound),
        }
    }
}

#[cold]
fn no_bytes(what: &str, len: usize) -> Failure {
    if isize::try_from(len).is_ok() {
        Failure::argument(format!("the {what} is NULL, and its length is {len}"))
    } else {
        Failure::argument(format!("the {what} cannot be {len} bytes long"))
    }
}

/// Returns a copy, or an error if there is no memory for it.
pub(crate) fn copied(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut copy = Vec::new();
    replace(&mut copy, bytes)?;
    Ok(copy)
}

/// Replaces the content of a vector.
pub(crate) fn replace(buffer: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Failure> {
    buffer.clear();
    let room = buffer.try_reserve(bytes.len());
    room.map_err(|_| OUT_OF_MEMORY)?;
    buffer.extend_from_slice(bytes);
    Ok(())
}

/// Returns a string of the caller's.
///
/// # Safety
/// It ends with a zero byte, or is NULL.
pub(crate) unsafe fn text<'a>(string: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if string.is_null() {
        return Err(Failure::argument(format!("the {what} is NULL")));
    }
    // SAFETY: `string` is not NULL and ends with a zero byte; the caller keeps it unchanged during the call.
    let text = unsafe { CStr::from_ptr(string) }.to_str();
    text.map_err(|_| Failure::argument(format!("the {what} is not UTF-8")))
}

/// Returns a list of the caller's.
///
/// # Safety
/// As for [`Given::new`], of `count` items.
pub(crate) unsafe fn list<'a, T>(items: *const T, count: usize, what: &str) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    let fits = count
        .checked_mul(size_of::<T>())
        .is_some_and(|bytes| isize::try_from(bytes).is_ok());
    if items.is_null() || !fits {
        return Err(Failure::argument(format!("{count} {what} cannot be at {items:p}")));
    }
    // SAFETY: `items` is not NULL and points to `count` items, whose bytes fit into `isize`; the caller keeps them
    // unchanged during the call.
    Ok(unsafe { std::slice::from_raw_parts(items, count) })
}

/// Returns the bytes of each item of a list.
///
/// # Safety
/// As for [`Given::new`], of each.
pub(crate) unsafe fn each<'a>(items: &[lp_bytes], what: &str) -> Result<Vec<&'a [u8]>, Failure> {
    let mut slices = Vec::new();
    let room = slices.try_reserve_exact(items.len());
    room.map_err(|_| OUT_OF_MEMORY)?;
    for item in items {
        // SAFETY: the caller keeps the bytes of each item readable and unchanged during the call, or passes a length of
        // 0.
        slices.push(unsafe { Given::new(item.data, item.len) }.get(what)?);
    }
    Ok(slices)
}

/// Returns bytes, or [`None`] for a null pointer.
///
/// # Safety
/// As for [`Given::new`].
pub(crate) unsafe fn optional<'a>(bytes: Option<&lp_bytes>, what: &str) -> Result<Option<&'a [u8]>, Failure> {
    // SAFETY: the caller keeps the bytes readable and unchanged during the call, or passes a length of 0.
    let given = bytes.map(|bytes| unsafe { Given::new(bytes.data, bytes.len) });
    given.map(|given| given.get(what)).transpose()
}

/// A place for a result.
pub(crate) struct Out;

impl Out {
    #[inline]
    pub fn at<'o, T>(place: Option<&'o mut MaybeUninit<T>>, what: &str) -> Result<&'o mut MaybeUninit<T>, Failure> {
        place.ok_or_else(|| Failure::argument(format!("{what} is NULL")))
    }

    /// Writes the value if the caller passed a place for it.
    pub fn put<T>(place: Option<&mut MaybeUninit<T>>, value: T) {
        if let Some(place) = place {
            place.write(value);
        }
    }
}

/// A buffer of the caller's that bytes are copied to.
pub(crate) struct Room<'o> {
    buffer: *mut u8,
    capacity: usize,
    len: &'o mut usize,
}

impl<'o> Room<'o> {
    /// Makes a room; the length is 0 until there are bytes.
    ///
    /// # Safety
    /// `capacity` bytes may be written to `buffer` while this exists, or it is NULL.
    pub unsafe fn new(
        buffer: *mut c_void,
        capacity: usize,
        len: Option<&'o mut MaybeUninit<usize>>,
    ) -> Result<Self, Failure> {
        let len = Out::at(len, "where to put the length")?.write(0);
        if buffer.is_null() && capacity > 0 {
            return Err(Failure::argument(format!(
                "the buffer is NULL, and its capacity is {capacity}"
            )));
        }
        Ok(Self {
            buffer: buffer.cast(),
            capacity,
            len,
        })
    }

    /// Writes the length of the result, and returns the room for it; [`None`] if only the length was requested.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<Option<&mut [MaybeUninit<u8>]>, Failure> {
        *self.len = bytes;
        if self.buffer.is_null() {
            return Ok(None);
        }
        if bytes > self.capacity {
            return Err(too_small(bytes, self.capacity));
        }
        // SAFETY: the caller provides room for that many bytes, which need not be initialised yet.
        Ok(Some(unsafe {
            std::slice::from_raw_parts_mut(self.buffer.cast(), bytes)
        }))
    }

    /// Copies the result.
    #[inline]
    pub fn fill(&mut self, result: &[u8]) -> Result<(), Failure> {
        if let Some(room) = self.take(result.len())? {
            room.write_copy_of_slice(result);
        }
        Ok(())
    }

    /// Returns the whole buffer, initialised, to be filled in part; [`None`] if only the length is requested.
    pub fn all(&mut self) -> Option<&mut [u8]> {
        if self.buffer.is_null() || isize::try_from(self.capacity).is_err() {
            return None;
        }
        // SAFETY: the caller provides room for that many bytes, and all of them are written.
        unsafe {
            self.buffer.write_bytes(0, self.capacity);
            Some(std::slice::from_raw_parts_mut(self.buffer, self.capacity))
        }
    }

    /// Records that `bytes` bytes of [`Room::all`] were filled.
    pub fn filled(&mut self, bytes: usize) {
        *self.len = bytes;
    }
}

#[cold]
fn too_small(needed: usize, capacity: usize) -> Failure {
    Failure::new(
        LP_BUFFER_TOO_SMALL,
        format!("the buffer has room for {capacity} bytes, {needed} are needed"),
    )
}
