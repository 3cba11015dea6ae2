//! Raw deflate (RFC 1951) by Intel QPL, on an IAA device or on the CPU, with the device's history window of 4 KiB.

mod batch;
#[allow(unsafe_code, reason = "the bindings")]
pub(super) mod ffi;
mod job;

use std::cell::RefCell;

use self::ffi::{NAME, Operation, Qpl, Status};
use self::job::{ExecutionPath, Job, TIMED_OUT, explain};
use super::counters::{Count, Counters};
use super::room::{Room, append};
use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, JobCache, QplMode, QplPath, output};

/// Returns the library and its version, if it is loaded.
pub(super) fn library() -> Option<String> {
    Qpl::get().ok().map(|qpl| format!("libqpl {}", qpl.version))
}

/// The engine of `qpl`.
pub(super) struct QplEngine {
    pub(super) path: QplPath,
    pub(super) mode: QplMode,
    cache: JobCache,
    qpl: &'static Qpl,
    /// Whether a device could be initialised when the engine was opened.
    pub(super) device: bool,
    pub(super) counters: Counters,
}

impl std::fmt::Debug for QplEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QplEngine")
            .field("codec", &self.codec())
            .field("version", &self.qpl.version)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

thread_local! {
    static JOBS: RefCell<Vec<Job>> = const { RefCell::new(Vec::new()) };
}

impl QplEngine {
    /// Returns an engine for a path.
    ///
    /// # Errors
    /// Returns why there is no QPL, or no device if one is required.
    pub(super) fn new(path: QplPath, mode: QplMode, cache: JobCache) -> Result<Self, String> {
        let qpl = Qpl::get()?;
        let device = match path {
            QplPath::Software => false,
            QplPath::Hardware => Job::new(qpl, ExecutionPath::Hardware)
                .map(|_| true)
                .map_err(|e| match e {
                    CodecError::Failed { reason, .. } => format!("no IAA device: {reason}"),
                    other => other.to_string(),
                })?,
            QplPath::Auto => Job::new(qpl, ExecutionPath::Hardware).is_ok(),
        };
        Ok(Self {
            path,
            mode,
            cache,
            qpl,
            device,
            counters: Counters::default(),
        })
    }

    /// Takes a job to execute at `path`: one that this thread keeps, or a new one.
    pub(super) fn take(&self, path: ExecutionPath) -> Result<Job, CodecError> {
        if self.cache == JobCache::Thread {
            let kept = JOBS.try_with(|jobs| {
                let mut jobs = jobs.try_borrow_mut().ok()?;
                let at = jobs.iter().position(|job| job.path == path)?;
                Some(jobs.swap_remove(at))
            });
            if let Ok(Some(job)) = kept {
                return Ok(job);
            }
        }
        let job = Job::new(self.qpl, path)?;
        let count = match self.cache {
            JobCache::Thread => Count::ThreadJobs,
            JobCache::None => Count::CallJobs,
        };
        self.counters.mine().add(count, 1);
        Ok(job)
    }

    /// Keeps a job for the thread's next call, or ends it.
    pub(super) fn give_back(&self, job: Job) {
        if self.cache == JobCache::Thread {
            // A thread that is exiting keeps nothing: the closure, and the job with it, is dropped.
            let _ = JOBS.try_with(move |jobs| {
                if let Ok(mut jobs) = jobs.try_borrow_mut() {
                    jobs.push(job);
                }
            });
        }
    }

    /// Runs an operation on the engine's path, with its output in the room.
    fn run(&self, operation: Operation, input: &[u8], room: &mut Room<'_>) -> Result<(), Failure> {
        if self.device {
            match self.run_hardware(operation, input, length(room.capacity())?) {
                Ok((job, written)) => {
                    let fits = room.put(job.output(written));
                    self.give_back(job);
                    return if fits {
                        Ok(())
                    } else {
                        Err(Failure::Status(ffi::MORE_OUTPUT_NEEDED))
                    };
                }
                Err(failure) if self.path == QplPath::Hardware => return Err(failure),
                // The CPU would need no less room.
                Err(failure @ Failure::Status(ffi::MORE_OUTPUT_NEEDED)) => return Err(failure),
                Err(_) => {}
            }
        }
        self.run_software(operation, input, room)
    }

    /// Runs an operation on the CPU.
    pub(super) fn run_software(&self, operation: Operation, input: &[u8], room: &mut Room<'_>) -> Result<(), Failure> {
        self.count_software();
        let mut job = self.take(ExecutionPath::Software)?;
        let result = job.run(operation, input, room);
        self.give_back(job);
        Ok(result?)
    }

    pub(super) fn count_software(&self) {
        let counts = self.counters.mine();
        counts.add(Count::SoftwareCalls, 1);
        if self.path == QplPath::Auto {
            counts.add(Count::Fallbacks, 1);
        }
    }

    /// Runs an operation on the device, and returns the job that has its output.
    fn run_hardware(&self, operation: Operation, input: &[u8], room: u32) -> Result<(Job, usize), Failure> {
        let mut job = self.take(ExecutionPath::Hardware)?;
        if let Err(status) = job.submit_patiently(operation, input, room) {
            self.give_back(job);
            return Err(status.into());
        }
        match job.finish() {
            (Some(job), Ok(written)) => {
                self.counters.mine().add(Count::HardwareCalls, 1);
                Ok((job, written))
            }
            (Some(job), Err(status)) => {
                self.give_back(job);
                Err(status.into())
            }
            (None, result) => Err(result.err().unwrap_or(ffi::OK).into()),
        }
    }

    /// Compresses through `run`, which is passed the available room.
    pub(super) fn append(
        raw: &[u8],
        out: &mut Vec<u8>,
        run: impl FnOnce(&mut Room<'_>) -> Result<(), Failure>,
    ) -> Result<usize, CodecError> {
        let bound = bound(raw.len());
        length(bound)?;
        append(out, bound, |room| match run(room) {
            Ok(()) => Ok(()),
            Err(Failure::Status(ffi::MORE_OUTPUT_NEEDED)) if store(raw, room) => Ok(()),
            Err(Failure::Status(status)) => Err(output::failed(NAME, explain(status))),
            Err(Failure::Codec(error)) => Err(error),
        })
    }

    fn compress_one(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<usize, CodecError> {
        if raw.is_empty() {
            self.count_software();
            output::reserve(out, EMPTY.len())?;
            out.extend_from_slice(&EMPTY);
            return Ok(EMPTY.len());
        }
        Self::append(raw, out, |room| self.run(Operation::Compress(self.mode), raw, room))
    }

    fn compress_one_into(&self, raw: &[u8], out: &mut [u8]) -> Result<Option<usize>, CodecError> {
        if raw.is_empty() || out.is_empty() {
            return Ok(None);
        }
        length(out.len())?;
        let mut room = Room::of(out);
        match self.run(Operation::Compress(self.mode), raw, &mut room) {
            Ok(()) => Ok(Some(room.len()).filter(|written| *written < raw.len())),
            Err(Failure::Status(ffi::MORE_OUTPUT_NEEDED)) => Ok(None),
            Err(Failure::Status(status)) => Err(output::failed(NAME, explain(status))),
            Err(Failure::Codec(error)) => Err(error),
        }
    }

    /// Decompresses through `run`, which is passed `raw` as room.
    pub(super) fn fill(
        block: &[u8],
        raw: &mut [u8],
        run: impl FnOnce(&mut Room<'_>) -> Result<(), Failure>,
    ) -> Result<usize, CodecError> {
        length(block.len())?;
        let expected = raw.len();
        length(expected)?;
        let mut room = Room::of(raw);
        Self::decompressed(run(&mut room))?;
        output::exact(NAME, room.len(), expected)
    }

    /// Converts the outcome of a decompression.
    fn decompressed(result: Result<(), Failure>) -> Result<(), CodecError> {
        result.map_err(|failure| match failure {
            Failure::Status(status @ (ffi::QUEUES_ARE_BUSY | ffi::NO_MEMORY | TIMED_OUT)) => {
                output::failed(NAME, explain(status))
            }
            Failure::Status(status) => output::corrupt(NAME, explain(status)),
            Failure::Codec(error) => error,
        })
    }

    /// Decompresses from or to an empty buffer, which QPL does not accept.
    fn decompress_nothing(&self, block: &[u8], expected: usize) -> Result<usize, CodecError> {
        if block.is_empty() {
            self.count_software();
            return Err(output::corrupt(NAME, "it is empty"));
        }
        // An empty stream leaves this byte unchanged; a longer one overwrites it or does not fit.
        let mut one = [0];
        let mut room = Room::of(&mut one);
        match self.run(Operation::Decompress, block, &mut room) {
            Err(Failure::Status(ffi::MORE_OUTPUT_NEEDED)) => Err(output::wrong_length(NAME, 2, expected)),
            result => {
                Self::decompressed(result)?;
                output::exact(NAME, room.len(), expected)
            }
        }
    }

    fn decompress_one(&self, block: &[u8], raw: &mut [u8]) -> Result<usize, CodecError> {
        if raw.is_empty() || block.is_empty() {
            return self.decompress_nothing(block, raw.len());
        }
        Self::fill(block, raw, |room| self.run(Operation::Decompress, block, room))
    }
}

/// The cause of a failed operation.
pub(super) enum Failure {
    /// A status of QPL.
    Status(Status),
    /// An error before QPL was called.
    Codec(CodecError),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Failure::Status(status)
    }
}

impl From<CodecError> for Failure {
    fn from(error: CodecError) -> Self {
        Failure::Codec(error)
    }
}

/// The deflate stream of an empty input: one final block with the fixed tables that ends at once.
const EMPTY: [u8; 2] = [3, 0];

/// Maximum bytes of a stored block, and the length of its header.
const STORED_BYTES: usize = 65_535;
const STORED_HEADER_BYTES: usize = 5;

/// Returns the room for the fixed tables' worst case (nine bits per byte), for stored blocks, and for QPL's internal
/// needs.
pub(super) fn bound(raw_len: usize) -> usize {
    raw_len + raw_len / 8 + (raw_len / STORED_BYTES + 1) * STORED_HEADER_BYTES + 64
}

/// Writes `raw` as stored blocks into the room; returns false if they do not fit. [`bound`] is enough.
fn store(raw: &[u8], room: &mut Room<'_>) -> bool {
    room.truncate(0);
    let mut blocks = raw.chunks(STORED_BYTES).peekable();
    while let Some(block) = blocks.next() {
        let length = (block.len() as u16).to_le_bytes();
        let last = u8::from(blocks.peek().is_none());
        let header = [last, length[0], length[1], !length[0], !length[1]];
        if !room.push(&header) || !room.push(block) {
            return false;
        }
    }
    true
}

/// Converts a length to QPL's type.
pub(super) fn length(bytes: usize) -> Result<u32, CodecError> {
    u32::try_from(bytes).map_err(|_| output::failed(NAME, format!("{bytes} bytes are too many for one block")))
}

impl Engine for QplEngine {
    fn codec(&self) -> Codec {
        Codec::Qpl {
            path: self.path,
            mode: self.mode,
        }
    }

    fn engine_name(&self) -> &'static str {
        match self.path {
            QplPath::Software => "software",
            QplPath::Hardware => "hardware",
            QplPath::Auto => "auto",
        }
    }

    fn counters(&self) -> EngineCounters {
        self.counters.sum()
    }

    fn compress(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.counters.compress(raw.len(), || self.compress_one(raw, out))
    }

    fn compress_into(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut [u8]) -> Result<Option<usize>, CodecError> {
        self.counters
            .compress_into(raw.len(), || self.compress_one_into(raw, out))
    }

    fn decompress(&self, block: &[u8], _: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        let raw_len = raw.len();
        self.counters
            .decompress(block.len(), raw_len, || self.decompress_one(block, raw))
            .map(drop)
    }

    fn compress_batch(&self, raws: &[&[u8]], _: Option<&Dictionary>, out: &mut Vec<Vec<u8>>) -> Result<(), CodecError> {
        self.compress_many(raws, out)
    }

    fn decompress_batch(
        &self,
        blocks: &[&[u8]],
        _: Option<&Dictionary>,
        raws: &mut [&mut [u8]],
    ) -> Vec<Result<(), CodecError>> {
        self.decompress_many(blocks, raws)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_blocks_are_deflate() {
        for size in [1, 100, STORED_BYTES, STORED_BYTES + 1, 200_000] {
            let raw: Vec<u8> = (0..size).map(|i| (i * 7) as u8).collect();
            let mut out = vec![0; bound(size)];
            let mut room = Room::of(&mut out);
            assert!(store(&raw, &mut room));
            let mut back = vec![0; size];
            let mut inflater = libdeflater::Decompressor::new();
            let found = inflater.deflate_decompress(room.block(), &mut back);
            assert_eq!(found.unwrap(), size);
            assert_eq!(back, raw);
        }
    }
}
