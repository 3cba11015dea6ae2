//! The image of a closed tier, for its next opening: the list of runs, and the keys in use.
//!
//! Block 0 has the first chunk of a chain:
//!
//! ```text
//! chunk:   checksum u64   next chunk u32   payload length u32   payload
//! payload: leaves u32, each: leaf;   keys in use u32, each: key;   tags: length u32, encoded by the cache
//! ```
//!
//! Integers are little-endian; checksums are those of pages; leaves and keys are encoded by `bytes`. The image is valid
//! only while the tier is closed: opening the tier first overwrites block 0, so that after a crash there is no outdated
//! image.

use std::sync::Arc;

use super::bytes::{Put, Take, are_in_order};
use super::device::Device;
use super::failure::Failure;
use super::page::{BLOCK_BYTES, ChecksumSeed};
use super::run::{CHUNK_BLOCKS, Run};
use super::state::{SuperLeaf, TierState};
use super::superblock::{Kind, RecoveryStamp, Superblock};
use leafpress_base::io::aligned::AlignedBuffer;
use leafpress_base::mem::room::{TryGrow, copied};

const CHUNK_BYTES: usize = CHUNK_BLOCKS as usize * BLOCK_BYTES;
const HEADER_BYTES: usize = 16;
const LAST: u32 = u32::MAX;

/// Writer of a chain.
struct Chain<'c> {
    device: &'c Device,
    tier: u64,
    position: u64,
    chunks: std::slice::Iter<'c, u32>,
    chunk: u32,
    buffer: AlignedBuffer,
    filled: usize,
}

impl Put for Chain<'_> {
    fn put(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let room = CHUNK_BYTES - HEADER_BYTES - self.filled;
            if room == 0 {
                self.flush(false)?;
                continue;
            }
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            let at = HEADER_BYTES + self.filled;
            self.buffer.bytes_mut()[at..at + now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = rest;
        }
        Ok(())
    }
}

impl Chain<'_> {
    fn flush(&mut self, is_last: bool) -> Result<(), Failure> {
        let next = if is_last {
            LAST
        } else {
            let next = self.chunks.next().copied();
            next.ok_or_else(|| Failure::Io(std::io::ErrorKind::StorageFull.into()))?
        };
        let bytes = self.buffer.bytes_mut();
        bytes[8..12].copy_from_slice(&next.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.filled as u32).to_le_bytes());
        bytes[HEADER_BYTES + self.filled..].fill(0);
        let seed = ChecksumSeed {
            tier: self.tier,
            position: self.position,
        };
        seed.seal(bytes);
        let first = u64::from(self.chunk) * CHUNK_BLOCKS;
        self.device.write(first.., self.buffer.bytes())?;
        self.position += CHUNK_BLOCKS;
        (self.chunk, self.filled) = (next, 0);
        Ok(())
    }
}

/// Returns the maximum number of chunks of an image.
pub(super) fn chunks_for(state: &TierState, kept_bytes: usize) -> usize {
    let of_run = |run: &Arc<Run>| run.held_bytes() + 64;
    let of_leaf = |leaf: &SuperLeaf| leaf.from.len() + 8 + leaf.runs.iter().map(of_run).sum::<usize>();
    let bytes = state.leaves().iter().map(of_leaf).sum::<usize>() + kept_bytes + 64;
    bytes.div_ceil(CHUNK_BYTES - HEADER_BYTES) + 1
}

/// The contents of an image.
pub(super) struct Left<'l> {
    pub tier: u64,
    pub head: u64,
    pub state: &'l TierState,
    /// Keys in use.
    pub keys: &'l [Vec<u8>],
    /// The invalidated tags, encoded by the cache.
    pub tags: &'l [u8],
    pub epochs: Option<RecoveryStamp>,
}

/// Writes the image and then block 0. `chunks` are as many as needed, and unused.
pub(super) fn write(device: &Device, kind: Kind, left: &Left<'_>, chunks: &[u32]) -> Result<(), Failure> {
    let mut chunks = chunks.iter();
    let Some(&chunk) = chunks.next() else {
        return Err(Failure::Io(std::io::ErrorKind::StorageFull.into()));
    };
    let used = chunks.len() as u64 + 1;
    let mut chain = Chain {
        device,
        tier: left.tier,
        position: left.head,
        chunks,
        chunk,
        buffer: device.buffer(CHUNK_BLOCKS as usize)?,
        filled: 0,
    };
    chain.put_u32(left.state.leaves().len())?;
    left.state.leaves().iter().try_for_each(|leaf| chain.put_leaf(leaf))?;
    chain.put_u32(left.keys.len())?;
    left.keys.iter().try_for_each(|key| chain.put_bytes(key))?;
    chain.put_bytes(left.tags)?;
    chain.flush(true)?;
    let superblock = Superblock {
        tier: left.tier,
        // The positions of the chain's own checksums are not reused either.
        head: left.head + used * CHUNK_BLOCKS,
        chunk,
        position: left.head,
        epochs: left.epochs,
    };
    let mut block = device.buffer(1)?;
    superblock.write(kind, block.bytes_mut());
    device.write_first(block.bytes())
}

/// Reader of a chain.
struct ChainReader<'c> {
    device: &'c Device,
    tier: u64,
    position: u64,
    next: u32,
    /// Maximum number of chunks still to be read: bounds a cyclic chain.
    left: u64,
    /// Memory that may still be allocated for the contents, in bytes.
    room_bytes: usize,
    buffer: AlignedBuffer,
    at: usize,
    end: usize,
}

impl ChainReader<'_> {
    fn fill(&mut self) -> Result<(), Failure> {
        if self.next == LAST || self.left == 0 {
            return Err(Failure::Damaged);
        }
        self.left -= 1;
        let first = u64::from(self.next) * CHUNK_BLOCKS;
        if first + CHUNK_BLOCKS > self.device.blocks {
            return Err(Failure::Damaged);
        }
        self.device.read(first.., self.buffer.bytes_mut())?;
        let seed = ChecksumSeed {
            tier: self.tier,
            position: self.position,
        };
        let mut bytes = seed.open(self.buffer.bytes()).ok_or(Failure::Damaged)?;
        let (next, len) = bytes.u32().zip(bytes.u32()).ok_or(Failure::Damaged)?;
        (self.at, self.end) = (HEADER_BYTES, (HEADER_BYTES + len as usize).min(CHUNK_BYTES));
        self.next = next;
        self.position += CHUNK_BLOCKS;
        Ok(())
    }
}

impl Take for ChainReader<'_> {
    fn read(&mut self, mut into: &mut [u8]) -> Result<(), Failure> {
        while !into.is_empty() {
            if self.at == self.end {
                self.fill()?;
                continue;
            }
            let len = into.len().min(self.end - self.at);
            let (now, rest) = into.split_at_mut(len);
            now.copy_from_slice(&self.buffer.bytes()[self.at..self.at + len]);
            self.at += len;
            into = rest;
        }
        Ok(())
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Failure> {
        self.room_bytes = self.room_bytes.checked_sub(bytes).ok_or(Failure::Damaged)?;
        Ok(())
    }

    fn device_blocks(&self) -> u64 {
        self.device.blocks
    }
}

/// What a closed tier keeps for the cache.
#[derive(Default)]
pub(in crate::cache) struct Kept {
    /// Keys that were in use, the most used first.
    pub keys: Vec<Vec<u8>>,
    /// The invalidated tags, encoded by the cache; empty if they are not known.
    pub tags: Vec<u8>,
}

/// The state of a tier, and what it keeps for the cache.
pub(super) type Known = (TierState, Kept);

/// Reads the image of a closed tier; [`None`] if it cannot be read completely or does not fit in `room_bytes` of
/// memory.
pub(super) fn read(
    device: &Device,
    superblock: Superblock,
    most_chunks: u32,
    room_bytes: usize,
) -> Result<Option<Known>, Failure> {
    match try_read(device, superblock, most_chunks, room_bytes) {
        Ok(read) => Ok(Some(read)),
        Err(Failure::OutOfMemory { bytes }) => Err(Failure::OutOfMemory { bytes }),
        Err(_) => Ok(None),
    }
}

fn try_read(device: &Device, superblock: Superblock, most_chunks: u32, room_bytes: usize) -> Result<Known, Failure> {
    let mut chain = ChainReader {
        device,
        tier: superblock.tier,
        position: superblock.position,
        next: superblock.chunk,
        left: u64::from(most_chunks) + 1,
        room_bytes,
        buffer: device.buffer(CHUNK_BLOCKS as usize)?,
        at: 0,
        end: 0,
    };
    let mut state = TierState::new(most_chunks);
    let mut leaves = Vec::new();
    for _ in 0..chain.len(usize::MAX)? {
        let leaf = chain.leaf()?;
        if !are_in_order(&leaf.runs, superblock.head) {
            return Err(Failure::Damaged);
        }
        leaves.try_push(leaf)?;
    }
    let mut keys = Vec::new();
    for _ in 0..chain.len(usize::MAX)? {
        chain.charge(size_of::<Vec<u8>>())?;
        keys.try_push(copied(&chain.bytes(crate::tree::MAX_KEY_BYTES)?)?)?;
    }
    let tags = copied(&chain.bytes(room_bytes)?)?;
    if state.restore(leaves)? {
        Ok((state, Kept { keys, tags }))
    } else {
        Err(Failure::Damaged)
    }
}
