//! Results of a run.

use leafpress_pages::pool::PoolStats;
use serde::{Deserialize, Serialize};

use super::{Options, theory};
use crate::core::latency::Latency;

/// The pages of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// Number of pages.
    pub pages: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes of the shortest one.
    pub least_page_bytes: usize,
    /// Bytes of the longest one.
    pub most_page_bytes: usize,
    /// Where they are during the run, and how they are read, in words.
    pub place: String,
}

/// Activity of the workers in the measured time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Pages acquired: from the pool, or recreated after a deletion.
    pub acquisitions: u64,
    /// Rounds.
    pub rounds: u64,
    /// Pages updated.
    pub updates: u64,
    /// Pages deleted.
    pub deletes: u64,
    /// Deleted pages that were wanted again and made anew; a miss each.
    pub creates: u64,
    /// Rounds cut short because everything in the pool was pinned.
    pub rounds_cut: u64,
    /// Pages compared with their expected contents.
    pub checked: u64,
}

impl Work {
    /// Adds another thread's.
    pub(super) fn add(&mut self, other: &Self) {
        self.acquisitions += other.acquisitions;
        self.rounds += other.rounds;
        self.updates += other.updates;
        self.deletes += other.deletes;
        self.creates += other.creates;
        self.rounds_cut += other.rounds_cut;
        self.checked += other.checked;
    }
}

/// Declares a structure of fields of [`PoolStats`].
macro_rules! of_stats {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty => $field_doc:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            $(#[doc = $field_doc] pub $field: $type,)+
        }

        impl From<&PoolStats> for $name {
            fn from(stats: &PoolStats) -> Self {
                Self { $($field: stats.$field as $type,)+ }
            }
        }
    };
}

of_stats! {
    /// The pool's counters.
    Counters {
        raw_hits: u64 => "Hits on raw pages.",
        compressed_hits: u64 => "Hits on compressed pages, each decoded.",
        misses: u64 => "Pages read from the store.",
        updates: u64 => "Pages replaced.",
        removes: u64 => "Pages removed.",
        compressions: u64 => "Victims compressed.",
        incompressible: u64 => "Victims that compressed too little and were evicted.",
        restorations: u64 => "Compressed pages that became raw again.",
        raw_evictions: u64 => "Raw pages evicted.",
        compressed_evictions: u64 => "Compressed pages evicted.",
        write_backs: u64 => "Dirty pages written to the store.",
        write_errors: u64 => "Writes to the store that failed.",
        sweeps: u64 => "Batches of victims.",
        sweep_ns: u64 => "Nanoseconds threads spent on them.",
        store_read_bytes: u64 => "Bytes read from the store.",
        store_write_bytes: u64 => "Bytes written to the store.",
        deciding_ns: u64 => "Nanoseconds threads spent deciding on the share.",
    }
}

of_stats! {
    /// The pool's memory at one moment.
    Held {
        raw_pages: u64 => "Raw pages.",
        compressed_pages: u64 => "Compressed pages.",
        compressed_raw_bytes: u64 => "Bytes of the compressed pages when decoded.",
        compressed_bytes: u64 => "Bytes of the compressed pages as they are stored.",
        bytes_held: u64 => "All memory, pinned copies included.",
        raw_space_bytes: u64 => "Memory of the raw space.",
        compressed_space_bytes: u64 => "Memory of the compressed space.",
        table_bytes: u64 => "Memory of the page table and the policies.",
        ghost_bytes: u64 => "Memory of the adaptive share's state.",
        pinned_copy_bytes: u64 => "Memory of pinned decoded copies and old versions, above the budget.",
        raw_percent: f64 => "Percent of the budget meant for raw pages.",
        store_read_ns: f64 => "Mean nanoseconds of a page's read, lately.",
        compress_ns: f64 => "Mean nanoseconds of a page's compression, lately.",
        decompress_ns: f64 => "Mean nanoseconds of a page's decoding, lately.",
        ratio: f64 => "Raw bytes over stored bytes of what was compressed lately.",
    }
}

impl Counters {
    /// The difference since `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        macro_rules! differences {
            ($($field:ident)+) => {
                Self { $($field: self.$field.saturating_sub(before.$field),)+ }
            };
        }
        differences!(
            raw_hits compressed_hits misses updates removes compressions incompressible restorations raw_evictions
            compressed_evictions write_backs write_errors sweeps sweep_ns store_read_bytes store_write_bytes deciding_ns
        )
    }

    /// Returns the number of hits of both kinds.
    pub fn hits(&self) -> u64 {
        self.raw_hits + self.compressed_hits
    }
}

/// Events in a window of a run, and the state at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When the window ended, in seconds from the start of the warm-up.
    pub at_seconds: f64,
    /// Its length in seconds.
    pub length_seconds: f64,
    /// Whether it was in the measured time.
    pub measured: bool,
    /// Pages got in it.
    pub acquisitions: u64,
    /// Hits of the pool in it.
    pub hits: u64,
    /// Misses in it.
    pub misses: u64,
    /// Bytes read from the store in it.
    pub store_read_bytes: u64,
    /// The pool's memory at its end.
    pub held: Held,
    /// Growth of the process's resident memory since the pool was made, in bytes.
    pub resident_bytes: Option<i64>,
}

impl Sample {
    /// Returns hits over all accesses, 0 to 1; `None` for a window without any access.
    pub fn hit_ratio(&self) -> Option<f64> {
        let all = self.hits + self.misses;
        (all > 0).then(|| self.hits as f64 / all as f64)
    }
}

/// CPU seconds of the process in the measured time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// User seconds of all threads.
    pub user_seconds: f64,
    /// System seconds of all threads.
    pub system_seconds: f64,
}

/// How what was read compares with what must have been.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// Pages compared: warm-up, measured time and read-back.
    pub checked: u64,
    /// Pages read back from the store after the last flush; 0 when nothing was written.
    pub read_back: u64,
    /// Wrong answers; must be 0.
    pub wrong: u64,
    /// The first few, in words.
    pub examples: Vec<String>,
}

/// Results of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The pages.
    pub set: Set,
    /// Length of the warm-up in seconds.
    pub warmup_seconds: f64,
    /// Whether the pool was full after it.
    pub full: bool,
    /// Length of the measured time in seconds.
    pub seconds: f64,
    /// Whether it was ended before its time.
    pub interrupted: bool,
    /// Activity of the workers.
    pub work: Work,
    /// The pool's counters.
    pub counters: Counters,
    /// The pool's memory at the end.
    pub held: Held,
    /// Getting a page, pinned; hits and misses alike.
    pub acquire: Option<Latency>,
    /// Updating a page, or making one anew.
    pub update: Option<Latency>,
    /// Deleting a page.
    pub delete: Option<Latency>,
    /// Windows, from the start of the warm-up on.
    pub samples: Vec<Sample>,
    /// CPU time.
    pub cpu: Cpu,
    /// Cores used by other processes of the machine in the measured time.
    #[serde(default)]
    pub other_cores: Option<f64>,
    /// How what was read compares with what must have been.
    pub checks: Checks,
}

impl Outcome {
    /// Converts a number of things to things per second of the measured time.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 {
            count as f64 / self.seconds
        } else {
            0.0
        }
    }

    /// Returns the pages obtained per second.
    pub fn throughput(&self) -> f64 {
        self.per_second(self.work.acquisitions)
    }

    /// Returns the number of acquisitions that the pool answered from memory.
    pub fn hits(&self) -> u64 {
        self.counters.hits().min(self.work.acquisitions)
    }

    /// Returns the number of acquisitions that it did not, those of deleted pages included.
    pub fn misses(&self) -> u64 {
        self.work.acquisitions - self.hits()
    }

    /// Returns hits over acquisitions, 0 to 1.
    pub fn hit_ratio(&self) -> f64 {
        self.hits() as f64 / self.work.acquisitions.max(1) as f64
    }

    /// Returns the mean microseconds of getting a page.
    pub fn us_per_page(&self) -> Option<f64> {
        self.acquire.as_ref().map(|latency| latency.mean_ns / 1e3)
    }

    /// Returns the share of the memory for compressed pages, 0 to 1: the mean over the measured time.
    pub fn compressed_share(&self) -> f64 {
        let (mut share, mut seconds) = (0.0, 0.0);
        for sample in self.samples.iter().filter(|sample| sample.measured) {
            share += (100.0 - sample.held.raw_percent) / 100.0 * sample.length_seconds;
            seconds += sample.length_seconds;
        }
        if seconds > 0.0 {
            share / seconds
        } else {
            1.0 - self.held.raw_percent / 100.0
        }
    }

    /// Returns the hit ratio of the thesis's formula, 0 to 1, from the budget, the share and the compression ratio;
    /// `None` if the distribution of choice has no closed form.
    pub fn theory(&self, options: &Options) -> Option<f64> {
        let (budget, data) = (options.budget_bytes as f64, self.set.bytes as f64);
        let ratio = self.ratio_held().unwrap_or(1.0);
        let fits = theory::share_that_fits(budget, self.compressed_share(), ratio, data);
        theory::hit_ratio(options.distribution, fits)
    }

    /// Returns the hit ratio that the number of pages held would have if they were the hottest, 0 to 1.
    pub fn theory_of_held(&self, options: &Options) -> Option<f64> {
        let held = self.held.raw_pages + self.held.compressed_pages;
        theory::hit_ratio(options.distribution, held as f64 / self.set.pages.max(1) as f64)
    }

    /// Returns the raw bytes over stored bytes of the compressed pages held; `None` when there is none.
    pub fn ratio_held(&self) -> Option<f64> {
        let held = &self.held;
        (held.compressed_bytes > 0).then(|| held.compressed_raw_bytes as f64 / held.compressed_bytes as f64)
    }

    /// Returns the most bytes held over the budget at any sample, without what is pinned over and above it; 0 or less
    /// is within.
    pub fn most_over_budget(&self, options: &Options) -> i64 {
        let over = |held: &Held| {
            let counted = held.bytes_held.saturating_sub(held.pinned_copy_bytes);
            counted as i64 - options.budget_bytes as i64
        };
        let samples = self.samples.iter().map(|sample| over(&sample.held));
        samples.chain([over(&self.held)]).max().unwrap_or(0)
    }

    /// Returns the most the process's resident memory grew since the pool was made, in bytes.
    pub fn most_resident_bytes(&self) -> Option<i64> {
        self.samples.iter().filter_map(|sample| sample.resident_bytes).max()
    }

    /// Returns the CPU seconds per second.
    pub fn cores(&self) -> f64 {
        if self.seconds > 0.0 {
            (self.cpu.user_seconds + self.cpu.system_seconds) / self.seconds
        } else {
            0.0
        }
    }

    /// Returns the percent of the CPU time that went into deciding on the share.
    pub fn deciding_pct(&self) -> f64 {
        let cpu_ns = (self.cpu.user_seconds + self.cpu.system_seconds) * 1e9;
        if cpu_ns > 0.0 {
            self.counters.deciding_ns as f64 / cpu_ns * 100.0
        } else {
            0.0
        }
    }
}

/// Options and results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The options.
    pub options: Options,
    /// The machine, in words.
    pub host: String,
    /// Its results.
    pub outcome: Outcome,
}
