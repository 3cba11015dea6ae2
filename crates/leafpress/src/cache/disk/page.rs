//! A page: records of a run, compressed together, in one block of 4 KiB. A record too long for that takes as many
//! blocks as it needs.
//!
//! ```text
//! checksum u64   raw length u32   payload length u32   payload: compressed, or raw if the lengths are equal
//! raw bytes, for each record: key length, record length (LEB128), key, record
//! ```
//!
//! Integers are little-endian. The checksum covers everything that follows, to the end of the last block, and the
//! page's position. Positions are never reused, so an overwritten page is detected.

use leafpress_base::bytes::{Bytes, MAX_LEB128_BYTES, put_leb128};
use leafpress_codec::{Engine, Scratch};

use super::failure::Failure;

/// Size of a block, the unit of reads and writes, in bytes.
pub(super) const BLOCK_BYTES: usize = 4096;
pub(super) const HEADER_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 8;
/// Payload capacity of one block, in bytes.
pub(super) const ROOM_BYTES: usize = BLOCK_BYTES - HEADER_BYTES;
/// Maximum raw bytes of a page with several records: reading one decodes all of them.
pub(super) const MAX_RAW_BYTES: usize = 32 << 10;

/// Inputs of a page's checksum in addition to its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChecksumSeed {
    /// The tier's own number: pages of another tier are not accepted.
    pub tier: u64,
    /// Blocks written before this one since the tier was created.
    pub position: u64,
}

/// Set by a fuzz target: checksums are 0, so that the code behind their verification is reached.
#[cfg(feature = "fuzz")]
pub(super) static IGNORES_CHECKSUMS: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

impl ChecksumSeed {
    pub(super) fn checksum(self, bytes: &[u8]) -> u64 {
        #[cfg(feature = "fuzz")]
        if IGNORES_CHECKSUMS.load(std::sync::atomic::Ordering::Relaxed) {
            return 0;
        }
        let seed = self.tier ^ self.position.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        rapidhash::v3::rapidhash_v3_seeded(bytes, &rapidhash::v3::RapidSecrets::seed_cpp(seed))
    }

    /// Writes the checksum of `bytes` into their first eight, which it does not cover.
    pub(super) fn seal(self, bytes: &mut [u8]) {
        let checksum = self.checksum(&bytes[CHECKSUM_BYTES..]);
        bytes[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Returns what follows the checksum, if that is right.
    pub(super) fn open(self, bytes: &[u8]) -> Option<Bytes<'_>> {
        let mut bytes = Bytes(bytes);
        (bytes.u64()? == self.checksum(bytes.0)).then_some(bytes)
    }

    /// Like [`ChecksumSeed::open`], for a header that [`begin_header`] began; returns what follows the version.
    pub(super) fn open_header<'h>(self, header: &'h [u8], magic: &[u8; 16], version: u32) -> Option<Bytes<'h>> {
        let mut bytes = self.open(header)?;
        (bytes.array()? == *magic && bytes.u32()? == version).then_some(bytes)
    }
}

/// Returns the start of a header: room for the checksum, the magic and the version.
pub(super) fn begin_header(magic: &[u8; 16], version: u32) -> Vec<u8> {
    let mut header = vec![0; CHECKSUM_BYTES];
    header.extend_from_slice(magic);
    header.extend_from_slice(&version.to_le_bytes());
    header
}

/// Returns the number of blocks of a page with this payload.
pub(super) fn blocks_for(payload_bytes: usize) -> usize {
    (HEADER_BYTES + payload_bytes).div_ceil(BLOCK_BYTES)
}

/// Writes a page into `blocks`, which are as many as it needs.
pub(super) fn write(raw_bytes: usize, payload: &[u8], seed: ChecksumSeed, blocks: &mut [u8]) {
    let (header, rest) = blocks.split_at_mut(HEADER_BYTES);
    header[8..12].copy_from_slice(&(raw_bytes as u32).to_le_bytes());
    header[12..16].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    rest[..payload.len()].copy_from_slice(payload);
    rest[payload.len()..].fill(0);
    seed.seal(blocks);
}

/// Decodes a page whose checksum has this seed into `raw`, at most `most_raw_bytes`.
pub(super) fn read(
    blocks: &[u8],
    seed: ChecksumSeed,
    engine: &dyn Engine,
    most_raw_bytes: usize,
    raw: &mut Vec<u8>,
    scratch: &mut Scratch,
) -> Result<(), Failure> {
    raw.clear();
    let mut bytes = seed.open(blocks).ok_or(Failure::Damaged)?;
    let (raw_bytes, payload_bytes) = bytes.u32().zip(bytes.u32()).ok_or(Failure::Damaged)?;
    let (raw_bytes, payload_bytes) = (raw_bytes as usize, payload_bytes as usize);
    let payload = bytes.take(payload_bytes).ok_or(Failure::Damaged)?;
    if raw_bytes > most_raw_bytes {
        return Err(Failure::Damaged);
    }
    let decoded = if payload_bytes == raw_bytes {
        payload
    } else {
        engine.decode(payload, None, raw_bytes, raw_bytes, scratch)?
    };
    raw.try_reserve(decoded.len())
        .map_err(|_| Failure::OutOfMemory { bytes: decoded.len() })?;
    raw.extend_from_slice(decoded);
    Ok(())
}

/// Appends a record to a page's raw bytes, which must have room for [`framed_bytes`].
pub(super) fn push(key: &[u8], record: &[u8], raw: &mut Vec<u8>) -> Result<(), Failure> {
    let bytes = framed_bytes(key, record);
    raw.try_reserve(bytes).map_err(|_| Failure::OutOfMemory { bytes })?;
    put_leb128(raw, key.len());
    put_leb128(raw, record.len());
    raw.extend_from_slice(key);
    raw.extend_from_slice(record);
    Ok(())
}

/// Returns the maximum size of a record in a page's raw bytes.
pub(super) fn framed_bytes(key: &[u8], record: &[u8]) -> usize {
    2 * MAX_LEB128_BYTES + key.len() + record.len()
}

/// Iterator over the records of a page's raw bytes: key and record. It ends with the bytes, or at invalid data.
pub(super) struct Records<'r>(pub &'r [u8]);

impl<'r> Iterator for Records<'r> {
    type Item = (&'r [u8], &'r [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = Bytes(self.0);
        let (key_bytes, record_bytes) = (bytes.leb128()?, bytes.leb128()?);
        let found = (bytes.take(key_bytes)?, bytes.take(record_bytes)?);
        self.0 = bytes.0;
        Some(found)
    }
}
