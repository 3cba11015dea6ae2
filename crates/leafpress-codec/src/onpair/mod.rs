//! OnPair: records as codes of tokens, each record alone.
//!
//! OnPair (Gargiulo and Venturini, 2025, arXiv 2508.02280) replaces strings of up to sixteen bytes that recur in many
//! records by codes of fixed width. A record is cut greedily, each time by the longest token. Decoding is a table
//! lookup and a copy of sixteen bytes for each code, without history. The tokens are trained ([`mod@train`]) and are
//! the bytes of a dictionary ([`tokens`]).
//!
//! A block is packed codes of 12, 14 or 16 bits ([`packed`]), or with entropy coding the bits of a static Huffman code
//! over codes of 12 bits ([`huffman`]). A block as long as its raw bytes contains them uncompressed, and so does each
//! block without a dictionary.

mod code_lengths;
#[allow(
    unsafe_code,
    reason = "writes without bounds checks, where there is room for four tokens"
)]
mod decode;
#[allow(unsafe_code, reason = "it writes four tokens at a time")]
mod huffman;
mod matcher;
#[allow(unsafe_code, reason = "it writes four tokens at a time")]
mod packed;
mod tokens;
mod train;

use std::sync::OnceLock;

use self::decode::{FOUR_TOKENS_BYTES, Output, TokenTable};
use self::huffman::Decoder;
use self::matcher::Matcher;
use self::packed::Packer;
use self::tokens::{Form, Tokens};
use super::counters::Counters;
use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, Scratch, output};

/// The name in errors.
const NAME: &str = "onpair";

fn failed(reason: impl Into<String>) -> CodecError {
    output::failed(NAME, reason)
}

/// Returns the form of a codec's codes.
fn form_of(codec: Codec) -> Form {
    match codec {
        Codec::OnPair { bits } => Form { bits, entropy: false },
        _ => Form {
            bits: 12,
            entropy: true,
        },
    }
}

/// Trains the bytes of a dictionary for each of `sizes`, which fall, from records.
pub(crate) fn train(codec: Codec, records: &[&[u8]], sizes: &[usize]) -> Result<Vec<Vec<u8>>, CodecError> {
    train::train(form_of(codec), records, sizes)
}

/// A dictionary's tables, each built at its first use.
#[derive(Default)]
pub(crate) struct OnPairTables {
    reading: OnceLock<Result<Reading, CodecError>>,
    writing: OnceLock<Result<Writing, CodecError>>,
}

/// What a reader needs.
struct Reading {
    form: Form,
    tokens: Tokens,
    code_bits: Option<Vec<u8>>,
    decoder: Option<Decoder>,
}

/// What a writer needs besides.
struct Writing {
    matcher: Matcher,
    /// With entropy, each token's Huffman code.
    codes: Option<Vec<u16>>,
}

impl OnPairTables {
    /// Returns the tables for reading. `bytes` must be the same for every call.
    #[inline]
    fn reading(&self, bytes: &[u8]) -> Result<&Reading, CodecError> {
        self.reading
            .get_or_init(|| Reading::new(bytes))
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Returns the tables for writing.
    #[inline]
    fn writing(&self, reading: &Reading) -> Result<&Writing, CodecError> {
        self.writing
            .get_or_init(|| Writing::new(reading))
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Builds the tables for reading.
    pub(crate) fn prepare_to_read(&self, codec: Codec, bytes: &[u8]) -> Result<(), CodecError> {
        self.reading(bytes)?.check(form_of(codec))
    }

    /// Memory of the tables built so far, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let reading = self.reading.get().and_then(|made| made.as_ref().ok());
        let writing = self.writing.get().and_then(|made| made.as_ref().ok());
        reading.map_or(0, Reading::held_bytes) + writing.map_or(0, Writing::held_bytes)
    }
}

impl Reading {
    fn new(bytes: &[u8]) -> Result<Self, CodecError> {
        let tokens::Dictionary {
            form,
            tokens,
            code_bits,
        } = tokens::Dictionary::from_bytes(bytes)?;
        let decoder = code_bits.as_deref().map(Decoder::new).transpose()?;
        Ok(Self {
            form,
            tokens,
            code_bits,
            decoder,
        })
    }

    fn check(&self, form: Form) -> Result<(), CodecError> {
        if self.form == form {
            Ok(())
        } else {
            Err(failed("the dictionary was trained for another form of onpair"))
        }
    }

    fn held_bytes(&self) -> usize {
        self.tokens.held_bytes()
            + self.code_bits.as_ref().map_or(0, Vec::capacity)
            + self.decoder.as_ref().map_or(0, Decoder::held_bytes)
    }
}

impl Writing {
    fn new(reading: &Reading) -> Result<Self, CodecError> {
        Ok(Self {
            matcher: Matcher::new(&reading.tokens)?,
            codes: reading.code_bits.as_deref().map(code_lengths::codes).transpose()?,
        })
    }

    fn held_bytes(&self) -> usize {
        self.matcher.held_bytes()
            + self
                .codes
                .as_ref()
                .map_or(0, |codes| codes.capacity() * size_of::<u16>())
    }
}

/// The engine of `onpair`.
#[derive(Debug)]
pub(super) struct OnPair {
    codec: Codec,
    form: Form,
    counters: Counters,
}

impl OnPair {
    pub(super) fn new(codec: Codec) -> Self {
        Self {
            codec,
            form: form_of(codec),
            counters: Counters::default(),
        }
    }

    /// Returns the dictionary's tables, unless there is no dictionary.
    #[inline]
    fn reading<'d>(
        &self,
        dictionary: Option<&'d Dictionary>,
    ) -> Result<Option<(&'d OnPairTables, &'d Reading)>, CodecError> {
        let Some(dictionary) = dictionary.filter(|dictionary| !dictionary.bytes().is_empty()) else {
            return Ok(None);
        };
        let tables = dictionary.onpair();
        Ok(Some((tables, tables.reading(dictionary.bytes())?)))
    }

    /// Compresses into the front of `out`. Returns the length, or `None` if there is no room.
    fn encode(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut [u8]) -> Result<Option<usize>, CodecError> {
        let Some((tables, reading)) = self.reading(dictionary)? else {
            return Ok(None);
        };
        reading.check(self.form)?;
        let writing = tables.writing(reading)?;
        let mut packer = Packer::new(out);
        let fits = match (&writing.codes, &reading.code_bits) {
            (Some(codes), Some(bits)) => writing.matcher.parse(&reading.tokens, raw, |tokens| {
                packer.push(tokens, |token| {
                    (codes[usize::from(token)], u32::from(bits[usize::from(token)]))
                })
            }),
            _ => {
                let bits = u32::from(self.form.bits);
                writing.matcher.parse(&reading.tokens, raw, |tokens| {
                    packer.push(tokens, |token| (token, bits))
                })
            }
        };
        Ok(if fits { packer.finish(self.form.entropy) } else { None })
    }

    /// Decodes at least `needed` bytes of a block into `out`, which is longer than `raw_len` where it is to be fast.
    /// Returns the number of decoded bytes.
    fn decode_into(
        &self,
        block: &[u8],
        dictionary: Option<&Dictionary>,
        raw_len: usize,
        needed: usize,
        out: &mut [u8],
    ) -> Result<usize, CodecError> {
        if block.len() == raw_len {
            out[..raw_len].copy_from_slice(block);
            return Ok(raw_len);
        }
        let Some((_, reading)) = self.reading(dictionary)? else {
            return Err(output::wrong_length(NAME, block.len(), raw_len));
        };
        let table = TokenTable::new(&reading.tokens);
        let mut out = Output::new(out);
        let is_at_end = match (&reading.decoder, reading.form.bits) {
            (Some(decoder), _) => decoder.decode(block, &table, needed, &mut out),
            (None, 12) => packed::decode::<12>(block, &table, needed, &mut out),
            (None, 14) => packed::decode::<14>(block, &table, needed, &mut out),
            (None, _) => packed::decode::<16>(block, &table, needed, &mut out),
        };
        let written = out.written();
        if needed < raw_len && written >= needed {
            return Ok(written.min(raw_len));
        }
        if written != raw_len {
            return Err(output::wrong_length(NAME, written, raw_len));
        }
        if !is_at_end {
            return Err(output::corrupt(NAME, "it is longer than its raw bytes need"));
        }
        Ok(written)
    }
}

impl Engine for OnPair {
    fn codec(&self) -> Codec {
        self.codec
    }

    fn counters(&self) -> EngineCounters {
        self.counters.sum_cpu()
    }

    fn supports_dictionary(&self) -> bool {
        true
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.counters.compress(raw.len(), || {
            let before = out.len();
            output::reserve(out, raw.len())?;
            out.resize(before + raw.len(), 0);
            let encoded = self.encode(raw, dictionary, &mut out[before..]);
            match encoded {
                Ok(Some(length)) if length < raw.len() => {
                    out.truncate(before + length);
                    Ok(length)
                }
                Ok(_) => {
                    out[before..].copy_from_slice(raw);
                    Ok(raw.len())
                }
                Err(error) => {
                    out.truncate(before);
                    Err(error)
                }
            }
        })
    }

    fn compress_into(
        &self,
        raw: &[u8],
        dictionary: Option<&Dictionary>,
        out: &mut [u8],
    ) -> Result<Option<usize>, CodecError> {
        self.counters.compress_into(raw.len(), || {
            let Some(most) = raw.len().checked_sub(1) else {
                return Ok(None);
            };
            let most = most.min(out.len());
            self.encode(raw, dictionary, &mut out[..most])
        })
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        let expected = raw.len();
        let work = || self.decode_into(block, dictionary, expected, expected, raw);
        self.counters.decompress(block.len(), expected, work).map(drop)
    }

    fn decode<'s>(
        &self,
        block: &[u8],
        dictionary: Option<&Dictionary>,
        raw_len: usize,
        needed: usize,
        scratch: &'s mut Scratch,
    ) -> Result<&'s [u8], CodecError> {
        let buffer = &mut *scratch;
        let len = self.counters.decompress(block.len(), raw_len, || {
            let (_, out) = buffer.history_and_output(raw_len, FOUR_TOKENS_BYTES)?;
            self.decode_into(block, dictionary, raw_len, needed.min(raw_len), out)
        })?;
        Ok(&scratch.output(raw_len, 0)?[..len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EngineOptions;

    /// Also under Miri, which the tests of all codecs are too long for.
    #[test]
    fn records_return() {
        let record = |at: usize| {
            format!(
                "{{\"id\":{at},\"name\":\"record {}\",\"kind\":\"leaf\"}}",
                at * 37 % 100
            )
        };
        let records: Vec<String> = (0..50).map(record).collect();
        let samples: Vec<&[u8]> = records.iter().map(String::as_bytes).collect();
        for codec in [Codec::OnPair { bits: 12 }, Codec::OnPairHuffman] {
            let dictionary = Dictionary::train(codec, &samples, 2000).unwrap();
            let engine = codec.open(&EngineOptions::default()).unwrap();
            let mut scratch = Scratch::default();
            for at in [7, 100, 12_345] {
                let raw = record(at).repeat(if at == 7 { 5 } else { 1 }).into_bytes();
                let mut block = Vec::new();
                let length = engine.compress(&raw, Some(&dictionary), &mut block).unwrap();
                assert!(length < raw.len());
                let mut back = vec![0; raw.len()];
                engine.decompress(&block, Some(&dictionary), &mut back).unwrap();
                assert_eq!(back, raw);
                for needed in [0, 1, raw.len() / 2, raw.len()] {
                    let part = engine
                        .decode(&block, Some(&dictionary), raw.len(), needed, &mut scratch)
                        .unwrap();
                    assert!(part.len() >= needed && raw.starts_with(part));
                }
            }
        }
    }
}
