//! `leafpress-rocksdb caches`: block caches and secondary caches at the same total memory.

use clap::Args;
use clap::builder::BoolishValueParser;
use leafpress_console::failure::Failure;
use leafpress_lab::Bytes;
use leafpress_lab::core::keys::Distribution;
use leafpress_rocksdb_bench::cache::Secondary;
use leafpress_rocksdb_bench::caches::{self, Plan, compare};
use leafpress_rocksdb_bench::{BenchError, Cache, Work, Workload, check_options, check_values, size};

use super::args::{DataArgs, OutputArgs, TuningArgs, a_run};
use super::failure::failure;
use super::scratch::Scratch;
use super::study::{Findings, RoundsArgs, Stage, finish};

/// Arguments of `caches`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
pub struct CachesArgs {
    /// Memory of each instance's caches together
    #[arg(long, value_name = "BYTES", default_value = "64M")]
    memory: Bytes,
    /// Data is so many times the memory
    #[arg(long, value_name = "N", default_value_t = 4.0, allow_negative_numbers = true)]
    times: f64,
    /// Percent of the memory that a secondary cache has, where there is one
    #[arg(
        long = "secondary_pct",
        alias = "secondary-pct",
        value_name = "PCT",
        default_value_t = 75.0,
        allow_negative_numbers = true
    )]
    secondary_pct: f64,
    /// Options of our secondary cache, as in codec=zstd:1; given several times, each is a cache of its own
    #[arg(long = "secondary_options", alias = "secondary-options", value_name = "OPTIONS")]
    secondary_options: Vec<String>,
    /// Caches to compare, in place of the three, each as in `bench --cache`; given several times
    #[arg(long, value_name = "CACHE")]
    cache: Vec<String>,
    /// How files are compressed
    #[arg(long, visible_aliases = ["compression_type", "compression-type"], value_name = "NAME", default_value = "none")]
    compression: String,
    /// readrandom, readrandomwriterandom, or one of ycsba..ycsbf
    #[arg(long, value_name = "BENCHMARK", default_value = "readrandom")]
    benchmark: String,
    /// How keys are chosen
    #[arg(long, value_name = "LAW", default_value = "zipfian:0.99")]
    distribution: String,
    /// Read files through the page cache, which then is memory besides
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "false", value_parser = BoolishValueParser::new(), require_equals = true, value_name = "BOOL", hide_default_value = true)]
    buffered: bool,
    /// Bytes of a block
    #[arg(
        long = "block_size",
        alias = "block-size",
        value_name = "BYTES",
        default_value = "4K"
    )]
    block_size: Bytes,
    /// Bytes of a value
    #[arg(
        long = "value_size",
        alias = "value-size",
        value_name = "BYTES",
        default_value_t = 256
    )]
    value_size: usize,
    /// Databases beside each other
    #[arg(long, value_name = "N", default_value_t = 1)]
    instances: usize,
    /// Threads of each instance [default: one for each CPU]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Less of everything: memory of 8M, three rounds of half a second
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    rounds: RoundsArgs,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    tuning: TuningArgs,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER_HELP: &str = "\
Files are read around the page cache, so that a miss costs what the device costs; the page cache would be more memory for all.

  leafpress-rocksdb caches --quick
  leafpress-rocksdb caches --memory 256M --rounds 5 --out result
  leafpress-rocksdb caches --secondary_options codec=lz4 --secondary_options codec=zstd:1 --compression zstd";

impl CachesArgs {
    fn caches(&self, memory: u64) -> Result<Vec<Cache>, BenchError> {
        if !self.cache.is_empty() {
            return self.cache.iter().map(|cache| cache.parse()).collect();
        }
        if !(self.secondary_pct > 0.0 && self.secondary_pct < 100.0) {
            return Err(BenchError::option("secondary_pct", "is over 0 and under 100"));
        }
        let secondary = (memory as f64 * self.secondary_pct / 100.0) as u64;
        let with = |secondary_cache: Secondary| Cache {
            bytes: memory - secondary,
            secondary: Some(secondary_cache),
        };
        let alone = Cache {
            bytes: memory,
            secondary: None,
        };
        let mut caches = vec![alone, with(Secondary::Compressed(secondary))];
        let ours = if self.secondary_options.is_empty() {
            vec![String::new()]
        } else {
            self.secondary_options.clone()
        };
        for options in ours {
            let text = match options.trim_matches(',') {
                "" => format!("1+leafpress-secondary:{secondary}"),
                options => format!("1+leafpress-secondary:{secondary},{options}"),
            };
            let parsed: Cache = text.parse()?;
            caches.extend(parsed.secondary.map(with));
        }
        Ok(caches)
    }

    fn plan(&self, directory: &std::path::Path) -> Result<Plan, BenchError> {
        let memory = if self.quick { 8 << 20 } else { self.memory.0 };
        if memory < 1 << 20 {
            return Err(BenchError::option("memory", "is at least 1M"));
        }
        if !(self.times > 0.0 && self.times <= 1e6) {
            return Err(BenchError::option("times", "is over 0"));
        }
        let workload: Workload = self.benchmark.parse()?;
        if workload.is_bounded() || workload.is_fresh() {
            return Err(BenchError::option(
                "benchmark",
                format!("{workload} does not read random keys"),
            ));
        }
        let (rounds, seconds, warmup_seconds) = match self.quick {
            true => self.rounds.or(3, 0.5, 1.0),
            false => self.rounds.or(5, 4.0, 8.0),
        }?;
        let mut shape = self.data.shape(
            directory,
            self.instances,
            self.value_size,
            self.block_size.0,
            self.compression.parse()?,
        )?;
        if self.data.num.is_none() && self.data.data_size.is_none() {
            shape.num =
                ((memory as f64 * self.times) as u64 / (shape.key_bytes + self.value_size).max(1) as u64).max(1);
        }
        let distribution: Distribution = self.distribution.parse().map_err(BenchError::Lab)?;
        let mut tuning = self.tuning.tuning(Cache::default());
        tuning.use_direct_reads = !self.buffered;
        let plan = Plan {
            shape,
            tuning,
            work: Work {
                threads: self.threads.unwrap_or_else(size::cpus),
                seconds,
                warmup_seconds,
                distribution,
                ..Work::default()
            },
            workload,
            caches: self.caches(memory)?,
            rounds,
        };
        check_values(&plan.shape)?;
        for cache in &plan.caches {
            let mut run = a_run(plan.workload, directory, &plan.shape, &plan.tuning, &plan.work);
            run.tuning.cache = cache.clone();
            run.validate()?;
            check_options(&run)?;
        }
        Ok(plan)
    }
}

/// Runs the comparison.
pub fn run(args: &CachesArgs) -> Result<(), Failure> {
    let scratch = Scratch::passing(args.rounds.db.as_deref())?;
    let plan = args.plan(scratch.databases()).map_err(|e| failure(&e))?;
    let mut stage = Stage::new(scratch, &args.output, plan.runs())?;
    let (directory, session, cancel, mut events) = stage.parts();
    let comparison = compare(&plan, &directory, session, cancel, &mut events);
    drop(events);
    stage.reporter.finish();
    let comparison = comparison.map_err(|e| failure(&e))?;
    let findings = Findings {
        text: caches::text(&comparison),
        tables: vec![
            ("summary", caches::summary(&comparison)),
            ("runs", caches::runs(&comparison)),
        ],
        results: &comparison,
        page: &|command_line| Ok(caches::page(&comparison, command_line)?),
        mismatches: comparison.runs.iter().map(|row| row.outcome.mismatches).sum(),
        failure: None,
        cancelled: comparison.cancelled,
        runs: comparison.runs.len(),
    };
    finish(&findings, &args.output)
}
