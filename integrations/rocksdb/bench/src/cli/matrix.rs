//! `leafpress-rocksdb matrix`: the white paper's whole set, scaled to this machine.

use leafpress_console::failure::Failure;
use leafpress_lab::Bytes;
use leafpress_lab::core::resources;
use leafpress_rocksdb_arguments::MatrixArgs;
use leafpress_rocksdb_bench::matrix::{self, Matrix};
use leafpress_rocksdb_bench::study::{Access, Plan, measure};
use leafpress_rocksdb_bench::{BenchError, Cache, Work, check_options, check_values, compression, size};

use super::args::{a_run, baseline, less_data, rounds, shape, tuning};
use super::failure::failure;
use super::scratch::Scratch;
use super::study::{Ending, Stage, finish};

/// Returns the requested access patterns.
pub fn accesses(only: Option<&str>) -> Vec<Access> {
    match only {
        Some(only) => Access::ALL
            .into_iter()
            .filter(|access| access.to_string() == only)
            .collect(),
        None => Access::ALL.to_vec(),
    }
}

/// Returns the number of instances, and threads of each by access, from the arguments and this machine's CPUs.
pub fn threads(instances: Option<usize>, threads: Option<usize>) -> (usize, [usize; 2]) {
    let (of_reads, _) = size::instances_and_threads(size::cpus(), false);
    let instances = instances.unwrap_or(of_reads).max(1);
    let each = [false, true].map(|writes| {
        let (count, each) = size::instances_and_threads(size::cpus(), writes);
        threads.unwrap_or_else(|| (count * each).div_ceil(instances))
    });
    (instances, each)
}

fn plans(args: &MatrixArgs, directory: &std::path::Path) -> Result<Vec<Plan>, BenchError> {
    let compressions = compression::list(&args.compression)?;
    let baseline = baseline(&args.study.baseline)?;
    let cache: Cache = args.cache.parse()?;
    let (instances, threads) = threads(args.study.instances, args.study.threads);
    let (rounds, seconds, warmup_seconds) = match args.quick {
        true => rounds(&args.rounds, 2, 0.5, 0.2),
        false => rounds(&args.rounds, 3, 5.0, 1.0),
    }?;
    let work = Work {
        seconds,
        warmup_seconds,
        ..Work::default()
    };
    let tuning = tuning(&args.run.tuning, cache);
    let mut plans = Vec::new();
    for Bytes(block_bytes) in &args.block_size {
        for value_bytes in &args.value_size {
            let shape = shape(
                &args.run.data,
                directory,
                instances,
                *value_bytes,
                *block_bytes,
                baseline.clone(),
            )?;
            let shape = if args.quick {
                less_data(shape, &args.run.data)
            } else {
                shape
            };
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
                accesses: accesses(args.study.access.as_deref()),
                rounds,
                ladder: !args.no_ladder,
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
    let plans = plans(args, scratch.databases()).map_err(|e| failure(&e))?;
    let prices = args.cost.prices().map_err(|e| failure(&e.into()))?;
    let mut stage = Stage::new(scratch, &args.run.output, plans.iter().map(Plan::runs).sum())?;
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
    let ending = Ending {
        mismatches: matrix.mismatches(),
        failure: trouble.map(|error| error.to_string()).or_else(|| matrix.failure()),
        cancelled: matrix.cancelled,
        runs: matrix.studies.iter().map(|study| study.runs.len()).sum(),
        wanted: None,
    };
    finish(&matrix::document(&matrix), ending, &args.run.output)
}
