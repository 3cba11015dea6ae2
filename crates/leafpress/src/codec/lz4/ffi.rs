//! liblz4's entry points that `lz4-sys` carries in its object code but does not declare (lz4.h, version 1.10).

use std::ffi::{c_char, c_int};

// Linked for its object code.
use lz4_sys as _;

/// LZ4_HASHTABLESIZE + the fields before it (`LZ4_STREAM_MINSIZE` with `LZ4_MEMORY_USAGE` 14).
pub(in crate::codec) const STREAM_BYTES: usize = (1 << 14) + 32;

/// `LZ4_stream_t`: compression state, or a dictionary prepared for compression. All zeroes is its initial state.
#[repr(C, align(8))]
pub(in crate::codec) struct Stream {
    state: [u8; STREAM_BYTES],
}

/// `LZ4_STREAMHC_MINSIZE` of lz4hc.h.
pub(in crate::codec) const HIGH_STREAM_BYTES: usize = 262_200;

/// `LZ4_streamHC_t`: state of the slow encoders, or a dictionary prepared for them.
#[repr(C, align(8))]
pub(in crate::codec) struct HighStream {
    state: [u8; HIGH_STREAM_BYTES],
}

/// The slow level that is an encoder of its own (`LZ4HC_CLEVEL_MIN`, LZ4MID).
pub(in crate::codec) const MIDDLE_LEVEL: i32 = 2;

/// The largest input of a block (`LZ4_MAX_INPUT_SIZE`).
pub(in crate::codec) const MAX_INPUT_BYTES: usize = 0x7E00_0000;

/// How far back a match reaches, so how much of a dictionary is of use.
pub(in crate::codec) const MAX_DICTIONARY_BYTES: usize = 64 << 10;

unsafe extern "C" {
    pub(in crate::codec) fn LZ4_initStream(buffer: *mut Stream, size: usize) -> *mut Stream;
    pub(in crate::codec) fn LZ4_resetStream_fast(stream: *mut Stream);
    pub(in crate::codec) fn LZ4_loadDictSlow(stream: *mut Stream, dictionary: *const c_char, size: c_int) -> c_int;
    pub(in crate::codec) fn LZ4_attach_dictionary(working: *mut Stream, dictionary: *const Stream);
    pub(in crate::codec) fn LZ4_compress_fast_continue(
        stream: *mut Stream,
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        dest_capacity: c_int,
        acceleration: c_int,
    ) -> c_int;
    pub(in crate::codec) fn LZ4_compress_fast_extState_fastReset(
        state: *mut Stream,
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        dest_capacity: c_int,
        acceleration: c_int,
    ) -> c_int;
    pub(in crate::codec) fn LZ4_initStreamHC(buffer: *mut HighStream, size: usize) -> *mut HighStream;
    pub(in crate::codec) fn LZ4_resetStreamHC_fast(stream: *mut HighStream, level: c_int);
    pub(in crate::codec) fn LZ4_loadDictHC(stream: *mut HighStream, dictionary: *const c_char, size: c_int) -> c_int;
    pub(in crate::codec) fn LZ4_attach_HC_dictionary(working: *mut HighStream, dictionary: *const HighStream);
    pub(in crate::codec) fn LZ4_compress_HC_continue(
        stream: *mut HighStream,
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        dest_capacity: c_int,
    ) -> c_int;
    pub(in crate::codec) fn LZ4_decompress_safe(
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        dest_capacity: c_int,
    ) -> c_int;
    pub(in crate::codec) fn LZ4_decompress_safe_usingDict(
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        dest_capacity: c_int,
        dictionary: *const c_char,
        dictionary_size: c_int,
    ) -> c_int;
    pub(in crate::codec) fn LZ4_decompress_safe_partial(
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        target_size: c_int,
        dest_capacity: c_int,
    ) -> c_int;
    pub(in crate::codec) fn LZ4_decompress_safe_partial_usingDict(
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        target_size: c_int,
        dest_capacity: c_int,
        dictionary: *const c_char,
        dictionary_size: c_int,
    ) -> c_int;
}

/// All zeroes, or nothing when there is no memory for it.
///
/// # Safety
/// All zeroes is a valid `S`, and `S` has a size.
unsafe fn zeroed<S>() -> Option<Box<S>> {
    let layout = std::alloc::Layout::new::<S>();
    // SAFETY: the layout's size is not zero.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<S>();
    // SAFETY: the global allocator made it with `S`'s layout, and all zeroes is a valid `S`.
    (!memory.is_null()).then(|| unsafe { Box::from_raw(memory) })
}

impl Stream {
    /// A stream in its initial state, or nothing when there is no memory for it.
    pub(in crate::codec) fn new() -> Option<Box<Self>> {
        // SAFETY: a stream is bytes.
        let mut stream = unsafe { zeroed::<Self>() }?;
        // SAFETY: the pointer is to `STREAM_BYTES` writable bytes with the alignment of `LZ4_stream_t`.
        let initialised = unsafe { LZ4_initStream(&raw mut *stream, STREAM_BYTES) };
        (!initialised.is_null()).then_some(stream)
    }
}

impl HighStream {
    /// A stream in its initial state, or nothing when there is no memory for it.
    pub(in crate::codec) fn new() -> Option<Box<Self>> {
        // SAFETY: a stream is bytes.
        let mut stream = unsafe { zeroed::<Self>() }?;
        // SAFETY: the pointer is to `HIGH_STREAM_BYTES` writable bytes with the alignment of `LZ4_streamHC_t`.
        let initialised = unsafe { LZ4_initStreamHC(&raw mut *stream, HIGH_STREAM_BYTES) };
        (!initialised.is_null()).then_some(stream)
    }
}
