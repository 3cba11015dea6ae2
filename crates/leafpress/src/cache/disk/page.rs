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

use leafpress_codec::{Engine, Scratch};

use super::failure::Failure;

/// Size of a block, the unit of reads and writes, in bytes.
pub(super) const BLOCK_BYTES: usize = 4096;
pub(super) const HEADER_BYTES: usize = 16;
/// Payload capacity of one block, in bytes.
pub(super) const ROOM_BYTES: usize = BLOCK_BYTES - HEADER_BYTES;
/// Maximum raw bytes of a page with several records: reading one decodes all of them.
pub(super) const MAX_RAW_BYTES: usize = 32 << 10;

/// Inputs of a page's checksum in addition to its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The tier's own number: pages of another tier are not accepted.
    pub tier: u64,
    /// Blocks written before this one since the tier was created.
    pub position: u64,
}

/// Set by a fuzz target: checksums are 0, so that the code behind their verification is reached.
#[cfg(feature = "fuzz")]
pub(super) static IGNORES_CHECKSUMS: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

impl Place {
    pub(super) fn checksum(self, bytes: &[u8]) -> u64 {
        #[cfg(feature = "fuzz")]
        if IGNORES_CHECKSUMS.load(std::sync::atomic::Ordering::Relaxed) {
            return 0;
        }
        let seed = self.tier ^ self.position.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        rapidhash::v3::rapidhash_v3_seeded(bytes, &rapidhash::v3::RapidSecrets::seed_cpp(seed))
    }
}

/// Returns the number of blocks of a page with this payload.
pub(super) fn blocks_for(payload_bytes: usize) -> usize {
    (HEADER_BYTES + payload_bytes).div_ceil(BLOCK_BYTES)
}

/// Writes a page into `blocks`, which are as many as it needs.
pub(super) fn write(raw_bytes: usize, payload: &[u8], place: Place, blocks: &mut [u8]) {
    let (header, rest) = blocks.split_at_mut(HEADER_BYTES);
    header[8..12].copy_from_slice(&(raw_bytes as u32).to_le_bytes());
    header[12..16].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    rest[..payload.len()].copy_from_slice(payload);
    rest[payload.len()..].fill(0);
    let checksum = place.checksum(&blocks[8..]);
    blocks[..8].copy_from_slice(&checksum.to_le_bytes());
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    let (four, _) = bytes.get(at..)?.split_first_chunk()?;
    Some(u32::from_le_bytes(*four) as usize)
}

/// Decodes a page that was read from `place` into `raw`, at most `most_raw_bytes`.
pub(super) fn read(
    blocks: &[u8],
    place: Place,
    engine: &dyn Engine,
    most_raw_bytes: usize,
    raw: &mut Vec<u8>,
    scratch: &mut Scratch,
) -> Result<(), Failure> {
    raw.clear();
    let (checksum, rest) = blocks.split_first_chunk().ok_or(Failure::Damaged)?;
    if u64::from_le_bytes(*checksum) != place.checksum(rest) {
        return Err(Failure::Damaged);
    }
    let (Some(raw_bytes), Some(payload_bytes)) = (u32_at(blocks, 8), u32_at(blocks, 12)) else {
        return Err(Failure::Damaged);
    };
    let payload = blocks.get(HEADER_BYTES..HEADER_BYTES + payload_bytes);
    let payload = payload.ok_or(Failure::Damaged)?;
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
    for mut len in [key.len(), record.len()] {
        while len >= 0x80 {
            raw.push(len as u8 | 0x80);
            len >>= 7;
        }
        raw.push(len as u8);
    }
    raw.extend_from_slice(key);
    raw.extend_from_slice(record);
    Ok(())
}

/// Returns the maximum size of a record in a page's raw bytes.
pub(super) fn framed_bytes(key: &[u8], record: &[u8]) -> usize {
    10 + key.len() + record.len()
}

fn take_len(bytes: &mut &[u8]) -> Option<usize> {
    let mut len = 0_usize;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        len |= usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(len);
        }
    }
    None
}

/// Iterator over the records of a page's raw bytes: key and record. It ends with the bytes, or at invalid data.
pub(super) struct Records<'r>(pub &'r [u8]);

impl<'r> Iterator for Records<'r> {
    type Item = (&'r [u8], &'r [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let key_bytes = take_len(&mut self.0)?;
        let record_bytes = take_len(&mut self.0)?;
        let (key, rest) = self.0.split_at_checked(key_bytes)?;
        let (record, rest) = rest.split_at_checked(record_bytes)?;
        self.0 = rest;
        Some((key, record))
    }
}
