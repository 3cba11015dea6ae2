//! `leafpress-rocksdb frontier`: throughput against data size for every codec and level.

use clap::{Args, ValueEnum};
use leafpress_console::failure::Failure;
use leafpress_lab::Bytes;
use leafpress_lab::core::resources;
use leafpress_rocksdb_bench::compression::MAX_DICTIONARY_BYTES;
use leafpress_rocksdb_bench::frontier::{self, Frontier};
use leafpress_rocksdb_bench::study::{Plan, measure};
use leafpress_rocksdb_bench::{BenchError, Cache, Compression, Engines, Work, compression};

use super::args::{DataArgs, OutputArgs, TuningArgs};
use super::failure::failure;
use super::matrix::{accesses, check, threads};
use super::scratch::Scratch;
use super::study::{Findings, RoundsArgs, Stage, finish};

/// Whose codecs.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Whose {
    All,
    Rocksdb,
    Leafpress,
}

/// Arguments of `frontier`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
pub struct FrontierArgs {
    /// Compressions, with commas between them [default: every codec and level that runs here, with dictionaries and without]
    #[arg(long, visible_aliases = ["compression_type", "compression-type"], value_name = "LIST")]
    compression: Option<String>,
    /// Whose codecs, where none are named
    #[arg(long, value_enum, default_value = "all")]
    codecs: Whose,
    /// Bytes of the dictionaries, where no codecs are named; 0 is without
    #[arg(long, value_name = "BYTES", default_value = "16K")]
    dict: Bytes,
    /// What they are compared with
    #[arg(long, value_name = "NAME", default_value = "zstd")]
    baseline: String,
    /// Bytes of a block
    #[arg(
        long = "block_size",
        alias = "block-size",
        value_name = "BYTES",
        default_value = "16K"
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
    /// Databases beside each other [default: as the white paper's, by this machine's CPUs]
    #[arg(long, value_name = "N")]
    instances: Option<usize>,
    /// Threads of each instance [default: as the white paper's, by this machine's CPUs]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Only read-only or 80:20
    #[arg(long, value_name = "ACCESS", value_parser = ["read-only", "80:20"])]
    access: Option<String>,
    /// Less of everything: data of 64M, three rounds of half a second
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
  leafpress-rocksdb frontier --quick
  leafpress-rocksdb frontier --value_src_data_file calgary.zip --block_size 4K --out result
  leafpress-rocksdb frontier --compression lz4,leafpress:zstd:1,leafpress:zstd:1,dict=16K";

impl FrontierArgs {
    fn plan(&self, directory: &std::path::Path) -> Result<Plan, BenchError> {
        let baseline: Compression = self.baseline.parse()?;
        if self.dict.0 > MAX_DICTIONARY_BYTES {
            return Err(BenchError::option(
                "dict",
                format!("is at most {}", Bytes(MAX_DICTIONARY_BYTES)),
            ));
        }
        let compressions = match &self.compression {
            Some(list) => compression::list(list)?,
            None => frontier::all(
                self.dict.0,
                match self.codecs {
                    Whose::All => Engines::All,
                    Whose::Rocksdb => Engines::RocksDb,
                    Whose::Leafpress => Engines::Ours,
                },
            ),
        };
        let (instances, threads) = threads(self.instances, self.threads);
        let (rounds, seconds, warmup_seconds) = match self.quick {
            true => self.rounds.or(3, 0.5, 0.2),
            false => self.rounds.or(3, 3.0, 0.5),
        }?;
        let mut shape = self.data.shape(
            directory,
            instances,
            self.value_size,
            self.block_size.0,
            baseline.clone(),
        )?;
        if self.quick && self.data.num.is_none() && self.data.data_size.is_none() {
            shape.num = (64 << 20) / ((shape.key_bytes + self.value_size) * instances) as u64;
        }
        let plan = Plan {
            shape,
            tuning: self.tuning.tuning(Cache::default()),
            work: Work {
                seconds,
                warmup_seconds,
                ..Work::default()
            },
            threads,
            compressions: compressions.into_iter().filter(|other| *other != baseline).collect(),
            baseline,
            accesses: accesses(self.access.as_deref()),
            rounds,
            ladder: false,
        };
        check(&plan, directory)?;
        Ok(plan)
    }
}

/// Runs the frontier.
pub fn run(args: &FrontierArgs) -> Result<(), Failure> {
    let scratch = Scratch::passing(args.rounds.db.as_deref())?;
    let plan = args.plan(scratch.databases()).map_err(|e| failure(&e))?;
    let mut stage = Stage::new(scratch, &args.output, plan.runs())?;
    let (directory, session, cancel, mut events) = stage.parts();
    let study = measure(&plan, &directory, session, cancel, &mut events);
    drop(events);
    stage.reporter.finish();
    let frontier = Frontier {
        host: resources::host(),
        study: study.map_err(|e| failure(&e))?,
    };
    let study = &frontier.study;
    let findings = Findings {
        text: frontier::text(&frontier),
        tables: vec![
            ("summary", study.summary(true)),
            ("runs", leafpress_rocksdb_bench::report::summary(&study.runs)),
        ],
        results: &frontier,
        page: &|command_line| Ok(frontier::page(&frontier, command_line)?),
        mismatches: study.mismatches(),
        failure: study.failures.first().map(|(name, reason)| format!("{name}: {reason}")),
        cancelled: stage.is_cancelled(),
        runs: study.runs.len(),
    };
    finish(&findings, &args.output)
}
