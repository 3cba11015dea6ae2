//! Raw deflate (RFC 1951) by Intel QPL, on an IAA device or on the CPU, with the device's history window of 4 KiB.

use std::cell::RefCell;
use std::time::Instant;

use super::counters::Counters;
use super::qpl_ffi::{self as ffi, Qpl, Status};
use super::qpl_job::{Job, NAME, Operation, Place, TIMED_OUT, explain};
use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, JobCache, QplMode, QplPath, deflate, output};

/// Jobs of a batch that are in flight at once. A device has queues of 16 to 128 entries which all threads share.
const HARDWARE_BATCH: usize = 8;
/// A job for the CPU holds 740 KB.
const SOFTWARE_BATCH: usize = 2;

/// The engine of `qpl`.
pub(super) struct QplEngine {
    path: QplPath,
    mode: QplMode,
    cache: JobCache,
    qpl: &'static Qpl,
    /// Whether a device could be initialised when the engine was opened.
    device: bool,
    counters: Counters,
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
    /// An engine on a path.
    ///
    /// # Errors
    /// Why there is no QPL, or no device where one is asked for.
    pub(super) fn new(path: QplPath, mode: QplMode, cache: JobCache) -> Result<Self, String> {
        let qpl = Qpl::get()?;
        let device = match path {
            QplPath::Software => false,
            QplPath::Hardware => Job::new(qpl, Place::Hardware).map(|_| true).map_err(|e| match e {
                CodecError::Failed { reason, .. } => format!("no IAA device: {reason}"),
                other => other.to_string(),
            })?,
            QplPath::Auto => Job::new(qpl, Place::Hardware).is_ok(),
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

    /// A job to execute there: one that this thread keeps, or a new one.
    fn take(&self, place: Place) -> Result<Job, CodecError> {
        if self.cache == JobCache::Thread {
            let kept = JOBS.try_with(|jobs| {
                let mut jobs = jobs.try_borrow_mut().ok()?;
                let at = jobs.iter().position(|job| job.place == place)?;
                Some(jobs.swap_remove(at))
            });
            if let Ok(Some(job)) = kept {
                return Ok(job);
            }
        }
        let job = Job::new(self.qpl, place)?;
        let counts = self.counters.mine();
        match self.cache {
            JobCache::Thread => counts.thread_jobs.add(1),
            JobCache::None => counts.call_jobs.add(1),
        }
        Ok(job)
    }

    /// Keeps a job for the thread's next call, or ends it.
    fn give_back(&self, job: Job) {
        if self.cache == JobCache::Thread {
            // A thread that is ending keeps nothing: the closure, and the job with it, is dropped.
            let _ = JOBS.try_with(move |jobs| {
                if let Ok(mut jobs) = jobs.try_borrow_mut() {
                    jobs.push(job);
                }
            });
        }
    }

    /// Runs an operation where the engine's path says and returns the bytes it wrote.
    ///
    /// # Safety
    /// `out` is writable for `room` bytes.
    unsafe fn run(&self, operation: Operation, input: &[u8], out: *mut u8, room: u32) -> Result<usize, Failure> {
        if self.device {
            match self.run_hardware(operation, input, room)? {
                Ok((job, written)) => {
                    // SAFETY: `written` is at most `room`, which is writable at `out`; the job's memory is its own.
                    unsafe { out.copy_from_nonoverlapping(job.output(written).as_ptr(), written) };
                    self.give_back(job);
                    return Ok(written);
                }
                Err(status) if self.path == QplPath::Hardware => return Err(Failure::Status(status)),
                Err(_) => {}
            }
        }
        // SAFETY: the caller's.
        unsafe { self.run_software(operation, input, out, room) }
    }

    /// Runs an operation on the CPU.
    ///
    /// # Safety
    /// `out` is writable for `room` bytes.
    unsafe fn run_software(
        &self,
        operation: Operation,
        input: &[u8],
        out: *mut u8,
        room: u32,
    ) -> Result<usize, Failure> {
        self.count_software();
        let mut job = self.take(Place::Software)?;
        // SAFETY: the caller's.
        let result = unsafe { job.run(operation, input, (out, room)) };
        self.give_back(job);
        Ok(result?)
    }

    fn count_software(&self) {
        let counts = self.counters.mine();
        counts.software_calls.add(1);
        if self.path == QplPath::Auto {
            counts.fallbacks.add(1);
        }
    }

    /// Runs an operation on the device; the outer error is this process's, the inner one the device's.
    fn run_hardware(
        &self,
        operation: Operation,
        input: &[u8],
        room: u32,
    ) -> Result<Result<(Job, usize), Status>, CodecError> {
        let mut job = self.take(Place::Hardware)?;
        if let Err(status) = job.submit_patiently(operation, input, room) {
            self.give_back(job);
            return Ok(Err(status));
        }
        Ok(match job.finish() {
            (Some(job), Ok(written)) => {
                self.counters.mine().hardware_calls.add(1);
                Ok((job, written))
            }
            (Some(job), Err(status)) => {
                self.give_back(job);
                Err(status)
            }
            (None, result) => Err(result.err().unwrap_or(ffi::OK)),
        })
    }

    /// Compresses through `run`, which is given the room and the bytes there are.
    fn append(
        raw: &[u8],
        out: &mut Vec<u8>,
        run: impl FnOnce(*mut u8, u32) -> Result<usize, Failure>,
    ) -> Result<usize, CodecError> {
        let bound = bound(raw.len());
        let room = length(bound)?;
        let write = |out: *mut u8| match run(out, room) {
            Ok(written) => Ok(written),
            // SAFETY: the bound leaves room for stored blocks.
            Err(Failure::Status(ffi::MORE_OUTPUT_NEEDED)) => Ok(unsafe { store(raw, out) }),
            Err(Failure::Status(status)) => Err(output::failed(NAME, explain(status))),
            Err(Failure::Codec(error)) => Err(error),
        };
        // SAFETY: QPL initialises the bytes it reports, within the room it is given.
        unsafe { output::append(out, bound, write) }
    }

    fn compress_one(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<usize, CodecError> {
        if raw.is_empty() {
            self.count_software();
            output::reserve(out, EMPTY.len())?;
            out.extend_from_slice(&EMPTY);
            return Ok(EMPTY.len());
        }
        // SAFETY: `append` gives room.
        Self::append(raw, out, |out, room| unsafe {
            self.run(Operation::Compress(self.mode), raw, out, room)
        })
    }

    /// Decompresses through `run`, which returns the bytes it wrote to `raw`.
    fn fill(
        block: &[u8],
        raw: &mut [u8],
        run: impl FnOnce(&mut [u8], u32) -> Result<usize, Failure>,
    ) -> Result<usize, CodecError> {
        length(block.len())?;
        let expected = raw.len();
        let room = length(expected)?;
        let found = match run(raw, room) {
            Ok(found) => found,
            Err(Failure::Status(status @ (ffi::QUEUES_ARE_BUSY | ffi::NO_MEMORY | TIMED_OUT))) => {
                return Err(output::failed(NAME, explain(status)));
            }
            Err(Failure::Status(status)) => return Err(output::corrupt(NAME, explain(status))),
            Err(Failure::Codec(error)) => return Err(error),
        };
        if found == expected {
            Ok(found)
        } else {
            Err(output::wrong_length(NAME, found, expected))
        }
    }

    fn decompress_one(&self, block: &[u8], raw: &mut [u8]) -> Result<usize, CodecError> {
        if raw.is_empty() || block.is_empty() {
            // QPL takes no empty buffers.
            self.count_software();
            let found = deflate::decode_into(NAME, block, raw)?;
            return if found == raw.len() {
                Ok(found)
            } else {
                Err(output::wrong_length(NAME, found, raw.len()))
            };
        }
        Self::fill(block, raw, |raw, room| {
            // SAFETY: `raw` is writable for its length, which `room` is.
            unsafe { self.run(Operation::Decompress, block, raw.as_mut_ptr(), room) }
        })
    }

    /// Where a batch goes, and how many of its jobs are in flight at once. On the CPU a job is done when it is submitted.
    fn batch_place(&self) -> (Place, usize) {
        if self.device {
            (Place::Hardware, HARDWARE_BATCH)
        } else {
            (Place::Software, SOFTWARE_BATCH)
        }
    }

    /// Submits as many of `inputs`, each with its room, as fit in flight, waits for them, and hands each one's output or
    /// status to `done`. Returns how many there were: at least one.
    fn run_round(
        &self,
        operation: Operation,
        inputs: &[(&[u8], u32)],
        mut done: impl FnMut(usize, Result<&[u8], Failure>),
    ) -> usize {
        let (place, most) = self.batch_place();
        let mut flying: Vec<Result<Job, Failure>> = Vec::with_capacity(most);
        for (input, room) in inputs.iter().take(most) {
            let first = flying.is_empty();
            flying.push(self.take(place).map_err(Failure::Codec).and_then(|mut job| {
                // The first of a round waits for other threads' jobs; later ones leave a full queue to the next round.
                let submitted = match first {
                    true => job.submit_patiently(operation, input, *room),
                    false => job.submit(operation, input, *room),
                };
                match submitted {
                    Ok(()) => Ok(job),
                    Err(status) => {
                        self.give_back(job);
                        Err(Failure::Status(status))
                    }
                }
            }));
            if !first && matches!(flying.last(), Some(Err(Failure::Status(ffi::QUEUES_ARE_BUSY)))) {
                flying.pop();
                break;
            }
        }
        let round = flying.len();
        for (at, job) in flying.into_iter().enumerate() {
            let (job, result) = match job {
                Ok(job) => job.finish(),
                Err(failure) => {
                    done(at, Err(failure));
                    continue;
                }
            };
            match (&job, result) {
                (Some(job), Ok(written)) => {
                    match place {
                        Place::Hardware => self.counters.mine().hardware_calls.add(1),
                        Place::Software => self.count_software(),
                    }
                    done(at, Ok(job.output(written)));
                }
                (_, result) => done(
                    at,
                    Err(Failure::Status(result.err().unwrap_or(ffi::MORE_OUTPUT_NEEDED))),
                ),
            }
            if let Some(job) = job {
                self.give_back(job);
            }
        }
        round
    }

    /// What to do with a batch's output at `out`: copy it there, or run the operation on the CPU after all.
    ///
    /// # Safety
    /// `out` is writable for `room` bytes.
    unsafe fn land(
        &self,
        operation: Operation,
        input: &[u8],
        result: Result<&[u8], Failure>,
        out: *mut u8,
        room: u32,
    ) -> Result<usize, Failure> {
        match result {
            Ok(bytes) if bytes.len() <= room as usize => {
                // SAFETY: the caller's; a job's memory is its own.
                unsafe { out.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
                Ok(bytes.len())
            }
            Ok(_) => Err(Failure::Status(ffi::MORE_OUTPUT_NEEDED)),
            Err(Failure::Status(_)) if self.device && self.path == QplPath::Auto => {
                // SAFETY: the caller's.
                unsafe { self.run_software(operation, input, out, room) }
            }
            Err(failure) => {
                if !self.device {
                    self.count_software();
                }
                Err(failure)
            }
        }
    }
}

/// Why an operation did not end well.
enum Failure {
    /// By what QPL says.
    Status(Status),
    /// Before QPL came to it.
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

/// The deflate stream of no bytes: one final block with the fixed tables that ends at once.
const EMPTY: [u8; 2] = [3, 0];

/// The most bytes of a stored block, and its header's length.
const STORED_BYTES: usize = 65_535;
const STORED_HEADER_BYTES: usize = 5;

/// Room for the fixed tables' worst case (nine bits a byte) and for stored blocks, and what QPL keeps to itself.
fn bound(raw_len: usize) -> usize {
    raw_len + raw_len / 8 + (raw_len / STORED_BYTES + 1) * STORED_HEADER_BYTES + 64
}

/// Writes `raw` as stored blocks and returns their length.
///
/// # Safety
/// `out` is writable for [`bound`] bytes, which are not `raw`'s.
unsafe fn store(raw: &[u8], out: *mut u8) -> usize {
    let mut written = 0;
    let mut blocks = raw.chunks(STORED_BYTES).peekable();
    while let Some(block) = blocks.next() {
        let length = (block.len() as u16).to_le_bytes();
        let last = u8::from(blocks.peek().is_none());
        let header = [last, length[0], length[1], !length[0], !length[1]];
        // SAFETY: `bound` counts a header and the bytes of every block.
        unsafe {
            out.add(written).copy_from_nonoverlapping(header.as_ptr(), header.len());
            out.add(written + header.len())
                .copy_from_nonoverlapping(block.as_ptr(), block.len());
        }
        written += header.len() + block.len();
    }
    written
}

/// A length as QPL counts it.
fn length(bytes: usize) -> Result<u32, CodecError> {
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

    fn decompress(&self, block: &[u8], _: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        let raw_len = raw.len();
        self.counters
            .decompress(block.len(), raw_len, || self.decompress_one(block, raw))
            .map(drop)
    }

    fn compress_batch(
        &self,
        raws: &[&[u8]],
        dictionary: Option<&Dictionary>,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), CodecError> {
        let before = out.len();
        let operation = Operation::Compress(self.mode);
        let started = Instant::now();
        let mut at = 0;
        while at < raws.len() {
            // QPL takes no empty buffers, and none past 4 GiB.
            let inputs: Vec<(&[u8], u32)> = raws[at..]
                .iter()
                .take_while(|raw| !raw.is_empty())
                .map_while(|raw| Some((*raw, length(bound(raw.len())).ok()?)))
                .take(HARDWARE_BATCH)
                .collect();
            let mut failure = Ok(());
            if inputs.is_empty() {
                let mut block = Vec::new();
                failure = self.compress(raws[at], dictionary, &mut block).map(drop);
                out.push(block);
                at += 1;
            } else {
                let round = self.run_round(operation, &inputs, |i, result| {
                    let raw = inputs[i].0;
                    let mut block = Vec::new();
                    // SAFETY: `append` gives room.
                    let landed = Self::append(raw, &mut block, |out, room| unsafe {
                        self.land(operation, raw, result, out, room)
                    });
                    block.shrink_to_fit();
                    out.push(block);
                    if let Err(error) = self.counters.count_compress(raw.len(), landed) {
                        failure = Err(error);
                    }
                });
                at += round;
            }
            if let Err(error) = failure {
                out.truncate(before);
                return Err(error);
            }
        }
        self.counters.add_compress_time(started.elapsed());
        Ok(())
    }

    fn decompress_batch(
        &self,
        blocks: &[&[u8]],
        dictionary: Option<&Dictionary>,
        raws: &mut [&mut [u8]],
    ) -> Vec<Result<(), CodecError>> {
        let started = Instant::now();
        let mut results = Vec::with_capacity(blocks.len());
        while results.len() < blocks.len().min(raws.len()) {
            let at = results.len();
            let inputs: Vec<(&[u8], u32)> = blocks[at..]
                .iter()
                .zip(&raws[at..])
                .take_while(|(block, raw)| !raw.is_empty() && !block.is_empty() && length(block.len()).is_ok())
                .map_while(|(block, raw)| Some((*block, length(raw.len()).ok()?)))
                .take(HARDWARE_BATCH)
                .collect();
            if inputs.is_empty() {
                results.push(self.decompress(blocks[at], dictionary, raws[at]));
                continue;
            }
            self.run_round(Operation::Decompress, &inputs, |i, result| {
                let block = inputs[i].0;
                let landed = Self::fill(block, raws[at + i], |raw, room| {
                    // SAFETY: `raw` is writable for its length, which `room` is.
                    unsafe { self.land(Operation::Decompress, block, result, raw.as_mut_ptr(), room) }
                });
                results.push(self.counters.count_decompress(block.len(), landed).map(drop));
            });
        }
        self.counters.add_decompress_time(started.elapsed());
        results
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
            // SAFETY: there is room for the bound.
            let written = unsafe { store(&raw, out.as_mut_ptr()) };
            let mut back = vec![0; size];
            assert_eq!(deflate::decode_into(NAME, &out[..written], &mut back).unwrap(), size);
            assert_eq!(back, raw);
        }
    }
}
