//! Batches of `qpl`: several jobs are submitted before the first is awaited.

use std::time::Instant;

use super::ffi::Operation;
use super::job::{ExecutionPath, Job};
use super::{Count, Failure, QplEngine, bound, ffi, length};
use crate::room::Room;
use crate::{CodecError, Engine, QplPath};

/// Maximum jobs of a batch in flight. A device has queues of 16 to 128 entries, shared by all threads.
const HARDWARE_BATCH: usize = 8;
/// A job for the CPU holds 740 KB.
const SOFTWARE_BATCH: usize = 2;

impl QplEngine {
    /// Implements [`Engine::compress_batch`].
    pub(crate) fn compress_many(&self, raws: &[&[u8]], out: &mut Vec<Vec<u8>>) -> Result<(), CodecError> {
        let before = out.len();
        let operation = Operation::Compress(self.mode);
        let started = Instant::now();
        let mut at = 0;
        while at < raws.len() {
            // QPL accepts no empty buffers, and none past 4 GiB.
            let inputs: Vec<(&[u8], u32)> = raws[at..]
                .iter()
                .take_while(|raw| !raw.is_empty())
                .map_while(|raw| Some((*raw, length(bound(raw.len())).ok()?)))
                .take(HARDWARE_BATCH)
                .collect();
            let mut failure = Ok(());
            if inputs.is_empty() {
                let mut block = Vec::new();
                failure = self.compress(raws[at], None, &mut block).map(drop);
                out.push(block);
                at += 1;
            } else {
                let round = self.run_round(operation, &inputs, |i, result| {
                    let raw = inputs[i].0;
                    let mut block = Vec::new();
                    let landed = Self::append(raw, &mut block, |room| self.land(operation, raw, result, room));
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

    /// Implements [`Engine::decompress_batch`].
    pub(crate) fn decompress_many(&self, blocks: &[&[u8]], raws: &mut [&mut [u8]]) -> Vec<Result<(), CodecError>> {
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
                results.push(self.decompress(blocks[at], None, raws[at]));
                continue;
            }
            self.run_round(Operation::Decompress, &inputs, |i, result| {
                let block = inputs[i].0;
                let landed = Self::fill(block, raws[at + i], |room| {
                    self.land(Operation::Decompress, block, result, room)
                });
                results.push(self.counters.count_decompress(block.len(), landed).map(drop));
            });
        }
        self.counters.add_decompress_time(started.elapsed());
        results
    }

    /// Returns where a batch executes, and how many of its jobs are in flight at once. On the CPU a job is complete
    /// when it is submitted.
    fn batch_path(&self) -> (ExecutionPath, usize) {
        if self.device {
            (ExecutionPath::Hardware, HARDWARE_BATCH)
        } else {
            (ExecutionPath::Software, SOFTWARE_BATCH)
        }
    }

    /// Submits as many of `inputs`, each with its room, as may be in flight, waits for them, and passes each one's
    /// output or status to `done`. Returns their number: at least one.
    fn run_round(
        &self,
        operation: Operation,
        inputs: &[(&[u8], u32)],
        mut done: impl FnMut(usize, Result<&[u8], Failure>),
    ) -> usize {
        let (path, most) = self.batch_path();
        let mut flying: Vec<Result<Job, Failure>> = Vec::with_capacity(most);
        for (input, room) in inputs.iter().take(most) {
            let first = flying.is_empty();
            flying.push(self.take(path).map_err(Failure::Codec).and_then(|mut job| {
                // The first job of a round waits while queues are full; later ones leave a full queue to the next
                // round.
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
                    match path {
                        ExecutionPath::Hardware => _ = self.counters.mine().add(Count::HardwareCalls, 1),
                        ExecutionPath::Software => self.count_software(),
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

    /// Copies a job's output into the room, or runs the operation on the CPU if the device failed.
    fn land(
        &self,
        operation: Operation,
        input: &[u8],
        result: Result<&[u8], Failure>,
        room: &mut Room<'_>,
    ) -> Result<(), Failure> {
        match result {
            Ok(bytes) if room.put(bytes) => Ok(()),
            Ok(_) => Err(Failure::Status(ffi::MORE_OUTPUT_NEEDED)),
            Err(_) if self.device && self.path == QplPath::Auto => self.run_software(operation, input, room),
            Err(failure) => {
                if !self.device {
                    self.count_software();
                }
                Err(failure)
            }
        }
    }
}
