//! Safe bindings of liblz4.
//!
//! Its functions are declared here (lz4.h, version 1.10), because `lz4-sys` declares only some of those in its object
//! code. For any input liblz4 reads and writes within the lengths that are passed; each call below takes them from
//! slices.

use std::ffi::{c_char, c_int};

use crate::room::{BytesIdentity, Room};
use crate::{CodecError, output};

// Linked for its object code.
use lz4_sys as _;

/// The codec's name in errors.
pub(crate) const NAME: &str = "lz4";

/// LZ4_HASHTABLESIZE + the fields before it (`LZ4_STREAM_MINSIZE` with `LZ4_MEMORY_USAGE` 14).
pub(crate) const STREAM_BYTES: usize = (1 << 14) + 32;

/// `LZ4_stream_t`: compression state, or a dictionary prepared for compression. All zeroes is its initial state.
#[repr(C, align(8))]
pub(crate) struct Stream {
    state: [u8; STREAM_BYTES],
}

/// `LZ4_STREAMHC_MINSIZE` of lz4hc.h.
pub(crate) const HIGH_STREAM_BYTES: usize = 262_200;

/// `LZ4_streamHC_t`: state of the slow encoders, or a dictionary prepared for them.
#[repr(C, align(8))]
pub(crate) struct HighStream {
    state: [u8; HIGH_STREAM_BYTES],
}

/// The slow level with an encoder of its own (`LZ4HC_CLEVEL_MIN`, LZ4MID).
pub(crate) const MIDDLE_LEVEL: i32 = 2;

/// The largest input of a block (`LZ4_MAX_INPUT_SIZE`).
pub(crate) const MAX_INPUT_BYTES: usize = 0x7E00_0000;

/// Maximum distance of a match, and so the usable length of a dictionary.
pub(crate) const MAX_DICTIONARY_BYTES: usize = 64 << 10;

unsafe extern "C" {
    fn LZ4_initStream(buffer: *mut Stream, size: usize) -> *mut Stream;
    fn LZ4_resetStream_fast(stream: *mut Stream);
    fn LZ4_loadDictSlow(stream: *mut Stream, dictionary: *const c_char, size: c_int) -> c_int;
    fn LZ4_attach_dictionary(working: *mut Stream, dictionary: *const Stream);
    fn LZ4_compress_fast_continue(
        stream: *mut Stream,
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        dest_capacity: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_compress_fast_extState_fastReset(
        state: *mut Stream,
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        dest_capacity: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_initStreamHC(buffer: *mut HighStream, size: usize) -> *mut HighStream;
    fn LZ4_resetStreamHC_fast(stream: *mut HighStream, level: c_int);
    fn LZ4_loadDictHC(stream: *mut HighStream, dictionary: *const c_char, size: c_int) -> c_int;
    fn LZ4_attach_HC_dictionary(working: *mut HighStream, dictionary: *const HighStream);
    fn LZ4_compress_HC_continue(
        stream: *mut HighStream,
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        dest_capacity: c_int,
    ) -> c_int;
    fn LZ4_decompress_safe(source: *const c_char, dest: *mut c_char, source_size: c_int, dest_capacity: c_int)
    -> c_int;
    fn LZ4_decompress_safe_usingDict(
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        dest_capacity: c_int,
        dictionary: *const c_char,
        dictionary_size: c_int,
    ) -> c_int;
    fn LZ4_decompress_safe_partial(
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        target_size: c_int,
        dest_capacity: c_int,
    ) -> c_int;
    fn LZ4_decompress_safe_partial_usingDict(
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        target_size: c_int,
        dest_capacity: c_int,
        dictionary: *const c_char,
        dictionary_size: c_int,
    ) -> c_int;
}

/// Returns liblz4's version as three numbers.
pub(super) fn version() -> (c_int, c_int, c_int) {
    // SAFETY: the function returns a constant.
    let number = unsafe { lz4_sys::LZ4_versionNumber() };
    (number / 10_000, number / 100 % 100, number % 100)
}

/// Converts a length to liblz4's type; longer blocks cannot be LZ4's.
fn int(bytes: usize) -> Result<c_int, CodecError> {
    c_int::try_from(bytes).map_err(|_| output::corrupt(NAME, "it is longer than a block can be"))
}

/// Allocates an all-zero `S`, or returns `None` if there is no memory.
///
/// # Safety
/// An all-zero `S` must be valid, and `S` must not be zero-sized.
unsafe fn zeroed<S>() -> Option<Box<S>> {
    let layout = std::alloc::Layout::new::<S>();
    // SAFETY: the layout's size is not zero.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<S>();
    // SAFETY: the global allocator allocated it with `S`'s layout, and an all-zero `S` is valid.
    (!memory.is_null()).then(|| unsafe { Box::from_raw(memory) })
}

/// A dictionary loaded into a stream that is then only read. The stream points to the dictionary's bytes.
pub(crate) struct Prepared<S> {
    stream: Box<S>,
    bytes: BytesIdentity,
}

/// A prepared dictionary with its bytes.
pub(crate) struct Attached<'d, S> {
    stream: &'d S,
    _bytes: &'d [u8],
}

impl<S> Prepared<S> {
    /// Returns the dictionary with its bytes; `None` if it was prepared from other bytes.
    #[inline]
    pub(crate) fn with<'d>(&'d self, bytes: &'d [u8]) -> Option<Attached<'d, S>> {
        (BytesIdentity::of(bytes) == self.bytes).then_some(Attached {
            stream: &*self.stream,
            _bytes: bytes,
        })
    }
}

/// Sets the room's block from the result of liblz4; returns false if it did not fit.
///
/// # Safety
/// `written` must be the result of liblz4 for this room.
#[inline]
unsafe fn written(written: c_int, room: &mut Room<'_>) -> bool {
    let Some(len) = usize::try_from(written).ok().filter(|len| *len > 0) else {
        return false;
    };
    // SAFETY: liblz4 initialised the number of bytes that it returned, which are within the room.
    unsafe { room.set_len(len) };
    true
}

/// Returns a room's start and its length in liblz4's type.
#[inline]
fn destination(room: &mut Room<'_>) -> Result<(*mut c_char, c_int), CodecError> {
    let capacity = int(room.capacity().min(MAX_INPUT_BYTES))?;
    Ok((room.as_mut_ptr().cast(), capacity))
}

impl Stream {
    /// Returns a stream in its initial state; `None` if there is no memory for it.
    pub(super) fn new() -> Option<Box<Self>> {
        // SAFETY: a stream consists of bytes, so all zeros are valid, and it is not zero-sized.
        let mut stream = unsafe { zeroed::<Self>() }?;
        // SAFETY: the pointer is to `STREAM_BYTES` writable bytes with the alignment of `LZ4_stream_t`.
        let initialised = unsafe { LZ4_initStream(&raw mut *stream, STREAM_BYTES) };
        (!initialised.is_null()).then_some(stream)
    }

    /// Prepares a dictionary; `None` if there is no memory for its tables.
    pub(super) fn prepare(dictionary: &[u8]) -> Option<Prepared<Self>> {
        let mut stream = Self::new()?;
        let size = c_int::try_from(dictionary.len()).ok()?;
        // SAFETY: the stream is initialised and `dictionary` is `size` readable bytes. The stream keeps pointing to
        // them; it is used only with them at hand (`Attached`).
        unsafe { LZ4_loadDictSlow(&raw mut *stream, dictionary.as_ptr().cast(), size) };
        Some(Prepared {
            stream,
            bytes: BytesIdentity::of(dictionary),
        })
    }

    /// Compresses `input` into the room; returns false if it does not fit.
    pub(super) fn compress(
        &mut self,
        input: &[u8],
        dictionary: Option<Attached<'_, Self>>,
        acceleration: c_int,
        room: &mut Room<'_>,
    ) -> Result<bool, CodecError> {
        let (source, size) = (input.as_ptr().cast(), int(input.len())?);
        let (dest, capacity) = destination(room)?;
        let stream: *mut Self = self;
        // SAFETY: the stream is initialised and borrowed exclusively, the input is readable and the room writable for
        // their lengths. The attached dictionary is only read, outlives the call, and is detached before it returns.
        let (fits, len) = unsafe {
            let len = match dictionary {
                None => LZ4_compress_fast_extState_fastReset(stream, source, dest, size, capacity, acceleration),
                Some(dictionary) => {
                    LZ4_resetStream_fast(stream);
                    LZ4_attach_dictionary(stream, dictionary.stream);
                    let len = LZ4_compress_fast_continue(stream, source, dest, size, capacity, acceleration);
                    LZ4_attach_dictionary(stream, std::ptr::null());
                    len
                }
            };
            (written(len, room), len)
        };
        if len <= 0 {
            // liblz4 defines a stream's state only after a finished block; its slow streams detect an unfinished one
            // themselves.
            // SAFETY: the stream is borrowed exclusively and has `STREAM_BYTES` bytes.
            unsafe { LZ4_initStream(stream, STREAM_BYTES) };
        }
        Ok(fits)
    }
}

impl HighStream {
    /// Returns a stream in its initial state; `None` if there is no memory for it.
    pub(super) fn new() -> Option<Box<Self>> {
        // SAFETY: a stream consists of bytes, so all zeros are valid, and it is not zero-sized.
        let mut stream = unsafe { zeroed::<Self>() }?;
        // SAFETY: the pointer is to `HIGH_STREAM_BYTES` writable bytes with the alignment of `LZ4_streamHC_t`.
        let initialised = unsafe { LZ4_initStreamHC(&raw mut *stream, HIGH_STREAM_BYTES) };
        (!initialised.is_null()).then_some(stream)
    }

    /// Prepares a dictionary for the encoder of `level`; `None` if there is no memory for its tables.
    pub(super) fn prepare(dictionary: &[u8], level: c_int) -> Option<Prepared<Self>> {
        let mut stream = Self::new()?;
        let size = c_int::try_from(dictionary.len()).ok()?;
        let target: *mut Self = &raw mut *stream;
        // SAFETY: the stream is initialised and `dictionary` is `size` readable bytes. The stream keeps pointing to
        // them; it is used only with them at hand (`Attached`). The level is set first: it determines the layout of the
        // tables.
        unsafe {
            LZ4_resetStreamHC_fast(target, level);
            LZ4_loadDictHC(target, dictionary.as_ptr().cast(), size);
        }
        Some(Prepared {
            stream,
            bytes: BytesIdentity::of(dictionary),
        })
    }

    /// Compresses `input` into the room; returns false if it does not fit. If the dictionary was prepared for the
    /// encoder of another level, the block is larger.
    pub(super) fn compress(
        &mut self,
        input: &[u8],
        dictionary: Option<Attached<'_, Self>>,
        level: c_int,
        room: &mut Room<'_>,
    ) -> Result<bool, CodecError> {
        let (source, size) = (input.as_ptr().cast(), int(input.len())?);
        let (dest, capacity) = destination(room)?;
        let attached = dictionary.map_or(std::ptr::null(), |dictionary| std::ptr::from_ref(dictionary.stream));
        // SAFETY: the stream is initialised and borrowed exclusively, the input is readable and the room writable for
        // their lengths. The attached dictionary outlives the call and is only read, or copied with the addresses of
        // its bytes into the stream, which the reset before the next block discards; it is detached before this
        // returns.
        unsafe {
            LZ4_resetStreamHC_fast(self, level);
            LZ4_attach_HC_dictionary(self, attached);
            let len = LZ4_compress_HC_continue(self, source, dest, size, capacity);
            LZ4_attach_HC_dictionary(self, std::ptr::null());
            Ok(written(len, room))
        }
    }
}

/// Decodes `block` into `raw`, completely or, if `target` is given, until there are that many bytes; returns the number
/// of decoded bytes.
#[inline]
pub(super) fn decompress(
    block: &[u8],
    history: &[u8],
    raw: &mut [u8],
    target: Option<usize>,
) -> Result<usize, CodecError> {
    let (source, dest): (*const c_char, *mut c_char) = (block.as_ptr().cast(), raw.as_mut_ptr().cast());
    let (size, capacity, history_size) = (int(block.len())?, int(raw.len())?, int(history.len())?);
    let dictionary: *const c_char = history.as_ptr().cast();
    let target = target.map(int).transpose()?;
    // SAFETY: liblz4's safe decoders read `size` bytes of the block and the dictionary's `history_size`, write within
    // `capacity`, and check every length and distance against these, for any input.
    let result = unsafe {
        match target {
            None if history.is_empty() => LZ4_decompress_safe(source, dest, size, capacity),
            None => LZ4_decompress_safe_usingDict(source, dest, size, capacity, dictionary, history_size),
            Some(target) if history.is_empty() => LZ4_decompress_safe_partial(source, dest, size, target, capacity),
            Some(target) => {
                LZ4_decompress_safe_partial_usingDict(source, dest, size, target, capacity, dictionary, history_size)
            }
        }
    };
    usize::try_from(result).map_err(|_| output::corrupt(NAME, "it is malformed or truncated"))
}
