//! Input of the page.

use std::collections::{BTreeSet, HashSet};

use serde::Serialize;

use crate::core::LabError;
use crate::model::{Access, CodecCosts, Method, Model, NOTHING_US, Options, Overhead, Point, Replacement};

/// Input of the page: its texts, the model's inputs, and the measurements. Lists of missing measurements are empty.
///
/// Embedded into the page as JSON, under these names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageInput {
    /// The heading: data and device.
    pub title: String,
    /// The recommendation, in a sentence.
    pub sentence: String,
    /// Its reasons, a sentence each.
    pub reasons: Vec<String>,
    /// Its caveats, a sentence each.
    pub cautions: Vec<String>,
    /// The machine.
    pub host: String,
    /// The command that made the page.
    pub command_line: String,
    /// Whether sizes were given in powers of 1000, and are shown in them.
    pub is_decimal: bool,
    /// Bytes of the data, a page to 2^60.
    pub data_bytes: u64,
    /// Bytes of memory of the cache, 64 KiB to 2^60.
    pub memory_bytes: u64,
    /// Bytes of a page; all codecs were measured with blocks of this length.
    pub page_bytes: u64,
    /// Bytes that an access needs: see [`Options::access_bytes`].
    pub access_bytes: u64,
    /// Access distribution of pages. Replacement of a trace is LRU or ideal.
    pub access: Access,
    /// Microseconds of a page read from the device at the expected load, 0 to 1e9.
    pub device_us: f64,
    /// The latency by page size, as in the recommendation; if empty, all sizes have the same.
    pub reads: Vec<BlockReads>,
    /// Maximum pages per second of the device.
    pub device_iops: Option<f64>,
    /// Microseconds to find and return a cached page, 0 to 1e6.
    pub hit_us: f64,
    /// Percentage of the compressions done in the background, 0 to 100.
    pub background_pct: f64,
    /// Threads that request pages, 1 to 1,000,000.
    pub workers: u32,
    /// The replacement model.
    pub replacement: Replacement,
    /// Hits after which a compressed page becomes raw again, 1 to 63.
    pub promote_after_hits: u8,
    /// Memory that holds no pages.
    pub overhead: Overhead,
    /// Codecs to choose from, at least one, with distinct names.
    pub codecs: Vec<CodecBlocks>,
    /// The number of threads whose codec times the model uses. For a codec without it, the first row for the page is
    /// used.
    pub threads: u32,
    /// The recommendation; `None` means no compression.
    pub choice: Option<Choice>,
    /// The cost of copying: the floor.
    pub memcpy: Vec<CopyCosts>,
    /// The device's measurements, one per block size, ascending.
    pub device: Vec<DeviceRow>,
    /// How the device was measured: its name, pattern, queue depth.
    pub device_note: Option<String>,
    /// Ratios of individual files.
    pub files: Vec<FileRatios>,
    /// Predictions and their measurements.
    pub verify: Vec<VerifyRow>,
    /// Conclusions of the verification, in sentences.
    pub verify_sentences: Vec<String>,
}

/// A codec and its measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodecBlocks {
    /// Its name.
    pub name: String,
    /// By block size and threads.
    pub blocks: Vec<BlockCosts>,
}

/// Ratio and costs of a codec at a block size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BlockCosts {
    /// The block size in bytes.
    pub block_bytes: u64,
    /// Threads working in parallel.
    pub threads: u32,
    /// Raw bytes over stored bytes, 1 to 1000.
    pub ratio: f64,
    /// Microseconds to compress a block.
    pub compress_us: f64,
    /// Microseconds to decode a block.
    pub decompress_us: f64,
}

/// The cost of reading a block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BlockReads {
    /// The block size in bytes.
    pub block_bytes: u64,
    /// Latency of a read in microseconds, at the expected load.
    pub us: f64,
}

/// The cost of copying a block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CopyCosts {
    /// The block size in bytes.
    pub block_bytes: u64,
    /// Microseconds.
    pub us: f64,
}

/// The device's measurements at a block size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DeviceRow {
    /// The block size in bytes.
    pub block_bytes: u64,
    /// Reads per second.
    pub iops: f64,
    /// Megabytes (10^6) per second.
    pub mb_per_s: f64,
    /// Mean latency in microseconds.
    pub mean_us: f64,
    /// Median latency.
    pub p50_us: Option<f64>,
    /// 99th percentile of the latency.
    pub p99_us: Option<f64>,
}

/// A codec and a share of the memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// The codec's name.
    pub codec: String,
    /// Percent of the memory for compressed pages, 0 to 100.
    pub share_pct: f64,
}

/// A file's ratios.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileRatios {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// A ratio for each codec and length of blocks.
    pub ratios: Vec<FileRatio>,
}

/// A file's ratio with a codec and a length of blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileRatio {
    /// The codec's name.
    pub codec: String,
    /// Length of blocks in bytes.
    pub block_bytes: u64,
    /// Raw bytes over stored ones.
    pub ratio: f64,
}

/// A run of the pool, as predicted and as measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerifyRow {
    /// The setting of the run: access, memory and data.
    pub setting: String,
    /// The codec's name.
    pub codec: String,
    /// Percent of the memory for compressed pages, or `adaptive`.
    pub share: String,
    /// The predicted hit ratio in percent.
    pub predicted_hit_pct: f64,
    /// The measured one.
    pub measured_hit_pct: f64,
    /// Predicted microseconds per page.
    pub predicted_us: f64,
    /// Measured ones.
    pub measured_us: f64,
    /// The measured hit ratio less the predicted one, in points.
    pub hit_off_points: f64,
    /// By how many percent measured microseconds are over the predicted ones.
    pub us_off_pct: f64,
    /// Whether one of them is further off than the method is good for.
    pub is_off: bool,
}

impl PageInput {
    /// Returns the model's options in the initial state of the page.
    ///
    /// # Errors
    /// [`LabError::Option`] when a figure is out of the model's bounds, a codec was not measured with blocks of a page,
    /// or the choice is none.
    pub fn options(&self) -> Result<Options, LabError> {
        let mut names = HashSet::new();
        let mut codecs = Vec::new();
        for codec in &self.codecs {
            let block = codec.costs(self.page_bytes, self.threads).ok_or_else(|| {
                LabError::option(
                    "codec",
                    format!(
                        "{} was not measured with blocks of {} bytes",
                        codec.name, self.page_bytes
                    ),
                )
            })?;
            names.insert(codec.name.as_str());
            codecs.push(CodecCosts::new(
                &codec.name,
                block.ratio.max(1.0),
                block.compress_us,
                block.decompress_us,
            ));
        }
        if let Some(choice) = &self.choice {
            if !names.contains(choice.codec.as_str()) {
                return Err(LabError::option(
                    "codec",
                    format!("{} is recommended and was not measured", choice.codec),
                ));
            }
            if !(0.0..=100.0).contains(&choice.share_pct) {
                return Err(LabError::option(
                    "share",
                    format!("{} is not between 0 and 100 percent", choice.share_pct),
                ));
            }
        }
        let options = Options {
            data_bytes: self.data_bytes,
            memory_bytes: self.memory_bytes,
            page_bytes: self.page_bytes,
            access_bytes: Some(self.access_bytes),
            codecs,
            access: self.access.clone(),
            device_us: self.device_us,
            device_iops: self.device_iops,
            hit_us: self.hit_us,
            background_pct: self.background_pct,
            workers: self.workers,
            method: Method::Corrected,
            replacement: self.replacement,
            promote_after_hits: self.promote_after_hits,
            overhead: self.overhead,
            shares: (0..=100).step_by(10).collect(),
        };
        options.validate()?;
        Ok(options)
    }

    /// Lengths of pages that all codecs were measured with, rising.
    pub(super) fn lengths(&self) -> Vec<u64> {
        let of = |codec: &CodecBlocks| {
            codec
                .blocks
                .iter()
                .map(|block| block.block_bytes)
                .collect::<BTreeSet<_>>()
        };
        let lengths = self.codecs.iter().map(of).reduce(|ones, others| &ones & &others);
        lengths.unwrap_or_default().into_iter().collect()
    }

    /// Possible access sizes: each is a multiple or a part of every page size, ascending.
    pub(super) fn wants(&self) -> Vec<u64> {
        let mut wants = vec![self.access_bytes];
        if let Access::Distribution(_) = self.access {
            let lengths = self.lengths();
            let suits = |one: u64, page: u64| one.is_multiple_of(page) || page.is_multiple_of(one);
            let all = |one: &u64| lengths.iter().all(|page| suits(*one, *page));
            wants.extend(lengths.iter().copied().filter(all));
        }
        wants.sort_unstable();
        wants.dedup();
        wants
    }

    /// The cache without compression that everything is set against, and its options. Of the lengths that hold what an
    /// access wants it is the fastest, the shortest of equals; where the page is shorter than that, raw pages are as
    /// long as the page.
    pub(super) fn raw(&self, options: &Options) -> Result<(Options, Point), LabError> {
        let mut best: Option<(Options, Point)> = None;
        for options in self.raw_options(options) {
            let raw = Model::of(&options)?.raw(options.memory_bytes as f64);
            if best
                .as_ref()
                .is_none_or(|(_, best)| raw.us_per_page < best.us_per_page - NOTHING_US)
            {
                best = Some((options, raw));
            }
        }
        best.ok_or_else(|| LabError::option("codec", "no codec is available"))
    }

    fn raw_options(&self, options: &Options) -> Vec<Options> {
        let us = |length: u64| {
            self.reads
                .iter()
                .find(|reads| reads.block_bytes == length)
                .map(|reads| reads.us)
        };
        let is_law = matches!(self.access, Access::Distribution(_));
        let whole = is_law && options.page_bytes >= self.access_bytes && !self.reads.is_empty();
        let lengths = self.lengths().into_iter().filter(|length| {
            *length == options.page_bytes
                || (whole
                    && *length <= options.memory_bytes.min(options.data_bytes)
                    && length.is_multiple_of(self.access_bytes))
        });
        let of = |page_bytes| Options {
            page_bytes,
            device_us: us(page_bytes).unwrap_or(options.device_us),
            ..options.clone()
        };
        lengths.map(of).collect()
    }
}

impl CodecBlocks {
    /// The row for a page of this size.
    fn costs(&self, page_bytes: u64, threads: u32) -> Option<&BlockCosts> {
        let mut of_page = self.blocks.iter().filter(|block| block.block_bytes == page_bytes);
        let exact = of_page.clone().find(|block| block.threads == threads);
        exact.or_else(|| of_page.next())
    }
}
