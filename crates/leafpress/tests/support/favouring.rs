//! An engine of all candidates of `trial:memory`, of which the test decides which one a tree chooses.

use std::sync::atomic::{AtomicUsize, Ordering};

use leafpress::codec::{ByDictionary, Codec, CodecError, Dictionary, Engine, EngineOptions, Scratch, TrialGoal};

/// What the engine is to a tree: a codec that chooses.
pub const CODEC: Codec = Codec::Trial {
    goal: TrialGoal::Memory,
};

/// The engine. Only one codec, the favoured one, compresses: with a dictionary of another one, and without any, blocks
/// are stored uncompressed. Blocks are decoded by the codec that wrote them. So a choice depends on sizes rather than
/// on times: those of the others are several times as large, and their price is the fifth power of that.
#[derive(Debug)]
pub struct Favouring {
    engine: ByDictionary,
    favoured: AtomicUsize,
}

impl Favouring {
    pub fn new() -> Self {
        Self {
            engine: ByDictionary::open(CODEC, &EngineOptions::default()).unwrap(),
            favoured: AtomicUsize::new(0),
        }
    }

    /// Makes another codec than `current` the favoured one: of the others, the one with this number. Returns it.
    pub fn favour_another(&self, current: Codec, number: usize) -> Codec {
        let codecs = CODEC.candidates();
        let at = codecs.iter().position(|codec| *codec == current).unwrap();
        let at = (at + 1 + number % (codecs.len() - 1)) % codecs.len();
        self.favoured.store(at, Ordering::Relaxed);
        codecs[at]
    }

    fn compresses(&self, dictionary: Option<&Dictionary>) -> bool {
        let favoured = CODEC.candidates()[self.favoured.load(Ordering::Relaxed)];
        dictionary.and_then(Dictionary::codec) == Some(favoured)
    }
}

impl Engine for Favouring {
    fn codec(&self) -> Codec {
        CODEC
    }

    fn supports_dictionary(&self) -> bool {
        true
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        if self.compresses(dictionary) {
            return self.engine.compress(raw, dictionary, out);
        }
        out.extend_from_slice(raw);
        Ok(raw.len())
    }

    fn compress_into(
        &self,
        raw: &[u8],
        dictionary: Option<&Dictionary>,
        out: &mut [u8],
    ) -> Result<Option<usize>, CodecError> {
        if self.compresses(dictionary) {
            return self.engine.compress_into(raw, dictionary, out);
        }
        Ok(None)
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
        self.engine.decode(block, dictionary, raw_len, needed, scratch)
    }
}
