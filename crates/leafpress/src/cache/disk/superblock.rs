//! The superblock, block 0 of the store: identifies its contents.
//!
//! ```text
//! checksum u64   "leafpress cache\0"   version u32   state u32   codec (hash of its name) u64   tier u64   blocks u64
//! closed (state 1): head u64   chunk u32   position u64   (with epochs: session u64   judged before u64   epoch u32)
//! open (state 2):   session u64
//! ```
//!
//! The superblock of a closed tier has the position of its image. That of an open tier has the session of the side
//! files for crash recovery, or none if recovery is off.
//!
//! A file without the magic is not a cache's, and is left unchanged. So the superblock is written before anything else,
//! and every version has the magic at the same offset: a torn write has it too.

use super::device::Device;
use super::failure::Failure;
use super::page::{ChecksumSeed, begin_header};
use crate::tree::hash::hash;
use leafpress_base::bytes::Bytes;
use leafpress_codec::Codec;

const MAGIC: &[u8; 16] = b"leafpress cache\0";
/// Byte range of the magic.
const MAGIC_AT: std::ops::Range<usize> = 8..24;
/// Number of leading bytes that [`is_ours`] needs.
pub(super) const MAGIC_END: usize = MAGIC_AT.end;
/// On-disk format version of pages, runs and the image.
const VERSION: u32 = 4;
const CLOSED: u32 = 1;
const OPEN: u32 = 2;
/// The session of a tier without crash recovery.
const NO_SESSION: u64 = 0;
/// Upper bound of the head.
pub(super) const MAX_HEAD: u64 = 1 << 62;

/// Block 0 has no position: this is used in its checksum.
const FIRST: ChecksumSeed = ChecksumSeed {
    tier: 0x6c65_6166,
    position: 0,
};

/// The properties of a tier that must match for it to be continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// What decoding depends on: the codec's name without a level, and whether records have epochs.
    pub codec: u64,
    pub blocks: u64,
    pub has_epochs: bool,
}

impl Kind {
    pub(super) fn of(codec: Codec, device: &Device, has_epochs: bool) -> Self {
        let name = codec.to_string();
        let name = name.split(':').next().unwrap_or_default();
        Self {
            codec: if has_epochs {
                hash(format!("{name} with epochs").as_bytes())
            } else {
                hash(name.as_bytes())
            },
            blocks: device.blocks,
            has_epochs,
        }
    }
}

/// Superblock fields of a closed tier with epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecoveryStamp {
    /// The session of its side files.
    pub session: u64,
    /// Runs before this position have records that the table of stale epochs refuses.
    pub judged_before: u64,
    /// Upper bound of the records' epochs.
    pub epoch: u32,
}

/// Superblock fields of a closed tier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Superblock {
    pub tier: u64,
    pub head: u64,
    /// The first chunk of the image's chain, and the position in its checksum.
    pub chunk: u32,
    pub position: u64,
    pub epochs: Option<RecoveryStamp>,
}

/// Decoded contents of block 0.
pub(super) enum SuperblockState {
    Nothing,
    Closed(Superblock),
    Open { tier: u64, session: u64 },
}

fn seal(header: &[u8], block: &mut [u8]) {
    block.fill(0);
    block[..header.len()].copy_from_slice(header);
    FIRST.seal(block);
}

fn begin(state: u32, words: &[u64]) -> Vec<u8> {
    let mut header = begin_header(MAGIC, VERSION);
    header.extend_from_slice(&state.to_le_bytes());
    words
        .iter()
        .for_each(|word| header.extend_from_slice(&word.to_le_bytes()));
    header
}

/// Returns true if a store that begins with these bytes was written by a cache, of any kind and version.
pub(super) fn is_ours(block: &[u8]) -> bool {
    block.get(MAGIC_AT) == Some(MAGIC)
}

impl Superblock {
    pub(super) fn write(self, kind: Kind, block: &mut [u8]) {
        let mut header = begin(CLOSED, &[kind.codec, self.tier, kind.blocks, self.head]);
        header.extend_from_slice(&self.chunk.to_le_bytes());
        header.extend_from_slice(&self.position.to_le_bytes());
        if let Some(epochs) = self.epochs {
            header.extend_from_slice(&epochs.session.to_le_bytes());
            header.extend_from_slice(&epochs.judged_before.to_le_bytes());
            header.extend_from_slice(&epochs.epoch.to_le_bytes());
        }
        seal(&header, block);
    }

    fn read(mut bytes: Bytes<'_>, tier: u64, kind: Kind) -> Option<Self> {
        let (head, chunk, position) = (bytes.u64()?, bytes.u32()?, bytes.u64()?);
        let epochs = if kind.has_epochs {
            Some(RecoveryStamp {
                session: bytes.u64()?,
                judged_before: bytes.u64()?,
                epoch: bytes.u32()?,
            })
        } else {
            None
        };
        (head < MAX_HEAD && position < MAX_HEAD).then_some(Self {
            tier,
            head,
            chunk,
            position,
            epochs,
        })
    }
}

fn parse(block: &[u8], kind: Kind) -> Option<SuperblockState> {
    let mut bytes = FIRST.open_header(block, MAGIC, VERSION)?;
    let state = bytes.u32()?;
    if bytes.u64()? != kind.codec {
        return None;
    }
    let tier = bytes.u64()?;
    if bytes.u64()? != kind.blocks {
        return None;
    }
    if state == CLOSED {
        return Superblock::read(bytes, tier, kind).map(SuperblockState::Closed);
    }
    let session = bytes.u64()?;
    (state == OPEN && session != NO_SESSION && kind.has_epochs).then_some(SuperblockState::Open { tier, session })
}

/// Reads block 0 for a tier of this kind; a tier of another kind counts as empty.
pub(super) fn read(device: &Device, kind: Kind) -> Result<SuperblockState, Failure> {
    if device.is_empty() {
        return Ok(SuperblockState::Nothing);
    }
    let mut block = device.buffer(1)?;
    let stated = match device.read_first(block.bytes_mut()) {
        Ok(()) => parse(block.bytes(), kind),
        Err(_) => None,
    };
    Ok(stated.unwrap_or(SuperblockState::Nothing))
}

/// Returns true if a store is empty or a cache's.
pub(super) fn may_take(device: &Device) -> Result<bool, Failure> {
    if device.is_empty() {
        return Ok(true);
    }
    if !device.has_first() {
        return Ok(false);
    }
    let mut block = device.buffer(1)?;
    device.read_first(block.bytes_mut())?;
    Ok(is_ours(block.bytes()))
}

/// Marks the tier as open, with the session of its side files. Without a session, the previous contents become invalid
/// for the next opening.
pub(super) fn mark_open(device: &Device, kind: Kind, tier: u64, session: Option<u64>) -> Result<(), Failure> {
    let mut block = device.buffer(1)?;
    let session = session.unwrap_or(NO_SESSION);
    seal(
        &begin(OPEN, &[kind.codec, tier, kind.blocks, session]),
        block.bytes_mut(),
    );
    device.write_first(block.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_block_0_states_and_nothing_else() {
        let kind = Kind {
            codec: 5,
            blocks: 900,
            has_epochs: true,
        };
        let epochs = RecoveryStamp {
            session: 7,
            judged_before: 8,
            epoch: 9,
        };
        let superblock = Superblock {
            tier: 1,
            head: 2,
            chunk: 3,
            position: 4,
            epochs: Some(epochs),
        };
        let mut block = vec![0; 4096];
        superblock.write(kind, &mut block);
        let Some(SuperblockState::Closed(read)) = parse(&block, kind) else {
            panic!("it is closed")
        };
        assert_eq!((read.tier, read.head, read.chunk, read.position), (1, 2, 3, 4));
        assert_eq!(read.epochs, Some(epochs));
        for other in [Kind { codec: 6, ..kind }, Kind { blocks: 901, ..kind }] {
            assert!(parse(&block, other).is_none());
        }
        for byte in 0..100 {
            block[byte] ^= 4;
            assert!(parse(&block, kind).is_none());
            block[byte] ^= 4;
        }
        assert!(is_ours(&block));
        seal(&begin(OPEN, &[5, 1, 900, NO_SESSION]), &mut block);
        assert!(is_ours(&block) && parse(&block, kind).is_none());
        seal(&begin(OPEN, &[5, 1, 900, 77]), &mut block);
        assert!(is_ours(&block));
        assert!(matches!(
            parse(&block, kind),
            Some(SuperblockState::Open { tier: 1, session: 77 })
        ));
        assert!(
            parse(
                &block,
                Kind {
                    has_epochs: false,
                    ..kind
                }
            )
            .is_none()
        );
    }
}
