//! Writing blocks.

use std::cell::RefCell;
use std::sync::Arc;

use leafpress::codec::{Codec, CodecError, Dictionary, Engine};

use super::options::CompressionOptions;
use super::shared::{Line, Tally};
use super::statistics::{Ticker, count};
use super::wire::{BlockType, MAX_PREFIX_BYTES, MAX_RAW_BYTES, write_prefix};
use super::{dictionary, engines};

/// The result for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was compressed to this many bytes, prefix included.
    Compressed(usize),
    /// It does not shrink enough.
    Rejected,
    /// It was not compressed: it is empty, or too long, or the engine failed.
    Bypassed,
    /// It was compressed and did not decode to the raw bytes; it is to be stored raw.
    Mismatched,
}

/// The compression of one file: a codec, perhaps with a dictionary.
pub(crate) struct Compressor {
    codec: Codec,
    block_type: BlockType,
    engine: Arc<dyn Engine>,
    /// Writes the same type when the engine fails.
    stand_in: Option<Arc<dyn Engine>>,
    /// Decodes what was written, to compare.
    verifier: Option<Arc<dyn Engine>>,
    /// Bounds for a dictionary's training, in bytes; 0 for no dictionary.
    dictionary_bytes: usize,
    sample_bytes: usize,
    dictionary: Option<Dictionary>,
    /// The dictionary that similar files share; `None` if every file has its own.
    line: Option<Arc<Line>>,
    /// RocksDB's `verify_compression` decodes every block. RocksDB prepares a decompressor with the file's dictionary
    /// only where it exchanged samples for it; one that was named before the first block would be missing there, and
    /// the flush would fail.
    verified_by_rocksdb: bool,
    /// The sizes of the file's blocks, if they are written with a dictionary that others may use.
    tally: Option<Arc<Tally>>,
}

thread_local! {
    static VERIFIED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Compressor {
    /// Returns a compressor for files of an LSM level (below 0: unknown), or `None` when they are not compressed.
    /// RocksDB's own `max_dict_bytes` and `zstd_max_train_bytes`, where they are not 0, determine the size of a
    /// dictionary. `line` returns the files of a codec that share a dictionary of this size.
    pub(crate) fn new(
        options: &CompressionOptions,
        line: &dyn Fn(Codec, usize) -> Arc<Line>,
        level: i32,
        max_dict_bytes: u32,
        zstd_max_train_bytes: u32,
    ) -> Result<Option<Self>, CodecError> {
        let codec = options.codec_for_level(level);
        let Some(block_type) = BlockType::of(codec) else {
            return Ok(None);
        };
        let (engine, stand_in) = engines::engine_and_stand_in(codec)?;
        let (dictionary_bytes, sample_bytes) = if dictionary::uses_dictionary(codec) {
            options.dictionary(max_dict_bytes as usize, zstd_max_train_bytes as usize)
        } else {
            (0, 0)
        };
        let verifier = match block_type {
            _ if !options.verify() => None,
            // An engine other than the one that wrote detects more faults.
            BlockType::Deflate => Some(Arc::clone(&engines::built_in()?.deflate)),
            BlockType::Lz4 | BlockType::Zstd => Some(Arc::clone(&engine)),
        };
        Ok(Some(Self {
            codec,
            block_type,
            engine,
            stand_in,
            verifier,
            dictionary_bytes,
            sample_bytes,
            dictionary: None,
            line: (dictionary_bytes > 0 && options.dictionary_sharing()).then(|| line(codec, dictionary_bytes)),
            verified_by_rocksdb: false,
            tally: None,
        }))
    }

    /// Returns this compressor for a file whose blocks RocksDB decodes after they were written, or does not.
    pub(crate) fn verified_by_rocksdb(self, verified_by_rocksdb: bool) -> Self {
        Self {
            verified_by_rocksdb,
            ..self
        }
    }

    /// Returns this compressor with a dictionary.
    pub(crate) fn with_dictionary(&self, dictionary: Dictionary) -> Self {
        let tally = |line: &Arc<Line>| Arc::new(Tally::new(Arc::clone(line), dictionary.clone()));
        Self {
            tally: self.line.as_ref().map(tally),
            dictionary: Some(dictionary),
            ..self.copied()
        }
    }

    /// Returns another compressor for the same file.
    pub(crate) fn copied(&self) -> Self {
        Self {
            codec: self.codec,
            block_type: self.block_type,
            engine: Arc::clone(&self.engine),
            stand_in: self.stand_in.clone(),
            verifier: self.verifier.clone(),
            dictionary_bytes: self.dictionary_bytes,
            sample_bytes: self.sample_bytes,
            dictionary: self.dictionary.clone(),
            line: self.line.clone(),
            verified_by_rocksdb: self.verified_by_rocksdb,
            tally: self.tally.clone(),
        }
    }

    /// Returns this compressor with a dictionary that was trained before.
    pub(crate) fn with_dictionary_bytes(&self, bytes: &[u8]) -> Self {
        match self.shared_dictionary().filter(|shared| shared.bytes() == bytes) {
            Some(shared) => self.with_shared(shared),
            None => self.with_dictionary(Dictionary::from_bytes(1, bytes)),
        }
    }

    /// Returns this compressor with the dictionary that an earlier file trained.
    fn with_shared(&self, dictionary: Dictionary) -> Self {
        count([(Ticker::DictionaryReused, 1)]);
        self.with_dictionary(dictionary)
    }

    /// Returns the dictionary that similar files share.
    fn shared_dictionary(&self) -> Option<Dictionary> {
        self.line.as_ref().and_then(|line| line.current())
    }

    /// Returns the dictionary to name before the first block is written; `None` has RocksDB collect samples.
    pub(crate) fn ready_dictionary(&self) -> Option<Dictionary> {
        if self.verified_by_rocksdb {
            return None;
        }
        self.shared_dictionary()
    }

    /// Returns this compressor with the dictionary that similar files share, or else with one trained from
    /// sampled blocks; `None` if none pays.
    pub(crate) fn trained(&self, samples: &[&[u8]]) -> Option<Self> {
        if self.dictionary_bytes == 0 {
            return None;
        }
        if let Some(shared) = self.shared_dictionary() {
            return Some(self.with_shared(shared));
        }
        match dictionary::train(&*self.engine, samples, self.dictionary_bytes) {
            Some(dictionary) => {
                count([
                    (Ticker::DictionaryTrained, 1),
                    (Ticker::DictionaryTrainedBytes, dictionary.bytes().len() as u64),
                ]);
                if let Some(line) = &self.line {
                    line.offer(&dictionary);
                }
                Some(self.with_dictionary(dictionary))
            }
            None => {
                count([(Ticker::DictionaryDeclined, 1)]);
                None
            }
        }
    }

    /// Returns the codec, and whether a dictionary is used, for table properties.
    pub(crate) fn id(&self) -> String {
        match &self.dictionary {
            Some(dictionary) => format!("leafpress {} dictionary={}", self.codec, dictionary.bytes().len()),
            None => format!("leafpress {}", self.codec),
        }
    }

    /// Returns the type of the blocks.
    pub(crate) fn block_type(&self) -> BlockType {
        self.block_type
    }

    /// Returns the dictionary.
    pub(crate) fn dictionary(&self) -> Option<&Dictionary> {
        self.dictionary.as_ref()
    }

    /// Returns how many bytes of blocks to sample for a dictionary; 0 for no dictionary.
    pub(crate) fn sample_bytes(&self) -> usize {
        if self.dictionary_bytes == 0 {
            0
        } else {
            self.sample_bytes
        }
    }

    /// Compresses `raw` into the front of `out`.
    pub(crate) fn compress(&self, raw: &[u8], out: &mut [u8]) -> Outcome {
        let outcome = self.compress_block(raw, out);
        if let Some(tally) = &self.tally {
            let stored = if let Outcome::Compressed(written) = outcome {
                written
            } else {
                raw.len()
            };
            tally.add(raw.len(), stored);
        }
        match outcome {
            Outcome::Compressed(written) => count([
                (Ticker::CompressBlocks, 1),
                (Ticker::CompressRawBytes, raw.len() as u64),
                (Ticker::CompressStoredBytes, written as u64),
            ]),
            Outcome::Rejected => count([(Ticker::CompressRejected, 1)]),
            Outcome::Bypassed => count([(Ticker::CompressBypassed, 1)]),
            Outcome::Mismatched => count([(Ticker::VerifyMismatches, 1)]),
        }
        outcome
    }

    fn compress_block(&self, raw: &[u8], out: &mut [u8]) -> Outcome {
        if raw.is_empty() || raw.len() as u64 > MAX_RAW_BYTES || out.len() <= MAX_PREFIX_BYTES {
            return Outcome::Bypassed;
        }
        let prefix = write_prefix(raw.len() as u32, out);
        let room = &mut out[prefix..];
        let written = match self.engine.compress_into(raw, self.dictionary.as_ref(), room) {
            Ok(written) => Ok(written),
            Err(error) => match &self.stand_in {
                Some(stand_in) => {
                    count([(Ticker::CompressTakenOver, 1)]);
                    stand_in.compress_into(raw, self.dictionary.as_ref(), room)
                }
                None => Err(error),
            },
        };
        match written {
            Ok(Some(written)) if self.decodes(&out[prefix..prefix + written], raw) => {
                Outcome::Compressed(prefix + written)
            }
            Ok(Some(_)) => Outcome::Mismatched,
            Ok(None) => Outcome::Rejected,
            Err(_) => {
                count([(Ticker::CompressErrors, 1)]);
                Outcome::Bypassed
            }
        }
    }

    /// Returns whether a block decodes to its raw bytes; without `verify` it is not checked.
    fn decodes(&self, block: &[u8], raw: &[u8]) -> bool {
        let Some(verifier) = &self.verifier else {
            return true;
        };
        count([(Ticker::VerifyBlocks, 1)]);
        let work = |buffer: &RefCell<Vec<u8>>| {
            let mut buffer = buffer.try_borrow_mut().ok()?;
            buffer.resize(raw.len(), 0);
            verifier.decompress(block, self.dictionary.as_ref(), &mut buffer).ok()?;
            Some(*buffer == raw)
        };
        VERIFIED.try_with(work).ok().flatten().unwrap_or(false)
    }
}
