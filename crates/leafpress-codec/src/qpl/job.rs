//! QPL jobs: their memory, and an operation from submission to completion.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use super::ffi::{self, Operation, Qpl, RawJob, Status};
use crate::CodecError;
use crate::room::Room;

/// Attempts to submit to a busy queue, with exponential backoff up to [`MAX_PAUSE`]: about 3 ms in total.
const BUSY_TRIES: u32 = 40;
const FIRST_PAUSE: Duration = Duration::from_micros(1);
const MAX_PAUSE: Duration = Duration::from_micros(100);

/// A device is polled this often without a pause; a block of 4 KiB takes it a few microseconds.
const SPIN_CHECKS: u32 = 2000;
/// After this time a device is considered failed.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(5);

/// The status of a device that did not respond: a value of this module, distinct from QPL's. (Its CPU decoder returns
/// all ones for some malformed blocks.)
pub(crate) const TIMED_OUT: Status = 0x4C50_0001;

/// Where a job executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecutionPath {
    Software,
    Hardware,
}

impl ExecutionPath {
    fn code(self) -> c_int {
        match self {
            ExecutionPath::Software => ffi::PATH_SOFTWARE,
            ExecutionPath::Hardware => ffi::PATH_HARDWARE,
        }
    }
}

/// A job and its execution path.
pub(crate) struct Job {
    raw: RawJob,
    pub(crate) path: ExecutionPath,
}

impl Job {
    pub(crate) fn new(qpl: &'static Qpl, path: ExecutionPath) -> Result<Self, CodecError> {
        let raw = RawJob::new(qpl, path.code())?;
        Ok(Self { raw, path })
    }

    /// Runs an operation to completion, with its output in the room.
    pub(crate) fn run(&mut self, operation: Operation, input: &[u8], room: &mut Room<'_>) -> Result<(), Status> {
        self.raw.execute(operation, input, room)
    }

    /// Starts an operation whose output has at most `room` bytes. `input` is copied. On `Ok` the job is in flight and
    /// [`Job::finish`] must follow.
    pub(crate) fn submit(&mut self, operation: Operation, input: &[u8], room: u32) -> Result<(), Status> {
        self.raw.submit(operation, input, room)
    }

    /// Submits like [`Job::submit`], with a bounded number of retries while the queues are busy.
    pub(crate) fn submit_patiently(&mut self, operation: Operation, input: &[u8], room: u32) -> Result<(), Status> {
        let mut pause = Pause::default();
        loop {
            match self.submit(operation, input, room) {
                Err(ffi::QUEUES_ARE_BUSY) if pause.again() => {}
                result => return result,
            }
        }
    }

    /// Waits for the operation in flight and returns the length of its output. A job whose device does not respond is
    /// abandoned: its memory is leaked. Otherwise the caller gets the job back.
    pub(crate) fn finish(mut self) -> (Option<Self>, Result<usize, Status>) {
        let mut checks = 0;
        let mut pause = Pause::default();
        let started = Instant::now();
        loop {
            match self.raw.check() {
                Ok(written) => return (Some(self), Ok(written)),
                Err(ffi::BEING_PROCESSED) if checks < SPIN_CHECKS => {
                    checks += 1;
                    std::hint::spin_loop();
                }
                Err(ffi::BEING_PROCESSED) if started.elapsed() < DEVICE_TIMEOUT => std::thread::sleep(MAX_PAUSE),
                Err(ffi::BEING_PROCESSED) => return (None, Err(TIMED_OUT)),
                // An operation of several descriptors was submitted partially; polling submits the next one.
                Err(ffi::QUEUES_ARE_BUSY) if pause.again() => {}
                Err(status) => return (Some(self), Err(status)),
            }
        }
    }

    /// Returns the output of the operation that ended with `Ok(written)`.
    pub(crate) fn output(&self, written: usize) -> &[u8] {
        self.raw.output(written)
    }
}

/// Returns the meaning of a status that ended an operation.
pub(crate) fn explain(status: Status) -> String {
    if status == TIMED_OUT {
        "the device did not answer".to_owned()
    } else {
        ffi::explain(status)
    }
}

/// A bounded number of increasing pauses.
#[derive(Default)]
struct Pause {
    tries: u32,
}

impl Pause {
    /// Pauses; returns false once the limit is reached.
    fn again(&mut self) -> bool {
        if self.tries >= BUSY_TRIES {
            return false;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << self.tries.min(10)).min(MAX_PAUSE);
        let until = Instant::now() + pause;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        self.tries += 1;
        true
    }
}
