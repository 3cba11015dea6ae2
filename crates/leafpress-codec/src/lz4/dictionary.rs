//! Dictionaries prepared for LZ4 compression. They refer to the dictionary's bytes instead of copying them.

use std::sync::OnceLock;

use super::ffi::{Attached, HighStream, MAX_DICTIONARY_BYTES, MIDDLE_LEVEL, NAME, Prepared, Stream};
use super::short::{History, ShortTable};
use crate::{CodecError, output};

/// Compression tables, each built at its first use.
#[derive(Default)]
pub(crate) struct Lz4Compression {
    /// For short records, used by the encoder in [`short`](super::short).
    short: OnceLock<Option<ShortTable>>,
    fast: OnceLock<Option<Prepared<Stream>>>,
    /// For [`MIDDLE_LEVEL`], whose tables differ in layout from those of the levels above it.
    middle: OnceLock<Option<Prepared<HighStream>>>,
    chained: OnceLock<Option<Prepared<HighStream>>>,
}

impl Lz4Compression {
    /// Returns the table of the encoder of short records; `None` if the dictionary is too short or there is no memory.
    /// `bytes` must be the same for every call.
    #[inline]
    pub(crate) fn short<'d>(&'d self, bytes: &'d [u8]) -> Option<History<'d>> {
        let table = self.short.get_or_init(|| ShortTable::new(bytes)).as_ref()?;
        History::new(bytes, table)
    }

    /// Returns the tables of the fast encoder. `bytes` must be the same for every call.
    #[inline]
    pub(crate) fn fast<'d>(&'d self, bytes: &'d [u8]) -> Result<Attached<'d, Stream>, CodecError> {
        let bytes = reachable(bytes);
        found(self.fast.get_or_init(|| Stream::prepare(bytes)), bytes)
    }

    /// Returns the tables of the slow encoder of `level`. `bytes` must be the same for every call.
    #[inline]
    pub(crate) fn high<'d>(&'d self, bytes: &'d [u8], level: i32) -> Result<Attached<'d, HighStream>, CodecError> {
        let bytes = reachable(bytes);
        let slot = if level <= MIDDLE_LEVEL {
            &self.middle
        } else {
            &self.chained
        };
        found(slot.get_or_init(|| HighStream::prepare(bytes, level)), bytes)
    }

    /// Memory of the tables built so far, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let high = [&self.middle, &self.chained].map(held_bytes);
        let short = self.short.get().and_then(Option::as_ref);
        short.map_or(0, ShortTable::held_bytes) + held_bytes(&self.fast) + high.iter().sum::<usize>()
    }
}

#[inline]
fn found<'d, S>(slot: &'d Option<Prepared<S>>, bytes: &'d [u8]) -> Result<Attached<'d, S>, CodecError> {
    let prepared = slot.as_ref().ok_or(CodecError::OutOfMemory { bytes: size_of::<S>() })?;
    prepared
        .with(bytes)
        .ok_or_else(|| output::failed(NAME, "the tables are another dictionary's"))
}

fn held_bytes<S>(slot: &OnceLock<Option<Prepared<S>>>) -> usize {
    slot.get().and_then(Option::as_ref).map_or(0, |_| size_of::<S>())
}

/// The part of a dictionary's bytes within LZ4's maximum distance.
pub(crate) fn reachable(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len().saturating_sub(MAX_DICTIONARY_BYTES)..]
}
