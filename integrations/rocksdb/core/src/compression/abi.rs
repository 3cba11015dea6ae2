//! What the C++ shim calls. `shim/compression_abi.h` declares the same; no panic leaves here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use leafpress::codec::CodecError;

use super::compressor::{Compressor, Outcome};
use super::decompressor::{Decompressor, ReadError};
use super::known::Reading;
use super::options::CompressionOptions;
use super::shared::SharedDictionaries;
use super::statistics::{Ticker, count};
use super::wire::BlockType;

/// Options that a manager works by, and the dictionaries of the files that it wrote.
pub struct Prepared {
    options: CompressionOptions,
    dictionaries: SharedDictionaries,
}

/// Bytes that belong to the caller, or text that goes back to `leafpress_text_free`.
#[repr(C)]
pub struct Bytes {
    data: *const u8,
    len: usize,
}

const NOTHING: Bytes = Bytes {
    data: std::ptr::null(),
    len: 0,
};

impl Bytes {
    /// # Safety
    /// `data` is readable for `len` bytes as long as `'a`, or `len` is 0.
    unsafe fn as_slice<'a>(&self) -> &'a [u8] {
        if self.data.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: the caller's.
        unsafe { slice::from_raw_parts(self.data, self.len) }
    }

    /// Lends bytes.
    fn lend(bytes: &[u8]) -> Self {
        Self {
            data: bytes.as_ptr(),
            len: bytes.len(),
        }
    }

    /// Gives text away.
    fn give(text: impl Into<Vec<u8>>) -> Self {
        let bytes = text.into().into_boxed_slice();
        let len = bytes.len();
        Self {
            data: Box::into_raw(bytes).cast_const().cast(),
            len,
        }
    }
}

/// How a call went, as the shim turns it into a `Status`.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    Ok = 0,
    InvalidArgument = 1,
    Corruption = 2,
    NotSupported = 3,
    MemoryLimit = 4,
    IoError = 5,
}

/// Why a call failed.
struct Failure(Code, String);

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        let code = match &error {
            ReadError::Corrupt(_) => Code::Corruption,
            ReadError::UnknownType(_) => Code::NotSupported,
            ReadError::Failed(CodecError::OutOfMemory { .. }) => Code::MemoryLimit,
            ReadError::Failed(_) => Code::IoError,
        };
        Self(code, error.to_string())
    }
}

fn invalid(error: impl ToString) -> Failure {
    Failure(Code::InvalidArgument, error.to_string())
}

/// Runs `work`; what it could not do stands in `error`.
///
/// # Safety
/// `error` is writable.
unsafe fn guarded(error: *mut Bytes, work: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Failure(Code::IoError, "leafpress: a bug; please report it".to_owned())));
    match result {
        Ok(()) => Code::Ok as i32,
        Err(Failure(code, message)) => {
            // SAFETY: the caller's.
            unsafe { error.write(Bytes::give(message)) };
            code as i32
        }
    }
}

/// Runs `work` where nothing can fail but for a bug, which gives `otherwise`.
fn sheltered<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

/// Takes text back.
///
/// # Safety
/// `text` came from this library and was not given back before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_text_free(text: Bytes) {
    if !text.data.is_null() {
        // SAFETY: the caller's; `give` made it from a boxed slice.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(text.data.cast_mut(), text.len)) });
    }
}

fn text(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes).map_err(|_| invalid("leafpress: options are text in UTF-8"))
}

/// Checks an option by itself and puts its usual spelling into `spelling`.
///
/// # Safety
/// The arguments are readable, the results writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_option_check(
    name: Bytes,
    value: Bytes,
    spelling: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    let work = || {
        // SAFETY: the caller's.
        let (name, value) = unsafe { (text(name.as_slice())?, text(value.as_slice())?) };
        let mut options = CompressionOptions::default();
        options.set(name, value).map_err(invalid)?;
        // SAFETY: the caller's.
        unsafe { spelling.write(Bytes::give(options.text(name))) };
        Ok(())
    };
    // SAFETY: the caller's.
    unsafe { guarded(error, work) }
}

/// Options put together: `count` pairs of a name and a value. The codecs they name can run here.
///
/// # Safety
/// The arguments are readable, the results writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_options_new(
    pairs: *const Bytes,
    count: usize,
    out: *mut *mut Prepared,
    error: *mut Bytes,
) -> i32 {
    let work = || {
        let mut options = CompressionOptions::default();
        // SAFETY: the caller's.
        for pair in unsafe { slice::from_raw_parts(pairs, 2 * count) }.chunks_exact(2) {
            // SAFETY: the caller's.
            let (name, value) = unsafe { (text(pair[0].as_slice())?, text(pair[1].as_slice())?) };
            options.set(name, value).map_err(invalid)?;
        }
        options.resolve().map_err(invalid)?;
        options.check_available().map_err(invalid)?;
        let dictionaries = SharedDictionaries::default();
        // SAFETY: the caller's.
        unsafe { out.write(Box::into_raw(Box::new(Prepared { options, dictionaries }))) };
        Ok(())
    };
    // SAFETY: the caller's.
    unsafe { guarded(error, work) }
}

/// An option's value, to be given back.
///
/// # Safety
/// `options` came from `leafpress_options_new`, `name` is readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_options_text(options: *const Prepared, name: Bytes) -> Bytes {
    sheltered(NOTHING, || {
        // SAFETY: the caller's.
        let (options, name) = unsafe { (&(*options).options, name.as_slice()) };
        Bytes::give(text(name).map(|name| options.text(name)).unwrap_or_default())
    })
}

/// `parallel_threads`.
///
/// # Safety
/// `options` came from `leafpress_options_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_options_parallel_threads(options: *const Prepared) -> u32 {
    // SAFETY: the caller's.
    unsafe { &*options }.options.parallel_threads()
}

/// `honor_no_compression`.
///
/// # Safety
/// `options` came from `leafpress_options_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_options_honor_no_compression(options: *const Prepared) -> bool {
    // SAFETY: the caller's.
    unsafe { &*options }.options.honor_no_compression()
}

/// Frees options.
///
/// # Safety
/// They came from `leafpress_options_new` and are freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_options_free(options: *mut Prepared) {
    // SAFETY: the caller's.
    sheltered((), || drop(unsafe { Box::from_raw(options) }));
}

/// A compressor for files of an LSM level; null in `out` where they are not compressed.
///
/// # Safety
/// `options` came from `leafpress_options_new`, the results are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_new(
    options: *const Prepared,
    family: Bytes,
    level: i32,
    max_dict_bytes: u32,
    zstd_max_train_bytes: u32,
    out: *mut *mut Compressor,
    error: *mut Bytes,
) -> i32 {
    let work = || {
        // SAFETY: the caller's.
        let (prepared, family) = unsafe { (&*options, family.as_slice()) };
        let line = |codec, dictionary_bytes| {
            let family = String::from_utf8_lossy(family);
            prepared.dictionaries.line(&family, codec, dictionary_bytes)
        };
        let new =
            Compressor::new(&prepared.options, &line, level, max_dict_bytes, zstd_max_train_bytes).map_err(invalid)?;
        // SAFETY: the caller's.
        unsafe { out.write(boxed(new)) };
        Ok(())
    };
    // SAFETY: the caller's.
    unsafe { guarded(error, work) }
}

fn boxed(compressor: Option<Compressor>) -> *mut Compressor {
    compressor.map_or(std::ptr::null_mut(), |new| Box::into_raw(Box::new(new)))
}

/// A copy of a compressor; null without memory.
///
/// # Safety
/// `compressor` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_copy(compressor: *const Compressor) -> *mut Compressor {
    // SAFETY: the caller's.
    sheltered(std::ptr::null_mut(), || boxed(Some(unsafe { &*compressor }.copied())))
}

/// A compressor with a dictionary trained from blocks that stand back to back; null when none pays.
///
/// # Safety
/// `compressor` is one; `samples` is as long as the sum of the `count` lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_train(
    compressor: *const Compressor,
    samples: Bytes,
    lengths: *const usize,
    count: usize,
) -> *mut Compressor {
    sheltered(std::ptr::null_mut(), || {
        // SAFETY: the caller's.
        let (compressor, mut rest, lengths) =
            unsafe { (&*compressor, samples.as_slice(), slice::from_raw_parts(lengths, count)) };
        let mut blocks = Vec::with_capacity(count);
        for length in lengths {
            let Some((block, behind)) = rest.split_at_checked(*length) else {
                return std::ptr::null_mut();
            };
            blocks.push(block);
            rest = behind;
        }
        boxed(compressor.trained(&blocks))
    })
}

/// A compressor with these bytes for a dictionary.
///
/// # Safety
/// `compressor` is one, `bytes` are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_with_dictionary(
    compressor: *const Compressor,
    bytes: Bytes,
) -> *mut Compressor {
    sheltered(std::ptr::null_mut(), || {
        // SAFETY: the caller's.
        let (compressor, bytes) = unsafe { (&*compressor, bytes.as_slice()) };
        boxed(Some(compressor.with_given(bytes)))
    })
}

/// Frees a compressor.
///
/// # Safety
/// It is one, and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_free(compressor: *mut Compressor) {
    // SAFETY: the caller's.
    sheltered((), || drop(unsafe { Box::from_raw(compressor) }));
}

/// The dictionary's bytes, which live as long as the compressor; none without a dictionary.
///
/// # Safety
/// `compressor` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_dictionary(compressor: *const Compressor) -> Bytes {
    // SAFETY: the caller's.
    let dictionary = unsafe { &*compressor }.dictionary();
    dictionary.map_or(NOTHING, |dictionary| Bytes::lend(dictionary.bytes()))
}

/// The dictionary of a file before this one, to write this one with, to be given back; none where the file is to train its own.
///
/// # Safety
/// `compressor` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_ready_dictionary(compressor: *const Compressor) -> Bytes {
    sheltered(NOTHING, || {
        // SAFETY: the caller's.
        let ready = unsafe { &*compressor }.ready_dictionary();
        ready.map_or(NOTHING, |dictionary| Bytes::give(dictionary.bytes().to_vec()))
    })
}

/// How many bytes of blocks to sample for a dictionary; 0 for no dictionary.
///
/// # Safety
/// `compressor` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_sample_bytes(compressor: *const Compressor) -> usize {
    // SAFETY: the caller's.
    unsafe { &*compressor }.sample_bytes()
}

/// The codec and whether there is a dictionary, to be given back.
///
/// # Safety
/// `compressor` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_id(compressor: *const Compressor) -> Bytes {
    // SAFETY: the caller's.
    sheltered(NOTHING, || Bytes::give(unsafe { &*compressor }.id()))
}

/// The type of its blocks.
///
/// # Safety
/// `compressor` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_block_type(compressor: *const Compressor) -> u8 {
    // SAFETY: the caller's.
    unsafe { &*compressor }.block_type() as u8
}

/// What `leafpress_compress` returns beside the length of a block.
const BYPASSED: i64 = 0;
const REJECTED: i64 = -1;
const MISMATCHED: i64 = -2;

/// Compresses a block into the front of `out` and returns its length, or 0 when it was not tried, -1 when it does not fit, -2
/// when it did not decode to itself.
///
/// # Safety
/// `compressor` is one, `raw` is readable and `out` writable for `out_len` bytes; they do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compress(
    compressor: *const Compressor,
    raw: Bytes,
    out: *mut u8,
    out_len: usize,
) -> i64 {
    sheltered(BYPASSED, || {
        if out_len == 0 {
            return BYPASSED;
        }
        // SAFETY: the caller's. RocksDB's memory came from its allocator, and nothing of it is read before it is written.
        let (compressor, raw, out) = unsafe { (&*compressor, raw.as_slice(), slice::from_raw_parts_mut(out, out_len)) };
        match compressor.compress(raw, out) {
            Outcome::Compressed(written) => i64::try_from(written).unwrap_or(BYPASSED),
            Outcome::Rejected => REJECTED,
            Outcome::Bypassed => BYPASSED,
            Outcome::Mismatched => MISMATCHED,
        }
    })
}

/// A decompressor; `options` may be null.
///
/// # Safety
/// `options` came from `leafpress_options_new` or is null, the results are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_decompressor_new(
    options: *const Prepared,
    out: *mut *mut Decompressor,
    error: *mut Bytes,
) -> i32 {
    let work = || {
        // SAFETY: the caller's.
        let codec = unsafe { options.as_ref() }.and_then(|prepared| prepared.options.reading_codec());
        let new = Decompressor::new(codec).map_err(|error| Failure(Code::IoError, error.to_string()))?;
        // SAFETY: the caller's.
        unsafe { out.write(Box::into_raw(Box::new(new))) };
        Ok(())
    };
    // SAFETY: the caller's.
    unsafe { guarded(error, work) }
}

/// Frees a decompressor.
///
/// # Safety
/// It is one, and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_decompressor_free(decompressor: *mut Decompressor) {
    // SAFETY: the caller's.
    sheltered((), || drop(unsafe { Box::from_raw(decompressor) }));
}

/// Reads a block's size prefix.
///
/// # Safety
/// `stored` is readable, the results are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_raw_bytes(
    block_type: u8,
    stored: Bytes,
    raw_bytes: *mut u64,
    prefix_bytes: *mut usize,
    error: *mut Bytes,
) -> i32 {
    let work = || {
        // SAFETY: the caller's.
        let found = Decompressor::raw_bytes(block_type, unsafe { stored.as_slice() });
        let (raw, prefix) = found.inspect_err(|_| count([(Ticker::DecompressCorrupt, 1)]))?;
        // SAFETY: the caller's.
        unsafe {
            raw_bytes.write(raw);
            prefix_bytes.write(prefix);
        }
        Ok(())
    };
    // SAFETY: the caller's.
    unsafe { guarded(error, work) }
}

/// Decodes a block without its prefix into `raw`, whose length the prefix said. `dictionary` may be null.
///
/// # Safety
/// `decompressor` is one, `dictionary` is one or null, `block` is readable and `raw` writable for `raw_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_decompress(
    decompressor: *const Decompressor,
    block_type: u8,
    dictionary: *const Reading,
    block: Bytes,
    raw: *mut u8,
    raw_len: usize,
    error: *mut Bytes,
) -> i32 {
    let work = || {
        let raw = if raw_len == 0 {
            &mut [][..]
        } else {
            // SAFETY: the caller's. Nothing of it is read before it is written.
            unsafe { slice::from_raw_parts_mut(raw, raw_len) }
        };
        // SAFETY: the caller's.
        let (decompressor, dictionary, block) = unsafe { (&*decompressor, dictionary.as_ref(), block.as_slice()) };
        Ok(decompressor.decompress(block_type, dictionary.map(Reading::dictionary), block, raw)?)
    };
    // SAFETY: the caller's.
    unsafe { guarded(error, work) }
}

/// A file's dictionary, prepared to read with.
///
/// # Safety
/// `bytes` are readable, the results are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_dictionary_new(bytes: Bytes, out: *mut *mut Reading, error: *mut Bytes) -> i32 {
    let work = || {
        // SAFETY: the caller's.
        let new = Reading::new(unsafe { bytes.as_slice() });
        let new = new.map_err(|error| Failure(Code::Corruption, format!("leafpress: corrupt dictionary: {error}")))?;
        // SAFETY: the caller's.
        unsafe { out.write(Box::into_raw(Box::new(new))) };
        Ok(())
    };
    // SAFETY: the caller's.
    unsafe { guarded(error, work) }
}

/// Memory that a dictionary holds, in bytes.
///
/// # Safety
/// `dictionary` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_dictionary_held_bytes(dictionary: *const Reading) -> usize {
    // SAFETY: the caller's.
    unsafe { &*dictionary }.held_bytes()
}

/// Frees a dictionary.
///
/// # Safety
/// It is one, and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_dictionary_free(dictionary: *mut Reading) {
    // SAFETY: the caller's.
    sheltered((), || drop(unsafe { Box::from_raw(dictionary) }));
}

/// The name of a type of block, which is not to be given back; none for a type that is not ours.
#[unsafe(no_mangle)]
pub extern "C" fn leafpress_block_type_name(block_type: u8) -> Bytes {
    BlockType::from_number(block_type).map_or(NOTHING, |found| Bytes::lend(found.name().as_bytes()))
}
