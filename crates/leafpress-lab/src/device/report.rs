//! Results of a probe, or of fio.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Medium, Note, Operation, Options};

/// Latencies in microseconds, from before the system call that hands the request to the kernel until its end was seen:
/// fio's `lat`. Of threads, the time of the `pread` or `pwrite`. Of fio's results, whose percentiles are of `clat`, the
/// mean `slat` was added to them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Requests measured.
    pub samples: u64,
    /// The least.
    pub min_us: f64,
    /// Mean.
    pub mean_us: f64,
    /// Half are at most this. The probe always has the quantiles; a result of fio may lack some.
    pub p50_us: Option<f64>,
    /// 90% are at most this.
    pub p90_us: Option<f64>,
    /// 99% are at most this.
    pub p99_us: Option<f64>,
    /// 99.9% are at most this.
    pub p999_us: Option<f64>,
    /// 99.99% are at most this.
    pub p9999_us: Option<f64>,
    /// The most.
    pub max_us: f64,
}

impl From<&crate::core::latency::Latency> for Latency {
    fn from(latency: &crate::core::latency::Latency) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        Self {
            samples: latency.samples,
            min_us: us(latency.min_ns),
            mean_us: latency.mean_ns / 1e3,
            p50_us: Some(us(latency.p50_ns)),
            p90_us: Some(us(latency.p90_ns)),
            p99_us: Some(us(latency.p99_ns)),
            p999_us: Some(us(latency.p999_ns)),
            p9999_us: Some(us(latency.p9999_ns)),
            max_us: us(latency.max_ns),
        }
    }
}

/// One operation with blocks of one length and one number of requests in flight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The job's name; `None` for the probe, which has none.
    pub job: Option<String>,
    /// The operation.
    pub operation: Operation,
    /// Length of the blocks in bytes.
    pub block_bytes: u64,
    /// Requests in flight.
    pub queue_depth: u32,
    /// Length as measured, in seconds.
    pub seconds: f64,
    /// Requests that ended.
    pub operations: u64,
    /// Requests per second.
    pub iops: f64,
    /// Megabytes (10^6) per second.
    pub mb_per_s: f64,
    /// Microseconds from one request's end to the next one's, 1 / IOPS: the reciprocal of throughput, not the latency
    /// of a request. With Q in flight a request takes about Q times as long (Little's law). The thesis used one as the
    /// other.
    pub us_per_block: f64,
    /// How long requests took, their handing over included.
    pub latency: Latency,
    /// Latency of requests at random offsets only; `None` for fio, which does not separate them.
    pub random_latency: Option<Latency>,
    /// Mean microseconds of the system call that hands a request over, which are part of the latency: fio's `slat`.
    /// `None` for threads, which have no such call.
    pub submit_us: Option<f64>,
    /// Requests that ended in each tenth of the time; empty for fio.
    pub tenths: Vec<u64>,
    /// Cores' worth of processor time that the measurement took.
    pub cores: Option<f64>,
}

impl Measurement {
    /// Returns the mean latency in microseconds.
    pub fn wait_us(&self) -> f64 {
        self.latency.mean_us
    }
}

/// The probed target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A file that the probe made, filled and removed.
    ProbeFile,
    /// An existing file.
    File,
    /// A block device.
    BlockDevice,
}

/// Reads of blocks that were not read before, and of the same ones again: what a cache above the medium does shows in
/// the difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reread {
    /// Blocks that were read, one at a time.
    pub blocks: u64,
    /// Their length in bytes.
    pub block_bytes: u64,
    /// Median of the first reads in microseconds.
    pub first_us: f64,
    /// Median of the second reads in microseconds.
    pub second_us: f64,
}

/// How and on what a probe ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    /// The options.
    pub options: Options,
    /// The target.
    pub subject: Subject,
    /// Bytes of it that were used.
    pub bytes: u64,
    /// Whether reads went past the page cache; if not, why.
    pub direct: Result<(), String>,
    /// `io_uring` or `threads`.
    pub engine: String,
    /// Why it is threads, where io_uring would have been taken.
    pub no_uring: Option<String>,
    /// Bytes of the file that its file system has not stored: holes.
    pub hole_bytes: u64,
    /// The medium.
    pub medium: Medium,
    /// Reads and reads again; `None` past a page cache, or on files too small.
    pub reread: Option<Reread>,
    /// Memory of this machine in bytes.
    pub memory_bytes: Option<u64>,
}

/// Where the figures are from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The probe.
    Probe(Box<Probed>),
    /// A result of fio.
    Fio {
        /// The file.
        #[serde(with = "crate::core::paths")]
        path: PathBuf,
        /// fio's version.
        version: String,
        /// Its `ioengine`, where all jobs have the same.
        engine: Option<String>,
        /// Its `rw`, where all jobs have the same.
        pattern: Option<String>,
    },
}

/// Results of a probe, or of fio, and their caveats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Where the figures are from.
    pub source: Source,
    /// The machine in words; empty for a result of fio.
    pub host: String,
    /// The figures: reads first, by number in flight, then by length of block.
    pub measurements: Vec<Measurement>,
    /// Caveats.
    pub notes: Vec<Note>,
    /// Whether it was interrupted; existing measurements are complete.
    pub interrupted: bool,
}

impl Report {
    /// Returns the figures of one operation, block size and number in flight.
    pub fn find(&self, operation: Operation, block_bytes: u64, queue_depth: u32) -> Option<&Measurement> {
        self.measurements
            .iter()
            .find(|m| (m.operation, m.block_bytes, m.queue_depth) == (operation, block_bytes, queue_depth))
    }

    /// Returns the mean latency of a request in microseconds at `iops` requests per second: that of the smallest number
    /// in flight up to the rate it reaches, then between those measured in proportion. `None` beyond the highest rate
    /// measured, or if nothing was. Measure at queue depth 1 too, otherwise light loads get the queueing of heavy ones.
    pub fn wait_at_load_us(&self, operation: Operation, block_bytes: u64, iops: f64) -> Option<f64> {
        let mut points: Vec<_> = self
            .measurements
            .iter()
            .filter(|m| m.operation == operation && m.block_bytes == block_bytes && m.iops > 0.0)
            .map(|m| (m.queue_depth, m.iops, m.wait_us()))
            .collect();
        points.sort_by_key(|(depth, ..)| *depth);
        // A higher depth without higher throughput only adds waiting: it is not a realistic load.
        let mut rising: Vec<(f64, f64)> = Vec::new();
        for (_, rate, wait) in points {
            if rising.last().is_none_or(|(before, _)| rate > *before) {
                rising.push((rate, wait));
            }
        }
        let &(lightest, wait) = rising.first()?;
        if iops <= lightest {
            return Some(wait);
        }
        rising.windows(2).find_map(|pair| {
            let [(low, least), (high, most)] = *pair else {
                return None;
            };
            (low..=high)
                .contains(&iops)
                .then(|| least + (most - least) * (iops - low) / (high - low))
        })
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
