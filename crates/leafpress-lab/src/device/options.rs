//! Options of a probe.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::core::words::{twice, words};
use crate::core::{Bytes, LabError};

/// Smallest block, in bytes.
pub const MIN_BLOCK_BYTES: u64 = 512;
/// Largest block, in bytes.
pub const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// Most block sizes of a probe.
pub const MAX_BLOCK_SIZES: usize = 64;
/// Most requests in flight.
pub const MAX_QUEUE_DEPTH: u32 = 1024;
/// Shortest measurement, in seconds.
pub const MIN_SECONDS: f64 = 0.01;
/// Longest measurement, in seconds: a day.
pub const MAX_SECONDS: f64 = 86_400.0;
/// Least blocks of the largest size in a file that is probed.
pub const MIN_BLOCKS: u64 = 16;
/// Most memory that the buffers of requests in flight may take, in bytes.
const MAX_BUFFER_BYTES: u64 = 1 << 30;

/// The target of the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

impl Operation {
    /// Returns `read` or `write`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How requests reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineChoice {
    /// io_uring, or threads where the kernel refuses it.
    #[default]
    Auto,
    /// io_uring or an error.
    IoUring,
    /// A thread for each request in flight, with `pread` and `pwrite`.
    Threads,
}

words!(
    EngineChoice, "engine", "unknown engine `{}`; known: auto io_uring threads":
    Auto "auto", IoUring "io_uring", Threads "threads"
);

/// Options of a probe, with their flags.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, clap::Args)]
pub struct Options {
    /// A directory, in which a file is made and removed; or a file or block device, which is only read.
    #[arg(skip)]
    #[serde(with = "crate::core::paths")]
    pub path: PathBuf,
    /// Block sizes, each measured separately [default: 4K,8K,16K,32K,64K,128K]
    #[arg(short = 'b', long, value_name = "LIST", value_delimiter = ',', value_parser = Bytes::parse_u64)]
    pub block_bytes: Vec<u64>,
    /// Requests in flight; several numbers (1,4) are measured in turn [default: 4]
    #[arg(
        short = 'Q',
        short_alias = 'q',
        long = "queue-depth",
        value_name = "LIST",
        value_delimiter = ','
    )]
    pub queue_depths: Vec<u32>,
    /// Percentage of requests that directly follow the previous one; the default is fio's rw=randread:9, eight of nine,
    /// which the thesis calls 90% [default: 88.9]
    #[arg(long, value_name = "PCT", allow_negative_numbers = true)]
    pub sequential_pct: f64,
    /// Length of each measurement [default: 5]
    #[arg(short = 'd', long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub seconds: f64,
    /// Size of the probe file [default: 1G]; of an existing file, how much of it to read [default: all]
    #[arg(short = 's', long, value_name = "BYTES", value_parser = Bytes::parse_u64)]
    pub file_bytes: Option<u64>,
    /// Measure writes too, after all reads; requires a directory
    #[arg(short_alias = 'w', long)]
    pub write: bool,
    /// How requests reach the kernel: auto, io_uring or threads [default: auto]
    #[arg(long, value_name = "ENGINE", display_order = 7)]
    pub engine: EngineChoice,
    /// Seed of the offsets and of the written data [default: 1729]
    #[arg(long)]
    pub seed: u64,
}

impl Options {
    /// The sequential share of fio's `rw=randread:9`, eight of nine, in percent. The thesis calls it 90%.
    pub const SEQUENTIAL_PCT: f64 = 88.9;
    /// Default size of the probe's file, in bytes.
    pub const FILE_BYTES: u64 = 1 << 30;
    /// The size for a quick probe.
    pub const QUICK_FILE_BYTES: u64 = 256 << 20;
    /// Default length of a measurement, in seconds.
    pub const SECONDS: f64 = 5.0;
    /// The length for a quick probe.
    pub const QUICK_SECONDS: f64 = 0.5;

    /// Creates the thesis' job (its appendix C): blocks of 4 to 128 KiB, four in flight, `randread:9`; 5 seconds each
    /// instead of three times 300, and a file of 1 GiB instead of 70% of the device.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            block_bytes: (2..=7).map(|shift| 1024 << shift).collect(),
            queue_depths: vec![4],
            sequential_pct: Self::SEQUENTIAL_PCT,
            seconds: Self::SECONDS,
            file_bytes: None,
            write: false,
            engine: EngineChoice::Auto,
            seed: 1729,
        }
    }

    /// Creates a quick probe: half a second for each measurement, with a file of 256 MiB.
    #[must_use]
    pub fn quick(self) -> Self {
        Self {
            seconds: Self::QUICK_SECONDS,
            file_bytes: Some(Self::QUICK_FILE_BYTES),
            ..self
        }
    }

    /// Returns the number of requests until the next random offset, like the number after fio's `rw=randread:`: one in
    /// this many is at a random offset, the others follow the previous one. `None` when no offset is random.
    pub fn run_blocks(&self) -> Option<u64> {
        let random = 1.0 - self.sequential_pct / 100.0;
        (random > 0.0).then(|| (1.0 / random).round().max(1.0) as u64)
    }

    /// Checks the bounds.
    ///
    /// # Errors
    /// [`LabError::Option`] with the option's name.
    pub fn validate(&self) -> Result<(), LabError> {
        let blocks = &self.block_bytes;
        if blocks.is_empty() || blocks.len() > MAX_BLOCK_SIZES {
            return Err(LabError::option(
                "block-bytes",
                format!("give 1 to {MAX_BLOCK_SIZES} sizes"),
            ));
        }
        for &bytes in blocks {
            if !(MIN_BLOCK_BYTES..=MAX_BLOCK_BYTES).contains(&bytes) || !bytes.is_multiple_of(MIN_BLOCK_BYTES) {
                return Err(LabError::option(
                    "block-bytes",
                    format!("{}: use multiples of 512 from 512 to 64M", Bytes(bytes)),
                ));
            }
        }
        if let Some(twice) = twice(blocks) {
            return Err(LabError::option(
                "block-bytes",
                format!("{} is listed twice", Bytes(*twice)),
            ));
        }
        let depths = &self.queue_depths;
        if depths.is_empty() || depths.iter().any(|depth| !(1..=MAX_QUEUE_DEPTH).contains(depth)) {
            return Err(LabError::option("queue-depth", format!("use 1 to {MAX_QUEUE_DEPTH}")));
        }
        if let Some(twice) = twice(depths) {
            return Err(LabError::option("queue-depth", format!("{twice} is listed twice")));
        }
        let (largest, deepest) = (self.largest_block_bytes(), depths.iter().copied().max().unwrap_or(1));
        if largest * u64::from(deepest) > MAX_BUFFER_BYTES {
            return Err(LabError::option(
                "queue-depth",
                format!(
                    "{deepest} blocks of {} in flight take more than 1G of memory",
                    Bytes(largest)
                ),
            ));
        }
        if !(0.0..=100.0).contains(&self.sequential_pct) {
            return Err(LabError::option(
                "sequential-pct",
                "use 0 (all offsets random) to 100 (none)",
            ));
        }
        if !(MIN_SECONDS..=MAX_SECONDS).contains(&self.seconds) {
            return Err(LabError::option(
                "seconds",
                format!("use {MIN_SECONDS} to {MAX_SECONDS}"),
            ));
        }
        match self.file_bytes {
            Some(bytes) if bytes < largest * MIN_BLOCKS => Err(LabError::option(
                "file-bytes",
                format!(
                    "{} is less than {MIN_BLOCKS} blocks of {}",
                    Bytes(bytes),
                    Bytes(largest)
                ),
            )),
            Some(bytes) if i64::try_from(bytes).is_err() => Err(LabError::option(
                "file-bytes",
                "larger than any file system's maximum file size",
            )),
            _ => Ok(()),
        }
    }

    /// The largest block in bytes.
    pub(super) fn largest_block_bytes(&self) -> u64 {
        self.block_bytes.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
