//! The command line of `leafpress cache`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use leafpress_lab::cache::{CacheBenchDefaults, DiskOptions, EngineSpec, Length, Options, Work, cachebench_defaults};
use leafpress_lab::core::corpus::{Cut, RecordFormat, Source};
use leafpress_lab::{Bytes, LabError};

use super::mrc_args::MrcArgs;
use super::paper_args::PaperArgs;
use crate::failure::Failure;
use crate::output;
use crate::words::list;

/// Arguments of `leafpress cache`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
pub struct CacheArgs {
    // No docstring: rustdoc would take the brackets for links.
    #[arg(
        long,
        value_name = "LIST",
        num_args = 1..,
        help_heading = "Caches",
        help = "leafpress[:CODEC][@POLICY], quick_cache[+CODEC], moka[+CODEC], foyer[+CODEC]; behind a + values are compressed one by one \
                [default: leafpress quick_cache quick_cache+zstd:3 moka, and foyer where it is compiled in]"
    )]
    pub(super) engines: Option<Vec<String>>,
    /// What the process may grow by, all of it [default: 64M, or what a CacheBench file says]
    #[arg(short = 'm', long, value_name = "BYTES", help_heading = "Caches")]
    pub(super) memory: Option<Bytes>,
    /// A tier on a disk of so many bytes, for the caches that have one; 0 for none [default: none, or what a CacheBench file says]
    #[arg(long, value_name = "BYTES", help_heading = "Caches")]
    pub(super) disk: Option<Bytes>,
    /// Where that is [default: cache.disk in the directory of --out]
    #[arg(long, value_name = "FILE", help_heading = "Caches")]
    pub(super) disk_path: Option<PathBuf>,

    #[command(flatten)]
    pub(super) mrc: MrcArgs,

    #[command(flatten)]
    pub(super) paper: PaperArgs,
    /// Values, or records, from a file, directory, archive, or bundled sample, as `leafpress eval` takes them
    #[arg(long, value_name = "DATA", help_heading = "Work")]
    data: Option<OsString>,
    /// Take the data's own records, key and value: jsonl:/POINTER, csv:COLUMN, stanzas:FIELD, tsv
    #[arg(long, value_name = "FORMAT", help_heading = "Work")]
    records: Option<String>,
    /// How data without --records is cut into values: fixed:BYTES, lines, length-prefixed [default: fixed:128]
    #[arg(long, value_name = "CUT", help_heading = "Work", conflicts_with_all = ["records", "trace", "cachebench"])]
    cut: Option<String>,
    /// Bytes of all keys and values [default: 8 times the memory]
    #[arg(long, value_name = "BYTES", help_heading = "Work")]
    pub(super) working_set: Option<Bytes>,
    // No docstring: rustdoc would take the brackets for links.
    #[arg(
        long,
        value_name = "LAW",
        help_heading = "Work",
        help = "How keys are chosen: uniform, zipfian[:THETA] (or zipf), self-similar[:H], hotset[:KEYS_PCT:OPERATIONS_PCT] \
                [default: hotset:20:80 of the paper's objects, else zipfian:0.99]"
    )]
    pub(super) distribution: Option<String>,
    /// Other keys become hot after so many measured operations of all threads
    #[arg(long, value_name = "OPERATIONS", help_heading = "Work")]
    pub(super) shift_at: Option<u64>,
    /// Ask for what a trace asked for, in its order; values of its lengths are made of --data
    #[arg(long, value_name = "FILE", help_heading = "Work")]
    trace: Option<PathBuf>,
    /// oracle (libCacheSim's oracleGeneral), arc (.lis), csv (CacheLib's, Twitter's, time,key,size), keys [default: by the file's name]
    #[arg(long, value_name = "FORMAT", help_heading = "Work", requires = "trace")]
    trace_format: Option<String>,
    /// Take only the first so many requests of the trace
    #[arg(long, value_name = "N", help_heading = "Work", requires = "trace")]
    requests: Option<u64>,
    /// Ask as a CacheBench file wants it: operations, popularity and lengths; values are made of --data
    #[arg(long, value_name = "FILE", help_heading = "Work", conflicts_with = "trace")]
    cachebench: Option<PathBuf>,
    /// What keys, operations and sizes of a CacheBench file or of the paper's figure are multiplied by, up to 1 [default: 1, 0.25 of figures with many scenarios: 7 to 10]
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Work")]
    pub(super) scale: Option<f64>,
    /// Percent of the operations that overwrite a key with a new version
    #[arg(
        long,
        value_name = "PCT",
        default_value_t = 0.0,
        allow_negative_numbers = true,
        help_heading = "Work"
    )]
    pub(super) writes: f64,
    /// Records live so long [default: until they make room]
    #[arg(long, value_name = "SECONDS", help_heading = "Work")]
    pub(super) ttl: Option<u64>,

    /// Insert every key once before the warm-up, or as many as three times the bytes of memory and disk
    #[arg(long, help_heading = "Measurement")]
    pub(super) load: bool,
    /// Threads that ask [default: 2, or what a CacheBench file says]
    #[arg(short = 't', long, value_name = "N", help_heading = "Measurement")]
    pub(super) threads: Option<usize>,
    /// Operations before anything is measured [default: two for each key; none of a trace or a CacheBench file]
    #[arg(
        long = "warmup-operations",
        alias = "warmup",
        value_name = "N",
        help_heading = "Measurement"
    )]
    pub(super) warmup: Option<u64>,
    /// Length of the measured time [default: 5; a trace is gone through once, a CacheBench file has its operations]
    #[arg(short = 'd', long, allow_negative_numbers = true, help_heading = "Measurement")]
    pub(super) seconds: Option<f64>,
    /// Operations that are measured, in place of a time
    #[arg(long, value_name = "N", help_heading = "Measurement", conflicts_with = "seconds")]
    pub(super) operations: Option<u64>,
    /// Requests per second that come whether the cache keeps up or not; times are then from when a request was due
    #[arg(
        long,
        value_name = "OPS_PER_S",
        allow_negative_numbers = true,
        help_heading = "Measurement"
    )]
    pub(super) rate: Option<f64>,
    /// What a miss is charged with, for what the backend would take
    #[arg(
        long,
        value_name = "US",
        default_value_t = 1000.0,
        allow_negative_numbers = true,
        help_heading = "Measurement"
    )]
    pub(super) backend_us: f64,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1, help_heading = "Measurement")]
    pub(super) seed: u64,
    /// Directory for summary.tsv, over_time.tsv, mrc.tsv, results.json, report.html and logs [default: leafpress-results/cache/TIMESTAMP]
    #[arg(short = 'o', long, value_name = "DIR", help_heading = "Measurement")]
    pub out: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Each cache runs in a process of its own, in the same memory, measured from outside. docs/commands/cache.md explains work, table and charts.

  leafpress cache --paper -m 64M --working-set 512M
  leafpress cache --paper fig8 -m 64M --scale 0.5
  leafpress cache --data packages.txt.zst --records stanzas:Package --distribution zipfian:0.99
  leafpress cache --trace cluster.oracleGeneral.zst -m 256M --engines leafpress,moka+lz4
  leafpress cache --trace cluster.oracleGeneral.zst -m 256M --mrc
  leafpress cache --cachebench cdn/config.json --scale 0.01 -t 2 --seconds 20 --rate 20000";

/// What the process may grow by where nothing says it.
const DEFAULT_MEMORY_BYTES: u64 = 64 << 20;
/// Threads where nothing says how many.
const DEFAULT_THREADS: usize = 2;

impl CacheArgs {
    /// What the arguments ask for; files go to `out`. Not yet checked.
    pub fn options(&self, out: &std::path::Path) -> Result<Options, Failure> {
        let mut options = Options::new(self.work()?);
        let file = match &options.work {
            Work::CacheBench { path, scale, .. } => {
                cachebench_defaults(path, *scale).map_err(|e| failure_of(&options.work, &e))?
            }
            _ => CacheBenchDefaults::default(),
        };
        if let Some(engines) = &self.engines {
            options.engines = list(engines)
                .iter()
                .map(|word| parse("engines", word))
                .collect::<Result<_, _>>()?;
        }
        options.mrc = self.mrc.options();
        match (&self.engines, options.mrc) {
            // Curves alone are quick.
            (None, Some(_)) => options.engines.clear(),
            (Some(_), Some(_)) if options.engines.is_empty() => {
                return Err(Failure::bad_input("--engines: the list is empty"));
            }
            _ => {}
        }
        let memory_bytes = self.memory.map(|Bytes(bytes)| bytes).or(file.memory_bytes);
        options.memory_bytes = memory_bytes.unwrap_or(DEFAULT_MEMORY_BYTES);
        // A file that has a disk may be run by caches that have none.
        let file_disk = file
            .disk_bytes
            .filter(|_| options.engines.iter().any(EngineSpec::has_disk));
        let disk_bytes = self.disk.map(|Bytes(bytes)| bytes).or(file_disk);
        options.disk = disk_bytes.filter(|bytes| *bytes > 0).map(|bytes| DiskOptions {
            bytes,
            path: self.disk_path.clone().unwrap_or_else(|| out.join("cache.disk")),
        });
        if self.disk_path.is_some() && options.disk.is_none() {
            return Err(Failure::bad_input(
                "--disk-path: there is no disk: say how large with --disk",
            ));
        }
        if let Some(path) = &self.disk_path
            && let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty())
            && !directory.is_dir()
        {
            return Err(Failure::bad_input(format!(
                "--disk-path {}: there is no directory {}; make it, or name another file",
                path.display(),
                directory.display()
            )));
        }
        options.working_set_bytes = self.working_set.map(|Bytes(bytes)| bytes);
        if let Some(law) = &self.distribution {
            options.distribution = Some(parse("distribution", law)?);
        }
        options.shift_at = self.shift_at;
        options.load = self.load;
        options.write_pct = self.writes;
        options.ttl_seconds = self.ttl;
        options.threads = self.threads.or(file.threads).unwrap_or(DEFAULT_THREADS);
        options.warmup_operations = self.warmup;
        options.length = match (self.seconds, self.operations) {
            (Some(seconds), _) => Some(Length::Seconds(seconds)),
            (None, operations) => operations.or(file.operations).map(Length::Operations),
        };
        options.rate = self.rate;
        options.backend_us = self.backend_us;
        options.seed = self.seed;
        Ok(options)
    }

    fn work(&self) -> Result<Work, Failure> {
        if self.scale.is_some() && self.cachebench.is_none() {
            return Err(Failure::bad_input(
                "--scale: of a CacheBench file or a figure of the paper: name one with --cachebench or --paper FIGURE",
            ));
        }
        let data = self
            .data
            .as_deref()
            .map(Source::named)
            .transpose()
            .map_err(|e| match e {
                LabError::Option { reason, .. } => Failure::bad_input(format!("--data: {reason}")),
                e => Failure::bad_input(format!("--data: {e}")),
            })?;
        let records = self.records.as_deref();
        let records = records.map(|word| parse::<RecordFormat>("records", word)).transpose()?;
        let packages = || Source::Sample("packages".into());
        // Records are asked for by their format; the sample's is known.
        let parts = match &data {
            None => Some(
                records
                    .clone()
                    .unwrap_or_else(|| RecordFormat::Stanzas("Package".into())),
            ),
            Some(_) => records.clone(),
        };
        if let Some(path) = &self.cachebench {
            return Ok(Work::CacheBench {
                path: path.clone(),
                scale: self.scale.unwrap_or(1.0),
                data: data.unwrap_or_else(packages),
                records: parts,
            });
        }
        if let Some(path) = &self.trace {
            let format = self.trace_format.as_deref();
            return Ok(Work::Trace {
                path: path.clone(),
                format: format.map(|word| parse("trace-format", word)).transpose()?,
                requests: self.requests,
                data: data.unwrap_or_else(packages),
                records: parts,
            });
        }
        Ok(match (data, records) {
            (data, Some(format)) => Work::Records {
                data: data.unwrap_or_else(packages),
                format,
            },
            (Some(data), None) => Work::Values {
                data,
                cut: match &self.cut {
                    Some(word) => parse("cut", word)?,
                    None => Cut::Fixed(128),
                },
            },
            (None, None) if self.cut.is_some() => {
                return Err(Failure::bad_input(
                    "--cut: there is no data to cut: name some with --data",
                ));
            }
            (None, None) => Work::Paper(self.paper.objects()),
        })
    }
}

/// What an option's word says.
///
/// # Errors
/// [`Failure::BadInput`] with the option's name.
pub fn parse<T: FromStr<Err = LabError>>(option: &'static str, word: &str) -> Result<T, Failure> {
    word.parse().map_err(|e| match e {
        LabError::Option { reason, .. } => Failure::bad_input(format!("--{option}: {reason}")),
        e => Failure::bad_input(format!("--{option}: {e}")),
    })
}

/// An error of what reads the data of `work`, by the flag that names it.
pub fn failure_of(work: &Work, error: &LabError) -> Failure {
    let LabError::Data { source_name, reason } = error else {
        return failure(error);
    };
    let flag = match work {
        Work::Trace { path, .. } if path.display().to_string() == *source_name => "trace",
        Work::CacheBench { path, .. } if path.display().to_string() == *source_name => "cachebench",
        _ => "data",
    };
    Failure::bad_input(format!("--{flag} {source_name}: {reason}"))
}

/// An error of the laboratory as this command reports it.
pub fn failure(error: &LabError) -> Failure {
    match error {
        LabError::Cancelled => Failure::Interrupted("interrupted: no cache had finished".into()),
        LabError::Option { option, reason } => Failure::bad_input(format!("--{option}: {reason}")),
        LabError::Data { source_name, reason } => Failure::bad_input(format!("{source_name}: {reason}")),
        LabError::Io { .. } => output::unwritable(error),
        e => Failure::failed(e.to_string()),
    }
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
