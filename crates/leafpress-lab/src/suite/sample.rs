//! The data in memory: files, or evenly spread pieces of them.

use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::{DEFAULT_BLOCK_BYTES, Options, Skipped, piece_selection};
use crate::core::corpus::{Listed, Listing, Reader, Sample as Root, Source, find_sample, plain};
use crate::core::resources::total_memory_bytes;
use crate::core::{Bytes, LabError};

/// The sampled part of the data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SampleSize {
    /// Files that can be read.
    pub found_files: u64,
    /// Their bytes, once they are opened.
    pub found_bytes: u64,
    /// Files of which something was taken.
    pub files: u64,
    /// The sampled bytes.
    pub bytes: u64,
    /// Length of the pieces that were taken, if not all was.
    pub piece_bytes: u64,
}

impl SampleSize {
    /// Returns whether something was left out.
    pub fn is_part(&self) -> bool {
        self.bytes < self.found_bytes
    }
}

/// Data that is cut into blocks.
#[derive(Debug)]
pub(super) struct Sample {
    /// The requested block sizes that the files have.
    pub block_bytes: Vec<usize>,
    pub files: Vec<SampleFile>,
    pub skipped: Vec<Skipped>,
    pub size: SampleSize,
    bytes: Vec<u8>,
}

/// A file of which something was taken.
#[derive(Debug)]
pub(super) struct SampleFile {
    pub name: String,
    /// The whole file's length.
    pub bytes: u64,
    /// The sampled pieces: their place in the file, and in the sample.
    pieces: Vec<(u64, Range<usize>)>,
}

/// A run of bytes of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'s> {
    /// Where it is in the file.
    pub offset: u64,
    pub bytes: &'s [u8],
}

impl Sample {
    /// Finds the files and reads the sample.
    ///
    /// # Errors
    /// [`LabError::Data`] when nothing can be read; [`LabError::Option`] when a block is longer than every file, or the
    /// data more than fits in memory; [`LabError::Cancelled`].
    pub(super) fn load(
        options: &Options,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Self, LabError> {
        let roots = options.paths.iter().map(|path| find(path));
        let mut listing = Listing::new(roots.collect::<Result<Vec<_>, _>>()?, options.raw, cancel)?;
        listing.measure(cancel)?;
        if listing.files.is_empty() {
            return Err(nothing(&listing.skipped, &options.paths));
        }
        let block_bytes = lengths(options, &listing.files)?;
        let longest = block_bytes.iter().copied().max().unwrap_or(1) as u64;
        for (option, most) in [
            ("max-bytes", options.max_bytes),
            ("max-file-bytes", options.max_file_bytes),
        ] {
            if most.is_some_and(|most| most < longest) {
                let reason = format!("it must be at least a block, and the largest has {}", Bytes(longest));
                return Err(LabError::option(option, reason));
            }
        }
        // Pieces that are longer than what may be taken would give nothing.
        let caps = [options.max_bytes, options.max_file_bytes].into_iter().flatten();
        let piece_bytes = piece_selection::piece_bytes(&block_bytes);
        let piece_bytes = if caps.min().is_some_and(|most| most < piece_bytes) {
            longest
        } else {
            piece_bytes
        };
        let whole: Vec<u64> = listing.files.iter().map(length).collect();
        let chosen = piece_selection::choose(&whole, piece_bytes, options.max_file_bytes, options.max_bytes);
        let wanted: u64 = chosen.iter().flatten().map(|range| range.end - range.start).sum();
        fits_in_memory(wanted)?;

        let mut bytes = Vec::new();
        let mut files = Vec::new();
        let mut size = SampleSize {
            found_files: listing.files.len() as u64,
            found_bytes: whole.iter().sum(),
            piece_bytes,
            ..SampleSize::default()
        };
        let mut reader = Reader::default();
        for (file, ranges) in std::mem::take(&mut listing.files).into_iter().zip(chosen) {
            if cancel.load(Ordering::Relaxed) {
                return Err(LabError::Cancelled);
            }
            if ranges.is_empty() {
                continue;
            }
            let before = bytes.len();
            match read(&mut reader, &file, ranges, &mut bytes) {
                Ok(pieces) => files.push(SampleFile {
                    bytes: length(&file),
                    name: file.name,
                    pieces,
                }),
                Err(reason) => {
                    bytes.truncate(before);
                    size.found_files -= 1;
                    size.found_bytes -= length(&file);
                    listing.skip(file.name, reason);
                }
            }
            progress(bytes.len() as f64 / wanted.max(1) as f64);
        }
        if files.is_empty() {
            return Err(nothing(&listing.skipped, &options.paths));
        }
        (size.files, size.bytes) = (files.len() as u64, bytes.len() as u64);
        Ok(Self {
            block_bytes,
            files,
            skipped: listing.skipped,
            size,
            bytes,
        })
    }

    /// The sampled parts of a file, in order.
    pub(super) fn pieces(&self, file: usize) -> impl Iterator<Item = Piece<'_>> {
        self.files[file].pieces.iter().map(|(offset, range)| Piece {
            offset: *offset,
            bytes: &self.bytes[range.clone()],
        })
    }
}

/// Appends ranges of a file to `bytes`.
fn read(
    reader: &mut Reader,
    file: &Listed,
    ranges: Vec<Range<u64>>,
    bytes: &mut Vec<u8>,
) -> Result<Vec<(u64, Range<usize>)>, String> {
    reader.read(file, |contents| {
        let (mut at, mut pieces) = (0, Vec::with_capacity(ranges.len()));
        for range in ranges {
            let length = range.end - range.start;
            let room = usize::try_from(length).map_err(io::Error::other)?;
            bytes.try_reserve(room).map_err(io::Error::other)?;
            let skipped = contents.skip(range.start - at)?;
            let start = bytes.len();
            let taken = contents.take(length).read_to_end(bytes)? as u64;
            if skipped + taken < range.end - at {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            pieces.push((range.start, start..bytes.len()));
            at = range.end;
        }
        Ok(pieces)
    })
}

/// The length of a file of a listing that was measured.
fn length(file: &Listed) -> u64 {
    file.bytes.unwrap_or(0)
}

/// What a path names: a file or directory, or else a bundled sample.
fn find(path: &Path) -> Result<(Root, String), LabError> {
    let name = path.display().to_string();
    let root = match path.metadata() {
        Ok(_) => Root::File(path.to_owned()),
        Err(e) => match path.to_str().map(str::parse) {
            Some(Ok(Source::Sample(sample))) => find_sample(&sample)?,
            _ => return Err(LabError::data(name, plain(&e))),
        },
    };
    Ok((root, name))
}

/// The requested block sizes that at least one file has.
fn lengths(options: &Options, files: &[Listed]) -> Result<Vec<usize>, LabError> {
    let longest = files.iter().max_by_key(|file| length(file));
    let (name, most) = longest.map_or(("", 0), |file| (file.name.as_str(), length(file)));
    let too_long = |block_bytes: usize| {
        let reason = format!(
            "the longest file, {name}, has {most} bytes, less than one block of {block_bytes}: use more data, or \
             smaller blocks"
        );
        LabError::option("block-bytes", reason)
    };
    if let Some(lengths) = &options.block_bytes {
        let over = lengths.iter().find(|length| **length as u64 > most);
        return over.map_or_else(|| Ok(lengths.clone()), |length| Err(too_long(*length)));
    }
    let all = DEFAULT_BLOCK_BYTES.into_iter();
    let lengths: Vec<_> = all.filter(|length| *length as u64 <= most).collect();
    if lengths.is_empty() {
        return Err(too_long(DEFAULT_BLOCK_BYTES[0]));
    }
    Ok(lengths)
}

/// The data may take half of the memory: compressed and decoded blocks, the codecs and the system have the rest.
fn fits_in_memory(wanted: u64) -> Result<(), LabError> {
    match total_memory_bytes() {
        Some(memory) if wanted > memory / 2 => Err(LabError::option(
            "max-bytes",
            format!(
                "the data has {wanted} bytes, more than half of this machine's memory: use a sample of it, as in \
                 --max-bytes {}",
                Bytes((memory / 8) >> 20 << 20)
            ),
        )),
        _ => Ok(()),
    }
}

/// The error if there is no file to measure.
fn nothing(skipped: &[Skipped], paths: &[std::path::PathBuf]) -> LabError {
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    let reason = match skipped {
        [] => "it contains no file".into(),
        // Named alone, it is named already.
        [only] if names.len() == 1 && names[0] == only.file => format!("cannot be used: {}", only.reason),
        [only] => format!("no file can be used: {}: {}", only.file, only.reason),
        [first, ..] => format!(
            "none of {} files can be used; the first is {}: {}",
            skipped.len(),
            first.file,
            first.reason
        ),
    };
    LabError::data(names.join(" "), reason)
}

/// The whole blocks that a sample has.
#[cfg(feature = "advise")]
#[derive(Debug)]
pub(crate) struct SamplePages(Sample);

#[cfg(feature = "advise")]
impl SamplePages {
    /// Returns the sample of a suite with these options.
    ///
    /// # Errors
    /// As [`super::run()`] before it measures.
    pub(crate) fn load(options: &Options, cancel: &AtomicBool) -> Result<Self, LabError> {
        Sample::load(options, cancel, &mut |_| {}).map(Self)
    }

    /// The blocks of this length in order; short ones at the ends of files are left out.
    pub(crate) fn pages(&self, page_bytes: usize) -> impl Iterator<Item = &[u8]> {
        let pieces = (0..self.0.files.len()).flat_map(|file| self.0.pieces(file));
        pieces.flat_map(move |piece| piece.bytes.chunks_exact(page_bytes.max(1)))
    }
}
