//! Workloads: what share of a run's operations reads, writes, deletes and scans.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::core::LabError;

/// One operation of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A point read.
    Read,
    /// A put, or in [`Workload::Crud`] possibly a delete: the key's version decides (see the `check` module).
    Mutate,
    /// A forward scan of [`EvalConfig::scan_records`](crate::eval::EvalConfig::scan_records) records.
    Scan,
}

/// A mix of operations. The first five are the evaluation's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// 100% reads.
    ReadOnly,
    /// 100% writes.
    WriteOnly,
    /// 80% reads, 20% writes.
    #[serde(rename = "read_write_8_2")]
    ReadWrite82,
    /// 50% reads, 50% writes.
    #[serde(rename = "read_write_5_5")]
    ReadWrite55,
    /// 20% reads, 80% writes.
    #[serde(rename = "read_write_2_8")]
    ReadWrite28,
    /// 95% scans, 5% writes (the mix of YCSB E).
    Scan,
    /// 50% reads, 45% writes, 5% deletes. A deleted key comes back with its next write.
    Crud,
    /// 100% reads, most of them of a set of hot keys, which others take the place of at
    /// [`EvalConfig::shift_at`](crate::eval::EvalConfig::shift_at).
    #[serde(rename = "hotset")]
    HotSet,
}

impl Workload {
    /// Every workload, in the order tables show them.
    pub const ALL: [Self; 8] = [
        Self::ReadOnly,
        Self::ReadWrite82,
        Self::ReadWrite55,
        Self::ReadWrite28,
        Self::WriteOnly,
        Self::Scan,
        Self::Crud,
        Self::HotSet,
    ];

    /// The evaluation's five point-operation workloads.
    pub const POINT: [Self; 5] = [
        Self::ReadOnly,
        Self::WriteOnly,
        Self::ReadWrite82,
        Self::ReadWrite55,
        Self::ReadWrite28,
    ];

    /// Returns the name users type and files store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::WriteOnly => "write_only",
            Self::ReadWrite82 => "read_write_8_2",
            Self::ReadWrite55 => "read_write_5_5",
            Self::ReadWrite28 => "read_write_2_8",
            Self::Scan => "scan",
            Self::Crud => "crud",
            Self::HotSet => "hotset",
        }
    }

    /// Returns the shares of reads, mutations (puts and deletes) and scans in percent; they add up to 100.
    pub const fn shares(self) -> [u32; 3] {
        match self {
            Self::ReadOnly | Self::HotSet => [100, 0, 0],
            Self::WriteOnly => [0, 100, 0],
            Self::ReadWrite82 => [80, 20, 0],
            Self::ReadWrite55 => [50, 50, 0],
            Self::ReadWrite28 => [20, 80, 0],
            Self::Scan => [0, 5, 95],
            Self::Crud => [50, 50, 0],
        }
    }

    /// Returns the share of mutations that are deletes, in percent.
    pub const fn delete_pct_of_mutations(self) -> u32 {
        match self {
            Self::Crud => 10,
            _ => 0,
        }
    }

    /// Picks an operation from a number below 100.
    #[inline]
    pub(crate) fn pick(self, percent: u32) -> Operation {
        let [read, mutate, _] = self.shares();
        if percent < read {
            Operation::Read
        } else if percent < read + mutate {
            Operation::Mutate
        } else {
            Operation::Scan
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Workload {
    type Err = LabError;

    fn from_str(s: &str) -> Result<Self, LabError> {
        Self::ALL.into_iter().find(|w| w.name() == s).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|w| w.name()).collect();
            LabError::option(
                "workloads",
                format!("unknown workload `{s}`; known: {}", names.join(" ")),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_picks_follow_them() {
        for workload in Workload::ALL {
            assert_eq!(workload.shares().iter().sum::<u32>(), 100, "{workload}");
            let mut seen = [0; 3];
            for percent in 0..100 {
                seen[workload.pick(percent) as usize] += 1;
            }
            assert_eq!(seen, workload.shares(), "{workload}");
            assert_eq!(workload.name().parse::<Workload>().unwrap(), workload);
            assert_eq!(serde_json::to_string(&workload).unwrap(), format!("\"{workload}\""));
        }
        let message = "read_some".parse::<Workload>().unwrap_err().to_string();
        assert!(
            message.contains("read_some") && message.contains("read_write_8_2"),
            "{message}"
        );
    }
}
