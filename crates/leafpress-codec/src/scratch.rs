//! The decode buffer of a thread.

use super::CodecError;
#[cfg(feature = "zstd")]
use super::output::refused;
#[cfg(feature = "zstd")]
use super::zstd::ffi::{DecompressionTables, Prepared};

/// A decode buffer of a thread. [`Engine::decode`](super::Engine::decode) writes the raw bytes here and returns a slice
/// of them.
///
/// It may be primed with a dictionary, whose bytes then precede the output directly: contiguous history before the
/// output is the fast case of every LZ77 decoder.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The history, then room for output. Every byte is initialised once, never again per call.
    bytes: Vec<u8>,
    /// The id of the dictionary in the history; 0 for none.
    history_id: u64,
    /// Length of the history.
    history_len: usize,
    /// zstd's tables for the history, which refer to the bytes here and not to the dictionary's own, so that zstd too
    /// has its history directly before its output. `None` once `bytes` is moved or the history changes.
    #[cfg(feature = "zstd")]
    zstd_tables: Option<DecompressionTables>,
    /// The dictionary that was requested last and is not the history; 0 for none.
    wanted_id: u64,
    /// Whether it takes no dictionary: it serves one operation, which would not be worth the copy.
    never_primes: bool,
}

impl Scratch {
    /// Returns room for `raw_len` bytes after the history, with at least `slack` writable bytes after them (not in the
    /// slice).
    #[inline]
    pub fn output(&mut self, raw_len: usize, slack: usize) -> Result<&mut [u8], CodecError> {
        let end = self.history_len.saturating_add(raw_len);
        self.reserve(end.saturating_add(slack))?;
        Ok(&mut self.bytes[self.history_len..end])
    }

    /// Returns the history and the room after it, `raw_len + slack` bytes of it.
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

    /// Returns true if `dictionary`, which `id` names, is the history. It becomes the history when it is requested
    /// twice in a row: a thread that alternates between an old and a new dictionary must not copy one for every record.
    #[inline]
    pub fn prime(&mut self, id: u64, dictionary: &[u8]) -> Result<bool, CodecError> {
        if self.history_id == id {
            self.wanted_id = 0;
            return Ok(true);
        }
        self.reprime(id, dictionary)
    }

    /// Keeps the buffer small: no dictionary becomes the history.
    pub fn never_prime(&mut self) {
        self.never_primes = true;
    }

    /// Lets the next requested dictionary become the history at once.
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
    /// Returns the history and the room after it, as [`Scratch::history_and_output`] does, and zstd's tables for the
    /// history.
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
        // The tables were built from the bytes at this address, or were dropped when the bytes moved.
        let tables = tables.with(history).ok_or_else(|| refused("zstd"))?;
        Ok((tables, output))
    }

    /// Returns the first `len` bytes of the last output; empty if there is no room for that many.
    pub fn last(&self, len: usize) -> &[u8] {
        self.bytes
            .get(self.history_len..self.history_len.saturating_add(len))
            .unwrap_or_default()
    }

    /// Returns the memory that this buffer holds, in bytes.
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

    /// Drops the tables before the bytes to which they refer are moved.
    fn forget_tables(&mut self) {
        #[cfg(feature = "zstd")]
        {
            self.zstd_tables = None;
        }
    }
}
