//! What an engine did, counted without sharing cache lines between threads.

/// A snapshot of an engine's counters since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineCounters {
    /// Calls that compressed a block.
    pub compress_calls: u64,
    /// Raw bytes given to them.
    pub compress_bytes_in: u64,
    /// Compressed bytes they wrote.
    pub compress_bytes_out: u64,
    /// Nanoseconds they took, scaled up from the calls that were timed.
    pub compress_ns: u64,
    /// Calls that decompressed a block.
    pub decompress_calls: u64,
    /// Compressed bytes given to them.
    pub decompress_bytes_in: u64,
    /// Raw bytes they wrote.
    pub decompress_bytes_out: u64,
    /// Nanoseconds they took, scaled up from the calls that were timed.
    pub decompress_ns: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Calls that a device could not take and the CPU did.
    pub fallbacks: u64,
    /// Calls that ran on a device.
    pub hardware_calls: u64,
    /// Calls that ran on the CPU.
    pub software_calls: u64,
    /// QPL jobs that are kept by threads.
    pub thread_jobs: u64,
    /// QPL jobs initialised for one call or one batch.
    pub call_jobs: u64,
    /// zlib streams initialised.
    pub stream_inits: u64,
    /// Calls that reused a zlib stream.
    pub stream_reuses: u64,
}
