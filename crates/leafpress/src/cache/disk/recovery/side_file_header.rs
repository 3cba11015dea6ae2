//! Header of the side files: their tier and session.

use crate::cache::disk::page::{ChecksumSeed, begin_header};
use crate::cache::disk::superblock::Kind;

/// Size of a side file's header, in bytes.
pub(super) const HEADER_BYTES: usize = 4096;
const VERSION: u32 = 2;
/// Words in the header that each file uses for itself.
const OWN: usize = 4;

/// The header of a side file.
///
/// ```text
/// checksum u64   magic [u8; 16]   version u32   codec u64   blocks u64   tier u64   session u64   previous u64
/// own [u64; 4]   zeros
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SideFileHeader {
    pub kind: Kind,
    pub tier: u64,
    /// The session, an opening of the tier, and the previous one: block 0 has either the one or, if the next opening
    /// did not complete, the other.
    pub session: u64,
    pub previous: u64,
    /// Words that each file uses for itself.
    pub own: [u64; OWN],
}

/// Headers have no position: this is used in their checksums.
const HEADER: ChecksumSeed = ChecksumSeed {
    tier: 0x7369_6465,
    position: 0,
};

impl SideFileHeader {
    pub(super) fn write(&self, magic: &[u8; 16]) -> Vec<u8> {
        let mut header = begin_header(magic, VERSION);
        let Kind { codec, blocks, .. } = self.kind;
        for word in [codec, blocks, self.tier, self.session, self.previous]
            .iter()
            .chain(&self.own)
        {
            header.extend_from_slice(&word.to_le_bytes());
        }
        header.resize(HEADER_BYTES, 0);
        HEADER.seal(&mut header);
        header
    }

    /// Reads a header; [`None`] if it is not of this tier and session.
    pub(super) fn read(header: &[u8], magic: &[u8; 16], kind: Kind, tier: u64, session: u64) -> Option<Self> {
        let mut bytes = HEADER.open_header(header, magic, VERSION)?;
        let is_ours = bytes.u64()? == kind.codec && bytes.u64()? == kind.blocks && bytes.u64()? == tier;
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
