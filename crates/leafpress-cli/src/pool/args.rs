//! The command line of `leafpress pool`: Tyche's, with our extensions.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use leafpress::Codec;
use leafpress_lab::Bytes;
use leafpress_lab::LabError;
use leafpress_lab::core::corpus::Source;
use leafpress_lab::pool::{self, Options, Verify};
use leafpress_pages::pool::{PoolError, RawShare};

use crate::failure::Failure;

/// Arguments of `leafpress pool`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
#[command(next_help_heading = "Tyche's options")]
pub struct PoolArgs {
    /// Directory whose files are the pages, a file to cut into pages, or a source as in `leafpress eval --data`: an
    /// archive, a bundled sample, synthetic:SHARE [default: the bundled sample `packages`]
    #[arg(short = 'p', long, value_name = "DATA")]
    data: Option<OsString>,
    /// Read at most N bytes of pages (as in 500M), spread over the whole file; of a directory, the first files
    /// [default: all]
    #[arg(short = 'b', long, value_name = "BYTES")]
    bytes: Option<Bytes>,
    /// Read N pages, spread over the whole file; of a directory, the first files [default: all]
    #[arg(short = 'n', long, value_name = "N")]
    pages: Option<u64>,
    /// Total memory of the pool, as in 500M
    #[arg(short = 'm', long, value_name = "BYTES", default_value = "10M")]
    memory: Bytes,
    /// Codec of cold pages; several (lz4,zstd:1) run in turn (see `leafpress codecs`) [default: lz4]
    #[arg(
        short = 'c',
        long = "codecs",
        alias = "codec",
        value_name = "LIST",
        value_delimiter = ','
    )]
    codec: Vec<String>,
    /// Compress nothing
    #[arg(short = 'C', long, conflicts_with = "codec")]
    no_compression: bool,
    /// Length of the measured run
    #[arg(
        short = 'd',
        long = "seconds",
        alias = "duration",
        value_name = "SECONDS",
        default_value_t = 5.0,
        allow_negative_numbers = true
    )]
    duration: f64,
    /// Threads that request pages [default: the number of CPUs]
    #[arg(short = 'w', long, value_name = "N")]
    workers: Option<usize>,
    /// Percentage of the memory for raw pages, fixed [default: adaptive]
    #[arg(short = 'f', long, value_name = "RAW_PCT")]
    fixed: Option<u8>,
    /// The hot X percent of the pages get Y percent of the accesses, as in 20,80 [default: 100,100, no bias]
    #[arg(short = 'B', long, value_name = "X,Y")]
    bias: Option<String>,
    /// Minimum and maximum pages per round; they stay pinned until its end
    #[arg(short = 'M', long, value_name = "MIN,MAX", default_value = "5,5")]
    round: String,
    /// Percentage of rounds that update all their pages
    #[arg(
        short = 'U',
        long,
        value_name = "PCT",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    updates: f64,
    /// Percentage of rounds that delete some of their pages: a quarter and one more
    #[arg(
        short = 'D',
        long,
        value_name = "PCT",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    deletes: f64,
    /// Print only the report
    #[arg(short = 'q', long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print a line per second while running; twice, a line for every sample of the pool
    #[arg(short = 'v', long, action = clap::ArgAction::Count)]
    verbose: u8,

    /// Size of the pages that a file is cut into, as in 8K
    #[arg(long, value_name = "BYTES", default_value = "8K", help_heading = "Ours: pages")]
    page_bytes: Bytes,
    /// Where to keep the pages: file, dir or memory [default: where they are]
    #[arg(long, value_name = "STORE", help_heading = "Ours: pages")]
    store: Option<String>,
    /// Use an archive's own, compressed bytes instead of opening it
    #[arg(long, help_heading = "Ours: pages")]
    raw: bool,
    /// Add this latency to every read and write of a page
    #[arg(
        long = "device-us",
        alias = "device-latency-us",
        value_name = "US",
        default_value_t = 0,
        help_heading = "Ours: pages"
    )]
    device_latency_us: u64,
    /// Directory for temporary copies: of opened archives, and of updated pages [default: the system's temporary
    /// directory]
    #[arg(long, value_name = "DIR", help_heading = "Ours: pages")]
    scratch: Option<PathBuf>,

    /// Run once for each of these percentages of the memory for compressed pages, and once with an adaptive share; as
    /// in 0,10,..,90
    #[arg(long, value_name = "LIST", help_heading = "Ours: the pool", conflicts_with_all = ["fixed", "no_compression"])]
    sweep_share: Option<String>,
    /// Eviction policy: clock, lru or s3-fifo
    #[arg(
        long,
        value_name = "POLICY",
        default_value = "clock",
        help_heading = "Ours: the pool"
    )]
    policy: String,
    /// Hits after which a compressed page becomes raw again, 1 to 63 [default: the pool's]
    #[arg(long, value_name = "HITS", help_heading = "Ours: the pool")]
    restore_after: Option<u8>,
    /// Threads that compress and evict ahead of need, 0 to 64 [default: the pool's]
    #[arg(long, value_name = "N", help_heading = "Ours: the pool")]
    background_threads: Option<usize>,

    // No docstring: rustdoc would take the brackets for links.
    #[arg(
        long,
        value_name = "DISTRIBUTION",
        help_heading = "Ours: work",
        conflicts_with = "bias",
        help = "Distribution of pages: uniform, zipfian[:THETA], self-similar[:H], hotset[:PAGES_PCT:ACCESSES_PCT] \
                [default: uniform]"
    )]
    distribution: Option<String>,
    /// Move the hot set after N seconds
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Ours: work",
        allow_negative_numbers = true
    )]
    switch_at: Option<f64>,
    /// Warm-up before measuring: full (until the pool is), or seconds
    #[arg(
        long,
        value_name = "FULL|SECONDS",
        default_value = "full",
        help_heading = "Ours: work"
    )]
    warmup: String,
    /// Compare pages read with their expected contents: all, one in N, off [default: all when pages are updated or
    /// deleted, else 64]
    #[arg(
        long = "check",
        alias = "verify",
        value_name = "all|N|off",
        help_heading = "Ours: work"
    )]
    verify: Option<String>,
    /// Skip the run without compression that the others are compared with
    #[arg(long, help_heading = "Ours: work")]
    no_baseline: bool,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1729, help_heading = "Ours: work")]
    seed: u64,
    /// Write summary.tsv, over_time.tsv, results.json and report.html to this directory
    #[arg(short = 'o', long, value_name = "DIR", help_heading = "Ours: work")]
    pub out: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Data that is given is only read: updates and deletes go to a scratch copy. docs/commands/pool.md explains the report and every option.

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

    /// The requested runs, at least one, validated.
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

    /// The run without compression to compare `runs` with, unless it is among them or not wanted.
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
        let options = self.options()?;
        let shares = self.sweep_share.as_deref().map(pool::shares).transpose()?;
        let mut runs = Vec::new();
        for codec in self.codecs()? {
            let run = |share| Options {
                codec,
                share,
                ..options.clone()
            };
            match &shares {
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
                .map_err(|e| option_error("codecs", e.to_string()))?;
            if codecs.contains(&codec) {
                return Err(option_error("codecs", format!("{codec} is listed twice")));
            }
            codecs.push(codec);
        }
        match codecs.as_slice() {
            [] if self.codec.is_empty() => Ok(vec![Codec::Lz4 { acceleration: 1 }]),
            [] => Err(option_error("codecs", "the list is empty")),
            _ => Ok(codecs),
        }
    }

    fn options(&self) -> Result<Options, LabError> {
        let mut options = Options::new(Source::named(self.data.as_deref().unwrap_or("packages".as_ref()))?);
        options.max_bytes = self.bytes.map(|Bytes(bytes)| bytes);
        options.max_pages = self.pages;
        options.budget_bytes = self.memory.0;
        options.seconds = self.duration;
        options.workers = self.workers.unwrap_or(options.workers);
        if let Some(raw_percent) = self.fixed {
            options.share = RawShare::Fixed { raw_percent };
        }
        options.distribution = match (&self.bias, &self.distribution) {
            (Some(bias), _) => pool::bias(bias)?,
            (None, Some(law)) => law.parse()?,
            (None, None) => options.distribution,
        };
        options.round_pages = pool::round_pages(&self.round)?;
        (options.update_pct, options.delete_pct) = (self.updates, self.deletes);
        // Values out of range get an error with the range.
        options.page_bytes = usize::try_from(self.page_bytes.0).unwrap_or(usize::MAX);
        options.store = self.store.as_deref().map(str::parse).transpose()?;
        options.raw = self.raw;
        options.device_latency_us = self.device_latency_us;
        options.scratch.clone_from(&self.scratch);
        options.policy = self
            .policy
            .parse()
            .map_err(|e| option_error("policy", format!("{e}")))?;
        options.restore_after = self.restore_after;
        options.background_threads = self.background_threads;
        options.switch_at_seconds = self.switch_at;
        options.warmup = self.warmup.parse()?;
        options.seed = self.seed;
        options.verify = match &self.verify {
            Some(word) => word.parse()?,
            None if options.writes() => Verify::OneIn(1),
            None => options.verify,
        };
        Ok(options)
    }
}

fn option_error(option: &'static str, reason: impl Into<String>) -> LabError {
    LabError::Option {
        option,
        reason: reason.into(),
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
                "promote_after_hits" => "restore-after".to_owned(),
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
