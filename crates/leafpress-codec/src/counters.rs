//! Counters of an engine, without cache lines shared between threads.
//!
//! Every thread owns its cells and is their only writer, so counting is a plain load and store. Only a sample of the
//! calls on small blocks is timed, because two clock reads cost as much as decoding a record.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{CodecError, Scratch};
use leafpress_base::sync::per_thread::PerThread;

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

/// A count with one writing thread and any number of readers.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds `n`. Only the thread that owns the count may call this.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Counters of one direction.
#[derive(Debug, Default)]
struct Direction {
    calls: Count,
    bytes_in: Count,
    bytes_out: Count,
    ns: Count,
    errors: Count,
}

impl Direction {
    /// Runs `work`, which returns the number of bytes it wrote, and counts it.
    #[inline]
    fn run(
        &self,
        bytes_in: usize,
        raw_bytes: usize,
        work: impl FnOnce() -> Result<usize, CodecError>,
    ) -> Result<usize, CodecError> {
        let calls = self.calls.get();
        self.calls.add(1);
        self.bytes_in.add(bytes_in as u64);
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
            self.ns.add(nanoseconds(start.elapsed()).saturating_mul(weight));
        }
        self.finish(result)
    }

    #[inline]
    fn finish(&self, result: Result<usize, CodecError>) -> Result<usize, CodecError> {
        match &result {
            Ok(bytes_out) => self.bytes_out.add(*bytes_out as u64),
            Err(_) => self.errors.add(1),
        }
        result
    }
}

/// Counters of one thread.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ThreadCounts {
    compress: Direction,
    decompress: Direction,
    pub fallbacks: Count,
    pub hardware_calls: Count,
    pub software_calls: Count,
    pub thread_jobs: Count,
    pub call_jobs: Count,
    pub stream_inits: Count,
    pub stream_reuses: Count,
}

/// An engine's counters.
#[derive(Debug, Default)]
pub struct Counters {
    threads: PerThread<ThreadCounts>,
    /// Counters shared by threads whose own could not be allocated. Concurrent updates of these may be lost.
    common: ThreadCounts,
}

impl Counters {
    /// Returns the counters of the calling thread.
    #[inline]
    pub fn mine(&self) -> &ThreadCounts {
        self.threads.get_or_make().unwrap_or(&self.common)
    }

    /// Runs and counts a call that compresses `raw_bytes`; `work` returns the compressed length.
    #[inline]
    pub fn compress(
        &self,
        raw_bytes: usize,
        work: impl FnOnce() -> Result<usize, CodecError>,
    ) -> Result<usize, CodecError> {
        self.mine().compress.run(raw_bytes, raw_bytes, work)
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
        self.mine().decompress.run(block_bytes, raw_bytes, work)
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
        let direction = &self.mine().compress;
        direction.calls.add(1);
        direction.bytes_in.add(bytes_in as u64);
        direction.finish(result)
    }

    /// Counts an untimed decompression.
    pub fn count_decompress(&self, bytes_in: usize, result: Result<usize, CodecError>) -> Result<usize, CodecError> {
        let direction = &self.mine().decompress;
        direction.calls.add(1);
        direction.bytes_in.add(bytes_in as u64);
        direction.finish(result)
    }

    /// Adds the time of a batch of compressions counted one by one.
    pub fn add_compress_time(&self, time: Duration) {
        self.mine().compress.ns.add(nanoseconds(time));
    }

    /// Adds the time of a batch of decompressions counted one by one.
    pub fn add_decompress_time(&self, time: Duration) {
        self.mine().decompress.ns.add(nanoseconds(time));
    }

    /// Returns the sum over threads, for an engine that counts device and CPU calls itself.
    pub fn sum(&self) -> EngineCounters {
        let mut sum = EngineCounters::default();
        for t in self.threads.iter().chain([&self.common]) {
            sum.compress_calls += t.compress.calls.get();
            sum.compress_bytes_in += t.compress.bytes_in.get();
            sum.compress_bytes_out += t.compress.bytes_out.get();
            sum.compress_ns += t.compress.ns.get();
            sum.decompress_calls += t.decompress.calls.get();
            sum.decompress_bytes_in += t.decompress.bytes_in.get();
            sum.decompress_bytes_out += t.decompress.bytes_out.get();
            sum.decompress_ns += t.decompress.ns.get();
            sum.errors += t.compress.errors.get() + t.decompress.errors.get();
            sum.fallbacks += t.fallbacks.get();
            sum.hardware_calls += t.hardware_calls.get();
            sum.software_calls += t.software_calls.get();
            sum.thread_jobs += t.thread_jobs.get();
            sum.call_jobs += t.call_jobs.get();
            sum.stream_inits += t.stream_inits.get();
            sum.stream_reuses += t.stream_reuses.get();
        }
        sum
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
