//! `leafpress-rocksdb caches`: block caches and secondary caches at the same total memory.

use leafpress_console::failure::Failure;
use leafpress_lab::Bytes;
use leafpress_lab::core::keys::Distribution;
use leafpress_rocksdb_arguments::CachesArgs;
use leafpress_rocksdb_bench::cache::Secondary;
use leafpress_rocksdb_bench::caches::{self, Plan, compare};
use leafpress_rocksdb_bench::{BenchError, Cache, Work, Workload, check_options, check_values, size};

use super::args::{a_run, rounds, shape, tuning};
use super::failure::failure;
use super::scratch::Scratch;
use super::study::{Ending, Stage, finish};

fn caches(args: &CachesArgs, memory: u64) -> Result<Vec<Cache>, BenchError> {
    if !args.cache.is_empty() {
        return args.cache.iter().map(|cache| cache.parse()).collect();
    }
    if !(args.secondary_pct > 0.0 && args.secondary_pct < 100.0) {
        return Err(BenchError::option(
            "secondary-pct",
            format!("{} is not over 0 and under 100", args.secondary_pct),
        ));
    }
    let secondary = (memory as f64 * args.secondary_pct / 100.0) as u64;
    let with = |secondary_cache: Secondary| Cache {
        bytes: memory - secondary,
        secondary: Some(secondary_cache),
    };
    let alone = Cache {
        bytes: memory,
        secondary: None,
    };
    let mut caches = vec![alone, with(Secondary::Compressed(secondary))];
    let ours = if args.secondary_options.is_empty() {
        vec![String::new()]
    } else {
        args.secondary_options.clone()
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

fn plan(args: &CachesArgs, directory: &std::path::Path) -> Result<Plan, BenchError> {
    let memory = if args.quick { 8 << 20 } else { args.memory.0 };
    if memory < 1 << 20 {
        return Err(BenchError::option("memory", format!("{} is under 1M", Bytes(memory))));
    }
    if !(args.times > 0.0 && args.times <= 1e6) {
        return Err(BenchError::option(
            "times",
            format!("{} is not over 0 and at most a million", args.times),
        ));
    }
    let workload: Workload = args.benchmark.parse()?;
    if workload.is_bounded() || workload.is_fresh() {
        return Err(BenchError::option(
            "benchmark",
            format!("{workload} does not read random keys"),
        ));
    }
    let (rounds, seconds, warmup_seconds) = match args.quick {
        true => rounds(&args.rounds, 3, 0.5, 1.0),
        false => rounds(&args.rounds, 5, 4.0, 8.0),
    }?;
    let mut shape = shape(
        &args.run.data,
        directory,
        args.instances,
        args.sizes.value_size,
        args.sizes.block_size.0,
        args.compression.parse()?,
    )?;
    if args.run.data.num.is_none() && args.run.data.data_bytes.is_none() {
        shape.num =
            ((memory as f64 * args.times) as u64 / (shape.key_bytes + args.sizes.value_size).max(1) as u64).max(1);
    }
    let distribution: Distribution = args.distribution.parse().map_err(BenchError::Lab)?;
    let mut tuning = tuning(&args.run.tuning, Cache::default());
    tuning.use_direct_reads = !args.buffered;
    let plan = Plan {
        shape,
        tuning,
        work: Work {
            threads: args.threads.unwrap_or_else(size::cpus),
            seconds,
            warmup_seconds,
            distribution,
            ..Work::default()
        },
        workload,
        caches: caches(args, memory)?,
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

/// Runs the comparison.
pub fn run(args: &CachesArgs) -> Result<(), Failure> {
    let scratch = Scratch::passing(args.rounds.db.as_deref())?;
    let plan = plan(args, scratch.databases()).map_err(|e| failure(&e))?;
    let mut stage = Stage::new(scratch, &args.run.output, plan.runs())?;
    let (directory, session, cancel, mut events) = stage.parts();
    let comparison = compare(&plan, &directory, session, cancel, &mut events);
    drop(events);
    stage.reporter.finish();
    let comparison = comparison.map_err(|e| failure(&e))?;
    let ending = Ending {
        mismatches: comparison.runs.iter().map(|row| row.outcome.mismatches).sum(),
        failure: None,
        cancelled: comparison.cancelled,
        runs: comparison.runs.len(),
        wanted: None,
    };
    finish(&caches::document(&comparison), ending, &args.run.output)
}
