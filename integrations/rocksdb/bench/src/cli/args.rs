//! Converts options that several subcommands share to the library's types.

use std::path::Path;

use leafpress_lab::core::corpus::Source;
use leafpress_rocksdb_arguments::{DataArgs, RoundsArgs, TuningArgs};
use leafpress_rocksdb_bench::{
    BenchError, Cache, CacheType, Compression, Run, Shape, Tuning, ValueSource, Work, Workload, size,
};

fn values(args: &DataArgs) -> Result<ValueSource, BenchError> {
    Ok(ValueSource {
        kind: args.value_src_data_type.parse()?,
        data: Source::named(&args.data)?,
        compression_ratio: args.compression_ratio,
    })
}

/// Databases of these instances, values and blocks in `directory`.
pub fn shape(
    args: &DataArgs,
    directory: &Path,
    instances: usize,
    value_bytes: usize,
    block_bytes: u64,
    compression: Compression,
) -> Result<Shape, BenchError> {
    let record_bytes = (args.key_size + value_bytes) as u64;
    let num = match args.num {
        Some(num) => num,
        None => {
            let bytes = size::data_bytes(args.data_bytes.as_deref(), directory)?;
            (bytes / (record_bytes.max(1) * instances.max(1) as u64)).max(1)
        }
    };
    Ok(Shape {
        instances,
        num,
        key_bytes: args.key_size,
        value_bytes,
        block_bytes,
        values: values(args)?,
        compression,
        bloom_bits: args.bloom_bits,
        format_version: args.format_version,
        seed: args.seed,
    })
}

/// Sets the data to 64M over all instances, unless a size was requested.
pub fn less_data(mut shape: Shape, args: &DataArgs) -> Shape {
    if args.num.is_none() && args.data_bytes.is_none() {
        shape.num = (64 << 20) / ((shape.key_bytes + shape.value_bytes) * shape.instances) as u64;
    }
    shape
}

/// Returns RocksDB's settings, with this cache.
pub fn tuning(args: &TuningArgs, cache: Cache) -> Tuning {
    Tuning {
        cache,
        cache_type: match args.cache_type.as_str() {
            "lru_cache" => CacheType::LruCache,
            _ => CacheType::HyperClockCache,
        },
        max_background_jobs: args.max_background_jobs.unwrap_or_else(|| size::cpus().max(2)),
        write_buffer_bytes: args.write_buffer_size.0,
        max_write_buffers: args.max_write_buffer_number,
        use_direct_reads: args.use_direct_reads,
        disable_wal: args.disable_wal,
        sync: args.sync,
        disable_auto_compactions: args.disable_auto_compactions,
        verify_checksum: args.verify_checksum,
        statistics: args.statistics,
        rocksdb_options: args.rocksdb_options.clone(),
    }
}

/// Returns the baseline, which `--baseline` names.
pub fn baseline(name: &str) -> Result<Compression, BenchError> {
    name.parse().map_err(|error| match error {
        BenchError::Option { reason, .. } => BenchError::option("baseline", reason),
        error => error,
    })
}

/// Rounds, seconds and warm-up: what was given, or these.
pub fn rounds(args: &RoundsArgs, rounds: usize, seconds: f64, warmup: f64) -> Result<(usize, f64, f64), BenchError> {
    let rounds = args.rounds.unwrap_or(rounds);
    if !(1..=1000).contains(&rounds) {
        return Err(BenchError::option("rounds", format!("{rounds} is not 1 to 1000")));
    }
    let seconds = args.seconds.unwrap_or(seconds);
    // A text that is not a number is not above 0 either.
    if seconds.is_nan() || seconds <= 0.0 {
        return Err(BenchError::option("seconds", format!("{seconds} is not over 0")));
    }
    Ok((rounds, seconds, args.warmup_seconds.unwrap_or(warmup)))
}

/// Returns a run of one benchmark.
pub fn a_run(workload: Workload, directory: &Path, shape: &Shape, tuning: &Tuning, work: &Work) -> Run {
    Run {
        workload,
        directory: directory.to_owned(),
        shape: shape.clone(),
        tuning: tuning.clone(),
        work: work.clone(),
        on_copy: false,
    }
}
