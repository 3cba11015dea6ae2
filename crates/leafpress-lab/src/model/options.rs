//! Options of the model.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{Access, CodecCosts};
use crate::core::keys::Distribution;
use crate::core::words::{between, words};
use crate::core::{Bytes, LabError};

/// Microseconds of the thesis's SSD, as it uses them: 110, which is the time between two reads with four of them under
/// way.
pub const PUBLISHED_DEVICE_US: f64 = 110.0;
/// Read latency of the thesis's SSD in microseconds: queue depth 4 at 8642 reads/s (table 3), by Little's law.
pub const CORRECTED_DEVICE_US: f64 = 4.0 / 8642.0 * 1e6;

/// Maximum access-sized pieces per page.
const MAX_PIECES: u64 = 1 << 20;

/// Which formulas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Charges each event with its cost.
    #[default]
    Corrected,
    /// The thesis's.
    AsPublished,
}

/// Which pages are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replacement {
    /// The pool's: a clock of raw pages over a log of compressed ones.
    #[default]
    Clock,
    /// One LRU list, of which the front is raw.
    Lru,
    /// The hottest pages raw, the next hottest compressed.
    Ideal,
}

words!(Replacement, "replacement", "`{}`: must be clock, lru or ideal": Clock "clock", Lru "lru", Ideal "ideal");

/// Memory that holds no pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overhead {
    /// Overhead of [`leafpress_pages::PagePool`]: 56 bytes per page in its tables, 12 more per compressed page, a 128th
    /// of the budget, a 64th of the frames for raw pages (256 at most) that are free ahead of need, and of the log one
    /// segment and a half and what is lost at segments' ends.
    #[default]
    Pool,
    /// None: memory is for pages only.
    None,
}

words!(Overhead, "overhead", "`{}`: must be pool or none": Pool "pool", None "none");

/// Options of the model, with the flags of most.
#[derive(Debug, Clone, PartialEq, Serialize, Args)]
pub struct Options {
    /// Size of the data, as in 200GiB or 200GB [default: 200GiB]
    #[arg(long, alias = "data", value_name = "BYTES", allow_hyphen_values = true, value_parser = Bytes::parse_u64)]
    pub data_bytes: u64,
    /// Total memory of the cache [default: 15GiB]
    #[arg(
        short = 'm', long = "memory", value_name = "BYTES", allow_hyphen_values = true, value_parser = Bytes::parse_u64
    )]
    pub memory_bytes: u64,
    /// Page size [default: 8KiB]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = Bytes::parse_u64)]
    pub page_bytes: u64,
    /// Bytes that an access needs: a part of a page, or a multiple of one [default: a page]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = Bytes::parse_u64)]
    pub access_bytes: Option<u64>,
    /// A codec: its ratio (raw over compressed) and microseconds to compress and decode a page; give one for each codec
    /// [default: lz4=2.13,2,1 and zstd=2.97,8,3, the thesis's]
    #[arg(
        long = "codec-costs",
        alias = "codec",
        value_name = "NAME=RATIO,COMPRESS_US,DECOMPRESS_US"
    )]
    pub codecs: Vec<CodecCosts>,
    /// Access distribution of pages.
    #[arg(skip = Access::Distribution(Distribution::Uniform))]
    pub access: Access,
    /// Latency of a page read, at the expected load [default: 462.9, the thesis's SSD at queue depth 4; 110 with
    /// --as-published]
    #[arg(
        long,
        value_name = "US",
        help_heading = "Device and costs",
        allow_negative_numbers = true
    )]
    pub device_us: f64,
    /// Maximum reads per second of the device [default: no limit]
    #[arg(
        long,
        value_name = "N",
        help_heading = "Device and costs",
        allow_negative_numbers = true
    )]
    pub device_iops: Option<f64>,
    /// Cost of finding a page and returning it [default: 0.15]
    #[arg(
        long,
        value_name = "US",
        help_heading = "Device and costs",
        allow_negative_numbers = true
    )]
    pub hit_us: f64,
    /// Percentage of compressions done in the background, which no access waits for [default: 0]
    #[arg(
        long,
        value_name = "PCT",
        help_heading = "Device and costs",
        allow_negative_numbers = true
    )]
    pub background_pct: f64,
    /// Threads that request pages, each waiting for its own [default: 1]
    #[arg(long, value_name = "N", help_heading = "Device and costs")]
    pub workers: u32,
    /// Which formulas.
    #[arg(skip)]
    pub method: Method,
    /// Which pages are where. Not as published.
    #[arg(skip)]
    pub replacement: Replacement,
    /// Hits after which a compressed page becomes raw again, where replacement is [`Replacement::Clock`]: 1 to 63.
    #[arg(skip)]
    pub promote_after_hits: u8,
    /// Memory that holds no pages. Not as published.
    #[arg(skip)]
    pub overhead: Overhead,
    /// Percents of the memory for compressed pages that tables show, rising.
    #[arg(skip)]
    pub shares: Vec<u8>,
}

impl Options {
    /// Creates the thesis's example: 200 GB of data in pages of 8 KB, 15 GB of memory, its SSD and codecs, the 80/20
    /// rule.
    pub fn new(method: Method) -> Self {
        Self {
            data_bytes: 200 << 30,
            memory_bytes: 15 << 30,
            page_bytes: 8 << 10,
            access_bytes: None,
            codecs: CodecCosts::of_thesis(),
            access: Access::Distribution(Distribution::HotSet {
                keys_pct: 20.0,
                operations_pct: 80.0,
            }),
            device_us: match method {
                Method::Corrected => CORRECTED_DEVICE_US,
                Method::AsPublished => PUBLISHED_DEVICE_US,
            },
            device_iops: None,
            hit_us: 0.15,
            background_pct: 0.0,
            workers: 1,
            method,
            replacement: Replacement::Clock,
            promote_after_hits: 8,
            overhead: Overhead::Pool,
            shares: (0..=100).step_by(10).collect(),
        }
    }

    /// Returns the bytes of the accessed data.
    pub fn data_bytes(&self) -> f64 {
        match &self.access {
            Access::Distribution(_) => self.data_bytes as f64,
            Access::Trace(trace) => trace.pages as f64 * self.page_bytes as f64,
        }
    }

    /// Returns the number of pages of the data.
    pub fn pages(&self) -> f64 {
        self.data_bytes() / self.page_bytes.max(1) as f64
    }

    /// Returns the bytes that an access needs.
    pub fn access_bytes(&self) -> u64 {
        self.access_bytes.unwrap_or(self.page_bytes).max(1)
    }

    /// Returns the number of access-sized pieces per page; 1 if a page is not larger.
    pub fn pieces(&self) -> u32 {
        u32::try_from(self.page_bytes / self.access_bytes())
            .unwrap_or(u32::MAX)
            .max(1)
    }

    /// Returns the number of pages per access; 1 if a page is not smaller than an access.
    pub fn pages_an_access(&self) -> u64 {
        (self.access_bytes() / self.page_bytes.max(1)).max(1)
    }

    /// Checks all bounds.
    ///
    /// # Errors
    /// [`LabError::Option`] with the name of the option on the command line.
    pub fn validate(&self) -> Result<(), LabError> {
        let refuse = |option, reason: String| Err(LabError::option(option, reason));
        let largest = 1_u64 << 60;
        for (option, bytes, least) in [
            ("page-bytes", self.page_bytes, 64),
            ("memory", self.memory_bytes, 64 << 10),
            ("data-bytes", self.data_bytes, self.page_bytes),
        ] {
            if !(least..=largest).contains(&bytes) {
                let least = if option == "data-bytes" {
                    format!("a page, {least}")
                } else {
                    least.to_string()
                };
                return refuse(option, format!("{bytes} bytes are not between {least} and 2^60"));
            }
        }
        if self.memory_bytes < self.page_bytes {
            return refuse(
                "memory",
                format!("{} bytes cannot hold a page of {}", self.memory_bytes, self.page_bytes),
            );
        }
        self.validate_access()?;
        self.validate_costs()?;
        if let Access::Distribution(law) = self.access {
            law.validate()?;
        }
        if !(1..=63).contains(&self.promote_after_hits) {
            return refuse("promote-after-hits", "is 1 to 63 hits".into());
        }
        between("workers", self.workers, 1, 1_000_000)?;
        if self.replacement == Replacement::Clock
            && self.method == Method::Corrected
            && let Access::Trace(_) = self.access
        {
            return refuse(
                "replacement",
                "a trace determines the hits of an LRU cache, not of a clock: use lru, or ideal".into(),
            );
        }
        if self.shares.is_empty() || !self.shares.is_sorted() || self.shares.iter().any(|share| *share > 100) {
            return refuse(
                "shares",
                "must be ascending percentages from 0 to 100, at least one".into(),
            );
        }
        Ok(())
    }

    fn validate_access(&self) -> Result<(), LabError> {
        let refuse = |reason: String| Err(LabError::option("access-bytes", reason));
        let (wanted, page) = (self.access_bytes.unwrap_or(self.page_bytes), self.page_bytes);
        if wanted == page {
            return Ok(());
        }
        if wanted < 1 || !(wanted.is_multiple_of(page) || page.is_multiple_of(wanted)) {
            return refuse(format!(
                "{wanted} bytes are neither a multiple nor a part of a page of {page}"
            ));
        }
        if page / wanted > MAX_PIECES {
            return refuse(format!("a page must be at most {MAX_PIECES} times the access size"));
        }
        if let Access::Trace(_) = self.access {
            return refuse("a trace has page numbers, so an access needs one page: omit it".into());
        }
        if self.method == Method::AsPublished {
            return refuse("the thesis's formulas support only pages: omit it".into());
        }
        if self.data_bytes < wanted {
            return refuse(format!(
                "the data, {} bytes, is smaller than an access",
                self.data_bytes
            ));
        }
        Ok(())
    }

    fn validate_costs(&self) -> Result<(), LabError> {
        let refuse = |option, reason: String| Err(LabError::option(option, reason));
        if self.codecs.is_empty() {
            return refuse("codec-costs", "the model needs at least one codec".into());
        }
        for (at, codec) in self.codecs.iter().enumerate() {
            codec.validate()?;
            if self.codecs[..at].iter().any(|before| before.name == codec.name) {
                return refuse("codec-costs", format!("{} is listed twice", codec.name));
            }
        }
        for (option, figure, most) in [
            ("device-us", self.device_us, 1e9),
            ("hit-us", self.hit_us, 1e6),
            ("background-pct", self.background_pct, 100.0),
        ] {
            between(option, figure, 0.0, most)?;
        }
        if let Some(iops) = self.device_iops
            && !(iops > 0.0 && iops <= 1e12)
        {
            return refuse("device-iops", format!("{iops} must be greater than 0 and at most 1e12"));
        }
        Ok(())
    }
}
