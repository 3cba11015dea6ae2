//! Runs a probe.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::job::{Job, Tally};
use super::request_order::Places;
use super::target::Target;
use super::uring::Ring;
use super::{
    DeviceError, EngineChoice, Latency, Measurement, Operation, Options, Probed, Report, Source, notes, reread, threads,
};
use crate::core::resources::{host, total_memory_bytes, usage};
use crate::core::{Bytes, LabError};

/// Progress of a probe.
#[derive(Debug)]
pub enum Event<'e> {
    /// Piece `index` of `total` begins.
    Piece {
        /// From 0.
        index: usize,
        /// Pieces in all.
        total: usize,
        /// The current step.
        what: String,
    },
    /// Progress of the piece, 0 to 1.
    Progress(f64),
    /// A piece ended with these figures.
    Measured(&'e Measurement),
}

/// Probes the device under the options' path. After a cancellation the report has the finished measurements.
///
/// The file that it makes in a directory has no name: it is gone with the process, however that ends.
///
/// # Errors
/// Options out of bounds ([`LabError::Option`]); a path that cannot be probed, too little room, a read or write that
/// fails ([`LabError::Device`]); [`LabError::Cancelled`] before the first measurement ended.
pub fn probe(options: &Options, cancel: &AtomicBool, events: &mut dyn FnMut(Event<'_>)) -> Result<Report, LabError> {
    options.validate()?;
    let pieces = pieces(options);
    let total = pieces.len() + 1;
    let (engine, no_uring) = engine(options)?;
    let wanted = options.file_bytes.unwrap_or(Options::FILE_BYTES);
    let what = if options.path.is_dir() {
        format!("writing a file of {}", Bytes(wanted))
    } else {
        "opening".into()
    };
    events(Event::Piece { index: 0, total, what });
    let target = Target::open(options, cancel, &mut |done| events(Event::Progress(done)))?;
    let smallest = options.block_bytes.iter().copied().min().unwrap_or(4096);
    let reread = reread::reread(&target, smallest.max(4096), options.seed, cancel);
    let mut measurements = Vec::with_capacity(pieces.len());
    let mut interrupted = false;
    for (at, (operation, queue_depth, block_bytes)) in pieces.into_iter().enumerate() {
        let what = format!("{operation} {} at depth {queue_depth}", Bytes(block_bytes));
        events(Event::Piece {
            index: at + 1,
            total,
            what,
        });
        let piece = Piece {
            operation,
            queue_depth,
            block_bytes,
            engine,
        };
        let measured = piece.measure(options, &target, cancel, &mut |done| events(Event::Progress(done)))?;
        if cancel.load(Ordering::Relaxed) {
            interrupted = true;
            break;
        }
        events(Event::Measured(&measured));
        measurements.push(measured);
    }
    if measurements.is_empty() {
        return Err(LabError::Cancelled);
    }
    let probed = Probed {
        options: options.clone(),
        subject: target.subject,
        bytes: target.bytes,
        direct: target.direct.clone(),
        engine: match engine {
            Engine::IoUring => "io_uring".into(),
            Engine::Threads => "threads".into(),
        },
        no_uring,
        hole_bytes: target.hole_bytes,
        medium: target.medium.clone(),
        reread,
        memory_bytes: total_memory_bytes(),
    };
    let notes = notes::of_probe(&probed, &measurements);
    Ok(Report {
        source: Source::Probe(Box::new(probed)),
        host: host(),
        measurements,
        notes,
        interrupted,
    })
}

#[derive(Debug, Clone, Copy)]
enum Engine {
    IoUring,
    Threads,
}

/// The engine in use, and why it is not io_uring if that was wanted.
fn engine(options: &Options) -> Result<(Engine, Option<String>), LabError> {
    if options.engine == EngineChoice::Threads {
        return Ok((Engine::Threads, None));
    }
    let deepest = options.queue_depths.iter().copied().max().unwrap_or(1);
    match Ring::open(deepest) {
        Ok(_) => Ok((Engine::IoUring, None)),
        Err(e) if options.engine == EngineChoice::IoUring => Err(DeviceError::NoUring(e).into()),
        Err(e) => Ok((Engine::Threads, Some(e.to_string()))),
    }
}

/// The measurements, in order: reads before writes, which disturb later ones.
fn pieces(options: &Options) -> Vec<(Operation, u32, u64)> {
    let operations = if options.write {
        &[Operation::Read, Operation::Write][..]
    } else {
        &[Operation::Read]
    };
    let mut pieces = Vec::new();
    for &operation in operations {
        for &queue_depth in &options.queue_depths {
            pieces.extend(
                options
                    .block_bytes
                    .iter()
                    .map(|&block_bytes| (operation, queue_depth, block_bytes)),
            );
        }
    }
    pieces
}

/// One measurement to be.
struct Piece {
    operation: Operation,
    queue_depth: u32,
    block_bytes: u64,
    engine: Engine,
}

impl Piece {
    fn measure(
        &self,
        options: &Options,
        target: &Target,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Measurement, LabError> {
        let &Self {
            operation,
            queue_depth,
            block_bytes,
            engine,
        } = self;
        target.forget_pages();
        // Different offsets for each measurement, to avoid caches.
        let seed = crate::core::keys::mix(
            options.seed ^ block_bytes ^ (u64::from(queue_depth) << 40) ^ ((operation as u64) << 60),
        );
        let job = Job {
            file: &target.file,
            operation,
            block_bytes,
            queue_depth,
            length: Duration::from_secs_f64(options.seconds),
            places: Places::new(target.bytes / block_bytes, options.run_blocks(), seed),
            seed,
            cancel,
        };
        let tally = Tally::new()?;
        let before = usage()?;
        let done = match engine {
            Engine::IoUring => Ring::open(queue_depth)
                .map_err(DeviceError::NoUring)?
                .run(job, tally, progress),
            Engine::Threads => threads::run(job, tally, progress)?,
        };
        let after = usage()?;
        let tally = done.map_err(|broken| DeviceError::Transfer {
            path: target.path.clone(),
            operation: operation.name(),
            block_bytes,
            offset_bytes: broken.offset_bytes,
            source: broken.source,
        })?;
        let busy = after.user_seconds + after.system_seconds - before.user_seconds - before.system_seconds;
        let seconds = tally.elapsed.as_secs_f64().max(1e-9);
        let operations = tally.latency.len();
        let iops = operations as f64 / seconds;
        let summary = |histogram| crate::core::latency::summary(histogram).map(|latency| Latency::from(&latency));
        Ok(Measurement {
            job: None,
            operation,
            block_bytes,
            queue_depth,
            seconds,
            operations,
            iops,
            mb_per_s: iops * block_bytes as f64 / 1e6,
            us_per_block: seconds * 1e6 / operations.max(1) as f64,
            latency: summary(&tally.latency).unwrap_or_default(),
            random_latency: summary(&tally.random),
            submit_us: tally
                .submit
                .map(|submit| submit.as_secs_f64() * 1e6 / operations.max(1) as f64),
            tenths: tally.tenths.to_vec(),
            cores: Some(busy / seconds),
        })
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
