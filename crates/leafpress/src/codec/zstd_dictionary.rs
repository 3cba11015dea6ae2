//! Dictionaries prepared for zstd. They refer to the dictionary's bytes instead of copying them.

use std::ptr::NonNull;
use std::sync::OnceLock;

use zstd_sys as ffi;

use super::CodecError;
use super::dictionary::refused;

const NAME: &str = "zstd";

/// Tables to compress with, one set per level, as a list that only grows: a dictionary sees one level or two.
#[derive(Default)]
pub(super) struct ZstdCompression {
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
        // SAFETY: `bytes` are readable and outlive the tables, which refer to them.
        let tables = unsafe { ffi::ZSTD_createCDict_byReference(bytes.as_ptr().cast(), bytes.len(), level) };
        Some(Box::new(Self {
            level,
            tables: NonNull::new(tables)?,
            next: OnceLock::new(),
        }))
    }
}

impl ZstdCompression {
    /// The tables for `level`, made now if there are none. `bytes` must be the same for every call and outlive `self`.
    #[inline]
    pub(super) fn get(&self, bytes: &[u8], level: i32) -> Result<*const ffi::ZSTD_CDict, CodecError> {
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
    pub(super) fn held_bytes(&self) -> usize {
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
pub(super) struct ZstdDecompression {
    tables: OnceLock<Option<DecompressionTables>>,
}

/// Tables to decompress with. They refer to the dictionary's bytes.
#[derive(Debug)]
pub(super) struct DecompressionTables(NonNull<ffi::ZSTD_DDict>);

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
    pub(super) fn new(bytes: &[u8]) -> Result<Self, CodecError> {
        // SAFETY: `bytes` are readable; the caller keeps them as long as the tables.
        let tables = unsafe { ffi::ZSTD_createDDict_byReference(bytes.as_ptr().cast(), bytes.len()) };
        NonNull::new(tables).map(Self).ok_or_else(|| refused(NAME))
    }

    #[inline]
    pub(super) fn as_ptr(&self) -> *const ffi::ZSTD_DDict {
        self.0.as_ptr()
    }

    /// Their memory, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        // SAFETY: the tables are valid.
        unsafe { ffi::ZSTD_sizeof_DDict(self.as_ptr()) }
    }
}

impl ZstdDecompression {
    /// The tables, made now if there are none. `bytes` must be the same for every call and outlive `self`.
    #[inline]
    pub(super) fn get(&self, bytes: &[u8]) -> Result<*const ffi::ZSTD_DDict, CodecError> {
        self.tables
            .get_or_init(|| DecompressionTables::new(bytes).ok())
            .as_ref()
            .map(DecompressionTables::as_ptr)
            .ok_or_else(|| refused(NAME))
    }

    /// Memory of the tables made so far, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.tables
            .get()
            .and_then(Option::as_ref)
            .map_or(0, DecompressionTables::held_bytes)
    }
}
