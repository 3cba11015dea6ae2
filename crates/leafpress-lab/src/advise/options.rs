//! Options of an advice: the question, and how to measure.

use std::path::PathBuf;

use leafpress::Codec;
use leafpress::codec::Availability;

use crate::core::{Bytes, LabError};
use crate::device;
use crate::model::tco::Prices;
use crate::model::{Access, Options as ModelOptions};
use crate::suite;

/// Default number of bytes to take of the sample, evenly spread.
pub const SAMPLE_BYTES: u64 = 64 << 20;
/// The number for a quick advice.
pub const QUICK_SAMPLE_BYTES: u64 = 8 << 20;
/// The longest block, in bytes.
pub const MAX_BLOCK_BYTES: u64 = suite::MAX_BLOCK_BYTES as u64;
/// Default largest block size, in bytes: as in the thesis.
const USUAL_BLOCK_BYTES: u64 = 64 << 10;
/// Default memory, as a part of the data.
pub(super) const USUAL_MEMORY: u64 = 8;
/// Seconds of a device measurement, normal and quick.
const DEVICE_SECONDS: (f64, f64) = (1.5, 0.3);
/// Size of the device's probe file in bytes, normal and quick.
const DEVICE_BYTES: (u64, u64) = (512 << 20, 128 << 20);

/// The source of the device's latency.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceSource {
    /// Measured in this directory, or with this file.
    Probe(PathBuf),
    /// Fixed microseconds per read, for any block size and load.
    Latency(f64),
    /// A result of `leafpress device`: a file, or its directory.
    Saved(PathBuf),
    /// A result of fio.
    Fio(PathBuf),
}

/// Options of an advice: the question, and how to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Files and directories that represent the data.
    pub sample: Vec<PathBuf>,
    /// The source of the device's latency.
    pub device: DeviceSource,
    /// Bytes of the data; `None` is what the sample has. With a trace, the pages in it.
    pub data_bytes: Option<u64>,
    /// Bytes of memory of the cache; `None` is an eighth of the data.
    pub memory_bytes: Option<u64>,
    /// Bytes that an access needs.
    pub access_bytes: u64,
    /// Lengths of blocks to choose from; `None` is `access_bytes` and its doubles up to 64 KiB where the device is
    /// measured, else only `access_bytes`.
    pub block_bytes: Option<Vec<u64>>,
    /// Codecs to choose from; `None` is all available ones that are meant for speed.
    pub codecs: Option<Vec<Codec>>,
    /// Access distribution of pieces of `access_bytes`.
    pub access: Access,
    /// Whether the access was chosen by the user.
    pub access_is_given: bool,
    /// Threads that request pages, each waiting for its own.
    pub workers: u32,
    /// Microseconds to find and return a cached page.
    pub hit_us: f64,
    /// Percent of the compressions that no access waits for.
    pub background_pct: f64,
    /// Hits after which a compressed page becomes raw again.
    pub promote_after_hits: u8,
    /// Bytes to take of the sample; `None` is [`SAMPLE_BYTES`], or [`QUICK_SAMPLE_BYTES`].
    pub sample_bytes: Option<u64>,
    /// Small samples and short measurements.
    pub quick: bool,
    /// Prices, to compute the value of saved cores and memory.
    pub prices: Option<Prices>,
}

impl Options {
    /// Creates the defaults: accesses of 8 KiB, by the 80/20 rule, of one worker; the rest as documented at the fields.
    pub fn new(sample: Vec<PathBuf>, device: DeviceSource) -> Self {
        let model = ModelOptions::new(crate::model::Method::Corrected);
        Self {
            sample,
            device,
            data_bytes: None,
            memory_bytes: None,
            access_bytes: 8 << 10,
            block_bytes: None,
            codecs: None,
            access: model.access,
            access_is_given: false,
            workers: 1,
            hit_us: model.hit_us,
            background_pct: model.background_pct,
            promote_after_hits: model.promote_after_hits,
            sample_bytes: None,
            quick: false,
            prices: None,
        }
    }

    /// Checks everything that can be checked before measuring.
    ///
    /// # Errors
    /// [`LabError::Option`] with the name of the option on the command line.
    pub fn validate(&self) -> Result<(), LabError> {
        let refuse = |option, reason: String| Err(LabError::option(option, reason));
        for &bytes in &self.lengths() {
            if !bytes.is_multiple_of(self.access_bytes.max(1)) {
                return refuse(
                    "block-bytes",
                    format!(
                        "{} is not a multiple of --access-bytes, {}",
                        Bytes(bytes),
                        Bytes(self.access_bytes)
                    ),
                );
            }
            if matches!(self.device, DeviceSource::Probe(_)) && !bytes.is_multiple_of(device::MIN_BLOCK_BYTES) {
                return refuse(
                    "block-bytes",
                    format!(
                        "{}: devices are read in multiples of 512 bytes; give --device-us for other lengths",
                        Bytes(bytes)
                    ),
                );
            }
        }
        if let DeviceSource::Latency(us) = self.device
            && !(us > 0.0 && us <= 1e9)
        {
            return refuse("device-us", format!("{us} must be greater than 0 and at most 1e9"));
        }
        if let (Access::Trace(_), Some(lengths)) = (&self.access, &self.block_bytes)
            && lengths.iter().any(|bytes| *bytes != self.access_bytes)
        {
            return refuse(
                "block-bytes",
                "a trace has page numbers: set the page size with --page-bytes instead".into(),
            );
        }
        if let Some(prices) = &self.prices {
            prices.validate()?;
        }
        self.suite_options(&self.lengths()).validate()?;
        if let Some(probe) = self.device_options(&self.lengths()) {
            probe.validate()?;
        }
        let access_bytes = self.access_bytes;
        // Unknown sizes are replaced by valid ones.
        let data_bytes = self.data_bytes.unwrap_or(1 << 40);
        let model = ModelOptions {
            data_bytes,
            memory_bytes: self
                .memory_bytes
                .unwrap_or((data_bytes / USUAL_MEMORY).max(64 << 10).max(access_bytes)),
            page_bytes: access_bytes,
            hit_us: self.hit_us,
            background_pct: self.background_pct,
            workers: self.workers,
            promote_after_hits: self.promote_after_hits,
            access: match &self.access {
                // It checks its own bounds.
                Access::Trace(_) => ModelOptions::new(crate::model::Method::Corrected).access,
                access => access.clone(),
            },
            ..ModelOptions::new(crate::model::Method::Corrected)
        };
        model.validate().map_err(|e| match e {
            LabError::Option {
                option: "page-bytes",
                reason,
            } => LabError::option("access-bytes", reason),
            e => e,
        })
    }

    /// Lengths of blocks to choose from.
    pub(super) fn lengths(&self) -> Vec<u64> {
        if let Some(lengths) = &self.block_bytes {
            let mut lengths = lengths.clone();
            lengths.sort_unstable();
            return lengths;
        }
        // Longer blocks need the latency of longer reads.
        if matches!(self.access, Access::Trace(_)) || matches!(self.device, DeviceSource::Latency(_)) {
            return vec![self.access_bytes];
        }
        let doubles = std::iter::successors(Some(self.access_bytes), |bytes| bytes.checked_mul(2));
        let mut lengths: Vec<u64> = doubles
            .take_while(|bytes| (1..=USUAL_BLOCK_BYTES).contains(bytes))
            .collect();
        if lengths.is_empty() {
            lengths.push(self.access_bytes);
        }
        // A few are enough to see where the best one lies.
        while lengths.len() > 6 {
            let mut at = 0;
            lengths.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
        lengths
    }

    /// Returns the bytes to take of the sample.
    pub fn sample_bytes(&self) -> u64 {
        let usual = if self.quick { QUICK_SAMPLE_BYTES } else { SAMPLE_BYTES };
        self.sample_bytes.unwrap_or(usual)
    }

    pub(super) fn suite_options(&self, lengths: &[u64]) -> suite::Options {
        let mut options = suite::Options::new(self.sample.clone());
        options.codecs = Some(self.codecs.clone().unwrap_or_else(usual_codecs));
        let lengths = lengths
            .iter()
            .map(|bytes| usize::try_from(*bytes).unwrap_or(usize::MAX));
        options.block_bytes = Some(lengths.collect());
        options.threads = vec![1];
        options.passes = if self.quick { 1 } else { 3 };
        options.max_bytes = Some(self.sample_bytes());
        options
    }

    /// How the device is measured, if it is: at random places, alone and with as many reads in flight as there are
    /// workers.
    pub(super) fn device_options(&self, lengths: &[u64]) -> Option<device::Options> {
        let DeviceSource::Probe(path) = &self.device else {
            return None;
        };
        let mut options = device::Options::new(path.clone());
        options.block_bytes = lengths.to_vec();
        let doubles = std::iter::successors(Some(1), |depth: &u32| depth.checked_mul(2));
        let most = self.workers.clamp(1, device::MAX_QUEUE_DEPTH);
        options.queue_depths = doubles.take_while(|depth| *depth < most).collect();
        options.queue_depths.push(most);
        options.sequential_pct = 0.0;
        let (usual, quick) = DEVICE_SECONDS;
        options.seconds = if self.quick { quick } else { usual };
        if path.is_dir() {
            let (usual, quick) = DEVICE_BYTES;
            let bytes = if self.quick { quick } else { usual };
            let longest = lengths.iter().copied().max().unwrap_or(0);
            options.file_bytes = Some(bytes.max(longest.saturating_mul(device::MIN_BLOCKS)));
        }
        Some(options)
    }
}

/// The available codecs that are meant for speed: not those that imitate an accelerator, nor the system's zlib where
/// none is before it, nor encoders for what is written once and read often, nor codecs that need a dictionary, which
/// pages do not have.
fn usual_codecs() -> Vec<Codec> {
    let is_usual = |one: &Availability| match (&one.codec, &one.engine) {
        (Codec::None | Codec::Lz4Hc { .. } | Codec::OnPair { .. } | Codec::OnPairHuffman, _) | (_, Err(_)) => false,
        (Codec::Zlib { .. }, Ok(engine)) => *engine == "zlib_accel_preload",
        (Codec::Qpl { path, .. }, Ok(_)) => *path == leafpress::codec::QplPath::Hardware,
        _ => true,
    };
    let codecs = Codec::list().into_iter();
    codecs.filter(is_usual).map(|one| one.codec).collect()
}
