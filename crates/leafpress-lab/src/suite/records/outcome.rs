//! Results of a suite over records.

use serde::{Serialize, Serializer};

use super::Options;
use crate::core::Bytes;
use crate::core::corpus::Census;
use crate::report::scatter::pareto;
use crate::suite::outcome::Speed;
use crate::suite::{self, Absent, MEMCPY, Measured};

/// The unit in which values are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionUnit {
    /// Separately.
    Record,
    /// With its neighbours, in a frame of this many bytes.
    Frame(usize),
}

impl CompressionUnit {
    /// Describes it in words.
    pub(super) fn in_words(self) -> String {
        match self {
            Self::Record => "each alone".to_owned(),
            Self::Frame(bytes) => format!("frames of {}", Bytes(bytes as u64)),
        }
    }
}

impl std::fmt::Display for CompressionUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Record => f.write_str("record"),
            Self::Frame(bytes) => write!(f, "{}", Bytes(*bytes as u64)),
        }
    }
}

impl Serialize for CompressionUnit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Record => serializer.serialize_str("record"),
            Self::Frame(bytes) => serializer.serialize_u64(*bytes as u64),
        }
    }
}

/// One codec, with a dictionary or without, on values by themselves or in frames of one length, on a number of threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The codec, or [`MEMCPY`].
    pub codec: String,
    /// The unit in which values are compressed.
    pub place: CompressionUnit,
    /// Length of the dictionary; 0 without one.
    pub dictionary_bytes: u64,
    /// Threads that worked.
    pub threads: usize,
    /// Frames, or values if compressed separately.
    pub frames: u64,
    /// Of those, what does not shrink and is stored raw.
    pub stored_raw_frames: u64,
    /// Bytes that the values are stored in, the dictionary included.
    pub stored_bytes: u64,
    /// Bytes of values over stored bytes.
    pub ratio: f64,
    /// Compression: the time per record.
    pub compress: Speed,
    /// Decompression of all in a row: the time per record.
    pub decompress: Speed,
    /// Microseconds in which a thread decodes what must be decoded to read one record: its frame. Wall time, best pass.
    pub read_us: f64,
}

impl Row {
    /// The row of `records` values measured by `measured`.
    pub(super) fn new(measured: &suite::Row, place: CompressionUnit, dictionary_bytes: u64, records: u64) -> Self {
        let blocks = measured.raw_bytes as f64 / measured.block_bytes.max(1) as f64;
        let per = |speed: &Speed, parts: u64| {
            let scale = blocks / parts.max(1) as f64;
            Speed {
                us: speed.us * scale,
                median_us: speed.median_us * scale,
                cpu_us: speed.cpu_us * scale,
                cpu_median_us: speed.cpu_median_us * scale,
                mb_per_s: speed.mb_per_s,
            }
        };
        let stored_bytes = measured.stored_bytes + dictionary_bytes;
        Self {
            codec: measured.codec.clone(),
            place,
            dictionary_bytes,
            threads: measured.threads,
            frames: measured.blocks,
            stored_raw_frames: measured.stored_blocks,
            stored_bytes,
            ratio: measured.raw_bytes as f64 / stored_bytes.max(1) as f64,
            compress: per(&measured.compress, records),
            decompress: per(&measured.decompress, records),
            // With several threads wall time is that of frames in bulk, and each thread has one in hand.
            read_us: per(&measured.decompress, measured.blocks).us * measured.threads as f64,
        }
    }

    /// Returns the codec, and whether it has a dictionary.
    pub fn name(&self) -> String {
        match self.dictionary_bytes {
            0 => self.codec.clone(),
            _ => format!("{} + dictionary", self.codec),
        }
    }
}

/// All values in one piece.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// The codec.
    pub codec: String,
    /// Bytes that the values are stored in.
    pub stored_bytes: u64,
    /// Bytes of values over stored bytes.
    pub ratio: f64,
    /// Time that compression took, in seconds.
    pub compress_seconds: f64,
    /// Time that decompression took, in seconds.
    pub decompress_seconds: f64,
}

/// Results of a suite over records.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The options.
    pub options: Options,
    /// The machine.
    pub host: String,
    /// Records of the dump, read and skipped.
    pub census: Census,
    /// Bytes of all the values that the dump has.
    pub found_bytes: u64,
    /// Records that were taken.
    pub records: u64,
    /// Bytes of their values.
    pub raw_bytes: u64,
    /// Length of the shortest and of the longest of them, in bytes.
    pub value_bytes: (usize, usize),
    /// Bytes of their keys, which are in no other figure.
    pub key_bytes: u64,
    /// Codecs that were measured, in order.
    pub codecs: Vec<Measured>,
    /// Codecs that are not available here.
    pub absent: Vec<Absent>,
    /// Codecs with dictionary support for which none was trained, and why.
    pub untrained: Vec<Absent>,
    /// Passes that all rows have; the last may be missing from some rows of an interrupted suite.
    pub passes: usize,
    /// Whether it was interrupted: rows without a pass are missing, and perhaps the limit.
    pub interrupted: bool,
    /// By threads, then records by themselves and in frames, then codecs; each without a dictionary, then with one.
    pub rows: Vec<Row>,
    /// All values in one piece.
    pub limit: Option<Limit>,
}

impl Report {
    /// Returns the rows of a number of threads, and of each whether no other has as high a ratio at as short a read.
    pub fn of_threads(&self, threads: usize) -> Vec<(&Row, bool)> {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.threads == threads).collect();
        let codecs: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].codec != MEMCPY).collect();
        let points: Vec<(f64, f64)> = codecs.iter().map(|at| (rows[*at].read_us, rows[*at].ratio)).collect();
        let best: Vec<usize> = pareto(&points).into_iter().map(|point| codecs[point]).collect();
        let marked = rows.into_iter().enumerate().map(|(at, row)| (row, best.contains(&at)));
        marked.collect()
    }
}
