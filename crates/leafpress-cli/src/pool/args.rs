//! The command line of `leafpress pool`: Tyche's, with our extensions.

use std::path::PathBuf;

use clap::Args;
use leafpress::Codec;
use leafpress_console::given::Given;
use leafpress_lab::LabError;
use leafpress_lab::core::corpus::Source;
use leafpress_lab::core::keys::Distribution;
use leafpress_lab::pool::{self, Options, Verify};
use leafpress_pages::pool::{PoolError, RawShare};

use crate::failure::Failure;

/// Arguments of `leafpress pool`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
#[command(next_help_heading = "Tyche's options")]
pub struct PoolArgs {
    #[command(flatten)]
    given: Given<Options>,
    /// Codec of cold pages; several (lz4,zstd:1) run in turn (see `leafpress codecs`) [default: lz4]
    #[arg(
        short = 'c',
        long = "codecs",
        alias = "codec",
        value_name = "LIST",
        value_delimiter = ',',
        display_order = 7
    )]
    codec: Vec<String>,
    /// Compress nothing
    #[arg(short = 'C', long, conflicts_with = "codec", display_order = 8)]
    no_compression: bool,
    /// Percentage of the memory for raw pages, fixed [default: adaptive]
    #[arg(short = 'f', long, value_name = "RAW_PCT", display_order = 13)]
    fixed: Option<u8>,
    /// The hot X percent of the pages get Y percent of the accesses, as in 20,80 [default: 100,100, no bias]
    #[arg(
        short = 'B', long, value_name = "X,Y", display_order = 14, conflicts_with = "distribution",
        value_parser = pool::bias
    )]
    bias: Option<Distribution>,
    /// Print only the report
    #[arg(short = 'q', long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print a line per second while running; twice, a line for every sample of the pool
    #[arg(short = 'v', long, action = clap::ArgAction::Count)]
    verbose: u8,

    /// Run once for each of these percentages of the memory for compressed pages, and once with an adaptive share; as
    /// in 0,10,..,90
    #[arg(
        long, value_name = "LIST", help_heading = "Ours: the pool", display_order = 0,
        conflicts_with_all = ["fixed", "no_compression"], value_parser = pool::shares
    )]
    sweep_share: Option<std::vec::Vec<u8>>,

    /// Skip the run without compression that the others are compared with
    #[arg(long, help_heading = "Ours: work", display_order = 20)]
    no_baseline: bool,
    /// Write summary.tsv, over_time.tsv, results.json and report.html to this directory
    #[arg(short = 'o', long, value_name = "DIR", help_heading = "Ours: work")]
    pub out: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Data that is given is only read: updates and deletes go to a scratch copy. docs/commands/pool.md explains the report \
and every option.

  leafpress pool -p /data/table.db -m 500M -B 20,80 -d 30 --out result
  leafpress pool -p /data/table.db -m 500M -B 20,80 -d 30 --sweep-share 0,10,..,90 -c lz4,zstd:1 --out result
  leafpress pool -p packages -m 1M -w 8 -B 20,80 -U 10 -D 1 -d 60";

/// How much to print during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talk {
    Quiet,
    /// A bar on a terminal.
    Bar,
    /// A line a second.
    Seconds,
    /// A line for every sample.
    Samples,
}

impl PoolArgs {
    pub fn talk(&self) -> Talk {
        match (self.quiet, self.verbose) {
            (true, _) => Talk::Quiet,
            (_, 0) => Talk::Bar,
            (_, 1) => Talk::Seconds,
            _ => Talk::Samples,
        }
    }

    /// Returns the requested runs, at least one, validated.
    pub fn plan(&self) -> Result<Vec<Options>, Failure> {
        let runs = self.runs().map_err(|e| failure(&e))?;
        for run in &runs {
            run.validate().map_err(|e| failure(&e))?;
        }
        // All runs have the same data and memory, but not all codecs are available on every machine.
        for (at, run) in runs.iter().enumerate() {
            if runs[..at].iter().all(|before| before.codec != run.codec) {
                pool::check(run).map_err(|e| failure(&e))?;
            }
        }
        Ok(runs)
    }

    /// Returns the run without compression to compare `runs` with, unless it is among them or not wanted.
    pub fn baseline(&self, runs: &[Options]) -> Option<Options> {
        let raw = |run: &Options| run.codec == Codec::None || run.share == RawShare::Fixed { raw_percent: 100 };
        let first = runs.first().filter(|_| !self.no_baseline && !runs.iter().any(raw))?;
        Some(Options {
            codec: Codec::None,
            share: RawShare::Fixed { raw_percent: 100 },
            ..first.clone()
        })
    }

    fn runs(&self) -> Result<Vec<Options>, LabError> {
        let options = self.options();
        let mut runs = Vec::new();
        for codec in self.codecs()? {
            let run = |share| Options {
                codec,
                share,
                ..options.clone()
            };
            match &self.sweep_share {
                _ if codec == Codec::None => runs.push(run(RawShare::Fixed { raw_percent: 100 })),
                None => runs.push(run(options.share)),
                Some(shares) => {
                    let fixed = shares.iter().map(|compressed| RawShare::Fixed {
                        raw_percent: 100 - compressed,
                    });
                    runs.extend(fixed.chain([RawShare::Adaptive]).map(run));
                }
            }
        }
        Ok(runs)
    }

    fn codecs(&self) -> Result<Vec<Codec>, LabError> {
        if self.no_compression {
            return Ok(vec![Codec::None]);
        }
        let mut codecs = Vec::new();
        for word in self
            .codec
            .iter()
            .map(|word| word.trim())
            .filter(|word| !word.is_empty())
        {
            // Tyche's names use Tyche's level.
            let word = match word {
                "zlib" => "zlib:1",
                "zstd" => "zstd:1",
                other => other,
            };
            let codec = word
                .parse::<Codec>()
                .map_err(|e| LabError::option("codecs", e.to_string()))?;
            if codecs.contains(&codec) {
                return Err(LabError::option("codecs", format!("{codec} is listed twice")));
            }
            codecs.push(codec);
        }
        match codecs.as_slice() {
            [] if self.codec.is_empty() => Ok(vec![Codec::Lz4 { acceleration: 1 }]),
            [] => Err(LabError::option("codecs", "the list is empty")),
            _ => Ok(codecs),
        }
    }

    fn options(&self) -> Options {
        let mut options = Options::new(Source::Sample("packages".into()));
        self.given.set(&mut options);
        if let Some(raw_percent) = self.fixed {
            options.share = RawShare::Fixed { raw_percent };
        }
        options.distribution = self.bias.unwrap_or(options.distribution);
        if options.writes() && !self.given.has("verify") {
            options.verify = Verify::OneIn(1);
        }
        options
    }
}

/// Converts an error of the laboratory to this command's report.
pub fn failure(error: &LabError) -> Failure {
    match error {
        LabError::Cancelled => Failure::Interrupted("interrupted: nothing was measured yet".into()),
        LabError::Option { option, reason } => Failure::bad_input(format!("--{option}: {reason}")),
        LabError::Data { source_name, reason } => Failure::bad_input(format!("--data {source_name}: {reason}")),
        LabError::Io { path, source } => Failure::bad_input(format!(
            "{}: {source}; name a writable directory with --scratch",
            path.display()
        )),
        LabError::Pool(PoolError::Option { option, reason }) => {
            let option = match *option {
                "share" => "fixed".to_owned(),
                other => other.replace('_', "-"),
            };
            Failure::bad_input(format!("--{option}: {reason}"))
        }
        LabError::Pool(PoolError::Codec(e)) => {
            Failure::bad_input(format!("--codecs: {e}; `leafpress codecs` lists what runs here"))
        }
        e => Failure::failed(e.to_string()),
    }
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
