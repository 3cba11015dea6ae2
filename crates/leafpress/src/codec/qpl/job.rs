//! QPL jobs: their memory, and one operation from submission to its end.

use std::alloc::Layout;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use super::ffi::{self, Qpl, Status};
use crate::codec::{CodecError, QplMode, output};

pub(in crate::codec) const NAME: &str = "qpl";

/// QPL aligns its parts within a job to cache lines by itself; starting on one wastes nothing.
const ALIGNMENT: usize = 64;

/// A busy queue is tried this often, with a pause between that doubles up to [`MAX_PAUSE`]: about 3 ms in all.
const BUSY_TRIES: u32 = 40;
const FIRST_PAUSE: Duration = Duration::from_micros(1);
const MAX_PAUSE: Duration = Duration::from_micros(100);

/// A device is asked this often without a pause whether it is done; a block of 4 KiB takes it a few microseconds.
const SPIN_CHECKS: u32 = 2000;
/// After this a device is taken to have failed.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(5);

/// The status of a device that did not answer: ours, and far from any of QPL's. (Its CPU decoder returns all ones for some
/// malformed blocks.)
pub(in crate::codec) const TIMED_OUT: Status = 0x4C50_0001;

/// Where a job executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::codec) enum Place {
    Software,
    Hardware,
}

impl Place {
    fn path(self) -> c_int {
        match self {
            Place::Software => ffi::PATH_SOFTWARE,
            Place::Hardware => ffi::PATH_HARDWARE,
        }
    }
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub(in crate::codec) enum Operation {
    Compress(QplMode),
    Decompress,
}

/// An initialised job.
pub(in crate::codec) struct Job {
    head: NonNull<ffi::JobHead>,
    layout: Layout,
    pub(in crate::codec) place: Place,
    qpl: &'static Qpl,
    /// A device reads and writes these, never the caller's memory, so that a device which does not answer can be given up.
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Job {
    pub(in crate::codec) fn new(qpl: &'static Qpl, place: Place) -> Result<Self, CodecError> {
        let failed = |status| output::failed(NAME, ffi::explain(status));
        let mut size = 0;
        // SAFETY: `size` is writable.
        let status = unsafe { (qpl.get_job_size)(place.path(), &raw mut size) };
        if status != ffi::OK {
            return Err(failed(status));
        }
        let size = (size as usize).max(size_of::<ffi::JobHead>());
        let layout = Layout::from_size_align(size, ALIGNMENT).map_err(|_| CodecError::OutOfMemory { bytes: size })?;
        // SAFETY: the size is not zero.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        let head = NonNull::new(memory.cast()).ok_or(CodecError::OutOfMemory { bytes: size })?;
        let mut job = Self {
            head,
            layout,
            place,
            qpl,
            input: Vec::new(),
            output: Vec::new(),
        };
        // SAFETY: the job has the size that QPL asked for.
        let status = unsafe { (qpl.init_job)(place.path(), head.as_ptr()) };
        if status == ffi::OK {
            return Ok(job);
        }
        job.release();
        std::mem::forget(job);
        Err(failed(status))
    }

    /// Frees the memory, and nothing else.
    fn release(&mut self) {
        // SAFETY: the memory came from this allocator with this layout, and is freed once.
        unsafe { std::alloc::dealloc(self.head.as_ptr().cast(), self.layout) };
    }

    fn prepare(&mut self, operation: Operation, input: (*const u8, u32), room: (*mut u8, u32)) {
        // SAFETY: the job is initialised, and no operation is in flight.
        let head = unsafe { self.head.as_mut() };
        (head.next_in, head.available_in, head.total_in) = (input.0, input.1, 0);
        (head.next_out, head.available_out, head.total_out) = (room.0, room.1, 0);
        head.level = ffi::LEVEL_DEFAULT;
        (head.op, head.flags) = match operation {
            Operation::Decompress => (ffi::OP_DECOMPRESS, ffi::FLAG_FIRST | ffi::FLAG_LAST),
            Operation::Compress(mode) => {
                let dynamic = if mode == QplMode::Dynamic {
                    ffi::FLAG_DYNAMIC_HUFFMAN
                } else {
                    0
                };
                (
                    ffi::OP_COMPRESS,
                    ffi::FLAG_FIRST | ffi::FLAG_LAST | ffi::FLAG_OMIT_VERIFY | dynamic,
                )
            }
        };
    }

    fn written(&self) -> usize {
        // SAFETY: the job is initialised, and no operation is in flight.
        unsafe { self.head.as_ref() }.total_out as usize
    }

    /// Runs an operation on the CPU, from `input` to `room`, and returns the bytes it wrote.
    ///
    /// # Safety
    /// `room` is writable for its length.
    pub(in crate::codec) unsafe fn run(
        &mut self,
        operation: Operation,
        input: &[u8],
        room: (*mut u8, u32),
    ) -> Result<usize, Status> {
        debug_assert_eq!(self.place, Place::Software);
        self.prepare(operation, (input.as_ptr(), input.len() as u32), room);
        // SAFETY: the job is prepared; QPL reads within `input` and writes within `room`.
        match unsafe { (self.qpl.execute_job)(self.head.as_ptr()) } {
            ffi::OK => Ok(self.written()),
            status => Err(status),
        }
    }

    /// Starts an operation whose output has at most `room` bytes. `input` is copied. On `Ok` the job is in flight and
    /// [`Job::finish`] must follow.
    pub(in crate::codec) fn submit(&mut self, operation: Operation, input: &[u8], room: u32) -> Result<(), Status> {
        self.input.clear();
        self.input.extend_from_slice(input);
        self.output.resize(room as usize, 0);
        let source = (self.input.as_ptr(), input.len() as u32);
        let room = (self.output.as_mut_ptr(), room);
        self.prepare(operation, source, room);
        // SAFETY: the job is prepared; QPL reads and writes within the job's own vectors, which stay as they are until
        // the operation's end.
        match unsafe { (self.qpl.submit_job)(self.head.as_ptr()) } {
            ffi::OK => Ok(()),
            status => Err(status),
        }
    }

    /// As [`Job::submit`], trying again a bounded number of times while the queues are busy.
    pub(in crate::codec) fn submit_patiently(
        &mut self,
        operation: Operation,
        input: &[u8],
        room: u32,
    ) -> Result<(), Status> {
        let mut pause = Pause::default();
        loop {
            match self.submit(operation, input, room) {
                Err(ffi::QUEUES_ARE_BUSY) if pause.again() => {}
                result => return result,
            }
        }
    }

    /// Waits for the operation in flight and hands out its output. A job whose device does not answer is given up: its
    /// memory stays with the device for ever. The caller gets the job back otherwise.
    pub(in crate::codec) fn finish(self) -> (Option<Self>, Result<usize, Status>) {
        let mut checks = 0;
        let mut pause = Pause::default();
        let started = Instant::now();
        loop {
            // SAFETY: the job was submitted.
            let status = unsafe { (self.qpl.check_job)(self.head.as_ptr()) };
            match status {
                ffi::OK => {
                    let written = self.written().min(self.output.len());
                    return (Some(self), Ok(written));
                }
                ffi::BEING_PROCESSED if checks < SPIN_CHECKS => {
                    checks += 1;
                    std::hint::spin_loop();
                }
                ffi::BEING_PROCESSED if started.elapsed() < DEVICE_TIMEOUT => std::thread::sleep(MAX_PAUSE),
                ffi::BEING_PROCESSED => {
                    std::mem::forget(self);
                    return (None, Err(TIMED_OUT));
                }
                // An operation of several descriptors was taken in part; checking submits the next one.
                ffi::QUEUES_ARE_BUSY if pause.again() => {}
                status => return (Some(self), Err(status)),
            }
        }
    }

    /// The output of the operation that ended with `Ok(written)`.
    pub(in crate::codec) fn output(&self, written: usize) -> &[u8] {
        &self.output[..written]
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // SAFETY: the job is initialised, no operation is in flight, and it is ended once.
        unsafe { (self.qpl.fini_job)(self.head.as_ptr()) };
        self.release();
    }
}

/// What a status that ended an operation means.
pub(in crate::codec) fn explain(status: Status) -> String {
    if status == TIMED_OUT {
        "the device did not answer".to_owned()
    } else {
        ffi::explain(status)
    }
}

/// A bounded number of pauses that grow.
#[derive(Default)]
struct Pause {
    tries: u32,
}

impl Pause {
    /// Pauses, or says that it has been long enough.
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
