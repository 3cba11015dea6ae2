//! Block 0 of the store: what the others are.
//!
//! ```text
//! closed: checksum u64   "leafpress cache\0"   version u32   codec (hash of its name) u64   tier u64   blocks u64   head u64
//!         chunk u32   position u64   (of a tier with epochs: session u64   judged before u64   epoch u32)
//! open:   checksum u64   "leafpress open\0\0"   version u32   codec u64   tier u64   blocks u64   session u64
//! ```
//!
//! A closed tier says where its image is. An open one says so only where it is to be found again after a crash: by which side files.

use super::bytes::Bytes;
use super::device::Device;
use super::failure::Failure;
use super::page::Place;
use crate::codec::Codec;
use crate::tree::hash::hash;

const CLOSED: &[u8; 16] = b"leafpress cache\0";
const OPEN: &[u8; 16] = b"leafpress open\0\0";
/// Of what is in the store: pages, runs, the image.
const VERSION: u32 = 2;
/// No head is past this.
pub(super) const MOST_HEAD: u64 = 1 << 62;

/// Block 0 has no position: its checksum is of this.
const FIRST: Place = Place {
    tier: 0x6c65_6166,
    position: 0,
};

/// What a store's tier has to be for another to go on with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// What pages can be read by: a codec's name without a level, and whether records have epochs.
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

/// What block 0 says of a tier with epochs that was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Epochs {
    /// That of the side files beside it.
    pub session: u64,
    /// Runs before this position have records that the notes refuse.
    pub judged_before: u64,
    /// No record has a later one.
    pub epoch: u32,
}

/// What block 0 says of a tier that was closed.
#[derive(Debug, Clone, Copy)]
pub(super) struct First {
    pub tier: u64,
    pub head: u64,
    /// The first chunk of the image's chain, and the position that its checksum is of.
    pub chunk: u32,
    pub position: u64,
    pub epochs: Option<Epochs>,
}

/// What block 0 says.
pub(super) enum Said {
    Nothing,
    Closed(First),
    Open { tier: u64, session: u64 },
}

fn seal(rest: &[u8], block: &mut [u8]) {
    block.fill(0);
    block[8..8 + rest.len()].copy_from_slice(rest);
    let checksum = FIRST.checksum(&block[8..]);
    block[..8].copy_from_slice(&checksum.to_le_bytes());
}

fn begin(magic: &[u8; 16], words: &[u64]) -> Vec<u8> {
    let mut rest = Vec::with_capacity(128);
    rest.extend_from_slice(magic);
    rest.extend_from_slice(&VERSION.to_le_bytes());
    words
        .iter()
        .for_each(|word| rest.extend_from_slice(&word.to_le_bytes()));
    rest
}

impl First {
    pub(super) fn write(self, kind: Kind, block: &mut [u8]) {
        let mut rest = begin(CLOSED, &[kind.codec, self.tier, kind.blocks, self.head]);
        rest.extend_from_slice(&self.chunk.to_le_bytes());
        rest.extend_from_slice(&self.position.to_le_bytes());
        if let Some(epochs) = self.epochs {
            rest.extend_from_slice(&epochs.session.to_le_bytes());
            rest.extend_from_slice(&epochs.judged_before.to_le_bytes());
            rest.extend_from_slice(&epochs.epoch.to_le_bytes());
        }
        seal(&rest, block);
    }

    fn read(mut bytes: Bytes<'_>, tier: u64, kind: Kind) -> Option<Self> {
        let (head, chunk, position) = (bytes.u64()?, bytes.u32()?, bytes.u64()?);
        let epochs = if kind.has_epochs {
            Some(Epochs {
                session: bytes.u64()?,
                judged_before: bytes.u64()?,
                epoch: bytes.u32()?,
            })
        } else {
            None
        };
        (head < MOST_HEAD && position < MOST_HEAD).then_some(Self {
            tier,
            head,
            chunk,
            position,
            epochs,
        })
    }
}

fn parse(block: &[u8], kind: Kind) -> Option<Said> {
    let mut bytes = Bytes(block);
    let checksum = bytes.u64()?;
    if checksum != FIRST.checksum(bytes.0) {
        return None;
    }
    let magic = bytes.take(CLOSED.len())?;
    if bytes.u32()? != VERSION || bytes.u64()? != kind.codec {
        return None;
    }
    let tier = bytes.u64()?;
    if bytes.u64()? != kind.blocks {
        return None;
    }
    if magic == CLOSED {
        return First::read(bytes, tier, kind).map(Said::Closed);
    }
    let session = bytes.u64()?;
    (magic == OPEN && kind.has_epochs).then_some(Said::Open { tier, session })
}

/// What block 0 says of a tier of this kind: nothing where it is another's.
pub(super) fn read(device: &Device, kind: Kind) -> Result<Said, Failure> {
    if device.is_empty() {
        return Ok(Said::Nothing);
    }
    let mut block = device.buffer(1)?;
    let said = match device.read_first(block.bytes_mut()) {
        Ok(()) => parse(block.bytes(), kind),
        Err(_) => None,
    };
    Ok(said.unwrap_or(Said::Nothing))
}

/// Takes away what it says: it would be out of date for the next.
pub(super) fn take_away(device: &Device) -> Result<(), Failure> {
    if device.is_empty() {
        return Ok(());
    }
    let mut block = device.buffer(1)?;
    block.bytes_mut().fill(0);
    device.write_first(block.bytes())
}

/// Says that the tier is open, and by which side files it is found again.
pub(super) fn say_open(device: &Device, kind: Kind, tier: u64, session: u64) -> Result<(), Failure> {
    let mut block = device.buffer(1)?;
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
    fn what_block_0_says_is_read_and_nothing_else() {
        let kind = Kind {
            codec: 5,
            blocks: 900,
            has_epochs: true,
        };
        let epochs = Epochs {
            session: 7,
            judged_before: 8,
            epoch: 9,
        };
        let first = First {
            tier: 1,
            head: 2,
            chunk: 3,
            position: 4,
            epochs: Some(epochs),
        };
        let mut block = vec![0; 4096];
        first.write(kind, &mut block);
        let Some(Said::Closed(read)) = parse(&block, kind) else {
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
        seal(&begin(OPEN, &[5, 1, 900, 77]), &mut block);
        assert!(matches!(parse(&block, kind), Some(Said::Open { tier: 1, session: 77 })));
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
