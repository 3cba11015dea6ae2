//! `leafpress-rocksdb frontier`: throughput against data size for every codec and level.

use leafpress_console::failure::Failure;
use leafpress_lab::Bytes;
use leafpress_lab::core::resources;
use leafpress_rocksdb_arguments::{FrontierArgs, Whose};
use leafpress_rocksdb_bench::compression::MAX_DICTIONARY_BYTES;
use leafpress_rocksdb_bench::frontier::{self, Frontier};
use leafpress_rocksdb_bench::study::{Plan, measure};
use leafpress_rocksdb_bench::{BenchError, Cache, Engines, Work, compression};

use super::args::{baseline, less_data, rounds, shape, tuning};
use super::failure::failure;
use super::matrix::{accesses, check, threads};
use super::scratch::Scratch;
use super::study::{Ending, Stage, finish};

fn plan(args: &FrontierArgs, directory: &std::path::Path) -> Result<Plan, BenchError> {
    let baseline = baseline(&args.study.baseline)?;
    if args.dictionary_bytes.0 > MAX_DICTIONARY_BYTES {
        return Err(BenchError::option(
            "dictionary-bytes",
            format!("is at most {}", Bytes(MAX_DICTIONARY_BYTES)),
        ));
    }
    let compressions = match &args.compression {
        Some(list) => compression::list(list)?,
        None => frontier::all(
            args.dictionary_bytes.0,
            match args.codecs_of {
                Whose::All => Engines::All,
                Whose::Rocksdb => Engines::RocksDb,
                Whose::Leafpress => Engines::Ours,
            },
        ),
    };
    let (instances, threads) = threads(args.study.instances, args.study.threads);
    let (rounds, seconds, warmup_seconds) = match args.quick {
        true => rounds(&args.rounds, 3, 0.5, 0.2),
        false => rounds(&args.rounds, 3, 3.0, 0.5),
    }?;
    let shape = shape(
        &args.run.data,
        directory,
        instances,
        args.sizes.value_size,
        args.sizes.block_size.0,
        baseline.clone(),
    )?;
    let shape = if args.quick {
        less_data(shape, &args.run.data)
    } else {
        shape
    };
    let plan = Plan {
        shape,
        tuning: tuning(&args.run.tuning, Cache::default()),
        work: Work {
            seconds,
            warmup_seconds,
            ..Work::default()
        },
        threads,
        compressions: compressions.into_iter().filter(|other| *other != baseline).collect(),
        baseline,
        accesses: accesses(args.study.access.as_deref()),
        rounds,
        ladder: false,
    };
    check(&plan, directory)?;
    Ok(plan)
}

/// Runs the frontier.
pub fn run(args: &FrontierArgs) -> Result<(), Failure> {
    let scratch = Scratch::passing(args.rounds.db.as_deref())?;
    let plan = plan(args, scratch.databases()).map_err(|e| failure(&e))?;
    let mut stage = Stage::new(scratch, &args.run.output, plan.runs())?;
    let (directory, session, cancel, mut events) = stage.parts();
    let study = measure(&plan, &directory, session, cancel, &mut events);
    drop(events);
    stage.reporter.finish();
    let frontier = Frontier {
        host: resources::host(),
        study: study.map_err(|e| failure(&e))?,
    };
    let study = &frontier.study;
    let ending = Ending {
        mismatches: study.mismatches(),
        failure: study.failures.first().map(|(name, reason)| format!("{name}: {reason}")),
        cancelled: stage.is_cancelled(),
        runs: study.runs.len(),
        wanted: None,
    };
    finish(&frontier::document(&frontier), ending, &args.run.output)
}
