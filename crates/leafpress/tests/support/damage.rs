//! An engine that corrupts the decoded bytes of one block.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leafpress::codec::{Codec, CodecError, Dictionary, Engine, Scratch};

/// A corruption of decoded bytes. Positions are modulo the length.
#[derive(Debug, Clone)]
pub enum Damage {
    /// The byte at this position is XORed with this mask.
    Flip(u16, u8),
    /// The bytes from this position on are overwritten by these.
    Splice(u16, Vec<u8>),
    /// The bytes are truncated at this position.
    Cut(u16),
    /// These bytes are appended.
    Extend(Vec<u8>),
    /// Decoding fails.
    Refuse,
}

impl Damage {
    /// Returns `raw`, corrupted; `None` for an error.
    pub fn done_to(&self, raw: &[u8]) -> Option<Vec<u8>> {
        let mut raw = raw.to_vec();
        let place = |at: u16| usize::from(at) % raw.len().max(1);
        match self {
            Damage::Flip(at, mask) => {
                let at = place(*at);
                raw.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= mask);
            }
            Damage::Splice(at, bytes) => {
                let at = place(*at);
                for (target, byte) in raw.iter_mut().skip(at).zip(bytes) {
                    *target = *byte;
                }
            }
            Damage::Cut(at) => raw.truncate(place(*at)),
            Damage::Extend(bytes) => raw.extend_from_slice(bytes),
            Damage::Refuse => return None,
        }
        Some(raw)
    }
}

/// An engine that decodes like another, except for one block.
#[derive(Debug)]
pub struct Damaging {
    engine: Arc<dyn Engine>,
    struck: Mutex<Option<(Vec<u8>, Damage)>>,
}

impl Damaging {
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self {
            engine,
            struck: Mutex::new(None),
        }
    }

    fn struck(&self) -> MutexGuard<'_, Option<(Vec<u8>, Damage)>> {
        self.struck.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the block that is decoded to corrupted bytes from now on, or none.
    pub fn strike(&self, struck: Option<(&[u8], &Damage)>) {
        *self.struck() = struck.map(|(block, damage)| (block.to_vec(), damage.clone()));
    }
}

impl Engine for Damaging {
    fn codec(&self) -> Codec {
        self.engine.codec()
    }

    fn supports_dictionary(&self) -> bool {
        self.engine.supports_dictionary()
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.engine.compress(raw, dictionary, out)
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        self.engine.decompress(block, dictionary, raw)
    }

    fn decode<'s>(
        &self,
        block: &[u8],
        dictionary: Option<&Dictionary>,
        raw_len: usize,
        needed: usize,
        scratch: &'s mut Scratch,
    ) -> Result<&'s [u8], CodecError> {
        let damage = match &*self.struck() {
            Some((struck, damage)) if struck == block => damage.clone(),
            _ => return self.engine.decode(block, dictionary, raw_len, needed, scratch),
        };
        let raw = self.engine.decode(block, dictionary, raw_len, raw_len, scratch)?;
        match damage.done_to(raw) {
            Some(raw) => Ready(&raw).decode(block, dictionary, raw.len(), raw.len(), scratch),
            None => Err(corrupt()),
        }
    }
}

/// An engine that decodes every block to these bytes.
#[derive(Debug)]
struct Ready<'r>(&'r [u8]);

impl Engine for Ready<'_> {
    fn codec(&self) -> Codec {
        Codec::None
    }

    fn compress(&self, _: &[u8], _: Option<&Dictionary>, _: &mut Vec<u8>) -> Result<usize, CodecError> {
        Err(corrupt())
    }

    fn decompress(&self, _: &[u8], _: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        raw.copy_from_slice(self.0);
        Ok(())
    }
}

fn corrupt() -> CodecError {
    CodecError::Corrupt {
        codec: "damaging",
        reason: "injected by the test".into(),
    }
}
