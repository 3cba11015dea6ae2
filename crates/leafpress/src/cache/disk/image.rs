//! What a tier that is closed leaves for the next: which runs there are, and which keys were in use.
//!
//! Block 0 names the first chunk of a chain:
//!
//! ```text
//! block 0: checksum u64   magic   version u32   codec (hash of its name) u64   tier u64   blocks u64   head u64   chunk u32   position u64
//! chunk:   checksum u64   next chunk u32   payload length u32   payload
//! payload: leaves u32, each: key, runs u32, each: position u64, blocks u32, records u32, ranks, starts, chunks (lists of u32),
//!          buckets u32, counts (list of u64), remainders (bytes);   keys in use u32, each: key
//! lists, keys and bytes: length u32, and as many
//! ```
//!
//! Integers are little-endian; checksums are those of pages. It is there only while the tier is closed: whoever opens it takes it away first,
//! so that after a crash there is none, and nothing out of date.

use std::sync::Arc;

use super::device::Device;
use super::failure::Failure;
use super::filter::Filter;
use super::page::{BLOCK_BYTES, Place};
use super::run::{CHUNK_BLOCKS, Run};
use super::state::{State, SuperLeaf};
use crate::codec::Codec;
use crate::io::aligned::AlignedBuffer;
use crate::mem::room::{TryGrow, copied, room_for};
use crate::tree::hash::hash;

const MAGIC: &[u8; 16] = b"leafpress cache\0";
/// Of what this module writes, and pages, and runs.
const VERSION: u32 = 1;
const CHUNK_BYTES: usize = CHUNK_BLOCKS as usize * BLOCK_BYTES;
const HEADER_BYTES: usize = 16;
const LAST: u32 = u32::MAX;
/// What no tier has more of: runs of a super-leaf, blocks of a page, buckets of a filter. And no head is past this.
const MOST_RUNS: usize = 60;
const MOST_PAGE_BLOCKS: u32 = 1 << 15;
const MOST_BUCKETS: usize = 1 << 28;
const MOST_HEAD: u64 = 1 << 62;

/// What block 0 says.
#[derive(Debug, Clone, Copy)]
pub(super) struct First {
    pub tier: u64,
    pub head: u64,
    /// The first chunk of the chain, and the position that its checksum is of.
    chunk: u32,
    position: u64,
}

/// Block 0 has no position: its checksum is of this.
const FIRST: Place = Place {
    tier: 0x6c65_6166,
    position: 0,
};

impl First {
    fn write(self, codec: u64, blocks: u64, block: &mut [u8]) {
        let mut rest = Vec::with_capacity(64);
        rest.extend_from_slice(MAGIC);
        rest.extend_from_slice(&VERSION.to_le_bytes());
        for word in [codec, self.tier, blocks, self.head] {
            rest.extend_from_slice(&word.to_le_bytes());
        }
        rest.extend_from_slice(&self.chunk.to_le_bytes());
        rest.extend_from_slice(&self.position.to_le_bytes());
        block.fill(0);
        block[8..8 + rest.len()].copy_from_slice(&rest);
        let checksum = FIRST.checksum(&block[8..]);
        block[..8].copy_from_slice(&checksum.to_le_bytes());
    }

    /// What it says of a store of so many blocks, whose pages are by that codec; [`None`] where it is no tier's that was closed.
    fn read(codec: u64, blocks: u64, block: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(block);
        let checksum = bytes.u64()?;
        let is_ours = checksum == FIRST.checksum(bytes.0)
            && bytes.take(MAGIC.len())? == MAGIC
            && bytes.u32()? == VERSION
            && bytes.u64()? == codec;
        if !is_ours {
            return None;
        }
        let (tier, its_blocks, head) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        let (chunk, position) = (bytes.u32()?, bytes.u64()?);
        let is_ours = its_blocks == blocks && head < MOST_HEAD && position < MOST_HEAD;
        is_ours.then_some(Self {
            tier,
            head,
            chunk,
            position,
        })
    }
}

/// Writes a chain.
struct Chain<'c> {
    device: &'c Device,
    tier: u64,
    position: u64,
    chunks: std::slice::Iter<'c, u32>,
    chunk: u32,
    buffer: AlignedBuffer,
    filled: usize,
}

impl Chain<'_> {
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

    fn put_u32(&mut self, value: usize) -> Result<(), Failure> {
        self.put(&(value as u32).to_le_bytes())
    }

    fn put_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.put_u32(bytes.len())?;
        self.put(bytes)
    }

    fn put_list(&mut self, list: &[u32]) -> Result<(), Failure> {
        self.put_u32(list.len())?;
        list.iter().try_for_each(|value| self.put(&value.to_le_bytes()))
    }

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
        let place = Place {
            tier: self.tier,
            position: self.position,
        };
        let checksum = place.checksum(&bytes[8..]);
        bytes[..8].copy_from_slice(&checksum.to_le_bytes());
        let first = u64::from(self.chunk) * CHUNK_BLOCKS;
        self.device.write(first.., self.buffer.bytes())?;
        self.position += CHUNK_BLOCKS;
        (self.chunk, self.filled) = (next, 0);
        Ok(())
    }
}

/// Chunks that an image of so much takes at most.
pub(super) fn chunks_for(state: &State, keys_bytes: usize) -> usize {
    let of_run = |run: &Arc<Run>| run.held_bytes() + 64;
    let of_leaf = |leaf: &SuperLeaf| leaf.from.len() + 8 + leaf.runs.iter().map(of_run).sum::<usize>();
    let bytes = state.leaves.iter().map(of_leaf).sum::<usize>() + keys_bytes + 64;
    bytes.div_ceil(CHUNK_BYTES - HEADER_BYTES) + 1
}

/// Writes what is known, and then block 0. `chunks` are as many as are needed, in nobody's use.
pub(super) fn write(
    device: &Device,
    codec: Codec,
    tier: u64,
    head: u64,
    state: &State,
    keys: &[Vec<u8>],
    chunks: &[u32],
) -> Result<(), Failure> {
    let mut chunks = chunks.iter();
    let Some(&chunk) = chunks.next() else {
        return Err(Failure::Io(std::io::ErrorKind::StorageFull.into()));
    };
    let used = chunks.len() as u64 + 1;
    let mut chain = Chain {
        device,
        tier,
        position: head,
        chunks,
        chunk,
        buffer: device.buffer(CHUNK_BLOCKS as usize)?,
        filled: 0,
    };
    chain.put_u32(state.leaves.len())?;
    for leaf in &state.leaves {
        chain.put_bytes(&leaf.from)?;
        chain.put_u32(leaf.runs.len())?;
        for run in &leaf.runs {
            chain.put(&run.position.to_le_bytes())?;
            chain.put(&run.blocks.to_le_bytes())?;
            chain.put(&run.records.to_le_bytes())?;
            for list in [&run.pages, &run.starts, &run.chunks] {
                chain.put_list(list)?;
            }
            let (buckets, counts, remainders) = run.filter.parts();
            chain.put_u32(buckets)?;
            chain.put_u32(counts.len())?;
            counts.iter().try_for_each(|word| chain.put(&word.to_le_bytes()))?;
            chain.put_bytes(remainders)?;
        }
    }
    chain.put_u32(keys.len())?;
    keys.iter().try_for_each(|key| chain.put_bytes(key))?;
    chain.flush(true)?;
    let first = First {
        tier,
        // What the chain's own checksums are of is not used again either.
        head: head + used * CHUNK_BLOCKS,
        chunk,
        position: head,
    };
    let mut block = device.buffer(1)?;
    first.write(name_of(codec), device.blocks, block.bytes_mut());
    device.write_first(block.bytes())
}

/// What pages of a codec can be read by: its name without a level.
fn name_of(codec: Codec) -> u64 {
    let name = codec.to_string();
    hash(name.split(':').next().unwrap_or_default().as_bytes())
}

/// Bytes that are taken from the front.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
}

/// Reads a chain.
struct ChainReader<'c> {
    device: &'c Device,
    tier: u64,
    position: u64,
    next: u32,
    /// Chunks that may still come: a chain that bites its tail has an end.
    left: u64,
    /// Bytes of memory that may still be taken for what is read.
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
        let mut bytes = Bytes(self.buffer.bytes());
        let place = Place {
            tier: self.tier,
            position: self.position,
        };
        let checksum = bytes.u64().ok_or(Failure::Damaged)?;
        if checksum != place.checksum(bytes.0) {
            return Err(Failure::Damaged);
        }
        let (next, len) = bytes.u32().zip(bytes.u32()).ok_or(Failure::Damaged)?;
        (self.at, self.end) = (HEADER_BYTES, (HEADER_BYTES + len as usize).min(CHUNK_BYTES));
        self.next = next;
        self.position += CHUNK_BLOCKS;
        Ok(())
    }

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

    fn u32(&mut self) -> Result<u32, Failure> {
        let mut word = [0; 4];
        self.read(&mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    fn u64(&mut self) -> Result<u64, Failure> {
        let mut word = [0; 8];
        self.read(&mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    /// The length of something, no more than what it may be.
    fn len(&mut self, most: usize) -> Result<usize, Failure> {
        let len = self.u32()? as usize;
        if len > most { Err(Failure::Damaged) } else { Ok(len) }
    }

    /// Takes so much memory, unless there would be more than may be.
    fn charge(&mut self, bytes: usize) -> Result<(), Failure> {
        self.room_bytes = self.room_bytes.checked_sub(bytes).ok_or(Failure::Damaged)?;
        Ok(())
    }

    fn bytes(&mut self, most: usize) -> Result<Vec<u8>, Failure> {
        let len = self.len(most)?;
        self.charge(len)?;
        let mut bytes = room_for(len)?;
        bytes.resize(len, 0);
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&mut self, most: usize) -> Result<Vec<u32>, Failure> {
        let len = self.len(most)?;
        self.charge(len * size_of::<u32>())?;
        let mut list = room_for(len)?;
        for _ in 0..len {
            list.push(self.u32()?);
        }
        Ok(list)
    }

    fn run(&mut self) -> Result<Run, Failure> {
        let (position, blocks, records) = (self.u64()?, self.u32()?, self.u32()?);
        let most = self.device.blocks as usize;
        let (pages, starts, chunks) = (self.list(most)?, self.list(most)?, self.list(most)?);
        let buckets = self.len(MOST_BUCKETS)?;
        let words = self.len((buckets + records as usize).div_ceil(64))?;
        // The filter's places, which are not read, and what is.
        self.charge(buckets / 16 + words * size_of::<u64>())?;
        let mut counts = room_for(words)?;
        for _ in 0..words {
            counts.push(self.u64()?);
        }
        let remainders = self.bytes(records as usize)?;
        let filter = Filter::of_parts(buckets, counts, remainders)?.ok_or(Failure::Damaged)?;
        let is_sound = filter.parts().2.len() == records as usize
            && chunks.len() as u64 == u64::from(blocks).div_ceil(CHUNK_BLOCKS)
            && (starts.is_empty() && pages.len() == blocks as usize || starts.len() == pages.len())
            && starts
                .windows(2)
                .all(|pair| (1..MOST_PAGE_BLOCKS).contains(&pair[1].saturating_sub(pair[0])))
            && starts.first().is_none_or(|start| *start == 0)
            && starts
                .last()
                .is_none_or(|start| blocks.saturating_sub(*start) < MOST_PAGE_BLOCKS)
            && starts.last().is_none_or(|start| *start < blocks);
        if !is_sound {
            return Err(Failure::Damaged);
        }
        Ok(Run {
            position,
            blocks,
            records,
            filter,
            pages,
            starts,
            chunks,
        })
    }
}

/// What a tier that was closed had.
pub(super) struct Closed {
    pub first: First,
    pub state: State,
    /// Keys that were in use, those that were used most first.
    pub keys: Vec<Vec<u8>>,
}

/// What a tier that was closed left; [`None`] where there is none, or not all of it can be read or held in `room_bytes` of memory.
///
/// Block 0 says nothing any more when this returns, whatever it said: it would be out of date for the next.
pub(super) fn take(
    device: &Device,
    codec: Codec,
    most_chunks: u32,
    room_bytes: usize,
) -> Result<Option<Closed>, Failure> {
    if device.is_empty() {
        return Ok(None);
    }
    let mut block = device.buffer(1)?;
    let first = match device.read_first(block.bytes_mut()) {
        Ok(()) => First::read(name_of(codec), device.blocks, block.bytes()),
        Err(_) => None,
    };
    let read = first.map(|first| (first, read(device, first, most_chunks, room_bytes)));
    block.bytes_mut().fill(0);
    device.write_first(block.bytes())?;
    match read {
        Some((first, Ok((state, keys)))) => Ok(Some(Closed { first, state, keys })),
        Some((_, Err(Failure::OutOfMemory { bytes }))) => Err(Failure::OutOfMemory { bytes }),
        Some((_, Err(_))) | None => Ok(None),
    }
}

fn read(device: &Device, first: First, most_chunks: u32, room_bytes: usize) -> Result<(State, Vec<Vec<u8>>), Failure> {
    let mut chain = ChainReader {
        device,
        tier: first.tier,
        position: first.position,
        next: first.chunk,
        left: u64::from(most_chunks) + 1,
        room_bytes,
        buffer: device.buffer(CHUNK_BLOCKS as usize)?,
        at: 0,
        end: 0,
    };
    let mut state = State::new(most_chunks);
    let mut leaves = Vec::new();
    for _ in 0..chain.len(usize::MAX)? {
        let from: Arc<[u8]> = Arc::from(chain.bytes(crate::tree::MAX_KEY_BYTES)?);
        let mut runs = Vec::new();
        for _ in 0..chain.len(MOST_RUNS)? {
            chain.charge(size_of::<Run>())?;
            runs.try_push(Arc::new(chain.run()?))?;
        }
        let is_older = |newer: &Arc<Run>, older: &Arc<Run>| newer.position > older.position;
        let is_past = |run: &Arc<Run>| run.position.saturating_add(u64::from(run.blocks)) <= first.head;
        if !runs.is_sorted_by(is_older) || !runs.iter().all(is_past) {
            return Err(Failure::Damaged);
        }
        chain.charge(size_of::<SuperLeaf>())?;
        leaves.try_push(SuperLeaf { from, runs })?;
    }
    let mut keys = Vec::new();
    for _ in 0..chain.len(usize::MAX)? {
        chain.charge(size_of::<Vec<u8>>())?;
        keys.try_push(copied(&chain.bytes(crate::tree::MAX_KEY_BYTES)?)?)?;
    }
    if state.restore(leaves)? {
        Ok((state, keys))
    } else {
        Err(Failure::Damaged)
    }
}
