//! K-way merge of runs and a batch, newest first.

use std::sync::Arc;

use super::batch::{Batch, BatchSlot};
use super::device::Device;
use super::failure::Failure;
use super::key_hash::KeyHasher;
use super::page::{self, BLOCK_BYTES, ChecksumSeed, MAX_RAW_BYTES, Records};
use super::run::Run;
use leafpress_base::io::aligned::AlignedBuffer;
use leafpress_codec::{Engine, Scratch};

/// Blocks of a run read at once.
pub(super) const READ_BLOCKS: usize = 8;
/// Attempts of a read.
const MAX_READS: u32 = 3;

/// Buffers to read a run with.
pub(super) struct ReadBuffers {
    buffer: AlignedBuffer,
    raw: Vec<u8>,
    scratch: Scratch,
}

impl ReadBuffers {
    pub(super) fn new(device: &Device) -> Result<Self, Failure> {
        Ok(Self {
            buffer: device.buffer(READ_BLOCKS)?,
            raw: Vec::new(),
            scratch: Scratch::default(),
        })
    }

    /// Frees the memory that long values needed.
    pub(super) fn trim(&mut self) {
        if self.raw.capacity() > 2 * MAX_RAW_BYTES {
            self.raw = Vec::new();
            self.scratch = Scratch::default();
        }
    }
}

/// Reads the records of a run in order.
pub(super) struct RunReader<'r> {
    device: &'r Device,
    engine: &'r dyn Engine,
    hasher: &'r KeyHasher,
    tier: u64,
    run: Arc<Run>,
    /// The page to decode next.
    page: usize,
    buffers: &'r mut ReadBuffers,
    /// The run's blocks that are in the buffer.
    has: std::ops::Range<usize>,
    /// The bounds of the current record in the raw bytes.
    at: usize,
    end: usize,
    hash: u64,
}

impl<'r> RunReader<'r> {
    /// Returns a reader positioned before the first record: [`RunReader::advance`] reads that.
    pub(super) fn new(
        device: &'r Device,
        engine: &'r dyn Engine,
        hasher: &'r KeyHasher,
        tier: u64,
        run: Arc<Run>,
        buffers: &'r mut ReadBuffers,
    ) -> Self {
        buffers.raw.clear();
        Self {
            device,
            engine,
            hasher,
            tier,
            run,
            page: 0,
            buffers,
            has: 0..0,
            at: 0,
            end: 0,
            hash: 0,
        }
    }

    /// The hash of the record's key.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn record(&self) -> Option<(&[u8], &[u8])> {
        Records(self.buffers.raw.get(self.at..)?).next()
    }

    /// Advances to the next record. After an unreadable page it continues with the page that follows.
    pub(super) fn advance(&mut self) -> Result<(), Failure> {
        self.at = self.end;
        while self.at >= self.buffers.raw.len() {
            if self.page >= self.run.pages.len() {
                self.buffers.raw.clear();
                (self.at, self.end) = (0, 0);
                return Ok(());
            }
            (self.at, self.end) = (0, 0);
            self.next_page().inspect_err(|_| self.buffers.raw.clear())?;
        }
        let mut records = Records(&self.buffers.raw[self.at..]);
        let Some((key, _)) = records.next() else {
            self.buffers.raw.clear();
            (self.at, self.end) = (0, 0);
            return Err(Failure::Damaged);
        };
        self.hash = self.hasher.hash(key);
        self.end = self.buffers.raw.len() - records.0.len();
        Ok(())
    }

    fn next_page(&mut self) -> Result<(), Failure> {
        let (first, blocks) = self.run.page(self.page);
        let block = first as usize;
        let seed = ChecksumSeed {
            tier: self.tier,
            position: self.run.position + first,
        };
        self.page += 1;
        let most_raw_bytes = self.device.most_raw_bytes();
        if blocks > READ_BLOCKS {
            let mut own = self.device.buffer(blocks)?;
            read_again(self.device, &self.run, first, own.bytes_mut())?;
            let ReadBuffers { raw, scratch, .. } = &mut *self.buffers;
            return page::read(own.bytes(), seed, self.engine, most_raw_bytes, raw, scratch);
        }
        if block < self.has.start || block + blocks > self.has.end {
            let count = READ_BLOCKS.min(self.run.blocks as usize - block);
            self.has = 0..0;
            read_again(
                self.device,
                &self.run,
                first,
                &mut self.buffers.buffer.bytes_mut()[..count * BLOCK_BYTES],
            )?;
            self.has = block..block + count;
        }
        let start = (block - self.has.start) * BLOCK_BYTES;
        let ReadBuffers { buffer, raw, scratch } = &mut *self.buffers;
        let bytes = &buffer.bytes()[start..start + blocks * BLOCK_BYTES];
        page::read(bytes, seed, self.engine, most_raw_bytes, raw, scratch)
    }
}

/// Reads blocks of a run; on an error, one by one and repeatedly. A merge without the run would have to forget
/// everything older.
fn read_again(device: &Device, run: &Run, first: u64, into: &mut [u8]) -> Result<(), Failure> {
    let read = |block, into: &mut [u8]| {
        let _transfer = device.begin_transfer();
        device.read(run.blocks_from(block), into)
    };
    if read(first, into).is_ok() {
        return Ok(());
    }
    for (block, into) in (first..).zip(into.chunks_exact_mut(BLOCK_BYTES)) {
        let tries = (1..MAX_READS).find_map(|_| read(block, into).ok());
        tries.map_or_else(|| read(block, into), Ok)?;
    }
    Ok(())
}

/// A source of records sorted by hash and then by key.
pub(super) enum Source<'s> {
    Batch(&'s Batch, &'s [BatchSlot]),
    Run(Box<RunReader<'s>>),
}

impl Source<'_> {
    /// Returns the next record: its key's hash, its key, and the record.
    fn peek(&self) -> Option<(u64, &[u8], &[u8])> {
        match self {
            Self::Batch(batch, entries) => {
                let entry = entries.first()?;
                Some((entry.hash, batch.key(*entry), batch.record(*entry)))
            }
            Self::Run(reader) => {
                let (key, record) = reader.record()?;
                Some((reader.hash, key, record))
            }
        }
    }

    fn advance(&mut self) -> Result<(), Failure> {
        match self {
            Self::Batch(_, entries) => {
                *entries = entries.get(1..).unwrap_or_default();
                Ok(())
            }
            Self::Run(reader) => reader.advance(),
        }
    }
}

/// The index of a source that could not be read.
pub(super) struct Unreadable {
    pub source: usize,
    pub failure: Failure,
}

/// The cause of a failed merge.
pub(super) enum MergeFailure {
    Read(Unreadable),
    Write(Failure),
}

/// Calls `take` with the newest record of each key, in order: index of its source, hash, key, record. Sources are
/// ordered newest first.
pub(super) fn merge(
    sources: &mut [Source<'_>],
    mut take: impl FnMut(usize, u64, &[u8], &[u8]) -> Result<(), Failure>,
) -> Result<(), MergeFailure> {
    loop {
        let mut first: Option<(u64, &[u8], &[u8])> = None;
        let mut from = 0;
        for (index, source) in sources.iter().enumerate() {
            let Some(next) = source.peek() else { continue };
            if first.is_none_or(|first| (next.0, next.1) < (first.0, first.1)) {
                (first, from) = (Some(next), index);
            }
        }
        let Some((hash, key, record)) = first else {
            return Ok(());
        };
        take(from, hash, key, record).map_err(MergeFailure::Write)?;
        // Older records of the key are skipped.
        let mut passes = 0_u64;
        for (index, source) in sources.iter().enumerate().skip(from) {
            if source.peek().is_some_and(|next| (next.0, next.1) == (hash, key)) {
                passes |= 1 << index;
            }
        }
        for (index, source) in sources.iter_mut().enumerate() {
            if passes >> index & 1 == 1 {
                let advanced = source.advance();
                advanced.map_err(|failure| MergeFailure::Read(Unreadable { source: index, failure }))?;
            }
        }
    }
}
