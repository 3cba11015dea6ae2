//! Results of a suite.

use serde::Serialize;

use super::clock::Spent;
use super::pass::{Pass, Tally};
use super::{Absent, Measured, Options, SampleSize, Skipped};
use crate::core::statistics::median;

/// Percentage of waiting from which wall times are reported as disturbed.
const BUSY_PCT: f64 = 5.0;

/// The time that one direction took for a block, in microseconds, or for a record where these are measured. A short
/// block at the end of a file counts as the part of a block that it is.
///
/// *Best* is the fastest pass, *median* the pass in the middle. Wall time with several threads is that of blocks in
/// bulk: threads work side by side, so it is about the CPU time over their number.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Speed {
    /// Wall time, best pass.
    pub us: f64,
    /// Wall time, median pass.
    pub median_us: f64,
    /// CPU time of all threads, best pass.
    pub cpu_us: f64,
    /// CPU time of all threads, median pass.
    pub cpu_median_us: f64,
    /// Raw megabytes (10^6) a second of wall time, best pass.
    pub mb_per_s: f64,
}

/// One codec with one length of blocks and one number of threads, on all files or on one of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The codec, or [`MEMCPY`](super::MEMCPY).
    pub codec: String,
    /// Length of the blocks.
    pub block_bytes: usize,
    /// Threads that worked.
    pub threads: usize,
    /// Bytes that were compressed.
    pub raw_bytes: u64,
    /// Bytes that they are stored in; a block that does not shrink is stored raw.
    pub stored_bytes: u64,
    /// Blocks, short ones at the ends of files included.
    pub blocks: u64,
    /// Blocks that are stored raw.
    pub stored_blocks: u64,
    /// Raw bytes over stored bytes.
    pub ratio: f64,
    /// Compression.
    pub compress: Speed,
    /// Decompression.
    pub decompress: Speed,
}

impl Row {
    /// Returns the wall time for all the bytes of the row, best pass, in microseconds.
    pub fn total_us(&self, speed: &Speed) -> f64 {
        speed.us * self.raw_bytes as f64 / self.block_bytes as f64
    }
}

/// The rows of a file.
#[derive(Debug, Clone, Serialize)]
pub struct FileRows {
    /// Its path, or its archive's and its name in there.
    pub file: String,
    /// Its whole length, once it is opened.
    pub file_bytes: u64,
    /// Its measurements, in the order of [`Report::overall`].
    pub rows: Vec<Row>,
}

/// Results of a suite.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The options.
    pub options: Options,
    /// The machine.
    pub host: String,
    /// The lengths of blocks that were measured.
    pub block_bytes: Vec<usize>,
    /// The sampled part of the data.
    pub sample: SampleSize,
    /// Files that were left out.
    pub skipped: Vec<Skipped>,
    /// Codecs that were measured, in order.
    pub codecs: Vec<Measured>,
    /// Codecs that are not available here.
    pub absent: Vec<Absent>,
    /// Passes that all rows have; the last may be missing from some rows of an interrupted suite.
    pub passes: usize,
    /// Whether it was interrupted: rows without a pass are missing.
    pub interrupted: bool,
    /// All files together: memcpy and each codec, by threads, then blocks. The ratio is all raw bytes over all stored
    /// bytes.
    pub overall: Vec<Row>,
    /// Results by file.
    pub files: Vec<FileRows>,
}

impl Report {
    /// Returns the row of all files for a codec, a length of blocks and a number of threads.
    pub fn row(&self, codec: &str, block_bytes: usize, threads: usize) -> Option<&Row> {
        let mut rows = self.overall.iter();
        rows.find(|row| (row.codec.as_str(), row.block_bytes, row.threads) == (codec, block_bytes, threads))
    }
}

impl Report {
    /// Returns the percent of the wall time in which a thread that ran alone had no CPU because of other work.
    /// `None` when no setting has one thread.
    pub fn waited_pct(&self) -> Option<f64> {
        let alone = self.overall.iter().filter(|row| row.threads == 1);
        let (wall, cpu) = alone.fold((0.0, 0.0), |(wall, cpu), row| {
            let (one, other) = (&row.compress, &row.decompress);
            (
                wall + one.median_us + other.median_us,
                cpu + one.cpu_median_us + other.cpu_median_us,
            )
        });
        (wall > 0.0).then(|| (100.0 * (1.0 - cpu / wall)).max(0.0))
    }

    /// Returns whether that is enough to make processor time more meaningful than wall time.
    pub fn is_busy(&self) -> bool {
        self.waited_pct().is_some_and(|waited| waited >= BUSY_PCT)
    }
}

/// The setting of a row.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub codec: String,
    pub block_bytes: usize,
    pub threads: usize,
    /// How often a pass processes the sample.
    pub rounds: usize,
}

impl Setting {
    /// The row of what `of` picks from each of `passes`, one at least.
    pub(super) fn row(&self, passes: &[Pass], of: impl Fn(&Pass) -> &Tally) -> Row {
        let tallies: Vec<&Tally> = passes.iter().map(of).collect();
        let last = tallies.last().copied().copied().unwrap_or_default();
        let rounds = self.rounds.max(1) as u64;
        Row {
            codec: self.codec.clone(),
            block_bytes: self.block_bytes,
            threads: self.threads,
            raw_bytes: last.raw_bytes / rounds,
            stored_bytes: last.stored_bytes / rounds,
            blocks: last.blocks / rounds,
            stored_blocks: last.stored_blocks / rounds,
            ratio: last.raw_bytes as f64 / last.stored_bytes.max(1) as f64,
            compress: self.speed(&tallies, |tally| tally.compress),
            decompress: self.speed(&tallies, |tally| tally.decompress),
        }
    }

    fn speed(&self, tallies: &[&Tally], of: impl Fn(&Tally) -> Spent) -> Speed {
        let blocks = |tally: &Tally| tally.raw_bytes as f64 / self.block_bytes as f64;
        let per_block = |time: fn(&Spent) -> std::time::Duration| {
            let times = tallies
                .iter()
                .map(|tally| time(&of(tally)).as_secs_f64() * 1e6 / blocks(tally).max(f64::MIN_POSITIVE));
            let times: Vec<f64> = times.collect();
            let least = times.iter().copied().reduce(f64::min);
            (least.unwrap_or(0.0), median(times).unwrap_or(0.0))
        };
        let (us, median_us) = per_block(|spent| spent.wall);
        let (cpu_us, cpu_median_us) = per_block(|spent| spent.cpu);
        Speed {
            us,
            median_us,
            cpu_us,
            cpu_median_us,
            // Bytes a microsecond.
            mb_per_s: if us > 0.0 { self.block_bytes as f64 / us } else { 0.0 },
        }
    }
}
