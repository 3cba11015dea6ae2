//! Measurements of one repetition of a run.

use serde::{Deserialize, Serialize};

use super::hardware::Hardware;
use crate::core::latency::Latency;
use crate::core::resources::CpuTime;
use crate::harness::resident_memory::Resident;

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A point read.
    Read,
    /// An insert of a new key.
    Insert,
    /// An update of a key.
    Update,
    /// A remove.
    Remove,
    /// A scan.
    Scan,
    /// A read and then an update of the same key.
    ReadModifyWrite,
}

/// Every kind of operation; an operation's place is its number.
pub(super) const OPERATIONS: [Operation; 6] = [
    Operation::Read,
    Operation::Insert,
    Operation::Update,
    Operation::Remove,
    Operation::Scan,
    Operation::ReadModifyWrite,
];

impl Operation {
    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Insert => "Insert",
            Self::Update => "Update",
            Self::Remove => "Remove",
            Self::Scan => "Scan",
            Self::ReadModifyWrite => "Read-modify-write",
        }
    }
}

/// Operations of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Done.
    pub completed: u64,
    /// Of those, the ones that found, inserted, updated, removed, or scanned something.
    pub succeeded: u64,
}

/// Scans that returned wrong records. A scan can be wrong in more than one way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanErrors {
    /// Scans that were wrong in any way.
    pub scans: u64,
    /// More records than requested, or than the bytes have room for.
    pub too_many: u64,
    /// Keys that do not ascend.
    pub not_ascending: u64,
    /// A first key before the requested one.
    pub before_start: u64,
    /// The first wrong one, in words.
    pub example: Option<String>,
}

/// The load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Records loaded.
    pub records: u64,
    /// Whether they came in key order and the index loaded them in bulk.
    #[serde(default)]
    pub in_bulk: bool,
    /// How long it took, in milliseconds.
    pub milliseconds: f64,
    /// How long reading all of them back took, in milliseconds; `None` for an index that stores nothing.
    pub verify_milliseconds: Option<f64>,
    /// Records that were found, but with another value than was inserted.
    pub wrong_values: u64,
    /// Growth of the process's resident memory over the load.
    #[serde(flatten)]
    pub resident: Resident,
    /// Memory after the load by the index's own accounting, in bytes.
    pub held_bytes: Option<u64>,
}

/// Operations done in a window of the run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When the window ended, in milliseconds from the run's start.
    pub end_ms: f64,
    /// Its length in milliseconds: the last one may be shorter.
    pub length_ms: f64,
    /// Operations done in it.
    pub operations: u64,
}

/// Latencies of the operations that ended in a window of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowLatency {
    /// When the window began, in milliseconds from the run's start.
    pub start_ms: u64,
    /// Operations measured.
    pub samples: u64,
    /// Half took no longer, in nanoseconds.
    pub p50_ns: u64,
    /// 99% took no longer, in nanoseconds.
    pub p99_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
}

/// Latencies of a run. In an open loop they count from the intended start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Of all operations together; `None` when none was measured.
    pub all: Option<Latency>,
    /// Of each kind that was measured.
    pub by_operation: Vec<(Operation, Latency)>,
    /// In an open loop: from the actual start, as in a closed loop.
    pub service: Option<Latency>,
    /// Over time.
    pub windows: Vec<WindowLatency>,
}

/// Measurements of one repetition of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The index's own name.
    pub index: String,
    /// The load; `None` when it was skipped.
    pub load: Option<Load>,
    /// Length of the run in milliseconds.
    pub run_milliseconds: f64,
    /// Operations by kind, in the order of [`Operation`].
    pub counts: [Counts; 6],
    /// Records that scans returned.
    pub scanned_records: u64,
    /// Scans that returned wrong records.
    pub scan_errors: ScanErrors,
    /// Hardware metrics; `None` when turned off.
    pub hardware: Option<Hardware>,
    /// Throughput over time.
    pub samples: Vec<Sample>,
    /// Latencies; `None` if not requested.
    pub latencies: Option<Latencies>,
    /// CPU time over the run.
    pub cpu: CpuTime,
    /// Memory after the run by the index's own accounting, in bytes.
    pub held_bytes: Option<u64>,
}

impl Outcome {
    /// Returns the number of operations of a kind.
    pub fn of(&self, operation: Operation) -> Counts {
        self.counts[operation as usize]
    }

    /// Returns the number of operations of all kinds.
    pub fn total(&self) -> Counts {
        self.counts.iter().fold(Counts::default(), |sum, counts| Counts {
            completed: sum.completed + counts.completed,
            succeeded: sum.succeeded + counts.succeeded,
        })
    }

    /// Converts a number of operations to operations per second of the run.
    pub fn per_second(&self, operations: u64) -> f64 {
        if self.run_milliseconds > 0.0 {
            operations as f64 / (self.run_milliseconds / 1000.0)
        } else {
            0.0
        }
    }

    /// Returns the completed operations per second.
    pub fn throughput(&self) -> f64 {
        self.per_second(self.total().completed)
    }

    /// Returns the CPU seconds per second.
    pub fn cores(&self) -> f64 {
        let cpu = &self.cpu;
        if cpu.wall_seconds > 0.0 {
            (cpu.user_seconds + cpu.system_seconds) / cpu.wall_seconds
        } else {
            0.0
        }
    }
}
