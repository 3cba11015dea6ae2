//! A corpus: bytes from a data source, cut into values.
//!
//! A corpus is read once, held in memory, and shared by every thread of a run; of a long source evenly spread pieces
//! are. A cut is never copied: a value is a slice of the corpus, so a check is one comparison of slices.

mod assignment;
mod copies;
mod cut;
mod listing;
mod packing;
pub mod records;
mod samples;
mod source;
mod synthetic;
mod take;

use std::ops::Range;
use std::sync::atomic::AtomicBool;

pub use assignment::{Assignment, Pairing, Repeats};
pub use cut::Cut;
pub use listing::Skipped;
#[cfg(feature = "suite")]
pub(crate) use listing::{Listed, Listing, Reader};
#[cfg(any(feature = "cache", feature = "pool"))]
pub(crate) use packing::check_regular;
#[cfg(any(feature = "cache", feature = "pool", feature = "suite"))]
pub(crate) use packing::plain;
#[cfg(feature = "cache")]
pub(crate) use packing::unpacked;
pub(crate) use packing::{MAGIC_BYTES, Packing};
pub use records::{Census, RecordFormat, Records};
pub use samples::sample_names;
#[cfg(feature = "suite")]
pub(crate) use samples::{Sample, find as find_sample};
pub use source::Source;
pub use take::{Copies, MAX_CORPUS_BYTES, SAMPLE_BYTES, Sampled};

use self::take::Extent;
use crate::core::{LabError, resources};

/// A text without the byte order mark that some editors and spreadsheets put in front of it.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}

/// Bytes cut into values, at least one.
#[derive(Debug, Clone)]
pub struct Corpus {
    bytes: Vec<u8>,
    cuts: Cuts,
    sampled: Option<Sampled>,
    is_synthetic: bool,
}

#[derive(Debug, Clone)]
enum Cuts {
    /// Cut i is the bytes `[i * len, (i + 1) * len)`.
    Fixed {
        len: usize,
        count: u64,
    },
    Spans(Vec<Range<usize>>),
}

impl Corpus {
    /// Reads `source` and cuts it: evenly spread pieces of [`SAMPLE_BYTES`] at most where it is longer. `raw` takes an
    /// archive's own bytes; `seed` is for synthetic data.
    ///
    /// # Errors
    /// [`LabError::Data`] when the source is missing, empty, unreadable, or yields no value.
    pub fn load(source: &Source, cut: Cut, raw: bool, seed: u64) -> Result<Self, LabError> {
        Self::load_until(source, cut, raw, seed, &AtomicBool::new(false))
    }

    /// Loads as [`Corpus::load`] does, and ends when `cancel` is set.
    ///
    /// # Errors
    /// As [`Corpus::load`]; [`LabError::Cancelled`].
    pub fn load_until(source: &Source, cut: Cut, raw: bool, seed: u64, cancel: &AtomicBool) -> Result<Self, LabError> {
        let extent = Extent::Sample(SAMPLE_BYTES, cut);
        Self::read(source, cut, raw, seed, extent, cancel)
    }

    /// Loads at most `most_bytes` as [`Corpus::load`] does, for work that is done on every byte.
    ///
    /// # Errors
    /// As [`Corpus::load`].
    pub fn load_at_most(source: &Source, cut: Cut, raw: bool, seed: u64, most_bytes: u64) -> Result<Self, LabError> {
        let extent = Extent::Sample(most_bytes, cut);
        Self::read(source, cut, raw, seed, extent, &AtomicBool::new(false))
    }

    /// All of `source`.
    ///
    /// # Errors
    /// As [`Corpus::load`]; [`LabError::Data`] when it has more than [`MAX_CORPUS_BYTES`], or than half of the memory.
    #[cfg(feature = "pool")]
    pub(crate) fn whole(source: &Source, cut: Cut, raw: bool, seed: u64) -> Result<Self, LabError> {
        Self::read(source, cut, raw, seed, Extent::whole(), &AtomicBool::new(false))
    }

    fn read(
        source: &Source,
        cut: Cut,
        raw: bool,
        seed: u64,
        extent: Extent,
        cancel: &AtomicBool,
    ) -> Result<Self, LabError> {
        cut.validate()?;
        source.validate()?;
        let (parts, sampled) = match *source {
            Source::Synthetic(eta) => (vec![synthetic::generate(eta, cut, seed)?], None),
            _ => source::read(source, raw, extent, cancel)?,
        };
        let corpus = Self::from_parts(&source.to_string(), parts, cut)?;
        Ok(Self {
            sampled,
            is_synthetic: matches!(source, Source::Synthetic(_)),
            ..corpus
        })
    }

    /// Returns the sampled part of its source, if it was sampled.
    pub fn sampled(&self) -> Option<Sampled> {
        self.sampled
    }

    /// Cuts `parts`, the files or archive entries of the source called `name`. No cut spans two parts.
    ///
    /// # Errors
    /// [`LabError::Data`] when they are empty or hold no value.
    pub fn from_parts(name: &str, parts: Vec<Vec<u8>>, cut: Cut) -> Result<Self, LabError> {
        let total: usize = parts.iter().map(Vec::len).sum();
        if total == 0 {
            return Err(LabError::data(name, "it is empty"));
        }
        let (bytes, cuts) = match cut {
            Cut::Fixed(len) => {
                let bytes = concatenate(parts, |part| part.len() - part.len() % len);
                let count = (bytes.len() / len) as u64;
                if count == 0 {
                    return Err(LabError::data(
                        name,
                        format!("its {total} bytes are less than one value of {len} bytes"),
                    ));
                }
                (bytes, Cuts::Fixed { len, count })
            }
            Cut::Lines | Cut::LengthPrefixed => {
                let mut spans = Vec::new();
                let mut offset = 0;
                for part in &parts {
                    cut::spans(name, part, cut, offset, &mut spans)?;
                    offset += part.len();
                }
                if spans.is_empty() {
                    return Err(LabError::data(
                        name,
                        format!("its {total} bytes contain no record ({cut})"),
                    ));
                }
                (concatenate(parts, Vec::len), Cuts::Spans(spans))
            }
        };
        Ok(Self::new(bytes, cuts))
    }

    /// Values that are these spans of `bytes`, at least one.
    pub(crate) fn from_spans(bytes: Vec<u8>, spans: Vec<Range<usize>>) -> Self {
        Self::new(bytes, Cuts::Spans(spans))
    }

    fn new(bytes: Vec<u8>, cuts: Cuts) -> Self {
        resources::in_huge_pages(&bytes);
        if let Cuts::Spans(spans) = &cuts {
            resources::in_huge_pages(spans);
        }
        Self {
            bytes,
            cuts,
            sampled: None,
            is_synthetic: false,
        }
    }

    /// The values with these numbers, in this order, at least one.
    #[must_use]
    pub(crate) fn only(self, ids: impl Iterator<Item = u64>) -> Self {
        let spans = ids.map(|id| self.span(id as usize)).collect();
        Self::from_spans(self.bytes, spans)
    }

    /// Returns the number of values, at least 1.
    #[inline]
    pub fn count(&self) -> u64 {
        match &self.cuts {
            Cuts::Fixed { count, .. } => *count,
            Cuts::Spans(spans) => spans.len() as u64,
        }
    }

    /// Returns value number `index`, which must be below [`Corpus::count`].
    #[inline]
    pub fn get(&self, index: u64) -> &[u8] {
        &self.bytes[self.span(index as usize)]
    }

    #[inline]
    fn span(&self, index: usize) -> Range<usize> {
        match &self.cuts {
            Cuts::Fixed { len, .. } => index * len..(index + 1) * len,
            Cuts::Spans(spans) => spans[index].clone(),
        }
    }

    /// Returns the length of the shortest value in bytes.
    pub fn shortest(&self) -> usize {
        match &self.cuts {
            Cuts::Fixed { len, .. } => *len,
            Cuts::Spans(spans) => spans.iter().map(ExactSizeIterator::len).min().unwrap_or(0),
        }
    }

    /// Returns the length of the longest value in bytes.
    pub fn longest(&self) -> usize {
        match &self.cuts {
            Cuts::Fixed { len, .. } => *len,
            Cuts::Spans(spans) => spans.iter().map(ExactSizeIterator::len).max().unwrap_or(0),
        }
    }

    /// Returns which of the values each of `keys` keys holds.
    pub fn assignment(&self, keys: u64, pairing: Pairing) -> Assignment {
        let mean = self.total_bytes() as f64 / self.count() as f64;
        Assignment::new(self.count(), mean, keys, pairing)
    }

    /// Returns how often values repeat with `keys` keys; `None` if every key has its own value.
    /// Repetition does not change the compression ratio of synthetic values, so that they are left out.
    pub fn repeats(&self, keys: u64) -> Option<Repeats> {
        let values = self.count();
        // A few duplicates do not affect figures.
        let is_much = values as f64 * 1.02 < keys as f64;
        (is_much && !self.is_synthetic).then_some(Repeats { values, keys })
    }

    /// Whether the values are synthetic.
    #[cfg(feature = "cache")]
    pub(crate) fn is_synthetic(&self) -> bool {
        self.is_synthetic
    }

    /// Returns the bytes of all values.
    pub fn total_bytes(&self) -> u64 {
        match &self.cuts {
            Cuts::Fixed { len, count } => *len as u64 * count,
            Cuts::Spans(spans) => spans.iter().map(|span| span.len() as u64).sum(),
        }
    }
}

/// Joins the first `keep` bytes of each part; a lone part is not copied.
fn concatenate(mut parts: Vec<Vec<u8>>, keep: impl Fn(&Vec<u8>) -> usize) -> Vec<u8> {
    if parts.len() == 1 {
        let mut only = parts.swap_remove(0);
        only.truncate(keep(&only));
        return only;
    }
    let mut bytes = Vec::with_capacity(parts.iter().map(&keep).sum());
    for part in parts {
        bytes.extend_from_slice(&part[..keep(&part)]);
    }
    bytes
}

#[cfg(test)]
mod tests;
