//! Block access to the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::failure::Failure;
use super::page::{BLOCK_BYTES, MAX_RAW_BYTES, framed_bytes};
use crate::tree::MAX_KEY_BYTES;
use leafpress_base::io::aligned::AlignedBuffer;
use leafpress_base::mem::room::room_for;
use leafpress_base::store::{FileStore, PageRead, PageStore, PageWrite};

/// Block 0 of the store is the superblock.
const FIRST_BLOCK: u64 = 1;

pub(super) struct Device {
    store: Arc<dyn PageStore>,
    /// The store, if it is a file that this tier has locked.
    locked: Option<Arc<FileStore>>,
    /// Number of blocks, numbered from 0.
    pub blocks: u64,
    /// Transfers of the writer that have begun.
    begun: AtomicU64,
    /// Transfers of the writer that have ended: while the count increases the device makes progress.
    ended: AtomicU64,
}

/// A transfer of the writer, which ends on drop.
pub(super) struct Transfer<'d>(&'d AtomicU64);

impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// A record may take at most this fraction (1/64) of the device.
pub(super) const MAX_RECORD_DIVISOR: u64 = 64;

impl Device {
    /// Maximum decoded size of a page, in bytes.
    pub(super) fn most_raw_bytes(&self) -> usize {
        let bytes = self.blocks * BLOCK_BYTES as u64 / MAX_RECORD_DIVISOR;
        let record = usize::try_from(bytes).unwrap_or(usize::MAX);
        MAX_RAW_BYTES.max(record.saturating_add(framed_bytes(&[], &[]) + MAX_KEY_BYTES))
    }

    pub(super) fn new(store: Arc<dyn PageStore>, blocks: u64) -> Self {
        Self {
            store,
            locked: None,
            blocks,
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }

    pub(super) fn on_locked(file: FileStore, blocks: u64) -> Self {
        let file = Arc::new(file);
        let mut device = Self::new(Arc::clone(&file) as Arc<dyn PageStore>, blocks);
        device.locked = Some(file);
        device
    }

    /// Lets others use the file. Nothing may be written from then on.
    pub(super) fn unlock(&self) {
        if let Some(file) = &self.locked {
            file.unlock();
        }
    }

    pub(super) fn describe(&self) -> String {
        self.store.describe()
    }

    /// Returns a buffer of `blocks` blocks that the store accepts without a copy.
    pub(super) fn buffer(&self, blocks: usize) -> Result<AlignedBuffer, Failure> {
        Ok(AlignedBuffer::new(
            blocks * BLOCK_BYTES,
            self.store.alignment().max(64),
        )?)
    }

    /// Checks that the store can have the required length.
    pub(super) fn check_length(&self) -> Result<(), Failure> {
        Ok(self.store.check_write(self.blocks, BLOCK_BYTES)?)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// Begins a transfer of the writer, which a device that makes no progress holds up.
    pub(super) fn begin_transfer(&self) -> Transfer<'_> {
        self.begun.fetch_add(1, Ordering::Release);
        Transfer(&self.ended)
    }

    /// Returns the number of transfers that have ended, and whether one is in progress.
    pub(super) fn transfers(&self) -> (u64, bool) {
        let ended = self.ended.load(Ordering::Acquire);
        (ended, self.begun.load(Ordering::Acquire) > ended)
    }

    /// Reads each block into its own part of `into`.
    pub(super) fn read(&self, blocks: impl Iterator<Item = u64>, into: &mut [u8]) -> Result<(), Failure> {
        let mut blocks = blocks.map(|block| {
            debug_assert!(block < self.blocks, "block {block} of {}", self.blocks);
            FIRST_BLOCK + block
        });
        if into.len() == BLOCK_BYTES {
            let block = blocks.next().unwrap_or_default();
            return Ok(self.store.read(block, into)?);
        }
        let mut reads = room_for(into.len() / BLOCK_BYTES)?;
        reads.extend(
            blocks
                .zip(into.chunks_exact_mut(BLOCK_BYTES))
                .map(|(page, into)| PageRead {
                    page,
                    into,
                    result: Ok(()),
                }),
        );
        self.store.read_batch(&mut reads);
        Ok(reads.into_iter().try_for_each(|read| read.result)?)
    }

    /// Writes blocks.
    pub(super) fn write(&self, blocks: impl Iterator<Item = u64>, bytes: &[u8]) -> Result<(), Failure> {
        let mut writes = room_for(bytes.len() / BLOCK_BYTES)?;
        writes.extend(
            blocks
                .zip(bytes.chunks_exact(BLOCK_BYTES))
                .map(|(block, bytes)| PageWrite {
                    page: FIRST_BLOCK + block,
                    bytes,
                    result: Ok(()),
                }),
        );
        let transfer = self.begin_transfer();
        self.store.write_batch(&mut writes);
        drop(transfer);
        Ok(writes.into_iter().try_for_each(|write| write.result)?)
    }

    /// Returns true if the store has a superblock.
    pub(super) fn has_first(&self) -> bool {
        self.store.page_bytes(0).is_ok_and(|bytes| bytes == BLOCK_BYTES)
    }

    /// Reads the superblock.
    pub(super) fn read_first(&self, into: &mut [u8]) -> Result<(), Failure> {
        Ok(self.store.read(0, into)?)
    }

    /// Writes the superblock, and makes it and all preceding writes durable.
    pub(super) fn write_first(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.store.sync()?;
        self.store.write(0, bytes)?;
        Ok(self.store.sync()?)
    }
}
