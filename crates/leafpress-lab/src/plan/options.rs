//! Options of a plan, and their bounds.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use leafpress::cache::MIN_MEMORY_BYTES;
use serde::{Serialize, Serializer};

use crate::cache::TraceFormat;
use crate::core::corpus::{RecordFormat, Source};
use crate::core::keys::Distribution;
use crate::core::words::{as_text, between};
use crate::core::{Bytes, LabError};

/// Bytes of keys and values of a sample, if not given.
const SAMPLE_BYTES: u64 = 64 << 20;
/// Fewest and most bytes of a sample.
const SAMPLE_BOUNDS: (u64, u64) = (1 << 20, 1 << 30);
/// Least memory and SSD of a plan, and least of all records: those of a cache.
const MIN_BYTES: u64 = MIN_MEMORY_BYTES;
/// Most bytes of all records, of memory and of SSD.
const MAX_BYTES: u64 = 1 << 50;
/// Most requests per second.
const MAX_OPS: f64 = 1e9;

/// A number of requests per second: `50000`, `50K`, `50K/s`, `1.5M`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate(pub f64);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_suffix("/s").unwrap_or(text);
        let (number, factor) = match number.as_bytes().last() {
            Some(b'K' | b'k') => (&number[..number.len() - 1], 1e3),
            Some(b'M' | b'm') => (&number[..number.len() - 1], 1e6),
            _ => (number, 1.0),
        };
        match number.parse::<f64>() {
            Ok(rate) if rate.is_finite() => Ok(Self(rate * factor)),
            _ => Err(format!(
                "`{text}` is not a number of requests per second, as in 50K/s: K is a thousand, M a million"
            )),
        }
    }
}

/// Which records are requested.
#[derive(Debug, Clone, PartialEq)]
pub enum Requests {
    /// Independent requests by a distribution.
    Distribution(Distribution),
    /// As in a trace.
    Trace {
        /// The trace.
        path: PathBuf,
        /// Its format; [`None`] derives it from the name.
        format: Option<TraceFormat>,
    },
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Distribution(distribution) => distribution.fmt(f),
            Self::Trace { path, .. } => write!(f, "trace {}", path.display()),
        }
    }
}

impl Serialize for Requests {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Prices of a month, in dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Prices {
    /// Of a GiB of memory.
    pub memory_gib: f64,
    /// Of a GB of SSD.
    pub ssd_gb: f64,
    /// Of a core.
    pub core: f64,
}

impl Prices {
    /// Amazon's cloud, us-east-1, on demand, 2025: memory of r7g instances (0.1071 for an hour of 16 GiB), gp3 volumes,
    /// cores of c7g instances (0.0725 for an hour of two).
    pub const ASSUMED: Self = Self {
        memory_gib: 4.9,
        ssd_gb: 0.08,
        core: 26.5,
    };
}

/// What to plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Options {
    /// The sample.
    pub data: Source,
    /// Its format.
    #[serde(with = "as_text")]
    pub format: RecordFormat,
    /// Bytes of keys and values of the sample that are used.
    pub sample_bytes: u64,
    /// Bytes of keys and values of all records.
    pub total_bytes: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// SSD in bytes; [`None`] is as much as the records need.
    pub ssd_bytes: Option<u64>,
    /// The requests.
    pub requests: Requests,
    /// Requests per second.
    pub ops: f64,
    /// The share of the requests that overwrite a record, in addition to reads, 0 to 1.
    pub writes: f64,
    /// The share of the requests to be answered without the backend, over 0 to 1, of those that a cache of all records
    /// answers.
    pub need: f64,
    /// Microseconds of a read of the SSD.
    pub device_us: f64,
    /// Microseconds of a request that the backend answers.
    pub backend_us: f64,
    /// The prices.
    pub prices: Prices,
    /// Which of the options were not given, by their flags.
    pub assumed: Vec<&'static str>,
}

impl Options {
    /// Creates the defaults: a zipfian distribution of skew 0.99, 10,000 requests per second, none of which writes, an
    /// SSD that is read in 100 us, and a backend that answers in 1 ms.
    pub fn new(data: Source, format: RecordFormat, total_bytes: u64, memory_bytes: u64) -> Self {
        Self {
            data,
            format,
            sample_bytes: SAMPLE_BYTES,
            total_bytes,
            memory_bytes,
            ssd_bytes: None,
            requests: Requests::Distribution(Distribution::Zipfian { theta: 0.99 }),
            ops: 10_000.0,
            writes: 0.0,
            need: 1.0,
            device_us: 100.0,
            backend_us: 1000.0,
            prices: Prices::ASSUMED,
            assumed: Vec::new(),
        }
    }

    /// Checks the bounds.
    ///
    /// # Errors
    /// [`LabError::Option`] with the name of the option on the command line.
    pub fn validate(&self) -> Result<(), LabError> {
        let bytes =
            |option, bytes: u64, (least, most): (u64, u64)| between(option, Bytes(bytes), Bytes(least), Bytes(most));
        bytes("total", self.total_bytes, (MIN_BYTES, MAX_BYTES))?;
        bytes("memory", self.memory_bytes, (MIN_BYTES, MAX_BYTES))?;
        if let Some(ssd) = self.ssd_bytes {
            bytes("ssd", ssd, (MIN_BYTES, MAX_BYTES))?;
        }
        bytes("sample-bytes", self.sample_bytes, SAMPLE_BOUNDS)?;
        between("ops", self.ops, 1.0, MAX_OPS)?;
        between("writes", self.writes * 100.0, 0.0, 100.0)?;
        between("hit-ratio", self.need * 100.0, 1.0, 100.0)?;
        between("device-us", self.device_us, 0.1, 1e6)?;
        between("backend-us", self.backend_us, 0.0, 1e9)?;
        let prices = [
            ("memory-gib-cost", self.prices.memory_gib),
            ("ssd-gb-cost", self.prices.ssd_gb),
            ("core-cost", self.prices.core),
        ];
        for (option, price) in prices {
            between(option, price, 0.0, 1e15)?;
        }
        match self.requests {
            Requests::Distribution(Distribution::Latest { .. }) => Err(LabError::option(
                "distribution",
                "latest has hot records that move: use zipfian, or a trace",
            )),
            _ => Ok(()),
        }
    }
}
