//! Counters of an engine, without cache lines shared between threads.
//!
//! Every thread owns its cells and is their only writer, so counting is a plain load and store. Only a sample of the
//! calls on small blocks is timed, because two clock reads cost as much as decoding a record.

use std::time::{Duration, Instant};

use super::{CodecError, Scratch};
use leafpress_base::sync::counts::{Counts, ThreadCounts};

/// A snapshot of an engine's counters since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineCounters {
    /// Calls that compressed a block.
    pub compress_calls: u64,
    /// Raw bytes passed to them.
    pub compress_bytes_in: u64,
    /// Compressed bytes they wrote.
    pub compress_bytes_out: u64,
    /// Nanoseconds they took, extrapolated from the timed calls.
    pub compress_ns: u64,
    /// Calls that decompressed a block.
    pub decompress_calls: u64,
    /// Compressed bytes passed to them.
    pub decompress_bytes_in: u64,
    /// Raw bytes they wrote.
    pub decompress_bytes_out: u64,
    /// Nanoseconds they took, extrapolated from the timed calls.
    pub decompress_ns: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Calls that a device could not accept and the CPU executed.
    pub fallbacks: u64,
    /// Calls executed on a device.
    pub hardware_calls: u64,
    /// Calls executed on the CPU.
    pub software_calls: u64,
    /// QPL jobs kept by threads.
    pub thread_jobs: u64,
    /// QPL jobs initialised for one call or one batch.
    pub call_jobs: u64,
    /// zlib streams initialised.
    pub stream_inits: u64,
    /// Calls that reused a zlib stream.
    pub stream_reuses: u64,
}

impl EngineCounters {
    /// Adds the counters of another engine.
    pub fn add(&mut self, other: &Self) {
        for (mine, others) in [
            (&mut self.compress_calls, other.compress_calls),
            (&mut self.compress_bytes_in, other.compress_bytes_in),
            (&mut self.compress_bytes_out, other.compress_bytes_out),
            (&mut self.compress_ns, other.compress_ns),
            (&mut self.decompress_calls, other.decompress_calls),
            (&mut self.decompress_bytes_in, other.decompress_bytes_in),
            (&mut self.decompress_bytes_out, other.decompress_bytes_out),
            (&mut self.decompress_ns, other.decompress_ns),
            (&mut self.errors, other.errors),
            (&mut self.fallbacks, other.fallbacks),
            (&mut self.hardware_calls, other.hardware_calls),
            (&mut self.software_calls, other.software_calls),
            (&mut self.thread_jobs, other.thread_jobs),
            (&mut self.call_jobs, other.call_jobs),
            (&mut self.stream_inits, other.stream_inits),
            (&mut self.stream_reuses, other.stream_reuses),
        ] {
            *mine += others;
        }
    }
}

/// The first calls of a thread are all timed, so that short runs have a time too.
const TIMED_FIRST: u64 = 32;
/// After that one call in this many is timed, with this weight.
const TIMED_EVERY: u64 = 64;
/// Calls on at least this many raw bytes are always timed: reading the clock is then a small part of them.
const TIMED_ALWAYS_BYTES: usize = 4096;

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The counters.
#[derive(Debug, Clone, Copy)]
pub enum Count {
    CompressCalls,
    CompressBytesIn,
    CompressBytesOut,
    CompressNs,
    DecompressCalls,
    DecompressBytesIn,
    DecompressBytesOut,
    DecompressNs,
    Errors,
    Fallbacks,
    HardwareCalls,
    SoftwareCalls,
    ThreadJobs,
    CallJobs,
    StreamInits,
    StreamReuses,
}

impl From<Count> for usize {
    fn from(count: Count) -> Self {
        count as Self
    }
}

/// Counters of one thread.
type OwnCounts = Counts<{ Count::StreamReuses as usize + 1 }>;

/// The number of a direction's first counter: its calls. Bytes in, bytes out and nanoseconds follow.
struct Direction(usize);

const COMPRESS: Direction = Direction(Count::CompressCalls as usize);
const DECOMPRESS: Direction = Direction(Count::DecompressCalls as usize);
const BYTES_IN: usize = 1;
const BYTES_OUT: usize = 2;
const NS: usize = 3;

impl Direction {
    /// Runs `work`, which returns the number of bytes it wrote, and counts it.
    #[inline]
    fn run(
        &self,
        mine: &OwnCounts,
        bytes_in: usize,
        raw_bytes: usize,
        work: impl FnOnce() -> Result<usize, CodecError>,
    ) -> Result<usize, CodecError> {
        let calls = self.begin(mine, bytes_in);
        let weight = if raw_bytes >= TIMED_ALWAYS_BYTES || calls < TIMED_FIRST {
            1
        } else if calls.is_multiple_of(TIMED_EVERY) {
            TIMED_EVERY
        } else {
            0
        };
        let start = (weight != 0).then(Instant::now);
        let result = work();
        if let Some(start) = start {
            mine.add(self.0 + NS, nanoseconds(start.elapsed()).saturating_mul(weight));
        }
        self.finish(mine, result)
    }

    /// Counts a call, and returns how many the thread had made before.
    #[inline]
    fn begin(&self, mine: &OwnCounts, bytes_in: usize) -> u64 {
        mine.add(self.0 + BYTES_IN, bytes_in as u64);
        mine.add(self.0, 1) - 1
    }

    #[inline]
    fn finish(&self, mine: &OwnCounts, result: Result<usize, CodecError>) -> Result<usize, CodecError> {
        match &result {
            Ok(bytes_out) => mine.add(self.0 + BYTES_OUT, *bytes_out as u64),
            Err(_) => mine.add(Count::Errors, 1),
        };
        result
    }
}

/// An engine's counters.
#[derive(Debug, Default)]
pub struct Counters(ThreadCounts<{ Count::StreamReuses as usize + 1 }>);

impl Counters {
    /// Returns the counters of the calling thread.
    #[inline]
    pub fn mine(&self) -> &OwnCounts {
        self.0.mine()
    }

    /// Runs and counts a call that compresses `raw_bytes`; `work` returns the compressed length.
    #[inline]
    pub fn compress(
        &self,
        raw_bytes: usize,
        work: impl FnOnce() -> Result<usize, CodecError>,
    ) -> Result<usize, CodecError> {
        COMPRESS.run(self.mine(), raw_bytes, raw_bytes, work)
    }

    /// Runs and counts a call that compresses `raw_bytes` into a limited room; the result may not fit.
    #[inline]
    pub fn compress_into(
        &self,
        raw_bytes: usize,
        work: impl FnOnce() -> Result<Option<usize>, CodecError>,
    ) -> Result<Option<usize>, CodecError> {
        let mut fits = true;
        let written = self.compress(raw_bytes, || {
            let written = work()?;
            fits = written.is_some();
            Ok(written.unwrap_or(0))
        })?;
        Ok(fits.then_some(written))
    }

    /// Runs and counts a call that decompresses `block_bytes` to about `raw_bytes`; `work` returns the bytes it wrote.
    #[inline]
    pub fn decompress(
        &self,
        block_bytes: usize,
        raw_bytes: usize,
        work: impl FnOnce() -> Result<usize, CodecError>,
    ) -> Result<usize, CodecError> {
        DECOMPRESS.run(self.mine(), block_bytes, raw_bytes, work)
    }

    /// Runs and counts a call that decodes `block_bytes` to about `raw_bytes` in the scratch's output, and returns that
    /// output; `work` returns the number of bytes it wrote.
    #[inline]
    pub fn decode<'s>(
        &self,
        block_bytes: usize,
        raw_bytes: usize,
        scratch: &'s mut Scratch,
        work: impl FnOnce(&mut Scratch) -> Result<usize, CodecError>,
    ) -> Result<&'s [u8], CodecError> {
        let found = self.decompress(block_bytes, raw_bytes, || work(scratch))?;
        Ok(scratch.output(found, 0)?)
    }

    /// Counts an untimed compression.
    pub fn count_compress(&self, bytes_in: usize, result: Result<usize, CodecError>) -> Result<usize, CodecError> {
        let mine = self.mine();
        COMPRESS.begin(mine, bytes_in);
        COMPRESS.finish(mine, result)
    }

    /// Counts an untimed decompression.
    pub fn count_decompress(&self, bytes_in: usize, result: Result<usize, CodecError>) -> Result<usize, CodecError> {
        let mine = self.mine();
        DECOMPRESS.begin(mine, bytes_in);
        DECOMPRESS.finish(mine, result)
    }

    /// Adds the time of a batch of compressions counted one by one.
    pub fn add_compress_time(&self, time: Duration) {
        self.mine().add(Count::CompressNs, nanoseconds(time));
    }

    /// Adds the time of a batch of decompressions counted one by one.
    pub fn add_decompress_time(&self, time: Duration) {
        self.mine().add(Count::DecompressNs, nanoseconds(time));
    }

    /// Returns the sum over threads, for an engine that counts device and CPU calls itself.
    pub fn sum(&self) -> EngineCounters {
        let sum = |count: Count| self.0.sum(count);
        EngineCounters {
            compress_calls: sum(Count::CompressCalls),
            compress_bytes_in: sum(Count::CompressBytesIn),
            compress_bytes_out: sum(Count::CompressBytesOut),
            compress_ns: sum(Count::CompressNs),
            decompress_calls: sum(Count::DecompressCalls),
            decompress_bytes_in: sum(Count::DecompressBytesIn),
            decompress_bytes_out: sum(Count::DecompressBytesOut),
            decompress_ns: sum(Count::DecompressNs),
            errors: sum(Count::Errors),
            fallbacks: sum(Count::Fallbacks),
            hardware_calls: sum(Count::HardwareCalls),
            software_calls: sum(Count::SoftwareCalls),
            thread_jobs: sum(Count::ThreadJobs),
            call_jobs: sum(Count::CallJobs),
            stream_inits: sum(Count::StreamInits),
            stream_reuses: sum(Count::StreamReuses),
        }
    }

    /// Returns the sum over threads, for an engine whose every call runs on the CPU.
    pub fn sum_cpu(&self) -> EngineCounters {
        let mut sum = self.sum();
        sum.software_calls = sum.compress_calls + sum.decompress_calls;
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_summed() {
        let counters = Counters::default();
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for i in 0..1000 {
                        let result = counters.compress(10, || {
                            if i % 10 == 0 {
                                Err(CodecError::OutOfMemory { bytes: 1 })
                            } else {
                                Ok(3)
                            }
                        });
                        assert_eq!(result.is_err(), i % 10 == 0);
                    }
                });
            }
        });
        let sum = counters.sum_cpu();
        assert_eq!(
            (
                sum.compress_calls,
                sum.compress_bytes_in,
                sum.compress_bytes_out,
                sum.errors,
                sum.software_calls
            ),
            (4000, 40_000, 3 * 3600, 400, 4000)
        );
    }
}
