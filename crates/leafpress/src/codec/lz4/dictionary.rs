//! Dictionaries prepared for LZ4 compression. They refer to the dictionary's bytes instead of copying them.

use std::sync::OnceLock;

use super::ffi;
use super::short::{History, ShortTable};
use crate::codec::CodecError;

/// Tables to compress with, each made when a codec first needs it.
#[derive(Default)]
pub(in crate::codec) struct Lz4Compression {
    /// For short records, by our own encoder.
    short: OnceLock<Option<ShortTable>>,
    fast: OnceLock<Option<Prepared<ffi::Stream>>>,
    /// For [`ffi::MIDDLE_LEVEL`], whose tables are of another shape than those of the levels above it.
    middle: OnceLock<Option<Prepared<ffi::HighStream>>>,
    chained: OnceLock<Option<Prepared<ffi::HighStream>>>,
}

/// A stream that has loaded the dictionary, to be attached and only read.
struct Prepared<S>(Box<S>);

// SAFETY: the stream refers to the dictionary's bytes, which are immutable and are freed after it; nothing writes it once
// it is prepared, and liblz4 only reads an attached dictionary.
unsafe impl<S> Send for Prepared<S> {}
// SAFETY: as above.
unsafe impl<S> Sync for Prepared<S> {}

impl Lz4Compression {
    /// The dictionary as our own encoder takes it, `None` when it is too short or there is no memory for its table. `bytes` must
    /// be the same for every call.
    #[inline]
    pub(in crate::codec) fn short<'d>(&'d self, bytes: &'d [u8]) -> Option<History<'d>> {
        let table = self.short.get_or_init(|| ShortTable::new(bytes)).as_ref()?;
        History::new(bytes, table)
    }

    /// The tables of the fast encoder. `bytes` must be the same for every call and outlive `self`.
    #[inline]
    pub(in crate::codec) fn fast(&self, bytes: &[u8]) -> Result<*const ffi::Stream, CodecError> {
        found(self.fast.get_or_init(|| prepare_fast(bytes)))
    }

    /// The tables of the slow encoder that `level` is. `bytes` must be the same for every call and outlive `self`.
    #[inline]
    pub(in crate::codec) fn high(&self, bytes: &[u8], level: i32) -> Result<*const ffi::HighStream, CodecError> {
        let slot = if level <= ffi::MIDDLE_LEVEL {
            &self.middle
        } else {
            &self.chained
        };
        found(slot.get_or_init(|| prepare_high(bytes, level)))
    }

    /// Memory of the tables made so far, in bytes.
    pub(in crate::codec) fn held_bytes(&self) -> usize {
        let high = [&self.middle, &self.chained].map(held_bytes);
        let short = self.short.get().and_then(Option::as_ref);
        short.map_or(0, ShortTable::held_bytes) + held_bytes(&self.fast) + high.iter().sum::<usize>()
    }
}

fn found<S>(slot: &Option<Prepared<S>>) -> Result<*const S, CodecError> {
    let prepared = slot.as_ref().ok_or(CodecError::OutOfMemory { bytes: size_of::<S>() })?;
    Ok(&raw const *prepared.0)
}

fn held_bytes<S>(slot: &OnceLock<Option<Prepared<S>>>) -> usize {
    slot.get().and_then(Option::as_ref).map_or(0, |_| size_of::<S>())
}

/// The part of a dictionary's bytes that LZ4 can reach.
pub(in crate::codec) fn reachable(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len().saturating_sub(ffi::MAX_DICTIONARY_BYTES)..]
}

fn prepare_fast(bytes: &[u8]) -> Option<Prepared<ffi::Stream>> {
    let mut stream = ffi::Stream::new()?;
    let reachable = reachable(bytes);
    let size = i32::try_from(reachable.len()).ok()?;
    // SAFETY: the stream is initialised, `reachable` is `size` readable bytes that outlive the stream.
    unsafe { ffi::LZ4_loadDictSlow(&raw mut *stream, reachable.as_ptr().cast(), size) };
    Some(Prepared(stream))
}

fn prepare_high(bytes: &[u8], level: i32) -> Option<Prepared<ffi::HighStream>> {
    let mut stream = ffi::HighStream::new()?;
    let reachable = reachable(bytes);
    let size = i32::try_from(reachable.len()).ok()?;
    let target: *mut ffi::HighStream = &raw mut *stream;
    // SAFETY: the stream is initialised, `reachable` is `size` readable bytes that outlive the stream. The level comes
    // first: it chooses the shape of the tables that the dictionary is loaded into.
    unsafe {
        ffi::LZ4_resetStreamHC_fast(target, level);
        ffi::LZ4_loadDictHC(target, reachable.as_ptr().cast(), size);
    }
    Some(Prepared(stream))
}
