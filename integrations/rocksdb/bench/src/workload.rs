//! Workloads: db_bench's benchmarks of the same names, and YCSB's core workloads.

use std::fmt;
use std::str::FromStr;

use leafpress_lab::core::keys::Distribution;
use serde::{Deserialize, Serialize};

use crate::BenchError;

/// A benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// A new database, every key once, ascending.
    FillSeq,
    /// A new database, as many random keys, some of them more than once.
    FillRandom,
    /// Random keys of a database are written again.
    Overwrite,
    /// All keys in order.
    ReadSeq,
    /// Random keys.
    ReadRandom,
    /// Seeks to random keys, each followed by `seek_nexts` steps.
    SeekRandom,
    /// Rounds of `readwritepercent` reads and then writes, 100 together, of random keys.
    ReadRandomWriteRandom,
    /// YCSB A: 50% reads, 50% updates.
    YcsbA,
    /// YCSB B: 95% reads, 5% updates.
    YcsbB,
    /// YCSB C: reads.
    YcsbC,
    /// YCSB D: 95% reads of what was written lately, 5% writes of the next key in turn.
    YcsbD,
    /// YCSB E: 95% scans of 1 to 100 records, 5% inserts of new keys.
    YcsbE,
    /// YCSB F: 50% reads, 50% reads followed by an update of the same key.
    YcsbF,
    /// Everything is compacted to the last level.
    Compact,
}

/// The next operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A point read.
    Read,
    /// A put.
    Write,
    /// A seek and steps.
    Scan,
    /// A read and a put of the same key.
    ReadModifyWrite,
    /// A put of a key that was not there.
    Insert,
}

/// Records of YCSB E's longest scan.
pub const MAX_YCSB_SCAN: u64 = 100;

impl Workload {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::FillSeq,
        Self::FillRandom,
        Self::Overwrite,
        Self::ReadSeq,
        Self::ReadRandom,
        Self::SeekRandom,
        Self::ReadRandomWriteRandom,
        Self::YcsbA,
        Self::YcsbB,
        Self::YcsbC,
        Self::YcsbD,
        Self::YcsbE,
        Self::YcsbF,
        Self::Compact,
    ];

    /// Returns its name in db_bench.
    pub fn name(self) -> &'static str {
        match self {
            Self::FillSeq => "fillseq",
            Self::FillRandom => "fillrandom",
            Self::Overwrite => "overwrite",
            Self::ReadSeq => "readseq",
            Self::ReadRandom => "readrandom",
            Self::SeekRandom => "seekrandom",
            Self::ReadRandomWriteRandom => "readrandomwriterandom",
            Self::YcsbA => "ycsba",
            Self::YcsbB => "ycsbb",
            Self::YcsbC => "ycsbc",
            Self::YcsbD => "ycsbd",
            Self::YcsbE => "ycsbe",
            Self::YcsbF => "ycsbf",
            Self::Compact => "compact",
        }
    }

    /// Returns whether it makes a new database.
    pub fn is_fresh(self) -> bool {
        matches!(self, Self::FillSeq | Self::FillRandom)
    }

    /// Returns whether it changes the database.
    pub fn writes(self) -> bool {
        !matches!(self, Self::ReadSeq | Self::ReadRandom | Self::SeekRandom | Self::YcsbC)
    }

    /// Returns whether it has its own end and no duration: every key once.
    pub fn is_bounded(self) -> bool {
        matches!(self, Self::FillSeq | Self::ReadSeq | Self::Compact)
    }

    /// Returns the default distribution of its keys.
    pub fn distribution(self) -> Distribution {
        const THETA: f64 = 0.99;
        match self {
            Self::YcsbD => Distribution::Latest { theta: THETA },
            Self::YcsbA | Self::YcsbB | Self::YcsbC | Self::YcsbE | Self::YcsbF => {
                Distribution::Zipfian { theta: THETA }
            }
            _ => Distribution::Uniform,
        }
    }

    /// Returns the operation whose turn it is: of the `turn`th and a random number below 100.
    #[inline]
    pub(crate) fn next(self, turn: u64, percent: u64, read_pct: u64) -> Operation {
        let mix = |reads: u64, other: Operation| if percent < reads { Operation::Read } else { other };
        match self {
            Self::FillSeq | Self::FillRandom | Self::Overwrite | Self::Compact => Operation::Write,
            Self::ReadSeq | Self::ReadRandom | Self::YcsbC => Operation::Read,
            Self::SeekRandom => Operation::Scan,
            Self::ReadRandomWriteRandom => {
                if turn % 100 < read_pct {
                    Operation::Read
                } else {
                    Operation::Write
                }
            }
            Self::YcsbA => mix(50, Operation::Write),
            Self::YcsbB | Self::YcsbD => mix(95, Operation::Write),
            Self::YcsbE if percent < 95 => Operation::Scan,
            Self::YcsbE => Operation::Insert,
            Self::YcsbF => mix(50, Operation::ReadModifyWrite),
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Workload {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self, BenchError> {
        let known = Self::ALL.into_iter().find(|workload| workload.name() == text);
        known.ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|workload| workload.name()).collect();
            BenchError::option(
                "benchmarks",
                format!("unknown benchmark `{text}`; known: {}", names.join(" ")),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_db_benchs_and_ycsbs() {
        let count = |workload: Workload, wanted: Operation| {
            let turns = (0..100).map(|turn| workload.next(turn, turn, 80));
            turns.filter(|operation| *operation == wanted).count()
        };
        for (workload, reads, writes) in [
            (Workload::ReadRandom, 100, 0),
            (Workload::ReadRandomWriteRandom, 80, 20),
            (Workload::YcsbA, 50, 50),
            (Workload::YcsbB, 95, 5),
            (Workload::YcsbC, 100, 0),
            (Workload::YcsbD, 95, 5),
            (Workload::YcsbE, 0, 0),
            (Workload::YcsbF, 50, 0),
        ] {
            assert_eq!(count(workload, Operation::Read), reads, "{workload}");
            assert_eq!(count(workload, Operation::Write), writes, "{workload}");
        }
        assert_eq!(count(Workload::YcsbE, Operation::Scan), 95);
        assert_eq!(count(Workload::YcsbE, Operation::Insert), 5);
        assert_eq!(count(Workload::YcsbF, Operation::ReadModifyWrite), 50);
    }

    #[test]
    fn names_round_trip() {
        for workload in Workload::ALL {
            assert_eq!(workload.name().parse::<Workload>().unwrap(), workload);
            assert_eq!(serde_json::to_string(&workload).unwrap(), format!("\"{workload}\""));
        }
        assert!(
            "readwhilewriting"
                .parse::<Workload>()
                .unwrap_err()
                .to_string()
                .contains("readrandom")
        );
    }
}
