//! The results of a benchmark.

use std::collections::BTreeMap;

use leafpress_lab::core::latency::Latency;
use serde::{Deserialize, Serialize};

/// The results of one benchmark, over its measured time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its length in seconds.
    pub seconds: f64,
    /// Operations of all threads.
    pub operations: u64,
    /// Point reads.
    pub reads: u64,
    /// The number of these that found their key.
    pub found: u64,
    /// Puts.
    pub writes: u64,
    /// Scans.
    pub scans: u64,
    /// Records that scans went over.
    pub scanned: u64,
    /// Bytes of keys and values that were read and written.
    pub user_bytes: u64,
    /// Latencies of point reads.
    pub read_latency: Option<Latency>,
    /// Latencies of puts, or of batches of them.
    pub write_latency: Option<Latency>,
    /// Latencies of scans.
    pub scan_latency: Option<Latency>,
    /// CPU seconds of the process in user mode, background threads included.
    pub user_seconds: f64,
    /// CPU seconds in the system.
    pub system_seconds: f64,
    /// Seconds until flushes and compactions that were due were done, after the measured time.
    pub settle_seconds: f64,
    /// Bytes of all live SST files once things have settled.
    pub sst_bytes: u64,
    /// Keys that were loaded.
    pub keys: u64,
    /// Peak resident memory of the process, in KiB.
    pub peak_resident_kib: Option<u64>,
    /// Reads whose answer was wrong: a key missing that must be there, a value of another length, and with `verify`
    /// another value.
    pub mismatches: u64,
    /// The first of them, in words.
    pub mismatch_examples: Vec<String>,
    /// RocksDB's tickers, and ours, over the measured time; those that are 0 are left out.
    pub tickers: BTreeMap<String, u64>,
    /// The measured time was cut short by the user.
    pub cancelled: bool,
}

impl Outcome {
    /// Operations per second.
    pub fn throughput(&self) -> f64 {
        ratio(self.operations as f64, self.seconds)
    }

    /// Cores in use: CPU seconds per second.
    pub fn cores(&self) -> f64 {
        ratio(self.user_seconds + self.system_seconds, self.seconds)
    }

    /// Microseconds of CPU for an operation.
    pub fn cpu_us(&self) -> f64 {
        ratio((self.user_seconds + self.system_seconds) * 1e6, self.operations as f64)
    }

    /// Megabytes of keys and values per second, of 10^6 bytes; `db_bench` has them of 1048576.
    pub fn mb_per_second(&self) -> f64 {
        ratio(self.user_bytes as f64 / 1e6, self.seconds)
    }

    /// Bytes of SST files for each key.
    pub fn bytes_per_key(&self) -> f64 {
        ratio(self.sst_bytes as f64, self.keys as f64)
    }

    /// 99th percentile of the latency of point reads in microseconds, or of whatever else was done.
    pub fn p99_us(&self) -> Option<f64> {
        self.latency().map(|latency| latency.p99_ns as f64 / 1e3)
    }

    /// Returns the latency that is reported first: of reads, else of scans, else of writes.
    pub fn latency(&self) -> Option<&Latency> {
        self.read_latency
            .as_ref()
            .or(self.scan_latency.as_ref())
            .or(self.write_latency.as_ref())
    }
}

fn ratio(one: f64, other: f64) -> f64 {
    if other > 0.0 { one / other } else { 0.0 }
}
