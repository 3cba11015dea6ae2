//! A job with a thread for each request in flight, calling `pread` or `pwrite` in sequence: used without io_uring.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::Operation;
use super::buffer::Buffer;
use super::job::{Broken, Job, Tally};
use super::request_order::{Place, Places};
use crate::core::LabError;

/// Time between two reports of progress.
const REPORT: Duration = Duration::from_millis(50);

/// Runs the job to its end, or until cancelled. The inner error is that of a request, the outer that of the threads.
pub(super) fn run(
    job: Job<'_>,
    tally: Tally,
    progress: &mut dyn FnMut(f64),
) -> Result<Result<Tally, Broken>, LabError> {
    let mut parts = Vec::new();
    for number in 0..u64::from(job.queue_depth) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(job.seed ^ (number << 32));
        let mut buffer = Buffer::new(job.block_bytes as usize)
            .map_err(|e| LabError::System(format!("no memory for {} requests in flight: {e}", job.queue_depth)))?;
        if job.operation == Operation::Write {
            buffer.fill(&mut random);
        }
        parts.push((buffer, random, Tally::new()?));
    }
    let length = job.length;
    let shared = Shared {
        begin: Instant::now(),
        end: AtomicBool::new(false),
        places: Mutex::new(job.places),
    };
    let order = Order {
        file: job.file,
        operation: job.operation,
        block_bytes: job.block_bytes,
        length,
        cancel: job.cancel,
    };
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (buffer, random, part) in parts {
            let (shared, order) = (&shared, &order);
            let spawned =
                std::thread::Builder::new().spawn_scoped(scope, move || work(order, shared, buffer, random, part));
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(e) => {
                    shared.end.store(true, Ordering::Relaxed);
                    return Err(LabError::System(format!("no thread for each request in flight: {e}")));
                }
            }
        }
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(REPORT.min(length / 20));
            progress((shared.begin.elapsed().as_secs_f64() / length.as_secs_f64()).min(1.0));
        }
        let mut sum = tally;
        let mut broken = None;
        for thread in threads {
            match thread.join() {
                Ok(Ok(part)) => {
                    sum.add(&part);
                    sum.elapsed = sum.elapsed.max(part.elapsed);
                }
                Ok(Err(e)) => broken = broken.or(Some(e)),
                Err(_) => return Err(LabError::System("a thread of the probe panicked".into())),
            }
        }
        Ok(broken.map_or(Ok(sum), Err))
    })
}

/// Mutable state shared by all threads.
struct Shared {
    begin: Instant,
    /// Set when one of them failed.
    end: AtomicBool,
    places: Mutex<Places>,
}

impl Shared {
    fn place(&self) -> Place {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

/// The work of each thread.
struct Order<'j> {
    file: &'j std::fs::File,
    operation: Operation,
    block_bytes: u64,
    length: Duration,
    cancel: &'j AtomicBool,
}

fn work(
    order: &Order<'_>,
    shared: &Shared,
    mut buffer: Buffer,
    mut random: Xoshiro256PlusPlus,
    mut tally: Tally,
) -> Result<Tally, Broken> {
    let goes_on = || {
        !shared.end.load(Ordering::Relaxed)
            && !order.cancel.load(Ordering::Relaxed)
            && shared.begin.elapsed() < order.length
    };
    // A machine so busy that the time is over before the thread runs still gives a figure.
    loop {
        let place = shared.place();
        let offset_bytes = place.block * order.block_bytes;
        if order.operation == Operation::Write {
            buffer.stamp(&mut random);
        }
        let started = Instant::now();
        let answer: io::Result<()> = match order.operation {
            Operation::Read => order.file.read_exact_at(buffer.bytes_mut(), offset_bytes),
            Operation::Write => order.file.write_all_at(buffer.bytes(), offset_bytes),
        };
        let ended = Instant::now();
        if let Err(source) = answer {
            shared.end.store(true, Ordering::Relaxed);
            return Err(Broken { offset_bytes, source });
        }
        let at = ended.duration_since(shared.begin);
        tally.record(ended.duration_since(started), place.random, at, order.length);
        tally.elapsed = at;
        if !goes_on() {
            return Ok(tally);
        }
    }
}
