//! `leafpress-rocksdb matrix`: the white paper's whole set, scaled to this machine.

use clap::Args;
use leafpress_console::cost::CostArgs;
use leafpress_console::failure::Failure;
use leafpress_lab::Bytes;
use leafpress_lab::core::resources;
use leafpress_rocksdb_bench::matrix::{self, BLOCK_BYTES, Matrix, VALUE_BYTES};
use leafpress_rocksdb_bench::study::{Access, Plan, measure};
use leafpress_rocksdb_bench::{BenchError, Cache, Compression, Work, check_options, check_values, compression, size};

use super::args::{DataArgs, OutputArgs, TuningArgs, a_run};
use super::failure::failure;
use super::scratch::Scratch;
use super::study::{Findings, RoundsArgs, Stage, finish};

/// Compressions that are compared with zstd unless told otherwise.
const COMPRESSIONS: &str =
    "none,lz4,leafpress:lz4,leafpress:zstd:3,leafpress:zstd:1,leafpress:deflate:1,leafpress:lz4:hc=5,dict=64K";

/// Arguments of `matrix`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
pub struct MatrixArgs {
    /// Less of everything: data of 64M, two rounds of half a second
    #[arg(long)]
    quick: bool,
    /// Compressions, with commas between them
    #[arg(long, visible_aliases = ["compression_type", "compression-type"], value_name = "LIST", default_value = COMPRESSIONS)]
    compression: String,
    /// What they are compared with
    #[arg(long, value_name = "NAME", default_value = "zstd")]
    baseline: String,
    /// Bytes of a block, with commas between them
    #[arg(long = "block_size", alias = "block-size", value_name = "LIST", value_delimiter = ',', default_values_t = BLOCK_BYTES.map(Bytes))]
    block_size: Vec<Bytes>,
    /// Bytes of a value, with commas between them
    #[arg(long = "value_size", alias = "value-size", value_name = "LIST", value_delimiter = ',', default_values_t = VALUE_BYTES)]
    value_size: Vec<usize>,
    /// Databases beside each other [default: as the white paper's 4, by this machine's CPUs]
    #[arg(long, value_name = "N")]
    instances: Option<usize>,
    /// Threads of each instance [default: as the white paper's 25 that read and 10 that read and write, by this machine's CPUs]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Only read-only or 80:20
    #[arg(long, value_name = "ACCESS", value_parser = ["read-only", "80:20"])]
    access: Option<String>,
    /// Do not raise threads to find the CPU saved at the baseline's throughput
    #[arg(long)]
    no_ladder: bool,
    /// Block cache of each instance
    #[arg(long, value_name = "CACHE", default_value = "none")]
    cache: String,
    #[command(flatten)]
    rounds: RoundsArgs,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    tuning: TuningArgs,
    #[command(flatten)]
    cost: CostArgs,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER_HELP: &str = "\
Everything is compared with the baseline in pairs of runs directly one after the other. docs/bench.md explains the report.

  leafpress-rocksdb matrix --quick
  leafpress-rocksdb matrix --value_src_data_file calgary.zip --compression lz4,leafpress:zstd:1 --rounds 5 --out result";

/// Access patterns that are asked for.
pub fn accesses(only: Option<&str>) -> Vec<Access> {
    match only {
        Some(only) => Access::ALL
            .into_iter()
            .filter(|access| access.to_string() == only)
            .collect(),
        None => Access::ALL.to_vec(),
    }
}

/// Instances, and threads of each by access, from what is asked for and this machine's CPUs.
pub fn threads(instances: Option<usize>, threads: Option<usize>) -> (usize, [usize; 2]) {
    let (of_reads, _) = size::instances_and_threads(size::cpus(), false);
    let instances = instances.unwrap_or(of_reads).max(1);
    let each = [false, true].map(|writes| {
        let (count, each) = size::instances_and_threads(size::cpus(), writes);
        threads.unwrap_or_else(|| (count * each).div_ceil(instances))
    });
    (instances, each)
}

impl MatrixArgs {
    fn plans(&self, directory: &std::path::Path) -> Result<Vec<Plan>, BenchError> {
        let compressions = compression::list(&self.compression)?;
        let baseline: Compression = self.baseline.parse()?;
        let cache: Cache = self.cache.parse()?;
        let (instances, threads) = threads(self.instances, self.threads);
        let (rounds, seconds, warmup_seconds) = match self.quick {
            true => self.rounds.or(2, 0.5, 0.2),
            false => self.rounds.or(3, 5.0, 1.0),
        }?;
        let work = Work {
            seconds,
            warmup_seconds,
            ..Work::default()
        };
        let tuning = self.tuning.tuning(cache);
        let mut plans = Vec::new();
        for Bytes(block_bytes) in &self.block_size {
            for value_bytes in &self.value_size {
                let mut shape = self
                    .data
                    .shape(directory, instances, *value_bytes, *block_bytes, baseline.clone())?;
                if self.quick && self.data.num.is_none() && self.data.data_size.is_none() {
                    shape.num = (64 << 20) / ((shape.key_bytes + value_bytes) * instances) as u64;
                }
                let plan = Plan {
                    shape,
                    tuning: tuning.clone(),
                    work: work.clone(),
                    threads,
                    baseline: baseline.clone(),
                    compressions: compressions
                        .iter()
                        .filter(|other| **other != baseline)
                        .cloned()
                        .collect(),
                    accesses: accesses(self.access.as_deref()),
                    rounds,
                    ladder: !self.no_ladder,
                };
                check(&plan, directory)?;
                plans.push(plan);
            }
        }
        match plans.is_empty() {
            true => Err(BenchError::option("block_size", "and value_size: the lists are empty")),
            false => Ok(plans),
        }
    }
}

/// Checks every run of a plan in kind, before the first starts.
pub fn check(plan: &Plan, directory: &std::path::Path) -> Result<(), BenchError> {
    for (number, compression) in plan.all().enumerate() {
        for access in &plan.accesses {
            let mut run = a_run(access.workload(), directory, &plan.shape, &plan.tuning, &plan.work);
            run.shape.compression = compression.clone();
            run.work.threads = plan.threads(*access);
            run.validate()?;
            if number == 0 && *access == plan.accesses[0] {
                check_values(&run.shape)?;
            }
            check_options(&run)?;
        }
    }
    Ok(())
}

/// Runs the matrix.
pub fn run(args: &MatrixArgs) -> Result<(), Failure> {
    let scratch = Scratch::passing(args.rounds.db.as_deref())?;
    let plans = args.plans(scratch.databases()).map_err(|e| failure(&e))?;
    let prices = args.cost.prices().map_err(|e| failure(&e.into()))?;
    let mut stage = Stage::new(scratch, &args.output, plans.iter().map(Plan::runs).sum())?;
    let mut matrix = Matrix {
        host: resources::host(),
        studies: Vec::new(),
        prices: prices.unwrap_or_default(),
        cancelled: false,
    };
    let mut trouble = None;
    for plan in &plans {
        let (directory, session, cancel, mut events) = stage.parts();
        let study = measure(plan, &directory, session, cancel, &mut events);
        drop(events);
        match study {
            Ok(study) => matrix.studies.push(study),
            Err(error) => trouble = Some(error),
        }
        if stage.is_cancelled() || trouble.is_some() {
            break;
        }
    }
    stage.reporter.finish();
    matrix.cancelled = stage.is_cancelled();
    if let (Some(error), true) = (&trouble, matrix.studies.is_empty()) {
        return Err(failure(error));
    }
    let findings = Findings {
        text: matrix::text(&matrix),
        tables: vec![("summary", matrix::tables(&matrix)), ("runs", matrix::runs(&matrix))],
        results: &matrix,
        page: &|command_line| Ok(matrix::page(&matrix, command_line)?),
        mismatches: matrix.mismatches(),
        failure: trouble.map(|error| error.to_string()).or_else(|| matrix.failure()),
        cancelled: matrix.cancelled,
        runs: matrix.studies.iter().map(|study| study.runs.len()).sum(),
    };
    finish(&findings, &args.output)
}
