//! Compares compressions on the same data: each is loaded once, then measured in pairs with its baseline.
//!
//! A machine's speed wanders. So each round runs the baseline and another compression directly one after the other, in
//! turns first and second, and a change is the median over the rounds of the ratio within a pair. Reads come first, on
//! the databases as loaded; writes go to a copy by hard links, so that each round starts from the same files.

mod ladder;
mod measure;
mod pairs;
mod view;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use ladder::{Ladder, Rung};
pub use measure::{Study, measure};
pub use pairs::{Cell, Pair, median};
pub(crate) use view::{BASELINE_HUE, hues, shape_name, summary};

use crate::{BenchError, Compression, Outcome, Run, Shape, Tuning, Work, Workload};

/// The work on the databases: the white paper's two access patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Point reads.
    ReadOnly,
    /// 80% point reads, 20% writes.
    Mixed,
}

impl Access {
    /// Both.
    pub const ALL: [Self; 2] = [Self::ReadOnly, Self::Mixed];

    /// Returns the benchmark.
    pub fn workload(self) -> Workload {
        match self {
            Self::ReadOnly => Workload::ReadRandom,
            Self::Mixed => Workload::ReadRandomWriteRandom,
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ReadOnly => "read-only",
            Self::Mixed => "80:20",
        })
    }
}

/// The plan of a study.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// The databases, but for their compression.
    pub shape: Shape,
    /// RocksDB's settings.
    pub tuning: Tuning,
    /// The work, except for the number of threads.
    pub work: Work,
    /// Threads of each instance, by access.
    pub threads: [usize; 2],
    /// The baseline.
    pub baseline: Compression,
    /// The others.
    pub compressions: Vec<Compression>,
    /// Access patterns.
    pub accesses: Vec<Access>,
    /// Pairs of each compression.
    pub rounds: usize,
    /// Whether threads are raised until the throughput is the baseline's.
    pub ladder: bool,
}

impl Plan {
    /// Threads of each instance.
    pub fn threads(&self, access: Access) -> usize {
        self.threads[access as usize]
    }

    /// Returns all compressions, the baseline first.
    pub fn all(&self) -> impl Iterator<Item = &Compression> {
        std::iter::once(&self.baseline).chain(&self.compressions)
    }

    /// Runs that it takes, at most.
    pub fn runs(&self) -> usize {
        let pairs = self.compressions.len() * self.accesses.len() * self.rounds * 2;
        let rungs: usize = match self.ladder {
            true => self
                .accesses
                .iter()
                .map(|access| ladder::rungs(self.threads(*access)).len())
                .sum(),
            false => 0,
        };
        1 + self.compressions.len() + pairs + rungs * self.compressions.len() * self.rounds * 2
    }
}

/// The progress events of a study.
pub enum Event<'e> {
    /// A run starts.
    Started(&'e Run),
    /// The share of a phase that is done, 0 to 1.
    Progress(leafpress_lab::Phase, f64),
    /// The run ended.
    Finished(&'e Run, &'e Outcome),
    /// The run failed; the study continues without its compression.
    Failed(&'e Run, &'e BenchError),
}
