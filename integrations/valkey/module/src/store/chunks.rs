//! Long strings: chunks, each a record of its own, so that a write or a read of a part touches only some of them.
//!
//! The record with the string's number as its key holds the length, and chunk `n` has the number and `n` as its key.
//! All chunks but the last have [`CHUNK`] bytes. The length is written last: what a chunk has past it, after a failed
//! write, is not read.

use std::ops::Range;

use leafpress::{Tree, TreeError};

use super::faults::{self, Step};
use super::record_key::{RecordKey, record_key};

/// Length of a chunk, and the longest string that is stored whole. Shorter chunks would compress less well, longer ones
/// make an append to the last one slower.
pub const CHUNK: usize = 16 << 10;

/// The chunks of a string.
pub struct Chunks<'t> {
    tree: &'t Tree,
    id: u64,
}

impl<'t> Chunks<'t> {
    /// Returns the chunks of the string with this number.
    pub fn of(tree: &'t Tree, id: u64) -> Self {
        Self { tree, id }
    }

    fn key(&self, chunk: usize) -> Result<RecordKey, TreeError> {
        record_key(self.id, &(chunk as u32).to_be_bytes())
    }

    /// Returns the string's length.
    pub fn length(&self) -> Result<usize, TreeError> {
        let key = record_key(self.id, b"")?;
        let len = self.tree.get_with(&key, |len| len.try_into().map(u64::from_le_bytes))?;
        Ok(len.and_then(Result::ok).unwrap_or_default() as usize)
    }

    /// Returns a part of the string, which has at least `range.end` bytes; `None` if a chunk is missing, which is a
    /// bug.
    pub fn read(&self, range: Range<usize>) -> Result<Option<Vec<u8>>, TreeError> {
        let mut bytes = Vec::with_capacity(range.len());
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at / CHUNK + 1) * CHUNK);
            self.tree.get_with(&self.key(at / CHUNK)?, |chunk| {
                bytes.extend_from_slice(chunk.get(at % CHUNK..at % CHUNK + (end - at)).unwrap_or_default());
            })?;
            at = end;
        }
        Ok((bytes.len() == range.len()).then_some(bytes))
    }

    /// Writes bytes from `at` on into a string of `len` bytes; zeros fill the part between its end and `at`. After an
    /// error, the first `done` of the bytes are written; those past the string's end are not read.
    pub fn write(&self, len: usize, at: usize, bytes: &[u8], done: &mut usize) -> Result<(), TreeError> {
        let (from, end) = (at.min(len), at + bytes.len());
        let new_len = len.max(end);
        let mut chunk = Vec::with_capacity(CHUNK);
        for index in from / CHUNK..end.div_ceil(CHUNK) {
            let begin = index * CHUNK;
            let written = at.max(begin)..end.min(begin + CHUNK).max(at.max(begin));
            let kept = len.clamp(begin, begin + CHUNK) - begin;
            chunk.clear();
            // A chunk that is written whole need not be read.
            if kept > written.len() || written.start > begin {
                chunk = self.read(begin..begin + kept)?.unwrap_or_default();
            }
            chunk.resize((new_len - begin).min(CHUNK), 0);
            let end = written.end - at;
            if let Some(target) = chunk.get_mut(written.start - begin..written.end - begin) {
                target.copy_from_slice(&bytes[written.start - at..end]);
            }
            faults::point(Step::Write)?;
            self.tree.insert(&self.key(index)?, &chunk)?;
            *done = end;
        }
        if new_len != len {
            self.tree
                .insert(&record_key(self.id, b"")?, &(new_len as u64).to_le_bytes())?;
        }
        Ok(())
    }
}
