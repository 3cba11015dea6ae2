//! Reads a source: all of it, or evenly spread pieces if it exceeds the limit.
//!
//! The length of packed data is known only at its end, so pieces are taken in one pass: every one until the most that
//! may be held is reached, then every second one, then every fourth, and so on; those taken before are thinned out
//! alike. A piece has whole values.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::tree::MAX_VALUE_BYTES;
use serde::{Deserialize, Serialize};

use super::Cut;
use crate::core::resources::total_memory_bytes;
use crate::core::{Bytes, LabError, about};

/// Most bytes a dump of records may have once its archives are opened.
pub const MAX_CORPUS_BYTES: u64 = 8 << 30;

/// Minimum bytes of a piece, so that seeking to the next one is cheap compared to reading it.
const PIECE_BYTES: u64 = 1 << 20;

/// Most bytes of a corpus; what is longer is sampled.
pub const SAMPLE_BYTES: u64 = 256 << 20;

/// The sampled part of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    /// Bytes of the source, its archives opened.
    pub found_bytes: u64,
    /// Bytes that were taken of it.
    pub taken_bytes: u64,
    /// Packed files that were skipped, since their contents are also present unpacked, and their bytes.
    pub copies: Copies,
}

/// Packed files that are also present unpacked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copies {
    /// How many.
    pub files: u64,
    /// Bytes that are in them.
    pub bytes: u64,
}

impl fmt::Display for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (s, are) = if self.files == 1 { ("", "is") } else { ("s", "are") };
        let (files, bytes) = (self.files, about(self.bytes as f64));
        write!(f, "{files} packed file{s} of {bytes} that {are} also present unpacked")
    }
}

impl fmt::Display for Sampled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_sample = self.taken_bytes < self.found_bytes;
        if is_sample {
            let (taken, found) = (about(self.taken_bytes as f64), about(self.found_bytes as f64));
            write!(f, "a sample of {taken}, evenly spread over {found}")?;
        }
        match (is_sample, self.copies.files) {
            (_, 0) => Ok(()),
            (true, _) => write!(f, ", without {}", self.copies),
            (false, _) => write!(f, "without {}", self.copies),
        }
    }
}

/// How much to read.
#[derive(Clone, Copy)]
pub(super) enum Extent {
    /// Everything; more than this many bytes are an error.
    Whole(u64),
    /// At most this many bytes, in pieces that this cut is applied to.
    Sample(u64, Cut),
}

/// The number of bytes read.
pub(super) struct Taking<'c> {
    extent: Extent,
    cancel: &'c AtomicBool,
    parts: Vec<Part>,
    /// Of the pieces of all parts in a row, those are kept whose number this divides.
    stride: u64,
    pieces: u64,
    found_bytes: u64,
    taken_bytes: u64,
    copies: Copies,
}

#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    /// The number of each piece, and where it ends in `bytes`.
    pieces: Vec<(u64, usize)>,
}

impl<'c> Taking<'c> {
    /// `copies` are packed files that are skipped, since they are also present unpacked.
    pub(super) fn new(extent: Extent, copies: Copies, cancel: &'c AtomicBool) -> Self {
        Self {
            extent,
            cancel,
            parts: Vec::new(),
            stride: 1,
            pieces: 0,
            found_bytes: 0,
            taken_bytes: 0,
            copies,
        }
    }

    /// Whether to stop here.
    fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Takes of one file or archive entry. When this was cancelled, what was taken is of no use.
    pub(super) fn part(&mut self, input: &mut dyn Input) -> io::Result<()> {
        let mut part = Part::default();
        if let Some(length) = input.length() {
            // A vector that grows is copied, and for a while there twice.
            let most = self.extent.most_bytes().saturating_sub(self.taken_bytes) + PIECE_BYTES;
            let room = usize::try_from(length.min(most)).unwrap_or(0);
            part.bytes.try_reserve_exact(room).map_err(io::Error::other)?;
        }
        self.parts.push(part);
        while !self.is_cancelled() {
            let kept = self.pieces.is_multiple_of(self.stride);
            let (before, part) = (self.taken_bytes, self.parts.last_mut());
            let out = part.filter(|_| kept).map(|part| &mut part.bytes);
            let start = out.as_ref().map_or(0, |bytes| bytes.len());
            let length = self.extent.piece(input, out)?;
            if length == 0 {
                break;
            }
            if let Some(part) = self.parts.last_mut().filter(|_| kept) {
                part.pieces.push((self.pieces, part.bytes.len()));
                self.taken_bytes = before + (part.bytes.len() - start) as u64;
            }
            self.pieces += 1;
            self.found_bytes += length;
            match self.extent {
                Extent::Whole(most) if self.found_bytes > most => {
                    return Err(io::Error::other(format!(
                        "more than the limit of {} of data",
                        Bytes(most)
                    )));
                }
                Extent::Sample(most, _) if self.taken_bytes > most => self.thin_out(),
                _ => {}
            }
        }
        Ok(())
    }

    fn thin_out(&mut self) {
        self.stride *= 2;
        for part in &mut self.parts {
            let (mut start, mut to) = (0, 0);
            let (bytes, stride) = (&mut part.bytes, self.stride);
            part.pieces.retain_mut(|(number, end)| {
                let range = start..*end;
                start = *end;
                let stays = number.is_multiple_of(stride);
                if stays {
                    *end = to + range.len();
                    bytes.copy_within(range, to);
                    to = *end;
                }
                stays
            });
            bytes.truncate(to);
        }
        self.taken_bytes = self.parts.iter().map(|part| part.bytes.len() as u64).sum();
    }

    /// The parts, and the sampled part of the whole, if it was sampled.
    ///
    /// # Errors
    /// [`LabError::Cancelled`].
    pub(super) fn finish(self) -> Result<(Vec<Vec<u8>>, Option<Sampled>), LabError> {
        if self.is_cancelled() {
            return Err(LabError::Cancelled);
        }
        let sampled = Sampled {
            found_bytes: self.found_bytes,
            taken_bytes: self.taken_bytes,
            copies: self.copies,
        };
        let parts = self.parts.into_iter().map(|part| part.bytes).collect();
        Ok((parts, (self.stride > 1 || self.copies.files > 0).then_some(sampled)))
    }
}

impl Extent {
    /// All of it, while there is memory to work on it.
    pub(super) fn whole() -> Self {
        let half = total_memory_bytes().map_or(u64::MAX, |bytes| (bytes / 2) >> 20 << 20);
        Self::Whole(half.min(MAX_CORPUS_BYTES))
    }

    fn most_bytes(self) -> u64 {
        match self {
            Self::Whole(most) | Self::Sample(most, _) => most,
        }
    }

    /// Skips the next piece, or appends it to `out`. Returns its length, 0 at the end.
    fn piece(self, input: &mut dyn Input, out: Option<&mut Vec<u8>>) -> io::Result<u64> {
        match self {
            Self::Whole(_) => pass(input, PIECE_BYTES, out),
            Self::Sample(_, Cut::Fixed(length)) => {
                let length = length.max(1) as u64;
                pass(input, PIECE_BYTES.div_ceil(length) * length, out)
            }
            Self::Sample(_, Cut::Lines) => lines(input, out),
            Self::Sample(_, Cut::LengthPrefixed) => prefixed(input, out),
        }
    }
}

/// At least a piece's bytes, and on to the end of the line.
fn lines(input: &mut dyn Input, mut out: Option<&mut Vec<u8>>) -> io::Result<u64> {
    let length = pass(input, PIECE_BYTES - 1, out.as_deref_mut())?;
    let mut discarded = Vec::new();
    let rest = out.unwrap_or(&mut discarded);
    // A longer line is reported when it is cut.
    let more = input.take(MAX_VALUE_BYTES as u64 + 1).read_until(b'\n', rest)?;
    Ok(length + more as u64)
}

/// Whole records with their length in front, until they have a piece's bytes.
fn prefixed(input: &mut dyn Input, mut out: Option<&mut Vec<u8>>) -> io::Result<u64> {
    let mut length = 0;
    while length < PIECE_BYTES {
        let mut prefix = Vec::with_capacity(4);
        length += pass(input, 4, Some(&mut prefix))?;
        if let Some(out) = &mut out {
            out.extend_from_slice(&prefix);
        }
        // A truncated or oversized record is reported when it is cut.
        let Ok(prefix) = prefix.try_into() else { break };
        let body = u64::from(u32::from_le_bytes(prefix)).min(MAX_VALUE_BYTES as u64 + 1);
        length += pass(input, body, out.as_deref_mut())?;
    }
    Ok(length)
}

/// Skips this many bytes, fewer at the end; returns how many.
fn pass(input: &mut dyn Input, bytes: u64, out: Option<&mut Vec<u8>>) -> io::Result<u64> {
    match out {
        Some(out) => Ok(input.take(bytes).read_to_end(out)? as u64),
        None => input.skip(bytes),
    }
}

/// Data read from front to back, parts of which can be skipped.
pub(crate) trait Input: BufRead {
    /// Skips this many bytes, fewer at the end; returns how many.
    fn skip(&mut self, bytes: u64) -> io::Result<u64>;

    /// How many bytes there are, if that is known.
    fn length(&self) -> Option<u64> {
        None
    }
}

impl Input for BufReader<File> {
    fn skip(&mut self, bytes: u64) -> io::Result<u64> {
        if let Some(short) = usize::try_from(bytes).ok().filter(|n| *n <= self.buffer().len()) {
            self.consume(short);
            return Ok(bytes);
        }
        let at = io::Seek::stream_position(self)?;
        let left = self.get_ref().metadata()?.len().saturating_sub(at);
        let bytes = bytes.min(left);
        self.seek_relative(i64::try_from(bytes).map_err(io::Error::other)?)?;
        Ok(bytes)
    }

    fn length(&self) -> Option<u64> {
        self.get_ref().metadata().ok().map(|metadata| metadata.len())
    }
}

impl Input for BufReader<Box<dyn Read + '_>> {
    fn skip(&mut self, bytes: u64) -> io::Result<u64> {
        io::copy(&mut self.take(bytes), &mut io::sink())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(bytes: &[u8]) -> BufReader<Box<dyn Read + '_>> {
        BufReader::new(Box::new(bytes))
    }

    fn file(bytes: &[u8]) -> BufReader<File> {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, bytes).unwrap();
        io::Seek::rewind(&mut file).unwrap();
        BufReader::new(file)
    }

    /// Numbers of eight bytes, and the numbers that are taken of them.
    fn taken(input: &mut dyn Input, most: u64) -> (Vec<u64>, Option<Sampled>) {
        let cancel = AtomicBool::new(false);
        let mut taking = Taking::new(Extent::Sample(most, Cut::Fixed(8)), Copies::default(), &cancel);
        taking.part(input).unwrap();
        let (parts, sampled) = taking.finish().unwrap();
        let (numbers, rest) = parts[0].as_chunks::<8>();
        assert!(rest.is_empty());
        (
            numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(),
            sampled,
        )
    }

    #[test]
    fn what_is_short_is_taken_whole_and_what_is_long_evenly() {
        let numbers: Vec<u8> = (0..5_u64 << 17).flat_map(u64::to_le_bytes).collect();
        let (all, sampled) = taken(&mut stream(&numbers), 5 << 20);
        assert!(all.len() == 5 << 17 && sampled.is_none());
        let (some, sampled) = taken(&mut stream(&numbers), 2 << 20);
        assert_eq!(some.len(), 2 << 17);
        assert_eq!((some[0], some[1 << 17]), (0, 4 << 17), "pieces 0 and 4 of five");
        let outcome = sampled.unwrap();
        assert_eq!((outcome.found_bytes, outcome.taken_bytes), (5 << 20, 2 << 20));
        assert_eq!(outcome.to_string(), "a sample of 2M, evenly spread over 5M");
        let copies = Copies {
            files: 1,
            bytes: 7 << 20,
        };
        assert_eq!(
            Sampled { copies, ..outcome }.to_string(),
            "a sample of 2M, evenly spread over 5M, without 1 packed file of 7M that is also present unpacked"
        );
        assert_eq!(
            taken(&mut file(&numbers), 2 << 20).0,
            some,
            "a file is skipped by seeking"
        );
    }

    #[test]
    fn pieces_hold_whole_records_whatever_the_cut() {
        let record = |number: u64| format!("{number:07} {}", "x".repeat(number as usize % 50));
        let all: Vec<_> = (0..200_000).map(record).collect();
        let lines = all.join("\n").into_bytes();
        let prefixed: Vec<u8> = all
            .iter()
            .flat_map(|text| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat())
            .collect();
        for (cut, bytes) in [(Cut::Lines, lines), (Cut::LengthPrefixed, prefixed)] {
            let inputs: [Box<dyn Input>; 2] = [Box::new(stream(&bytes)), Box::new(file(&bytes))];
            for mut input in inputs {
                let cancel = AtomicBool::new(false);
                let mut taking = Taking::new(Extent::Sample(3 << 20, cut), Copies::default(), &cancel);
                taking.part(input.as_mut()).unwrap();
                let (parts, sampled) = taking.finish().unwrap();
                assert_eq!(sampled.unwrap().found_bytes, bytes.len() as u64);
                let corpus = super::super::Corpus::from_parts("x", parts, cut).unwrap();
                let (first, last) = (corpus.get(0), corpus.get(corpus.count() - 1));
                assert!(first.starts_with(b"0000000") && last > b"0100000".as_slice(), "{cut}");
                let whole = |id| all.contains(&String::from_utf8_lossy(corpus.get(id)).into_owned());
                assert!((0..corpus.count()).step_by(5000).all(whole), "{cut}");
            }
        }
    }

    #[test]
    fn what_is_to_be_whole_has_a_limit() {
        let cancel = AtomicBool::new(false);
        let mut taking = Taking::new(Extent::Whole(1 << 20), Copies::default(), &cancel);
        let outcome = taking.part(&mut stream(&vec![0; (1 << 20) + 1])).unwrap_err();
        assert_eq!(outcome.to_string(), "more than the limit of 1M of data");
    }

    #[test]
    fn a_cancelled_reading_ends_at_once() {
        let cancel = AtomicBool::new(true);
        let mut taking = Taking::new(Extent::Sample(1 << 20, Cut::Lines), Copies::default(), &cancel);
        taking
            .part(&mut BufReader::new(Box::new(io::repeat(7)) as Box<dyn Read>))
            .unwrap();
        assert!(matches!(taking.finish(), Err(LabError::Cancelled)));
    }
}
