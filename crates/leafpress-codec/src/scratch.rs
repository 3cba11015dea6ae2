//! A thread's decode buffer.

use super::CodecError;
#[cfg(feature = "zstd")]
use super::output::refused;
#[cfg(feature = "zstd")]
use super::zstd::ffi::{DecompressionTables, Prepared};

/// A thread's decode buffer. [`Engine::decode`](super::Engine::decode) puts the raw bytes here and hands out a slice of them.
///
/// It may be primed with a dictionary, whose bytes then stand first, with the output directly behind them: history that lies
/// contiguously before the output is the fast case of every LZ77 decoder.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The history, then room for output. Every byte is initialised once, never again per call.
    bytes: Vec<u8>,
    /// Which dictionary the history is; 0 is none.
    history_id: u64,
    /// Length of the history.
    history_len: usize,
    /// zstd's tables for the history, which refer to the bytes here and not to the dictionary's own, so
    /// that zstd too finds its history directly before its output. `None` from when `bytes` moves or the history changes.
    #[cfg(feature = "zstd")]
    zstd_tables: Option<DecompressionTables>,
    /// Which dictionary was asked for last and is not the history; 0 is none.
    wanted_id: u64,
    /// Whether it takes no dictionary: it serves one operation, which would not be worth the copy.
    never_primes: bool,
}

impl Scratch {
    /// Room for `raw_len` bytes behind the history, with at least `slack` writable bytes after them (not in the slice).
    #[inline]
    pub fn output(&mut self, raw_len: usize, slack: usize) -> Result<&mut [u8], CodecError> {
        let end = self.history_len.saturating_add(raw_len);
        self.reserve(end.saturating_add(slack))?;
        Ok(&mut self.bytes[self.history_len..end])
    }

    /// The history and the room behind it, `raw_len + slack` bytes of it.
    #[inline]
    pub fn history_and_output(&mut self, raw_len: usize, slack: usize) -> Result<(&[u8], &mut [u8]), CodecError> {
        let end = self.history_len.saturating_add(raw_len).saturating_add(slack);
        self.reserve(end)?;
        let (history, output) = self.bytes[..end].split_at_mut(self.history_len);
        Ok((history, output))
    }

    #[inline]
    fn reserve(&mut self, len: usize) -> Result<(), CodecError> {
        if self.bytes.len() < len { self.grow(len) } else { Ok(()) }
    }

    #[cold]
    fn grow(&mut self, len: usize) -> Result<(), CodecError> {
        self.forget_tables();
        let more = len - self.bytes.len();
        self.bytes
            .try_reserve(more)
            .map_err(|_| CodecError::OutOfMemory { bytes: more })?;
        self.bytes.resize(len, 0);
        Ok(())
    }

    /// Whether `dictionary`, which `id` names, is the history. It becomes that when it is asked for twice with no other
    /// between: a thread that alternates between an old and a new dictionary must not copy one for every record.
    #[inline]
    pub fn prime(&mut self, id: u64, dictionary: &[u8]) -> Result<bool, CodecError> {
        if self.history_id == id {
            self.wanted_id = 0;
            return Ok(true);
        }
        self.reprime(id, dictionary)
    }

    /// Has it stay small: no dictionary becomes the history.
    pub fn never_prime(&mut self) {
        self.never_primes = true;
    }

    /// Lets the next dictionary that is asked for become the history at once.
    pub(super) fn unprime(&mut self) {
        (self.history_id, self.history_len, self.wanted_id) = (0, 0, 0);
        self.forget_tables();
    }

    #[cold]
    fn reprime(&mut self, id: u64, dictionary: &[u8]) -> Result<bool, CodecError> {
        if self.never_primes || self.wanted_id != id && self.history_id != 0 {
            self.wanted_id = id;
            return Ok(false);
        }
        self.reserve(dictionary.len())?;
        self.forget_tables();
        self.bytes[..dictionary.len()].copy_from_slice(dictionary);
        self.history_len = dictionary.len();
        self.history_id = id;
        self.wanted_id = 0;
        Ok(true)
    }

    #[cfg(feature = "zstd")]
    /// The history and the room behind it as [`Scratch::history_and_output`], and zstd's tables for the history.
    #[inline]
    pub(super) fn zstd_tables_and_output(
        &mut self,
        raw_len: usize,
        slack: usize,
    ) -> Result<(Prepared<'_, DecompressionTables>, &mut [u8]), CodecError> {
        let end = self.history_len.saturating_add(raw_len).saturating_add(slack);
        self.reserve(end)?;
        let (history, output) = self.bytes[..end].split_at_mut(self.history_len);
        let tables = match &mut self.zstd_tables {
            Some(tables) => tables,
            none => none.insert(DecompressionTables::new(history).ok_or_else(|| refused("zstd"))?),
        };
        // They were made of the bytes where these are now, or were dropped when the bytes moved.
        let tables = tables.with(history).ok_or_else(|| refused("zstd"))?;
        Ok((tables, output))
    }

    /// The first `len` bytes of what was decoded last, or none if there is no room for so many.
    pub fn last(&self, len: usize) -> &[u8] {
        self.bytes
            .get(self.history_len..self.history_len.saturating_add(len))
            .unwrap_or_default()
    }

    /// Memory that this buffer holds, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.tables_bytes()
    }

    #[cfg(feature = "zstd")]
    fn tables_bytes(&self) -> usize {
        self.zstd_tables.as_ref().map_or(0, DecompressionTables::held_bytes)
    }

    #[cfg(not(feature = "zstd"))]
    fn tables_bytes(&self) -> usize {
        0
    }

    /// Drops the tables before the bytes move that they refer to.
    fn forget_tables(&mut self) {
        #[cfg(feature = "zstd")]
        {
            self.zstd_tables = None;
        }
    }
}
