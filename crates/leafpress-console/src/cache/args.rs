//! The command line of `leafpress cache`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use leafpress_lab::cache::{
    CacheBenchDefaults, DiskOptions, EngineSpec, Length, Options, TraceFormat, Work, cachebench_defaults,
};
use leafpress_lab::core::corpus::{Cut, RecordFormat, Source};
use leafpress_lab::{Bytes, LabError};

use super::mrc_args::MrcArgs;
use super::paper_args::PaperArgs;
use crate::failure::Failure;
use crate::given::Given;
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
        help = "leafpress[:CODEC][@POLICY], quick_cache[+CODEC], moka[+CODEC], foyer[+CODEC]; after +, each value is \
                compressed separately [default: leafpress quick_cache quick_cache+zstd:3 moka, and foyer where it is \
                compiled in]"
    )]
    pub(super) engines: Option<Vec<String>>,

    #[command(flatten)]
    pub(super) mrc: MrcArgs,

    #[command(flatten)]
    pub(super) given: Given<Options>,

    /// Size of the disk tier, for the caches that have one; 0 for none [default: none, or the CacheBench file's]
    #[arg(long, value_name = "BYTES", help_heading = "Caches")]
    pub(super) disk: Option<Bytes>,
    /// File of the disk tier [default: cache.disk in the directory of --out]
    #[arg(long, value_name = "FILE", help_heading = "Caches")]
    pub(super) disk_path: Option<PathBuf>,

    #[command(flatten)]
    pub(super) paper: PaperArgs,
    /// Values, or records, from a file, directory, archive, or bundled sample, as in `leafpress eval`
    #[arg(long, value_name = "DATA", help_heading = "Work")]
    data: Option<Source>,
    /// Use the data's own records, key and value: jsonl:/POINTER, csv:COLUMN, stanzas:FIELD, tsv
    #[arg(long, value_name = "FORMAT", help_heading = "Work")]
    records: Option<RecordFormat>,
    /// How data without --records is cut into values: fixed:BYTES, lines, length-prefixed [default: fixed:128]
    #[arg(long, value_name = "CUT", help_heading = "Work", conflicts_with_all = ["records", "trace", "cachebench"])]
    cut: Option<Cut>,
    /// Replay a trace in order; values have the traced sizes, filled from --data
    #[arg(long, value_name = "FILE", help_heading = "Work")]
    trace: Option<PathBuf>,
    /// Format of the trace: oracle (libCacheSim's oracleGeneral), arc (.lis), csv (CacheLib's, Twitter's,
    /// time,key,size), keys [default: by the file's name]
    #[arg(long, value_name = "FORMAT", help_heading = "Work", requires = "trace")]
    trace_format: Option<TraceFormat>,
    /// Replay only the first N requests of the trace
    #[arg(long, value_name = "N", help_heading = "Work", requires = "trace")]
    requests: Option<u64>,
    /// Run the workload of a CacheBench file: operations, popularity and sizes; values are filled from --data
    #[arg(long, value_name = "FILE", help_heading = "Work", conflicts_with = "trace")]
    cachebench: Option<PathBuf>,
    /// Multiply keys, operations and sizes of a CacheBench file or a paper's figure by F, up to 1 [default: 1, 0.25 for
    /// figures 7 to 10, which have many scenarios]
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Work")]
    pub(super) scale: Option<f64>,
    /// Length of the measurement [default: 5; a trace is replayed once, a CacheBench file defines its operations]
    #[arg(
        short = 'd',
        long,
        allow_negative_numbers = true,
        help_heading = "Measurement",
        display_order = 14
    )]
    pub(super) seconds: Option<f64>,
    /// Number of measured operations, instead of a time
    #[arg(
        long,
        value_name = "N",
        help_heading = "Measurement",
        conflicts_with = "seconds",
        display_order = 14
    )]
    pub(super) operations: Option<u64>,
    /// Directory for summary.tsv, over_time.tsv, mrc.tsv, results.json, report.html and logs [default:
    /// leafpress-results/cache/TIMESTAMP]
    #[arg(short = 'o', long, value_name = "DIR", help_heading = "Measurement")]
    pub out: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Each cache runs in its own process, with the same memory, measured from outside. docs/commands/cache.md explains \
workloads, table and charts.

  leafpress cache --paper -m 64M --working-set 512M
  leafpress cache --paper fig8 -m 64M --scale 0.5
  leafpress cache --data packages.txt.zst --records stanzas:Package --distribution zipfian:0.99
  leafpress cache --trace cluster.oracleGeneral.zst -m 256M --engines leafpress,moka+lz4
  leafpress cache --trace cluster.oracleGeneral.zst -m 256M --mrc
  leafpress cache --cachebench cdn/config.json --scale 0.01 -t 2 --seconds 20 --rate 20000";

impl CacheArgs {
    /// Returns the requested comparison, with files under `out`. Not validated yet.
    pub fn options(&self, out: &std::path::Path) -> Result<Options, Failure> {
        let mut options = Options::new(self.work()?);
        let file = match &options.work {
            Work::CacheBench { path, scale, .. } => {
                cachebench_defaults(path, *scale).map_err(|e| failure_of(&options.work, &e))?
            }
            _ => CacheBenchDefaults::default(),
        };
        self.given.set(&mut options);
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
        if !self.given.has("memory-bytes") {
            options.memory_bytes = file.memory_bytes.unwrap_or(options.memory_bytes);
        }
        if !self.given.has("threads") {
            options.threads = file.threads.unwrap_or(options.threads);
        }
        // Caches without a disk tier may run a file that has one.
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
                "--disk-path: there is no disk tier: set its size with --disk",
            ));
        }
        if let Some(path) = &self.disk_path
            && let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty())
            && !directory.is_dir()
        {
            return Err(Failure::bad_input(format!(
                "--disk-path {}: the directory {} does not exist; create it, or name another file",
                path.display(),
                directory.display()
            )));
        }
        options.length = match (self.seconds, self.operations) {
            (Some(seconds), _) => Some(Length::Seconds(seconds)),
            (None, operations) => operations.or(file.operations).map(Length::Operations),
        };
        Ok(options)
    }

    fn work(&self) -> Result<Work, Failure> {
        if self.scale.is_some() && self.cachebench.is_none() {
            return Err(Failure::bad_input("--scale: requires --cachebench or --paper FIGURE"));
        }
        let (data, records) = (self.data.clone(), self.records.clone());
        let packages = || Source::Sample("packages".into());
        // Records are requested by their format; the sample's is known.
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
            return Ok(Work::Trace {
                path: path.clone(),
                format: self.trace_format,
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
                cut: self.cut.unwrap_or(Cut::Fixed(128)),
            },
            (None, None) if self.cut.is_some() => {
                return Err(Failure::bad_input("--cut: no data is given: name some with --data"));
            }
            (None, None) => Work::Paper(self.paper.objects()),
        })
    }
}

/// Parses an option's word.
///
/// # Errors
/// [`Failure::BadInput`], with the option's name.
pub fn parse<T: FromStr<Err = LabError>>(option: &'static str, word: &str) -> Result<T, Failure> {
    word.parse().map_err(|e| match e {
        LabError::Option { reason, .. } => Failure::bad_input(format!("--{option}: {reason}")),
        e => Failure::bad_input(format!("--{option}: {e}")),
    })
}

/// Converts an error about the data of `work`, naming its flag.
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

/// Converts an error of the laboratory to this command's report.
pub fn failure(error: &LabError) -> Failure {
    match error {
        LabError::Cancelled => Failure::Interrupted("interrupted: no cache finished".into()),
        LabError::Option { option, reason } => Failure::bad_input(format!("--{option}: {reason}")),
        LabError::Data { source_name, reason } => Failure::bad_input(format!("{source_name}: {reason}")),
        LabError::Io { .. } => output::unwritable(error),
        e => Failure::failed(e.to_string()),
    }
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
