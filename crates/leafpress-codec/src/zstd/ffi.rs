//! Safe bindings of libzstd: contexts, dictionary tables, and the trainer.
//!
//! For any input zstd reads and writes within the lengths that are passed; each call below takes them from slices.

use std::ffi::CStr;
use std::ptr::NonNull;

use zstd_sys as zstd;

use crate::room::{BytesIdentity, Room};

/// An error code of zstd.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused(usize);

impl Refused {
    /// The error's name.
    pub(super) fn name(self) -> String {
        // SAFETY: any code has a name, which is a static, terminated string.
        let name = unsafe { CStr::from_ptr(zstd::ZSTD_getErrorName(self.0)) };
        name.to_string_lossy().into_owned()
    }

    /// Returns true if there was no room for the output.
    fn is_for_want_of_room(self) -> bool {
        // SAFETY: the function only inspects the number.
        unsafe { zstd::ZSTD_getErrorCode(self.0) == zstd::ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall }
    }
}

/// Converts a zstd result: a length, or an error.
#[inline]
fn check(result: usize) -> Result<usize, Refused> {
    // SAFETY: the function only inspects the number.
    if unsafe { zstd::ZSTD_isError(result) } == 0 {
        Ok(result)
    } else {
        Err(Refused(result))
    }
}

/// Returns libzstd's version.
pub(super) fn version() -> String {
    // SAFETY: the version is a static, terminated string.
    let version = unsafe { CStr::from_ptr(zstd::ZSTD_versionString()) };
    version.to_string_lossy().into_owned()
}

/// Returns an upper bound of the length of a block or frame of `raw_len` raw bytes.
pub(super) fn bound(raw_len: usize) -> Result<usize, Refused> {
    // SAFETY: the function only inspects the number.
    check(unsafe { zstd::ZSTD_compressBound(raw_len) })
}

const FRAME: zstd::ZSTD_frameParameters = zstd::ZSTD_frameParameters {
    contentSizeFlag: 0,
    checksumFlag: 0,
    noDictIDFlag: 1,
};

/// A dictionary's tables with its bytes, to which they point.
pub(crate) struct Prepared<'d, T> {
    tables: &'d T,
    _bytes: &'d [u8],
}

/// A dictionary's compression tables. They point to the dictionary's bytes.
pub(crate) struct CompressionTables {
    tables: NonNull<zstd::ZSTD_CDict>,
    bytes: BytesIdentity,
}

// SAFETY: zstd only reads prepared tables, and does not tie them to a thread.
unsafe impl Send for CompressionTables {}
// SAFETY: zstd only reads prepared tables, so concurrent use is a concurrent read.
unsafe impl Sync for CompressionTables {}

impl Drop for CompressionTables {
    fn drop(&mut self) {
        // SAFETY: the tables came from zstd, are freed once, and no call uses them, since none borrows them.
        unsafe { zstd::ZSTD_freeCDict(self.tables.as_ptr()) };
    }
}

impl CompressionTables {
    /// Builds tables for a dictionary, with hash tables of 2^`table_log` entries if that is given; `None` if zstd
    /// refuses.
    pub(super) fn new(dictionary: &[u8], level: i32, table_log: Option<i32>) -> Option<Self> {
        use zstd::ZSTD_cParameter::{ZSTD_c_chainLog, ZSTD_c_compressionLevel, ZSTD_c_hashLog};
        // SAFETY: creating parameters has no preconditions.
        let parameters = NonNull::new(unsafe { zstd::ZSTD_createCCtxParams() })?;
        let set = |parameter, value| {
            // SAFETY: the parameters are valid.
            check(unsafe { zstd::ZSTD_CCtxParams_setParameter(parameters.as_ptr(), parameter, value) }).is_ok()
        };
        let good = set(ZSTD_c_compressionLevel, level)
            && table_log.is_none_or(|log| set(ZSTD_c_hashLog, log) && set(ZSTD_c_chainLog, log));
        // Null functions select zstd's own allocator.
        let memory = zstd::ZSTD_customMem {
            customAlloc: None,
            customFree: None,
            opaque: std::ptr::null_mut(),
        };
        let tables = good.then(|| {
            // SAFETY: the dictionary is readable and the parameters are valid. The tables keep pointing to the
            // dictionary; they are used only with its bytes at hand (`Prepared`).
            unsafe {
                zstd::ZSTD_createCDict_advanced2(
                    dictionary.as_ptr().cast(),
                    dictionary.len(),
                    zstd::ZSTD_dictLoadMethod_e::ZSTD_dlm_byRef,
                    zstd::ZSTD_dictContentType_e::ZSTD_dct_auto,
                    parameters.as_ptr(),
                    memory,
                )
            }
        });
        // SAFETY: the parameters came from zstd and are freed once; the tables have their own copy.
        unsafe { zstd::ZSTD_freeCCtxParams(parameters.as_ptr()) };
        Some(Self {
            tables: NonNull::new(tables?)?,
            bytes: BytesIdentity::of(dictionary),
        })
    }

    /// Returns the tables with the dictionary's bytes; `None` if they were built from other bytes.
    #[inline]
    pub(super) fn with<'d>(&'d self, bytes: &'d [u8]) -> Option<Prepared<'d, Self>> {
        (BytesIdentity::of(bytes) == self.bytes).then_some(Prepared {
            tables: self,
            _bytes: bytes,
        })
    }

    /// Memory of the tables, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        // SAFETY: the tables are valid.
        unsafe { zstd::ZSTD_sizeof_CDict(self.tables.as_ptr()) }
    }
}

/// Returns true if a level's search uses plain hash tables with a dictionary of this size.
pub(super) fn has_plain_tables(level: i32, dictionary_bytes: usize) -> bool {
    // SAFETY: the function only inspects its arguments.
    let own = unsafe { zstd::ZSTD_getCParams(level, 0, dictionary_bytes) };
    matches!(
        own.strategy,
        zstd::ZSTD_strategy::ZSTD_fast | zstd::ZSTD_strategy::ZSTD_dfast
    )
}

/// A dictionary's decompression tables. They point to the dictionary's bytes.
#[derive(Debug)]
pub(crate) struct DecompressionTables {
    tables: NonNull<zstd::ZSTD_DDict>,
    bytes: BytesIdentity,
}

// SAFETY: zstd only reads prepared tables, and does not tie them to a thread.
unsafe impl Send for DecompressionTables {}
// SAFETY: zstd only reads prepared tables, so concurrent use is a concurrent read.
unsafe impl Sync for DecompressionTables {}

impl Drop for DecompressionTables {
    fn drop(&mut self) {
        // SAFETY: the tables came from zstd, are freed once, and no call uses them, since none borrows them.
        unsafe { zstd::ZSTD_freeDDict(self.tables.as_ptr()) };
    }
}

impl DecompressionTables {
    /// Builds tables for a dictionary; `None` if zstd refuses.
    pub(crate) fn new(dictionary: &[u8]) -> Option<Self> {
        // SAFETY: the dictionary is readable. The tables keep pointing to it; they are used only with its bytes at hand
        // (`Prepared`).
        let tables = unsafe { zstd::ZSTD_createDDict_byReference(dictionary.as_ptr().cast(), dictionary.len()) };
        Some(Self {
            tables: NonNull::new(tables)?,
            bytes: BytesIdentity::of(dictionary),
        })
    }

    /// Returns the tables with the dictionary's bytes; `None` if they were built from other bytes.
    #[inline]
    pub(crate) fn with<'d>(&'d self, bytes: &'d [u8]) -> Option<Prepared<'d, Self>> {
        (BytesIdentity::of(bytes) == self.bytes).then_some(Prepared {
            tables: self,
            _bytes: bytes,
        })
    }

    /// Memory of the tables, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        // SAFETY: the tables are valid.
        unsafe { zstd::ZSTD_sizeof_DDict(self.tables.as_ptr()) }
    }
}

/// A compression context.
pub(super) struct Compressor(NonNull<zstd::ZSTD_CCtx>);

// SAFETY: a context owns its memory, which is not tied to a thread, and every use borrows it exclusively.
unsafe impl Send for Compressor {}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: the context came from zstd and is freed once.
        unsafe { zstd::ZSTD_freeCCtx(self.0.as_ptr()) };
    }
}

/// The history of a block, before its own bytes.
pub(super) enum History<'d> {
    /// A dictionary whose tables are built.
    Prepared(Prepared<'d, CompressionTables>),
    /// A dictionary that is loaded for this block; it may be empty.
    Loaded(&'d [u8]),
}

impl Compressor {
    /// Returns a context; `None` if there is no memory for it.
    pub(super) fn new() -> Option<Self> {
        // SAFETY: creating a context has no preconditions.
        NonNull::new(unsafe { zstd::ZSTD_createCCtx() }).map(Self)
    }

    /// Compresses `raw` into the room as a bare block; returns false if it does not shrink or does not fit.
    pub(super) fn block(
        &mut self,
        level: i32,
        raw: &[u8],
        history: &History<'_>,
        room: &mut Room<'_>,
    ) -> Result<bool, Refused> {
        let context = self.0.as_ptr();
        let pledged = raw.len() as u64;
        // SAFETY: the context is valid, and the dictionary's tables and bytes outlive this call; the next block begins
        // with this call again, which drops the references.
        check(unsafe {
            match history {
                History::Prepared(prepared) => {
                    let tables = prepared.tables.tables.as_ptr();
                    zstd::ZSTD_compressBegin_usingCDict_advanced(context, tables, FRAME, pledged)
                }
                History::Loaded(loaded) => zstd::ZSTD_compressBegin_advanced(
                    context,
                    loaded.as_ptr().cast(),
                    loaded.len(),
                    zstd::ZSTD_parameters {
                        cParams: zstd::ZSTD_getCParams(level, pledged, loaded.len()),
                        fParams: FRAME,
                    },
                    pledged,
                ),
            }
        })?;
        let (out, capacity) = (room.as_mut_ptr(), room.capacity());
        // SAFETY: the context was begun; the room is writable and `raw` readable for their lengths.
        let result = unsafe { zstd::ZSTD_compressBlock(context, out.cast(), capacity, raw.as_ptr().cast(), raw.len()) };
        // SAFETY: `result` is zstd's result for this room.
        let fits = unsafe { written(result, room) }?;
        Ok(fits && room.len() > 0 && room.len() < raw.len())
    }

    /// Compresses `raw` into the room as a frame without magic number, content size, checksum or dictionary id; returns
    /// false if it does not fit.
    pub(super) fn frame(
        &mut self,
        level: i32,
        raw: &[u8],
        dictionary: Option<&Prepared<'_, CompressionTables>>,
        room: &mut Room<'_>,
    ) -> Result<bool, Refused> {
        use zstd::ZSTD_cParameter::{
            ZSTD_c_checksumFlag, ZSTD_c_compressionLevel, ZSTD_c_contentSizeFlag, ZSTD_c_dictIDFlag,
            ZSTD_c_experimentalParam2 as ZSTD_c_format, ZSTD_c_experimentalParam4 as ZSTD_c_forceAttachDict,
        };
        let context = self.0.as_ptr();
        let magicless = zstd::ZSTD_format_e::ZSTD_f_zstd1_magicless as i32;
        // Loaded, as for blocks that are longer than the dictionary.
        let load = zstd::ZSTD_dictAttachPref_e::ZSTD_dictForceLoad as i32;
        for (parameter, value) in [
            (ZSTD_c_compressionLevel, level),
            (ZSTD_c_contentSizeFlag, 0),
            (ZSTD_c_checksumFlag, 0),
            (ZSTD_c_dictIDFlag, 0),
            (ZSTD_c_format, magicless),
            (ZSTD_c_forceAttachDict, load),
        ] {
            // SAFETY: the context is valid and between frames.
            check(unsafe { zstd::ZSTD_CCtx_setParameter(context, parameter, value) })?;
        }
        let tables = dictionary.map_or(std::ptr::null(), |prepared| {
            prepared.tables.tables.as_ptr().cast_const()
        });
        let (out, capacity) = (room.as_mut_ptr(), room.capacity());
        // SAFETY: the context is valid and between frames; the room is writable and `raw` readable for their lengths.
        // The tables and their bytes outlive this call, and the context drops its references before it returns,
        // whatever the result: a frame that stopped for lack of room must not be continued.
        let (result, forgotten) = unsafe {
            check(zstd::ZSTD_CCtx_refCDict(context, tables))?;
            let result = zstd::ZSTD_compress2(context, out.cast(), capacity, raw.as_ptr().cast(), raw.len());
            let reset = zstd::ZSTD_CCtx_reset(context, zstd::ZSTD_ResetDirective::ZSTD_reset_session_only);
            let forgotten = check(reset).and_then(|_| check(zstd::ZSTD_CCtx_refCDict(context, std::ptr::null())));
            (result, forgotten)
        };
        forgotten?;
        // SAFETY: `result` is zstd's result for this room.
        unsafe { written(result, room) }
    }
}

/// Sets the room's block from the result of zstd; returns false if there was no room for it.
///
/// # Safety
/// `result` must be zstd's result for this room.
unsafe fn written(result: usize, room: &mut Room<'_>) -> Result<bool, Refused> {
    match check(result) {
        Ok(len) => {
            // SAFETY: zstd initialised the number of bytes that it returned, which are within the room.
            unsafe { room.set_len(len) };
            Ok(true)
        }
        Err(refused) if refused.is_for_want_of_room() => Ok(false),
        Err(refused) => Err(refused),
    }
}

/// A decompression context.
pub(super) struct Decompressor(NonNull<zstd::ZSTD_DCtx>);

// SAFETY: a context owns its memory, which is not tied to a thread, and every use borrows it exclusively.
unsafe impl Send for Decompressor {}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: the context came from zstd and is freed once.
        unsafe { zstd::ZSTD_freeDCtx(self.0.as_ptr()) };
    }
}

impl Decompressor {
    /// Returns a context for frames without magic number; `None` if there is no memory for it.
    pub(super) fn new() -> Option<Self> {
        // SAFETY: creating a context has no preconditions.
        let context = NonNull::new(unsafe { zstd::ZSTD_createDCtx() }).map(Self)?;
        let magicless = zstd::ZSTD_format_e::ZSTD_f_zstd1_magicless;
        // SAFETY: the context is valid and between frames.
        check(unsafe { zstd::ZSTD_DCtx_setFormat(context.0.as_ptr(), magicless) }).ok()?;
        Some(context)
    }

    /// Decodes a frame into the front of `raw` and returns its length.
    pub(super) fn frame(
        &mut self,
        block: &[u8],
        dictionary: Option<&Prepared<'_, DecompressionTables>>,
        raw: &mut [u8],
    ) -> Result<usize, Refused> {
        let (dest, source) = (raw.as_mut_ptr().cast(), block.as_ptr().cast());
        let context = self.0.as_ptr();
        // SAFETY: the context is valid, `block` readable and `raw` writable for their lengths; the tables and their
        // bytes outlive this call, and the next call begins by dropping the references.
        check(unsafe {
            zstd::ZSTD_decompress_usingDDict(context, dest, raw.len(), source, block.len(), pointer(dictionary))
        })
    }

    /// Decodes a bare block into the front of `raw` and returns its length. It is fastest if `raw` directly follows the
    /// dictionary's bytes.
    #[inline]
    pub(super) fn block(
        &mut self,
        block: &[u8],
        dictionary: Option<&Prepared<'_, DecompressionTables>>,
        raw: &mut [u8],
    ) -> Result<usize, Refused> {
        let (dest, source) = (raw.as_mut_ptr().cast(), block.as_ptr().cast());
        let context = self.0.as_ptr();
        // SAFETY: the context is valid; the tables and their bytes outlive this call, and the next call begins by
        // dropping the references.
        check(unsafe { zstd::ZSTD_decompressBegin_usingDDict(context, pointer(dictionary)) })?;
        // SAFETY: the context was begun; `block` is readable and `raw` writable for their lengths.
        check(unsafe { zstd::ZSTD_decompressBlock(context, dest, raw.len(), source, block.len()) })
    }
}

/// Returns a pointer to the tables, null for none.
#[inline]
fn pointer(dictionary: Option<&Prepared<'_, DecompressionTables>>) -> *const zstd::ZSTD_DDict {
    dictionary.map_or(std::ptr::null(), |prepared| {
        prepared.tables.tables.as_ptr().cast_const()
    })
}

/// Converts a result of the trainer.
fn trained(result: usize) -> Result<usize, String> {
    // SAFETY: the function only inspects the number.
    if unsafe { zstd::ZDICT_isError(result) } == 0 {
        return Ok(result);
    }
    // SAFETY: any code has a name, which is a static, terminated string.
    let name = unsafe { CStr::from_ptr(zstd::ZDICT_getErrorName(result)) };
    Err(name.to_string_lossy().into_owned())
}

/// Log2 of the number of frequency counters for strings of 8 bytes, each of which takes ten bytes in total. With 20,
/// zstd's default, training takes 4.6 MiB more and its dictionaries save at most half a percent more, on text and on
/// short records.
const FREQUENCIES_LOG: u32 = 18;
/// [`FREQUENCIES_LOG`] for few samples, which contain fewer strings: 1.9 MiB less, for at most half a percent.
const FEW_FREQUENCIES_LOG: u32 = 16;
const FEW_SAMPLE_BYTES: usize = 1 << 20;

/// Trains a dictionary by FastCover from `samples`, which are concatenated, with segments of `segment_bytes`, into the
/// front of `dictionary`; returns its length, or why there is none.
pub(super) fn train(
    samples: &[u8],
    lengths: &[usize],
    segment_bytes: u32,
    level: i32,
    dictionary: &mut [u8],
) -> Result<usize, String> {
    let total = lengths.iter().try_fold(0_usize, |sum, len| sum.checked_add(*len));
    let Some(count) = u32::try_from(lengths.len())
        .ok()
        .filter(|_| total == Some(samples.len()))
    else {
        return Err("the samples' lengths do not add up, or there are too many samples".to_owned());
    };
    let parameters = zstd::ZDICT_fastCover_params_t {
        k: segment_bytes,
        d: 8,
        f: if samples.len() < FEW_SAMPLE_BYTES {
            FEW_FREQUENCIES_LOG
        } else {
            FREQUENCIES_LOG
        },
        steps: 1,
        nbThreads: 1,
        splitPoint: 1.0,
        accel: 1,
        shrinkDict: 0,
        shrinkDictMaxRegression: 0,
        zParams: zstd::ZDICT_params_t {
            compressionLevel: level,
            notificationLevel: 0,
            dictID: 0,
        },
    };
    // SAFETY: `dictionary` is writable for its length; `samples` holds `count` samples of `lengths`.
    trained(unsafe {
        zstd::ZDICT_trainFromBuffer_fastCover(
            dictionary.as_mut_ptr().cast(),
            dictionary.len(),
            samples.as_ptr().cast(),
            lengths.as_ptr(),
            count,
            parameters,
        )
    })
}

/// Returns the length of the header of a trained dictionary, before its content.
pub(super) fn header_bytes(dictionary: &[u8]) -> Result<usize, String> {
    // SAFETY: the dictionary is readable for its length.
    trained(unsafe { zstd::ZDICT_getDictHeaderSize(dictionary.as_ptr().cast(), dictionary.len()) })
}
