//! Dictionaries prepared for zstd. They refer to the dictionary's bytes instead of copying them.

use std::ptr::NonNull;
use std::sync::OnceLock;

use zstd_sys as ffi;

use crate::codec::CodecError;
use crate::codec::dictionary::refused;

const NAME: &str = "zstd";

/// Tables to compress with, one set per level, as a list that only grows: a dictionary sees one level or two.
#[derive(Default)]
pub(in crate::codec) struct ZstdCompression {
    first: OnceLock<Option<Box<Level>>>,
}

struct Level {
    level: i32,
    tables: NonNull<ffi::ZSTD_CDict>,
    next: OnceLock<Option<Box<Level>>>,
}

// SAFETY: zstd only reads a prepared dictionary; any number of threads may.
unsafe impl Send for Level {}
// SAFETY: as above.
unsafe impl Sync for Level {}

impl Drop for Level {
    fn drop(&mut self) {
        // SAFETY: `tables` came from zstd, is freed once, and no call uses it since none holds the dictionary.
        unsafe { ffi::ZSTD_freeCDict(self.tables.as_ptr()) };
    }
}

impl Level {
    fn new(bytes: &[u8], level: i32) -> Option<Box<Self>> {
        use ffi::ZSTD_cParameter::{ZSTD_c_chainLog, ZSTD_c_compressionLevel, ZSTD_c_hashLog};
        // SAFETY: making parameters has no preconditions.
        let parameters = NonNull::new(unsafe { ffi::ZSTD_createCCtxParams() })?;
        let set = |parameter, value| {
            // SAFETY: the parameters are valid.
            let status = unsafe { ffi::ZSTD_CCtxParams_setParameter(parameters.as_ptr(), parameter, value) };
            // SAFETY: looks at the number only.
            unsafe { ffi::ZSTD_isError(status) == 0 }
        };
        let good = set(ZSTD_c_compressionLevel, level)
            && table_log(bytes.len(), level).is_none_or(|log| set(ZSTD_c_hashLog, log) && set(ZSTD_c_chainLog, log));
        // zstd's own allocator.
        let memory = ffi::ZSTD_customMem {
            customAlloc: None,
            customFree: None,
            opaque: std::ptr::null_mut(),
        };
        let tables = good.then(|| {
            // SAFETY: `bytes` are readable and outlive the tables, which refer to them; the parameters are valid.
            unsafe {
                ffi::ZSTD_createCDict_advanced2(
                    bytes.as_ptr().cast(),
                    bytes.len(),
                    ffi::ZSTD_dictLoadMethod_e::ZSTD_dlm_byRef,
                    ffi::ZSTD_dictContentType_e::ZSTD_dct_auto,
                    parameters.as_ptr(),
                    memory,
                )
            }
        });
        // SAFETY: the parameters came from zstd and are freed once; the tables have their own copy.
        unsafe { ffi::ZSTD_freeCCtxParams(parameters.as_ptr()) };
        Some(Box::new(Self {
            level,
            tables: NonNull::new(tables?)?,
            next: OnceLock::new(),
        }))
    }
}

/// How many of a dictionary's strings the levels with plain hash tables keep, as a power of two: one for every two bytes.
///
/// zstd's own choice follows the level alone. It forgets most of a dictionary of 64 KiB at level 1, which makes records of
/// text 6 percent larger and slower to decode, and holds 128 KiB of tables for one of 8 KiB (`codec_table` shows both).
fn table_log(dictionary_bytes: usize, level: i32) -> Option<i32> {
    // SAFETY: looks at its arguments only.
    let own = unsafe { ffi::ZSTD_getCParams(level, 0, dictionary_bytes) };
    let plain = matches!(
        own.strategy,
        ffi::ZSTD_strategy::ZSTD_fast | ffi::ZSTD_strategy::ZSTD_dfast
    );
    let log = dictionary_bytes.checked_next_power_of_two()?.ilog2().saturating_sub(1);
    if plain {
        i32::try_from(log.clamp(MIN_TABLE_LOG, MAX_TABLE_LOG)).ok()
    } else {
        None
    }
}

/// The table of an input of 4 KiB takes its size from a dictionary's.
const MIN_TABLE_LOG: u32 = 11;
/// 2^17 strings take 512 KiB.
const MAX_TABLE_LOG: u32 = 17;

impl ZstdCompression {
    /// The tables for `level`, made now if there are none. `bytes` must be the same for every call and outlive `self`.
    #[inline]
    pub(in crate::codec) fn get(&self, bytes: &[u8], level: i32) -> Result<*const ffi::ZSTD_CDict, CodecError> {
        let mut slot = &self.first;
        loop {
            let Some(found) = slot.get_or_init(|| Level::new(bytes, level)) else {
                return Err(refused(NAME));
            };
            if found.level == level {
                return Ok(found.tables.as_ptr());
            }
            slot = &found.next;
        }
    }

    /// Memory of the tables made so far, in bytes.
    pub(in crate::codec) fn held_bytes(&self) -> usize {
        let mut sum = 0;
        let mut slot = &self.first;
        while let Some(Some(level)) = slot.get() {
            // SAFETY: the tables live as long as `level`.
            sum += size_of::<Level>() + unsafe { ffi::ZSTD_sizeof_CDict(level.tables.as_ptr()) };
            slot = &level.next;
        }
        sum
    }
}

/// Tables to decompress with, made once.
#[derive(Default)]
pub(in crate::codec) struct ZstdDecompression {
    tables: OnceLock<Option<DecompressionTables>>,
}

/// Tables to decompress with. They refer to the dictionary's bytes.
#[derive(Debug)]
pub(in crate::codec) struct DecompressionTables(NonNull<ffi::ZSTD_DDict>);

// SAFETY: zstd only reads a prepared dictionary; any number of threads may.
unsafe impl Send for DecompressionTables {}
// SAFETY: as above.
unsafe impl Sync for DecompressionTables {}

impl Drop for DecompressionTables {
    fn drop(&mut self) {
        // SAFETY: the tables came from zstd, are freed once, and no call uses them since none borrows them.
        unsafe { ffi::ZSTD_freeDDict(self.0.as_ptr()) };
    }
}

impl DecompressionTables {
    /// Tables for a dictionary. Whoever keeps them must drop them before `bytes` move, change or are freed.
    pub(in crate::codec) fn new(bytes: &[u8]) -> Result<Self, CodecError> {
        // SAFETY: `bytes` are readable; the caller keeps them as long as the tables.
        let tables = unsafe { ffi::ZSTD_createDDict_byReference(bytes.as_ptr().cast(), bytes.len()) };
        NonNull::new(tables).map(Self).ok_or_else(|| refused(NAME))
    }

    #[inline]
    pub(in crate::codec) fn as_ptr(&self) -> *const ffi::ZSTD_DDict {
        self.0.as_ptr()
    }

    /// Their memory, in bytes.
    pub(in crate::codec) fn held_bytes(&self) -> usize {
        // SAFETY: the tables are valid.
        unsafe { ffi::ZSTD_sizeof_DDict(self.as_ptr()) }
    }
}

impl ZstdDecompression {
    /// The tables, made now if there are none. `bytes` must be the same for every call and outlive `self`.
    #[inline]
    pub(in crate::codec) fn get(&self, bytes: &[u8]) -> Result<*const ffi::ZSTD_DDict, CodecError> {
        self.tables
            .get_or_init(|| DecompressionTables::new(bytes).ok())
            .as_ref()
            .map(DecompressionTables::as_ptr)
            .ok_or_else(|| refused(NAME))
    }

    /// Memory of the tables made so far, in bytes.
    pub(in crate::codec) fn held_bytes(&self) -> usize {
        self.tables
            .get()
            .and_then(Option::as_ref)
            .map_or(0, DecompressionTables::held_bytes)
    }
}
