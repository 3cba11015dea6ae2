//! `leafpress-rocksdb bench`: db_bench's command line in, runs, tables and files out.

use std::path::Path;

use leafpress_console::failure::Failure;
use leafpress_console::{interrupt, output};
use leafpress_lab::Bytes;
use leafpress_rocksdb_arguments::BenchArgs;
use leafpress_rocksdb_bench::compression::Engine;
use leafpress_rocksdb_bench::report::{self, Report, Row};
use leafpress_rocksdb_bench::session::Session;
use leafpress_rocksdb_bench::{
    BenchError, Cache, Compression, Run, Work, Workload, check, check_options, check_values,
};

use super::args::{a_run, shape, tuning};
use super::failure::failure;
use super::reporter::Reporter;
use super::study::{Ending, finish};

fn compression(args: &BenchArgs) -> Result<Compression, BenchError> {
    let mut compression: Compression = args.compression.parse()?;
    if let Some(level) = args.compression_level {
        compression.engine = match compression.engine {
            Engine::Zstd(None) | Engine::Lz4Hc(None) => {
                format!("{}:{level}", compression.codec())
                    .parse::<Compression>()?
                    .engine
            }
            _ => {
                return Err(BenchError::option(
                    "compression_level",
                    format!("is of zstd or lz4hc without a level, not of {compression}"),
                ));
            }
        };
    }
    if let Some(Bytes(bytes)) = args.compression_max_dict_bytes {
        compression = format!("{},dict={bytes}", compression.with_dictionary(0)).parse()?;
    }
    Ok(compression)
}

fn cache(args: &BenchArgs) -> Result<Cache, BenchError> {
    match args.cache_size.as_deref() {
        None => args.cache.parse(),
        Some(size) if size.starts_with('-') || size == "0" => Ok(Cache::default()),
        Some(size) => match size.parse::<Bytes>() {
            Ok(_) => size.parse(),
            Err(e) => Err(BenchError::option("cache_size", e.to_string())),
        },
    }
}

/// Returns the requested runs, in `directory`, all validated.
fn plan(args: &BenchArgs, directory: &Path) -> Result<Vec<Run>, BenchError> {
    let workloads = args.benchmarks.iter().map(|name| name.trim().parse());
    let workloads = workloads.collect::<Result<Vec<Workload>, _>>()?;
    let shape = shape(
        &args.run.data,
        directory,
        args.instances,
        args.sizes.value_size,
        args.sizes.block_size.0,
        compression(args)?,
    )?;
    let tuning = tuning(&args.run.tuning, cache(args)?);
    let given = args.distribution.as_deref().map(str::parse).transpose()?;
    let mut runs = Vec::new();
    for workload in workloads {
        let work = Work {
            threads: args.threads,
            seconds: args.seconds,
            warmup_seconds: args.warmup_seconds,
            reads: args.reads,
            distribution: given.unwrap_or_else(|| workload.distribution()),
            read_pct: args.readwritepercent,
            batch: args.batch_size,
            seek_nexts: args.seek_nexts,
            verify: args.check_values,
        };
        let work = match args.reads {
            // As in db_bench a length has precedence; but here it has a default, so a number of operations that is
            // given wins over that.
            Some(_) => Work { seconds: 0.0, ..work },
            None => work,
        };
        runs.push(a_run(workload, directory, &shape, &tuning, &work));
    }
    checked(args, &runs)?;
    Ok(runs)
}

fn checked(args: &BenchArgs, runs: &[Run]) -> Result<(), BenchError> {
    for run in runs {
        run.validate()?;
    }
    let Some(first) = runs.first() else {
        return Err(BenchError::option("benchmarks", "the list is empty"));
    };
    check_values(&first.shape)?;
    check_options(first)?;
    if args.use_existing_db {
        if let Some(fresh) = runs.iter().find(|run| run.workload.is_fresh()) {
            return Err(BenchError::option(
                "use_existing_db",
                format!("{} makes a new database; leave one of the two out", fresh.workload),
            ));
        }
        if args.db.is_none() {
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

/// Runs the benchmarks.
pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    let mut scratch = super::scratch::Scratch::kept(args.db.as_deref())?;
    let runs = plan(args, scratch.databases()).map_err(|e| failure(&e))?;
    scratch.make()?;
    if let Some(out) = &args.run.output.out {
        output::make_directory("out", out)?;
    }
    let cancel = interrupt::flag()?;
    let mut session = Session::new(scratch.logs().to_owned()).map_err(|e| failure(&e))?;
    let mut reporter = Reporter::new(args.run.output.quiet);
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
    let ending = Ending {
        mismatches: report.rows.iter().map(|row| row.outcome.mismatches).sum(),
        failure: report.failure.clone(),
        cancelled: report.cancelled,
        runs: report.rows.len(),
        wanted: Some(runs.len()),
    };
    finish(&report::document(&report), ending, &args.run.output)
}
