//! Dictionaries prepared for zstd. They refer to the dictionary's bytes instead of copying them.

use std::sync::OnceLock;

use super::NAME;
use super::ffi::{CompressionTables, DecompressionTables, Prepared, has_plain_tables};
use crate::CodecError;
use crate::output::refused;
use leafpress_base::mem::room::boxed;

/// Compression tables, one set per level, in a list that only grows: a dictionary is used with one level or two.
#[derive(Default)]
pub(crate) struct ZstdCompression {
    first: OnceLock<Option<Box<Level>>>,
}

struct Level {
    level: i32,
    tables: CompressionTables,
    next: OnceLock<Option<Box<Level>>>,
}

impl Level {
    fn new(bytes: &[u8], level: i32) -> Option<Box<Self>> {
        boxed(Self {
            level,
            tables: CompressionTables::new(bytes, level, table_log(bytes.len(), level))?,
            next: OnceLock::new(),
        })
        .ok()
    }
}

/// Returns the size of a dictionary's plain hash tables as a power of two: one entry for every two bytes.
///
/// zstd's own choice depends on the level alone. At level 1 it drops most of a dictionary of 64 KiB, which makes
/// records of text 6 percent larger and slower to decode, and uses 128 KiB of tables for one of 8 KiB (`codec_table`
/// shows both).
fn table_log(dictionary_bytes: usize, level: i32) -> Option<i32> {
    let log = dictionary_bytes.checked_next_power_of_two()?.ilog2().saturating_sub(1);
    if has_plain_tables(level, dictionary_bytes) {
        i32::try_from(log.clamp(MIN_TABLE_LOG, MAX_TABLE_LOG)).ok()
    } else {
        None
    }
}

/// The size of the table for an input of 4 KiB is derived from the dictionary's.
const MIN_TABLE_LOG: u32 = 11;
/// 2^17 entries take 512 KiB.
const MAX_TABLE_LOG: u32 = 17;

impl ZstdCompression {
    /// Returns the tables for `level`, built if there are none. `bytes` must be the same for every call.
    #[inline]
    pub(crate) fn get<'d>(
        &'d self,
        bytes: &'d [u8],
        level: i32,
    ) -> Result<Prepared<'d, CompressionTables>, CodecError> {
        let mut slot = &self.first;
        loop {
            let Some(found) = slot.get_or_init(|| Level::new(bytes, level)) else {
                return Err(refused(NAME));
            };
            if found.level == level {
                return found.tables.with(bytes).ok_or_else(|| refused(NAME));
            }
            slot = &found.next;
        }
    }

    /// Memory of the tables built so far, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let mut sum = 0;
        let mut slot = &self.first;
        while let Some(Some(level)) = slot.get() {
            sum += size_of::<Level>() + level.tables.held_bytes();
            slot = &level.next;
        }
        sum
    }
}

/// Decompression tables, built once.
#[derive(Default)]
pub(crate) struct ZstdDecompression {
    tables: OnceLock<Option<DecompressionTables>>,
}

impl ZstdDecompression {
    /// Returns the tables, built if there are none. `bytes` must be the same for every call.
    #[inline]
    pub(crate) fn get<'d>(&'d self, bytes: &'d [u8]) -> Result<Prepared<'d, DecompressionTables>, CodecError> {
        self.tables
            .get_or_init(|| DecompressionTables::new(bytes))
            .as_ref()
            .and_then(|tables| tables.with(bytes))
            .ok_or_else(|| refused(NAME))
    }

    /// Memory of the tables built so far, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.tables
            .get()
            .and_then(Option::as_ref)
            .map_or(0, DecompressionTables::held_bytes)
    }
}
