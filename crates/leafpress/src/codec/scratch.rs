//! A thread's decode buffer.

use super::CodecError;
use super::zstd_dictionary::DecompressionTables;

/// A thread's decode buffer. [`Engine::decode`](super::Engine::decode) puts the raw bytes here and hands out a slice of them.
///
/// A dictionary's bytes may stand at the front, with the output directly behind them: history that lies contiguously
/// before the output is the fast case of every LZ77 decoder.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The front, then room for output. Every byte is initialised once, never again per call.
    bytes: Vec<u8>,
    /// Which dictionary is at the front; 0 is none.
    front_id: u64,
    /// Length of the front.
    front_len: usize,
    /// zstd's tables for the dictionary at the front, which refer to the bytes there and not to the dictionary's own, so
    /// that zstd too finds its history directly before its output. `None` from when `bytes` moves or the front changes.
    zstd_tables: Option<DecompressionTables>,
    /// Which dictionary was asked for last and is not at the front; 0 is none.
    wanted_id: u64,
}

impl Scratch {
    /// Room for `raw_len` bytes behind the front, with at least `slack` writable bytes after them (not in the slice).
    #[inline]
    pub(crate) fn output(&mut self, raw_len: usize, slack: usize) -> Result<&mut [u8], CodecError> {
        let end = self.front_len.saturating_add(raw_len);
        self.reserve(end.saturating_add(slack))?;
        Ok(&mut self.bytes[self.front_len..end])
    }

    /// The front and the room behind it, `raw_len + slack` bytes of it.
    #[inline]
    pub(crate) fn front_and_output(&mut self, raw_len: usize, slack: usize) -> Result<(&[u8], &mut [u8]), CodecError> {
        let end = self.front_len.saturating_add(raw_len).saturating_add(slack);
        self.reserve(end)?;
        let (front, output) = self.bytes[..end].split_at_mut(self.front_len);
        Ok((front, output))
    }

    #[inline]
    fn reserve(&mut self, len: usize) -> Result<(), CodecError> {
        if self.bytes.len() < len { self.grow(len) } else { Ok(()) }
    }

    #[cold]
    fn grow(&mut self, len: usize) -> Result<(), CodecError> {
        self.zstd_tables = None;
        let more = len - self.bytes.len();
        self.bytes
            .try_reserve(more)
            .map_err(|_| CodecError::OutOfMemory { bytes: more })?;
        self.bytes.resize(len, 0);
        Ok(())
    }

    /// Whether `front`, which `id` names, stands at the front. It is copied there when it is asked for twice with no other
    /// between: a thread that alternates between an old and a new dictionary must not copy one for every record.
    #[inline]
    pub(crate) fn fronted(&mut self, id: u64, front: &[u8]) -> Result<bool, CodecError> {
        if self.front_id == id {
            self.wanted_id = 0;
            return Ok(true);
        }
        self.change_front(id, front)
    }

    /// Lets the next dictionary that is asked for take the front at once.
    pub(super) fn forget_front(&mut self) {
        (self.front_id, self.front_len, self.wanted_id) = (0, 0, 0);
        self.zstd_tables = None;
    }

    #[cold]
    fn change_front(&mut self, id: u64, front: &[u8]) -> Result<bool, CodecError> {
        if self.wanted_id != id && self.front_id != 0 {
            self.wanted_id = id;
            return Ok(false);
        }
        self.reserve(front.len())?;
        self.zstd_tables = None;
        self.bytes[..front.len()].copy_from_slice(front);
        self.front_len = front.len();
        self.front_id = id;
        self.wanted_id = 0;
        Ok(true)
    }

    /// The front and the room behind it as [`Scratch::front_and_output`], and zstd's tables for the front.
    #[inline]
    pub(super) fn zstd_tables_and_output(
        &mut self,
        raw_len: usize,
        slack: usize,
    ) -> Result<(&DecompressionTables, &mut [u8]), CodecError> {
        let end = self.front_len.saturating_add(raw_len).saturating_add(slack);
        self.reserve(end)?;
        let (front, output) = self.bytes[..end].split_at_mut(self.front_len);
        let tables = match &mut self.zstd_tables {
            Some(tables) => tables,
            none => none.insert(DecompressionTables::new(front)?),
        };
        Ok((tables, output))
    }

    /// Memory that this buffer holds, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.zstd_tables.as_ref().map_or(0, DecompressionTables::held_bytes)
    }
}
