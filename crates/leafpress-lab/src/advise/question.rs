//! Inputs of a recommendation: sizes, an access distribution, and figures of codecs and of a device, measured or
//! synthetic.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use crate::core::LabError;
use crate::device::{Measurement, Operation, Report};
use crate::model::tco::Prices;
use crate::model::{Access, CodecCosts, Method, Options, Replacement};

/// Which inputs were assumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Assumed {
    /// The size of the data is the sample's.
    pub data: bool,
    /// The memory is an eighth of the data.
    pub memory: bool,
    /// The access is the default.
    pub access: bool,
}

/// How long a read of a block waits.
#[derive(Debug, Clone, PartialEq)]
pub enum Reads {
    /// Fixed microseconds under any load.
    Always(f64),
    /// As a device was measured with blocks of this length.
    Probed {
        /// The measurements.
        report: Arc<Report>,
        /// The length of the blocks in it, in bytes.
        block_bytes: u64,
    },
}

impl Reads {
    /// Returns the mean microseconds of a read at a rate of reads per second; beyond the highest measured rate, its
    /// latency there. A read is never slower than a larger one, which contains it: a measurement of that is noise.
    pub fn wait_us(&self, per_second: f64) -> f64 {
        match self {
            Self::Always(us) => *us,
            Self::Probed { report, block_bytes } => lengths(report)
                .filter(|bytes| bytes >= block_bytes)
                .filter_map(|bytes| at_load_us(report, bytes, per_second))
                .reduce(f64::min)
                .unwrap_or(0.0),
        }
    }

    /// Returns the microseconds of a read when `workers` threads request pages, each waiting for its own: a page takes
    /// `busy_us` and, with the chance `miss`, a read. The longer a read waits, the fewer are requested; this is the
    /// equilibrium.
    pub fn wait_of_workers_us(&self, workers: f64, busy_us: f64, miss: f64) -> f64 {
        if let Self::Always(us) = self {
            return *us;
        }
        let asked = |wait: f64| workers * miss * 1e6 / (busy_us + miss * wait).max(1e-3);
        let (mut low, mut high) = (self.wait_us(0.0), self.wait_us(f64::MAX));
        if high <= low {
            return low;
        }
        for _ in 0..50 {
            let wait = f64::midpoint(low, high);
            if self.wait_us(asked(wait)) > wait {
                low = wait;
            } else {
                high = wait;
            }
        }
        f64::midpoint(low, high)
    }
}

/// Lengths of reads that were measured.
pub(super) fn lengths(report: &Report) -> impl Iterator<Item = u64> {
    let reads = report.measurements.iter().filter(|m| m.operation == Operation::Read);
    let lengths: BTreeSet<u64> = reads.map(|m| m.block_bytes).collect();
    lengths.into_iter()
}

/// Microseconds of a read of this size at a rate of reads per second.
pub(super) fn at_load_us(report: &Report, block_bytes: u64, per_second: f64) -> Option<f64> {
    let at_load = report.wait_at_load_us(Operation::Read, block_bytes, per_second);
    at_load.or_else(|| {
        let reads = report.measurements.iter();
        let reads =
            reads.filter(|m| m.operation == Operation::Read && m.block_bytes == block_bytes && m.operations > 0);
        let fastest = reads.max_by(|one, other| one.iops.total_cmp(&other.iops));
        fastest.map(Measurement::wait_us)
    })
}

/// Measurements at one block size.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockFigures {
    /// Their length in bytes.
    pub block_bytes: u64,
    /// Microseconds to copy one, the floor of any codec; `None` is not known.
    pub copy_us: Option<f64>,
    /// How long a read of one waits.
    pub reads: Reads,
    /// Ratio and costs of each codec; a codec compared over block sizes has the same name in all.
    pub codecs: Vec<CodecCosts>,
}

/// Inputs of a recommendation.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Bytes of the data.
    pub data_bytes: u64,
    /// Bytes of memory of the cache, all of it.
    pub memory_bytes: u64,
    /// Bytes that an access needs. Blocks with several such pieces are read, compressed and cached as a whole.
    pub access_bytes: u64,
    /// Access distribution of pieces of `access_bytes`.
    pub access: Access,
    /// Threads that ask, each waiting for its own.
    pub workers: u32,
    /// Microseconds to find and return a cached page.
    pub hit_us: f64,
    /// Percent of the compressions that no access waits for.
    pub background_pct: f64,
    /// Hits after which a compressed page becomes raw again.
    pub promote_after_hits: u8,
    /// Lengths of blocks that may be chosen, multiples of `access_bytes`, rising; one at least.
    pub blocks: Vec<BlockFigures>,
    /// Prices, to compute the value of saved cores and memory.
    pub prices: Option<Prices>,
}

impl Question {
    /// The model's options with blocks of one length and this latency.
    pub(super) fn model_options(&self, block: &BlockFigures, device_us: f64) -> Options {
        let replacement = match self.access {
            // The miss-ratio curve of a trace is exact for one LRU list.
            Access::Trace(_) => Replacement::Lru,
            _ => Replacement::Clock,
        };
        Options {
            data_bytes: self.data_bytes,
            memory_bytes: self.memory_bytes,
            page_bytes: block.block_bytes,
            access_bytes: Some(self.access_bytes),
            codecs: block.codecs.clone(),
            access: self.access.clone(),
            device_us,
            device_iops: None,
            hit_us: self.hit_us,
            background_pct: self.background_pct,
            workers: self.workers,
            replacement,
            promote_after_hits: self.promote_after_hits,
            ..Options::new(Method::Corrected)
        }
    }

    /// The blocks of a length.
    pub(super) fn block(&self, block_bytes: u64) -> Option<&BlockFigures> {
        self.blocks.iter().find(|block| block.block_bytes == block_bytes)
    }

    /// Checks what the model does not.
    ///
    /// # Errors
    /// [`LabError::Option`] with the name of the option on the command line.
    pub(super) fn validate(&self) -> Result<(), LabError> {
        if self.blocks.is_empty() || self.blocks.iter().any(|block| block.codecs.is_empty()) {
            return Err(LabError::option("codecs", "no codec is available"));
        }
        for block in &self.blocks {
            if self.access_bytes == 0 || !block.block_bytes.is_multiple_of(self.access_bytes) {
                return Err(LabError::option(
                    "block-bytes",
                    format!(
                        "{} is not a multiple of the access size, {}",
                        block.block_bytes, self.access_bytes
                    ),
                ));
            }
        }
        let is_trace = matches!(self.access, Access::Trace(_));
        if is_trace && self.blocks.iter().any(|block| block.block_bytes != self.access_bytes) {
            return Err(LabError::option(
                "block-bytes",
                "a trace has page numbers, so the block size is the access size: omit it, or set --page-bytes",
            ));
        }
        if let Some(prices) = &self.prices {
            prices.validate()?;
        }
        Ok(())
    }
}
