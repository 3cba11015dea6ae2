//! `leafpress-rocksdb bench`: db_bench's command line in, runs, tables and files out.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::BoolishValueParser;
use leafpress_console::failure::Failure;
use leafpress_console::{interrupt, output};
use leafpress_lab::Bytes;
use leafpress_rocksdb_bench::compression::Engine;
use leafpress_rocksdb_bench::report::{self, Report, Row};
use leafpress_rocksdb_bench::session::Session;
use leafpress_rocksdb_bench::{
    BenchError, Cache, Compression, Run, Work, Workload, check, check_options, check_values,
};

use super::args::{DataArgs, OutputArgs, TuningArgs, a_run};
use super::failure::failure;
use super::reporter::Reporter;

/// Arguments of `bench`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
pub struct BenchArgs {
    /// Benchmarks in turn, each in a process of its own: fillseq fillrandom overwrite readseq readrandom seekrandom
    /// readrandomwriterandom ycsba..ycsbf compact
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "fillseq,readrandom"
    )]
    benchmarks: Vec<String>,
    /// Directory of the database; instances are below it [default: one for temporary files, removed at the end]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
    /// Use the databases that are there
    #[arg(long = "use_existing_db", alias = "use-existing-db", num_args = 0..=1, default_missing_value = "true", default_value = "false", value_parser = BoolishValueParser::new(), require_equals = true, value_name = "BOOL", hide_default_value = true)]
    use_existing_db: bool,
    /// none, lz4, zstd[:LEVEL] or leafpress:CODEC[,option=value..]; dict=BYTES gives each file a dictionary
    #[arg(long, visible_aliases = ["compression_type", "compression-type"], value_name = "NAME", default_value = "zstd")]
    compression: String,
    /// Level of --compression zstd, as db_bench has it
    #[arg(
        long = "compression_level",
        alias = "compression-level",
        value_name = "N",
        allow_negative_numbers = true
    )]
    compression_level: Option<i32>,
    /// Most bytes of a file's dictionary, as db_bench has it
    #[arg(
        long = "compression_max_dict_bytes",
        alias = "compression-max-dict-bytes",
        value_name = "BYTES"
    )]
    compression_max_dict_bytes: Option<Bytes>,
    /// Databases beside each other
    #[arg(long, value_name = "N", default_value_t = 1)]
    instances: usize,
    /// Threads of each instance
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Bytes of a value
    #[arg(
        long = "value_size",
        alias = "value-size",
        value_name = "BYTES",
        default_value_t = 256
    )]
    value_size: usize,
    /// Bytes of a block before compression
    #[arg(
        long = "block_size",
        alias = "block-size",
        value_name = "BYTES",
        default_value = "16K"
    )]
    block_size: Bytes,
    /// none, SIZE, SIZE+compressed-secondary:SIZE or SIZE+leafpress-secondary:SIZE[,option=value..]; of each instance
    #[arg(long, value_name = "CACHE", default_value = "none")]
    cache: String,
    /// Bytes of the block cache, as db_bench has it; 0 or less is none
    #[arg(
        long = "cache_size",
        alias = "cache-size",
        value_name = "BYTES",
        conflicts_with = "cache",
        allow_negative_numbers = true
    )]
    cache_size: Option<String>,
    /// Length of each benchmark in seconds; 0 does --reads operations in each thread
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, allow_negative_numbers = true)]
    duration: f64,
    /// The same work before that, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, allow_negative_numbers = true)]
    warmup: f64,
    /// Operations of each thread, in place of a length [default: --num]
    #[arg(long, visible_alias = "writes", value_name = "N")]
    reads: Option<u64>,
    /// How keys are chosen: uniform, zipfian[:THETA], latest[:THETA], self-similar[:H], hotset[:KEYS_PCT:OPERATIONS_PCT]; ycsb
    /// workloads have their own
    #[arg(long, value_name = "LAW")]
    distribution: Option<String>,
    /// Percent of reads in readrandomwriterandom
    #[arg(long, visible_alias = "readwrite-percent", value_name = "PCT", default_value_t = 80)]
    readwritepercent: u64,
    /// Puts that fillseq writes together
    #[arg(long = "batch_size", alias = "batch-size", value_name = "N", default_value_t = 1)]
    batch_size: u64,
    /// Steps behind each seek of seekrandom
    #[arg(long = "seek_nexts", alias = "seek-nexts", value_name = "N", default_value_t = 0)]
    seek_nexts: u64,
    /// Compare every value that is read with what its key can hold, and not only its length
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "false", value_parser = BoolishValueParser::new(), require_equals = true, value_name = "BOOL", hide_default_value = true)]
    verify: bool,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    tuning: TuningArgs,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER_HELP: &str = "\
Defaults are the white paper's, not db_bench's: docs/bench.md sets them beside each other.

  leafpress-rocksdb bench --benchmarks=fillseq,readrandom,readrandomwriterandom --compression zstd --threads 2
  leafpress-rocksdb bench --db /data/bench --compression leafpress:zstd:1,dict=16K --instances 4 --threads 25 --out result
  leafpress-rocksdb bench --db /data/bench --use_existing_db --benchmarks=readrandom --compression leafpress:zstd:1,dict=16K";

impl BenchArgs {
    fn compression(&self) -> Result<Compression, BenchError> {
        let mut compression: Compression = self.compression.parse()?;
        if let Some(level) = self.compression_level {
            compression.engine = match compression.engine {
                Engine::Zstd(None) => format!("zstd:{level}").parse::<Compression>()?.engine,
                _ => {
                    return Err(BenchError::option(
                        "compression_level",
                        format!("is of zstd without a level, not of {compression}"),
                    ));
                }
            };
        }
        if let Some(Bytes(bytes)) = self.compression_max_dict_bytes {
            compression = format!("{},dict={bytes}", compression.with_dictionary(0)).parse()?;
        }
        Ok(compression)
    }

    fn cache(&self) -> Result<Cache, BenchError> {
        match self.cache_size.as_deref() {
            None => self.cache.parse(),
            Some(size) if size.starts_with('-') || size == "0" => Ok(Cache::default()),
            Some(size) => match size.parse::<Bytes>() {
                Ok(_) => size.parse(),
                Err(e) => Err(BenchError::option("cache_size", e.to_string())),
            },
        }
    }

    /// The runs that are asked for, in `directory`, all checked.
    fn plan(&self, directory: &Path) -> Result<Vec<Run>, BenchError> {
        let workloads = self.benchmarks.iter().map(|name| name.trim().parse());
        let workloads = workloads.collect::<Result<Vec<Workload>, _>>()?;
        let shape = self.data.shape(
            directory,
            self.instances,
            self.value_size,
            self.block_size.0,
            self.compression()?,
        )?;
        let tuning = self.tuning.tuning(self.cache()?);
        let given = self.distribution.as_deref().map(str::parse).transpose()?;
        let mut runs = Vec::new();
        for workload in workloads {
            let work = Work {
                threads: self.threads,
                seconds: self.duration,
                warmup_seconds: self.warmup,
                reads: self.reads,
                distribution: given.unwrap_or_else(|| workload.distribution()),
                read_pct: self.readwritepercent,
                batch: self.batch_size,
                seek_nexts: self.seek_nexts,
                verify: self.verify,
            };
            let work = match self.reads {
                // As in db_bench a length has precedence; but here it has a default, so a number of operations that is given wins over that.
                Some(_) => Work { seconds: 0.0, ..work },
                None => work,
            };
            runs.push(a_run(workload, directory, &shape, &tuning, &work));
        }
        self.check(&runs)?;
        Ok(runs)
    }

    fn check(&self, runs: &[Run]) -> Result<(), BenchError> {
        for run in runs {
            run.validate()?;
        }
        let Some(first) = runs.first() else {
            return Err(BenchError::option("benchmarks", "the list is empty"));
        };
        check_values(&first.shape)?;
        check_options(first)?;
        if self.use_existing_db {
            if let Some(fresh) = runs.iter().find(|run| run.workload.is_fresh()) {
                return Err(BenchError::option(
                    "use_existing_db",
                    format!("{} makes a new database; leave one of the two out", fresh.workload),
                ));
            }
            if self.db.is_none() {
                return Err(BenchError::option(
                    "use_existing_db",
                    "needs --db, the directory it is in",
                ));
            }
            check(first)?;
        } else if !first.workload.is_fresh() {
            return Err(BenchError::option(
                "benchmarks",
                format!(
                    "{} needs a database: put fillseq in front, or use one that is there with --use_existing_db",
                    first.workload
                ),
            ));
        }
        Ok(())
    }
}

/// Runs the benchmarks.
pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    let mut scratch = super::scratch::Scratch::kept(args.db.as_deref())?;
    let runs = args.plan(scratch.databases()).map_err(|e| failure(&e))?;
    scratch.make()?;
    if let Some(out) = &args.output.out {
        output::make_directory("out", out)?;
    }
    let cancel = interrupt::flag()?;
    let mut session = Session::new(scratch.logs().to_owned()).map_err(|e| failure(&e))?;
    let mut reporter = Reporter::new(args.output.quiet);
    let mut report = Report::new();
    for (index, run) in runs.iter().enumerate() {
        reporter.start(index, runs.len(), format!("{} {}", run.workload, run.shape.compression));
        let outcome = session.run(run, &cancel, &mut |phase, done| reporter.advance(phase, done));
        match outcome {
            Ok(outcome) => {
                let row = Row::new(run, outcome);
                reporter.finished(&report::line(&row));
                report.rows.push(row);
            }
            Err(error) if error.is_cancelled() => {
                report.cancelled = true;
                break;
            }
            Err(error) => {
                report.failure = Some(format!("{} {}: {error}", run.workload, run.shape.compression));
                break;
            }
        }
    }
    reporter.finish();
    finish(&report, runs.len(), args)
}

/// Writes what was measured, and judges it.
fn finish(report: &Report, wanted: usize, args: &BenchArgs) -> Result<(), Failure> {
    let mut text = if report.rows.is_empty() {
        String::new()
    } else {
        report::text(report)
    };
    if let (Some(out), false) = (&args.output.out, report.rows.is_empty()) {
        let command_line = output::command_line("leafpress-rocksdb", std::env::args_os());
        let files = report::write_files(report, &command_line, out).map_err(|e| failure(&e))?;
        text += &files.to_string();
    }
    let printed = output::print(&text);
    if let Some(trouble) = &report.failure {
        return Err(Failure::failed(trouble.clone()));
    }
    if report.cancelled {
        return Err(Failure::Interrupted(format!(
            "interrupted: {} of {wanted} benchmarks had finished",
            report.rows.len()
        )));
    }
    let wrong: u64 = report.rows.iter().map(|row| row.outcome.mismatches).sum();
    if wrong > 0 {
        return Err(Failure::failed(format!(
            "{wrong} reads did not return what their keys hold"
        )));
    }
    printed
}
