//! Writing of a run: records are packed into pages, and pages into newly allocated chunks.

use std::cell::Cell;
use std::io;

use leafpress_base::sync::plain::RwLock;

use super::device::Device;
use super::failure::Failure;
use super::filter::FilterBuilder;
use super::page::{self, BLOCK_BYTES, ChecksumSeed, MAX_RAW_BYTES, ROOM_BYTES};
use super::run::{CHUNK_BLOCKS, Run, block_at};
use super::state::TierState;
use leafpress_base::io::aligned::AlignedBuffer;
use leafpress_base::mem::room::TryGrow;
use leafpress_codec::Engine;

/// Blocks written at once.
const BUFFER_BLOCKS: usize = 64;
/// A page is accepted once this percentage of its capacity is used.
const FULL_PCT: usize = 94;
/// Maximum retries with other numbers of records to fill a page.
const MAX_TRIES: usize = 2;

/// Chunks that become a run's once it is finished; otherwise they are freed on drop.
pub(super) struct Chunks<'c> {
    state: &'c RwLock<TierState>,
    generation: u64,
    taken: Vec<u32>,
    /// Whether the chunks are unusable: the store has no room for them.
    are_lost: Cell<bool>,
}

impl<'c> Chunks<'c> {
    pub(super) fn new(state: &'c RwLock<TierState>, generation: u64) -> Self {
        Self {
            state,
            generation,
            taken: Vec::new(),
            are_lost: Cell::new(false),
        }
    }

    /// Allocates chunks up to this number of blocks.
    fn reach(&mut self, blocks: u64) -> Result<(), Failure> {
        while (self.taken.len() as u64) * CHUNK_BLOCKS < blocks {
            self.taken.try_grow(1)?;
            let mut state = self.state.write();
            // After `forget`, every chunk belongs to the new generation.
            let chunk = (state.generation == self.generation).then(|| state.take_chunk());
            drop(state);
            let chunk = chunk
                .flatten()
                .ok_or_else(|| Failure::Io(io::ErrorKind::StorageFull.into()))?;
            self.taken.push(chunk);
        }
        Ok(())
    }
}

impl Drop for Chunks<'_> {
    fn drop(&mut self) {
        let mut state = self.state.write();
        // After `forget`, every chunk belongs to the new generation.
        if state.generation == self.generation && !self.are_lost.get() {
            state.give_chunks(&self.taken);
        }
    }
}

/// Buffers for writing runs, reused from one to the next.
#[derive(Default)]
pub(super) struct WriteBuffers {
    buffer: Option<AlignedBuffer>,
    /// Raw bytes of records that are not in a page yet.
    raw: Vec<u8>,
    /// The end of each of these records.
    ends: Vec<usize>,
    payload: Vec<u8>,
}

impl WriteBuffers {
    fn ready(&mut self, device: &Device) -> Result<&mut Self, Failure> {
        if self.buffer.is_none() {
            self.buffer = Some(device.buffer(BUFFER_BLOCKS)?);
        }
        self.raw.clear();
        self.ends.clear();
        Ok(self)
    }

    /// The blocks to be filled or written.
    fn blocks(&mut self) -> &mut [u8] {
        self.buffer.as_mut().map_or(&mut [], AlignedBuffer::bytes_mut)
    }

    pub(super) fn held_bytes(&self) -> usize {
        let blocks = self.buffer.as_ref().map_or(0, |buffer| buffer.bytes().len());
        let ends = self.ends.capacity() * size_of::<usize>();
        blocks + self.raw.capacity() + ends + self.payload.capacity()
    }

    /// Frees the memory that long values needed.
    pub(super) fn trim(&mut self) {
        self.raw.clear();
        self.raw.shrink_to(2 * MAX_RAW_BYTES);
        self.payload.clear();
        self.payload.shrink_to(2 * MAX_RAW_BYTES);
    }
}

/// Writer of a run.
pub(super) struct RunWriter<'w> {
    device: &'w Device,
    engine: &'w dyn Engine,
    tier: u64,
    position: u64,
    chunks: Chunks<'w>,
    /// Blocks written.
    written: u64,
    buffers: &'w mut WriteBuffers,
    /// Filled blocks of the buffer.
    filled: usize,
    filter: FilterBuilder,
    pages: Vec<u32>,
    starts: Vec<u32>,
    /// Raw bytes to compress next for a page.
    wanted: usize,
    tries: usize,
}

impl<'w> RunWriter<'w> {
    pub(super) fn new(
        device: &'w Device,
        engine: &'w dyn Engine,
        tier: u64,
        position: u64,
        chunks: Chunks<'w>,
        records: usize,
        buffers: &'w mut WriteBuffers,
    ) -> Result<Self, Failure> {
        Ok(Self {
            device,
            engine,
            tier,
            position,
            chunks,
            written: 0,
            buffers: buffers.ready(device)?,
            filled: 0,
            filter: FilterBuilder::new(records)?,
            pages: Vec::new(),
            starts: Vec::new(),
            wanted: 2 * ROOM_BYTES,
            tries: 0,
        })
    }

    /// Memory held, buffers included.
    pub(super) fn held_bytes(&self) -> usize {
        self.filter.held_bytes() + self.buffers.held_bytes()
    }

    /// Adds a record; hashes are in ascending order.
    pub(super) fn push(&mut self, hash: u64, key: &[u8], record: &[u8]) -> Result<(), Failure> {
        // A record that needs blocks of its own is not compressed repeatedly with others.
        if page::framed_bytes(key, record) > MAX_RAW_BYTES {
            self.close_pages()?;
        }
        page::push(key, record, &mut self.buffers.raw)?;
        self.buffers.ends.try_push(self.buffers.raw.len())?;
        self.filter.push(hash)?;
        while !self.buffers.ends.is_empty() && self.buffers.raw.len() >= self.wanted.min(MAX_RAW_BYTES) {
            if !self.try_page(false)? {
                break;
            }
        }
        Ok(())
    }

    /// Puts the remaining records into pages.
    fn close_pages(&mut self) -> Result<(), Failure> {
        while !self.buffers.ends.is_empty() {
            self.try_page(true)?;
        }
        Ok(())
    }

    /// Compresses the first `raw_bytes`; stores them uncompressed if that saves nothing.
    fn compress(&mut self, raw_bytes: usize) -> Result<(), Failure> {
        let WriteBuffers { payload, raw, .. } = &mut *self.buffers;
        let engine = self.engine;
        payload.clear();
        let raw = &raw[..raw_bytes];
        let compressed = engine.compress(raw, None, payload)?;
        if compressed >= raw_bytes {
            payload.clear();
            payload.try_append(raw)?;
        }
        Ok(())
    }

    /// Makes a page of as many records as fit into a block; returns false if more records are needed first.
    fn try_page(&mut self, is_last: bool) -> Result<bool, Failure> {
        let mut count = self.buffers.ends.len();
        loop {
            let raw_bytes = self.buffers.ends[count - 1];
            self.compress(raw_bytes)?;
            let payload = self.buffers.payload.len();
            if payload <= ROOM_BYTES || count == 1 {
                let is_full = payload * 100 >= ROOM_BYTES * FULL_PCT || raw_bytes >= MAX_RAW_BYTES;
                let has_all = count == self.buffers.ends.len();
                if has_all && !is_last && !is_full && self.tries < MAX_TRIES {
                    // More would fit: try again when about the missing amount has arrived.
                    self.tries += 1;
                    self.wanted = (raw_bytes * ROOM_BYTES / payload.max(1) * 97 / 100).max(raw_bytes + 1);
                    return Ok(false);
                }
                if payload <= ROOM_BYTES {
                    self.wanted =
                        (raw_bytes * ROOM_BYTES / payload.max(1) * 97 / 100).clamp(ROOM_BYTES / 2, MAX_RAW_BYTES);
                }
                self.emit(count, raw_bytes)?;
                return Ok(true);
            }
            // Estimate of the raw bytes that fit, assuming uniform compressibility.
            let fitting = raw_bytes * ROOM_BYTES / payload * 97 / 100;
            count = self.buffers.ends[..count - 1]
                .partition_point(|end| *end <= fitting)
                .max(1);
        }
    }

    /// Writes the page of the current payload.
    fn emit(&mut self, count: usize, raw_bytes: usize) -> Result<(), Failure> {
        self.tries = 0;
        let blocks = page::blocks_for(self.buffers.payload.len());
        let block = self.written + self.filled as u64;
        self.chunks.reach(block + blocks as u64)?;
        self.pages
            .try_push((self.filter.len() - self.buffers.ends.len()) as u32)?;
        self.starts.try_push(block as u32)?;
        if self.filled + blocks > BUFFER_BLOCKS {
            self.flush()?;
        }
        let seed = ChecksumSeed {
            tier: self.tier,
            position: self.position + block,
        };
        if blocks > BUFFER_BLOCKS {
            let mut own = self.device.buffer(blocks)?;
            page::write(raw_bytes, &self.buffers.payload, seed, own.bytes_mut());
            self.write(own.bytes())?;
            self.written += blocks as u64;
        } else {
            let start = self.filled * BLOCK_BYTES;
            let payload = std::mem::take(&mut self.buffers.payload);
            let into = &mut self.buffers.blocks()[start..start + blocks * BLOCK_BYTES];
            page::write(raw_bytes, &payload, seed, into);
            self.buffers.payload = payload;
            self.filled += blocks;
        }
        self.buffers.raw.drain(..raw_bytes);
        self.buffers.ends.drain(..count);
        self.buffers.ends.iter_mut().for_each(|end| *end -= raw_bytes);
        Ok(())
    }

    /// Writes bytes after those already written.
    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let blocks = (self.written..).map(|block| block_at(&self.chunks.taken, block));
        self.device.write(blocks, bytes).inspect_err(|failure| {
            let is_full = |kind| {
                use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
                matches!(kind, FileTooLarge | QuotaExceeded | StorageFull)
            };
            let mut state = self.chunks.state.write();
            if matches!(failure, Failure::Io(error) if is_full(error.kind()))
                && state.generation == self.chunks.generation
            {
                self.chunks.are_lost.set(true);
                state.shrink();
            }
        })
    }

    fn flush(&mut self) -> Result<(), Failure> {
        if self.filled > 0 {
            let buffer = self.buffers.buffer.take();
            let bytes = buffer.as_ref().map_or(&[][..], AlignedBuffer::bytes);
            let written = self.write(&bytes[..self.filled * BLOCK_BYTES]);
            self.buffers.buffer = buffer;
            written?;
            self.written += self.filled as u64;
            self.filled = 0;
        }
        Ok(())
    }

    /// Finishes the run; [`None`] if there was no record. All of it is written.
    pub(super) fn finish(mut self) -> Result<Option<Run>, Failure> {
        self.close_pages()?;
        self.flush()?;
        if self.filter.len() == 0 {
            return Ok(None);
        }
        self.pages.shrink_to_fit();
        if self.starts.len() as u64 == self.written {
            self.starts = Vec::new();
        }
        self.starts.shrink_to_fit();
        let records = self.filter.len() as u32;
        let filter = self.filter.finish()?;
        let mut chunks = std::mem::take(&mut self.chunks.taken);
        chunks.shrink_to_fit();
        Ok(Some(Run {
            position: self.position,
            blocks: self.written as u32,
            records,
            filter,
            pages: self.pages,
            starts: self.starts,
            chunks,
        }))
    }
}
