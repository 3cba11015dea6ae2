//! The command line of `leafpress advise`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use leafpress::Codec;
use leafpress_console::words::list;
use leafpress_lab::advise::{DeviceSource, Options, VerifyOptions};
use leafpress_lab::core::paths::behind;
use leafpress_lab::model::{Access, Junk, Trace, TraceOptions};
use leafpress_lab::{Bytes, LabError, ParseBytesError, pool, suite};

use super::keyspace::KeyspaceArgs;
use super::plan::PlanArgs;
use super::records::RecordsArgs;
use leafpress_console::cost::CostArgs;

/// A size. In other commands `--data` names a data source, so a path here gets an error that says where it belongs.
fn data_bytes(text: &str) -> Result<Bytes, String> {
    text.parse()
        .map_err(|error: ParseBytesError| match Path::new(text).exists() {
            true => format!(
                "`{text}` is a path: name it without a flag, as in leafpress advise {text}; --data-bytes is \
                         how much data there is"
            ),
            false => error.to_string(),
        })
}

/// Arguments of `leafpress advise`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
#[command(next_help_heading = "Data and memory")]
pub struct AdviseArgs {
    /// Files and directories that are representative of the data; archives (zip, gzip, zstd) are opened; or the name of
    /// a bundled sample
    #[arg(value_name = "SAMPLE", required_unless_present_any = ["trace", "redis"])]
    pub(super) sample: Vec<PathBuf>,
    /// Total size of the data, as in 200GB [default: the sample's]
    #[arg(
        long = "data-bytes",
        alias = "data",
        value_name = "BYTES",
        value_parser = data_bytes,
        allow_hyphen_values = true
    )]
    data: Option<Bytes>,
    /// Total memory of the cache, as in 15GB [default: an eighth of the data, 64M with --trace]
    #[arg(short = 'm', long, value_name = "BYTES", allow_hyphen_values = true)]
    pub(super) memory: Option<Bytes>,
    /// Bytes that an access needs
    #[arg(long, value_name = "BYTES", default_value = "8KiB", allow_hyphen_values = true)]
    access_bytes: Bytes,
    /// Block sizes to choose from, multiples of --access-bytes [default: that, and its doubles up to 64K where the
    /// device is measured]
    #[arg(short = 'b', long, value_name = "LIST", value_parser = suite::block_bytes)]
    block_bytes: Option<std::vec::Vec<usize>>,
    /// Fix the page size: what an access needs, and the only block size
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["access_bytes", "block_bytes"], allow_hyphen_values = true)]
    page_bytes: Option<Bytes>,
    /// Codecs to choose from, separated by commas [default: all that run here and are meant for speed]
    #[arg(short = 'c', long, value_name = "LIST")]
    codecs: Option<String>,
    /// Use N bytes of the sample, evenly spread [default: 64M, 8M with --quick]; with --redis, bytes of values to read
    /// [default: 4M]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub(super) sample_bytes: Option<Bytes>,

    /// Directory on the device, in which a file is made, read and removed; or a file or block device, which is only
    /// read
    #[arg(
        long, value_name = "PATH", help_heading = "Device",
        conflicts_with_all = ["device_us", "device_json", "fio_json"]
    )]
    device: Option<PathBuf>,
    /// Use this read latency instead, at the expected load
    #[arg(
        long,
        value_name = "US",
        help_heading = "Device",
        conflicts_with_all = ["device_json", "fio_json"],
        allow_negative_numbers = true
    )]
    device_us: Option<f64>,
    /// Use a result of `leafpress device --out` instead of measuring: its results.json, or its directory
    #[arg(long, value_name = "FILE", help_heading = "Device", conflicts_with = "fio_json")]
    device_json: Option<PathBuf>,
    /// Use a result of fio --output-format=json instead of measuring
    #[arg(long, value_name = "FILE", help_heading = "Device")]
    fio_json: Option<PathBuf>,

    // No docstring: rustdoc would take the brackets for links.
    #[arg(
        long = "distribution",
        alias = "access",
        value_name = "DISTRIBUTION",
        help_heading = "Access",
        help = "Access distribution of pages: uniform, X,Y or hotset:X:Y (the hot X% get Y% of the accesses), \
                zipfian[:THETA], self-similar[:H], or trace:FILE with one page number per line; with --total of \
                records [default: 20,80; zipfian:0.99 with --total]"
    )]
    access: Option<OsString>,
    /// Format of a page trace: text (one decimal number per line) or u64le (8 bytes per number, little-endian)
    /// [default: text]; with --trace, of the request trace: oracle, arc, csv or keys [default: by its name]
    #[arg(long, value_name = "FORMAT", help_heading = "Access")]
    pub(super) trace_format: Option<String>,
    /// Skip trace lines that are not page numbers, up to 1% of all lines, and count them
    #[arg(long, help_heading = "Access")]
    skip_junk: bool,
    /// Threads that request pages, each waiting for its own
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Access")]
    workers: u32,
    /// Cost of finding a page and returning it
    #[arg(
        long,
        value_name = "US",
        default_value_t = 0.15,
        help_heading = "Access",
        allow_negative_numbers = true
    )]
    hit_us: f64,
    /// Percentage of compressions done in the background, which no access waits for
    #[arg(
        long,
        value_name = "PCT",
        default_value_t = 0.0,
        help_heading = "Access",
        allow_negative_numbers = true
    )]
    background_pct: f64,

    /// Use a sample of 8M and short measurements
    #[arg(long, help_heading = "How")]
    pub(super) quick: bool,
    /// Run the page pool at a smaller scale and compare the prediction with the measurement; with these codecs, or the
    /// best one
    #[arg(
        long, value_name = "CODECS", help_heading = "How", num_args = 0..=1, require_equals = true,
        default_missing_value = ""
    )]
    verify: Option<String>,
    /// Percentages of the memory for compressed pages at which to verify
    #[arg(
        long,
        value_name = "LIST",
        default_value = "0,30,60,90",
        help_heading = "How",
        requires = "verify",
        value_parser = pool::shares
    )]
    verify_shares: std::vec::Vec<u8>,
    /// Length of each verification run
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 4.0,
        help_heading = "How",
        requires = "verify",
        allow_negative_numbers = true
    )]
    verify_seconds: f64,

    #[command(flatten)]
    pub(super) records: RecordsArgs,

    #[command(flatten)]
    pub(super) plan: PlanArgs,

    #[command(flatten)]
    pub(super) keyspace: KeyspaceArgs,

    #[command(flatten)]
    pub(super) cost: CostArgs,

    /// Write summary.tsv, results.json and report.html (an interactive page) to this directory
    #[arg(short = 'o', long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Print only the advice
    #[arg(short = 'q', long, help_heading = "Output")]
    pub quiet: bool,
}

const AFTER_HELP: &str = "\
Sizes: 15GiB and 15G are 15 x 2^30 bytes, 15GB is 15 x 10^9. docs/commands/advise.md explains the advice and what it \
rests on.

  leafpress advise /data/tables --device /mnt/ssd --memory 15GB --data-bytes 200GB
  leafpress advise dump.zip --device-us 90 --memory 64GiB --data-bytes 2TB --distribution zipfian:0.99 --codecs \
  lz4,zstd:1 --page-bytes 16K
  leafpress advise /data/tables --device /mnt/ssd --memory 15GB --data-bytes 200GB --verify --out result
  leafpress advise --trace requests.csv.zst --memory 4GB /data/values
  leafpress advise sessions.jsonl --records jsonl:/id --total 40G --memory 16G --ops 50K/s
  leafpress advise --redis redis://reader@cache.example:6379 --tco --out result
  leafpress advise /data/tables --device /mnt/ssd --quick --tco --total-cost 1000000 --memory-gib-cost 40";

impl AdviseArgs {
    /// The distribution, if one is given.
    pub(super) fn distribution(&self) -> Option<&OsStr> {
        self.access.as_deref()
    }

    /// The latency of a read, if it is given.
    pub(super) fn device_us(&self) -> Option<f64> {
        self.device_us
    }

    fn trace_of_pages(&self) -> Option<&OsStr> {
        behind(self.access.as_deref()?, "trace:")
    }

    /// Returns the trace to read, and its format.
    pub fn trace(&self) -> Result<Option<(PathBuf, TraceOptions)>, LabError> {
        let Some(path) = self.trace_of_pages() else {
            let given = [
                ("trace-format", self.trace_format.is_some()),
                ("skip-junk", self.skip_junk),
            ];
            return match given.into_iter().find(|(_, is_given)| *is_given) {
                Some((option, _)) => Err(LabError::option(
                    option,
                    "no trace is given: name one with --distribution trace:FILE",
                )),
                None => Ok(None),
            };
        };
        let options = TraceOptions {
            format: self.trace_format.as_deref().unwrap_or("text").parse()?,
            junk: if self.skip_junk { Junk::Skip } else { Junk::Refuse },
            ..TraceOptions::default()
        };
        Ok(Some((PathBuf::from(path), options)))
    }

    /// Returns the question, validated as far as possible without the data.
    pub fn options(&self, trace: Option<Arc<Trace>>) -> Result<Options, LabError> {
        if self.records.records.is_some() {
            return Err(LabError::option(
                "records",
                "requires --trace (the requests of a record cache)",
            ));
        }
        let device = self.source()?;
        let mut options = Options::new(self.sample.clone(), device);
        options.data_bytes = self.data.map(|Bytes(bytes)| bytes);
        options.memory_bytes = self.memory.map(|Bytes(bytes)| bytes);
        options.access_bytes = self.page_bytes.unwrap_or(self.access_bytes).0;
        options.block_bytes = match (&self.block_bytes, self.page_bytes) {
            (_, Some(Bytes(bytes))) => Some(vec![bytes]),
            (Some(lengths), None) => Some(lengths.iter().map(|bytes| *bytes as u64).collect()),
            (None, None) => None,
        };
        options.codecs = self.codecs.as_deref().map(|list| codecs("codecs", list)).transpose()?;
        options.sample_bytes = self.sample_bytes.map(|Bytes(bytes)| bytes);
        match (trace, &self.access) {
            (Some(trace), _) => options.access = Access::Trace(trace),
            // Validate before reading it.
            (None, Some(_)) if self.trace_of_pages().is_some() => {}
            (None, Some(access)) => {
                options.access = Access::parse(&access.to_string_lossy())?;
                options.access_is_given = true;
            }
            (None, None) => {}
        }
        options.workers = self.workers;
        options.hit_us = self.hit_us;
        options.background_pct = self.background_pct;
        options.quick = self.quick;
        options.prices = self.cost.prices()?;
        options.validate()?;
        Ok(options)
    }

    /// The source of the device's latency.
    fn source(&self) -> Result<DeviceSource, LabError> {
        if let Some(path) = &self.device {
            return Ok(DeviceSource::Probe(path.clone()));
        }
        if let Some(us) = self.device_us {
            return Ok(DeviceSource::Latency(us));
        }
        if let Some(path) = &self.device_json {
            return Ok(DeviceSource::Saved(path.clone()));
        }
        if let Some(path) = &self.fio_json {
            return Ok(DeviceSource::Fio(path.clone()));
        }
        Err(LabError::option(
            "device",
            "none is given: name a directory on the device to measure it, or say what a read takes with --device-us \
             US, or take what was measured with --device-json FILE (of `leafpress device --out`) or --fio-json FILE \
             (of fio --output-format=json)",
        ))
    }

    /// Returns how to verify the advice; `None` to skip it.
    pub fn verify(&self) -> Result<Option<VerifyOptions>, LabError> {
        let Some(list) = &self.verify else { return Ok(None) };
        let mut options = VerifyOptions {
            shares: self.verify_shares.clone(),
            seconds: self.verify_seconds,
            ..VerifyOptions::default()
        };
        if !(0.1..=3600.0).contains(&options.seconds) {
            return Err(LabError::option("verify-seconds", "must be between 0.1 and 3600"));
        }
        if !list.is_empty() {
            options.codecs = codecs("verify", list)?;
        }
        if let Some(path) = self.device.as_ref().filter(|path| path.is_dir()) {
            options.scratch = Some(path.clone());
        }
        if self.trace_of_pages().is_some() {
            return Err(LabError::option(
                "verify",
                "cannot be used with a trace: omit it, or give --distribution a distribution that resembles the trace",
            ));
        }
        Ok(Some(options))
    }
}

fn codecs(option: &'static str, text: &str) -> Result<Vec<Codec>, LabError> {
    let codec = |word: &String| {
        word.parse::<Codec>()
            .map_err(|e| LabError::option(option, e.to_string()))
    };
    list(&[text]).iter().map(codec).collect()
}

#[cfg(test)]
#[path = "args_tests.rs"]
pub(super) mod tests;
