//! What the side files say of themselves: which tier's they are, and which opening's.

use crate::cache::disk::bytes::Bytes;
use crate::cache::disk::page::Place;
use crate::cache::disk::superblock::Kind;

/// Bytes of a side file's header.
pub(super) const HEADER_BYTES: usize = 4096;
const VERSION: u32 = 2;
/// Words of a side file's own in its header.
const OWN: usize = 4;

/// The header of a side file.
///
/// ```text
/// checksum u64   magic [u8; 16]   version u32   codec u64   blocks u64   tier u64   session u64   previous u64   own [u64; 4]   zeros
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SideFileHeader {
    pub kind: Kind,
    pub tier: u64,
    /// The opening of the tier that it is of, and the one before: block 0 names the one or, where the next did not come so far, the other.
    pub session: u64,
    pub previous: u64,
    /// What each file has of its own.
    pub own: [u64; OWN],
}

/// Headers have no position: their checksum is of this.
const HEADER: Place = Place {
    tier: 0x7369_6465,
    position: 0,
};

impl SideFileHeader {
    pub(super) fn write(&self, magic: &[u8; 16]) -> Vec<u8> {
        let mut header = vec![0; 8];
        header.extend_from_slice(magic);
        header.extend_from_slice(&VERSION.to_le_bytes());
        let Kind { codec, blocks, .. } = self.kind;
        for word in [codec, blocks, self.tier, self.session, self.previous]
            .iter()
            .chain(&self.own)
        {
            header.extend_from_slice(&word.to_le_bytes());
        }
        header.resize(HEADER_BYTES, 0);
        let checksum = HEADER.checksum(&header[8..]);
        header[..8].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    /// A header's, if it is one of this tier and of this session.
    pub(super) fn read(header: &[u8], magic: &[u8; 16], kind: Kind, tier: u64, session: u64) -> Option<Self> {
        let mut bytes = Bytes(header);
        let checksum = bytes.u64()?;
        let is_ours = checksum == HEADER.checksum(bytes.0)
            && bytes.take(magic.len())? == magic
            && bytes.u32()? == VERSION
            && bytes.u64()? == kind.codec
            && bytes.u64()? == kind.blocks
            && bytes.u64()? == tier;
        if !is_ours {
            return None;
        }
        let (its, previous) = (bytes.u64()?, bytes.u64()?);
        let mut own = [0; OWN];
        for word in &mut own {
            *word = bytes.u64()?;
        }
        [its, previous].contains(&session).then_some(Self {
            kind,
            tier,
            session: its,
            previous,
            own,
        })
    }
}
