//! The options of a run, and their bounds.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use leafpress::Codec;
use leafpress::store::{MAX_PAGE_BYTES, MIN_PAGE_BYTES};
use leafpress_pages::pool::{PolicyKind, RawShare};
use serde::{Deserialize, Serialize};

use crate::core::corpus::Source;
use crate::core::keys::Distribution;
use crate::core::resources::cores;
use crate::core::words::{as_text, between, words};
use crate::core::{Bytes, LabError, about};
use crate::harness::MAX_THREADS;

/// Smallest budget of a pool, in bytes; eight of the longest pages are a bound too.
pub const MIN_BUDGET_BYTES: u64 = 64 << 10;
/// Most pages of a round.
pub const MAX_ROUND_PAGES: u64 = 1024;
/// Longest run and longest warm-up, in seconds: 30 days.
pub const MAX_SECONDS: f64 = 2_592_000.0;
/// Longest wait a simulated device may make of a read, in microseconds.
pub const MAX_DEVICE_LATENCY_US: u64 = 10_000_000;
/// Most threads that sweep ahead of need.
pub const MAX_BACKGROUND_THREADS: usize = 64;

/// Where the pages of a run are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreKind {
    /// One file of pages of one length.
    File,
    /// A directory with a file for each page.
    Dir,
    /// Memory.
    Memory,
}

words!(StoreKind, "store", "unknown store `{}`; known: file dir memory": File "file", Dir "dir", Memory "memory");

/// Length of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    /// Until the pool is full: pages have left it, or all of them are in.
    Full,
    /// This many seconds.
    Seconds(f64),
}

impl FromStr for Warmup {
    type Err = LabError;

    fn from_str(s: &str) -> Result<Self, LabError> {
        match (s, s.parse::<f64>()) {
            ("full", _) => Ok(Self::Full),
            (_, Ok(seconds)) if (0.0..=MAX_SECONDS).contains(&seconds) => Ok(Self::Seconds(seconds)),
            _ => Err(LabError::option(
                "warmup",
                format!("`{s}`: use full, or a number of seconds"),
            )),
        }
    }
}

impl fmt::Display for Warmup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Seconds(seconds) => write!(f, "{seconds}"),
        }
    }
}

/// The pages whose reads are compared with their expected contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// None.
    Off,
    /// One page in this many, chosen by their numbers; 1 is all of them.
    OneIn(u64),
}

impl FromStr for Verify {
    type Err = LabError;

    fn from_str(s: &str) -> Result<Self, LabError> {
        match (s, s.parse()) {
            ("off", _) => Ok(Self::Off),
            ("all", _) => Ok(Self::OneIn(1)),
            (_, Ok(one_in @ 1..)) => Ok(Self::OneIn(one_in)),
            _ => Err(LabError::option(
                "check",
                format!("`{s}`: use all, off, or N to compare one page in N"),
            )),
        }
    }
}

impl fmt::Display for Verify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::OneIn(1) => f.write_str("all"),
            Self::OneIn(one_in) => write!(f, "{one_in}"),
        }
    }
}

/// Options of a run, with their flags. Fields are in the order of `results.json`; `display_order` puts the flags in
/// the order of the help.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, clap::Args)]
pub struct Options {
    /// Directory whose files are the pages, a file to cut into pages, or a source as in `leafpress eval --data`: an
    /// archive, a bundled sample, synthetic:SHARE [default: the bundled sample `packages`]
    #[arg(short = 'p', long, value_name = "DATA")]
    pub data: Source,
    /// Use an archive's own, compressed bytes instead of opening it
    #[arg(long, help_heading = "Ours: pages", display_order = 3)]
    pub raw: bool,
    /// Where to keep the pages: file, dir or memory [default: where they are]
    #[arg(long, value_name = "STORE", help_heading = "Ours: pages")]
    pub store: Option<StoreKind>,
    /// Size of the pages that a file is cut into, as in 8K [default: 8K]
    #[arg(
        long, value_name = "BYTES", help_heading = "Ours: pages", display_order = 1, value_parser = Bytes::parse_usize
    )]
    pub page_bytes: usize,
    /// Read at most N bytes of pages (as in 500M), spread over the whole file; of a directory, the first files
    /// [default: all]
    #[arg(short = 'b', long = "bytes", value_name = "BYTES", value_parser = Bytes::parse_u64)]
    pub max_bytes: Option<u64>,
    /// Read N pages, spread over the whole file; of a directory, the first files [default: all]
    #[arg(short = 'n', long = "pages", value_name = "N")]
    pub max_pages: Option<u64>,
    /// Total memory of the pool, as in 500M [default: 10M]
    #[arg(short = 'm', long = "memory", value_name = "BYTES", value_parser = Bytes::parse_u64)]
    pub budget_bytes: u64,
    /// The codec.
    #[arg(skip = Codec::None)]
    #[serde(with = "as_text")]
    pub codec: Codec,
    /// How the memory is shared between raw and compressed pages.
    #[arg(skip = RawShare::Adaptive)]
    #[serde(with = "as_text")]
    pub share: RawShare,
    /// Eviction policy: clock, lru or s3-fifo [default: clock]
    #[arg(long, value_name = "POLICY", help_heading = "Ours: the pool", value_parser = policy)]
    #[serde(with = "as_text")]
    pub policy: PolicyKind,
    /// Hits after which a compressed page becomes raw again, 1 to 63 [default: the pool's]
    #[arg(long, value_name = "HITS", help_heading = "Ours: the pool")]
    pub promote_after_hits: Option<u8>,
    /// Threads that compress and evict ahead of need, 0 to 64 [default: the pool's]
    #[arg(long, value_name = "N", help_heading = "Ours: the pool")]
    pub background_threads: Option<usize>,
    /// Length of the measured run [default: 5]
    #[arg(
        short = 'd',
        long,
        alias = "duration",
        value_name = "SECONDS",
        allow_negative_numbers = true
    )]
    pub seconds: f64,
    /// Warm-up before measuring: full (until the pool is), or seconds [default: full]
    #[arg(long, value_name = "FULL|SECONDS", help_heading = "Ours: work", display_order = 15)]
    pub warmup: Warmup,
    /// Threads that request pages [default: the number of CPUs]
    #[arg(short = 'w', long, value_name = "N")]
    pub workers: usize,
    /// Distribution of pages.
    #[arg(
        long,
        value_name = "DISTRIBUTION",
        help_heading = "Ours: work",
        help = "Distribution of pages: uniform, zipfian[:THETA], self-similar[:H], hotset[:PAGES_PCT:ACCESSES_PCT] \
                [default: uniform]"
    )]
    pub distribution: Distribution,
    /// Move the hot set after N seconds
    #[arg(
        long = "switch-at",
        value_name = "SECONDS",
        help_heading = "Ours: work",
        allow_negative_numbers = true
    )]
    pub switch_at_seconds: Option<f64>,
    /// Minimum and maximum pages per round; they stay pinned until its end [default: 5,5]
    #[arg(short = 'M', long = "round", value_name = "MIN,MAX", value_parser = round_pages)]
    pub round_pages: (u64, u64),
    /// Percentage of rounds that update all their pages [default: 0]
    #[arg(short = 'U', long = "updates", value_name = "PCT", allow_negative_numbers = true)]
    pub update_pct: f64,
    /// Percentage of rounds that delete some of their pages: a quarter and one more [default: 0]
    #[arg(short = 'D', long = "deletes", value_name = "PCT", allow_negative_numbers = true)]
    pub delete_pct: f64,
    /// Add this latency to every read and write of a page [default: 0]
    #[arg(
        long = "device-us",
        alias = "device-latency-us",
        value_name = "US",
        help_heading = "Ours: pages"
    )]
    pub device_latency_us: u64,
    /// Compare pages read with their expected contents: all, one in N, off [default: all when pages are updated or
    /// deleted, else 64]
    #[arg(
        long = "check",
        alias = "verify",
        value_name = "all|N|off",
        help_heading = "Ours: work"
    )]
    pub verify: Verify,
    /// Seed of every random choice [default: 1729]
    #[arg(long, help_heading = "Ours: work")]
    pub seed: u64,
    /// Directory for temporary copies: of opened archives, and of updated pages [default: the system's temporary
    /// directory]
    #[arg(long, value_name = "DIR", help_heading = "Ours: pages")]
    #[serde(with = "crate::core::paths::optional")]
    pub scratch: Option<PathBuf>,
}

impl Options {
    /// Creates Tyche's defaults, with additions: 10 MB of memory, 5 seconds, rounds of 5 pages, no bias, as
    /// many workers as there are CPUs.
    pub fn new(data: Source) -> Self {
        Self {
            data,
            raw: false,
            store: None,
            page_bytes: 8192,
            max_bytes: None,
            max_pages: None,
            budget_bytes: 10 << 20,
            codec: Codec::Lz4 { acceleration: 1 },
            share: RawShare::Adaptive,
            policy: PolicyKind::Clock,
            promote_after_hits: None,
            background_threads: None,
            seconds: 5.0,
            warmup: Warmup::Full,
            workers: cores(),
            distribution: Distribution::Uniform,
            switch_at_seconds: None,
            round_pages: (5, 5),
            update_pct: 0.0,
            delete_pct: 0.0,
            device_latency_us: 0,
            verify: Verify::OneIn(64),
            seed: 1729,
            scratch: None,
        }
    }

    /// Returns whether the run changes pages.
    pub fn writes(&self) -> bool {
        self.update_pct > 0.0 || self.delete_pct > 0.0
    }

    /// Checks all bounds that can be checked without the data.
    ///
    /// # Errors
    /// [`LabError::Option`] with the name of the option on the command line.
    pub fn validate(&self) -> Result<(), LabError> {
        let refuse = |option, reason: String| Err(LabError::option(option, reason));
        self.data.validate()?;
        if !(MIN_PAGE_BYTES..=MAX_PAGE_BYTES).contains(&self.page_bytes) {
            return refuse(
                "page-bytes",
                format!(
                    "{} is not between {MIN_PAGE_BYTES} and {}",
                    self.page_bytes,
                    Bytes(MAX_PAGE_BYTES as u64)
                ),
            );
        }
        if self.max_bytes == Some(0) {
            return refuse("bytes", "must leave at least one page".into());
        }
        if self.max_pages == Some(0) {
            return refuse("pages", "must be at least 1".into());
        }
        self.validate_memory()?;
        if let RawShare::Fixed { raw_percent: 101.. } = self.share {
            return refuse(
                "fixed",
                "the percentage of the memory for raw pages must be between 0 and 100".into(),
            );
        }
        if !(1..=63).contains(&self.promote_after_hits.unwrap_or(8)) {
            return refuse("promote-after-hits", "is 1 to 63 hits".into());
        }
        if self
            .background_threads
            .is_some_and(|threads| threads > MAX_BACKGROUND_THREADS)
        {
            return refuse(
                "background-threads",
                format!("must be between 0 and {MAX_BACKGROUND_THREADS}"),
            );
        }
        between("workers", self.workers, 1, MAX_THREADS)?;
        self.validate_time()?;
        self.validate_work()
    }

    fn validate_memory(&self) -> Result<(), LabError> {
        let memory = Bytes(self.budget_bytes);
        if self.budget_bytes < MIN_BUDGET_BYTES {
            return Err(LabError::option(
                "memory",
                format!("{memory} is less than the minimum, {}", Bytes(MIN_BUDGET_BYTES)),
            ));
        }
        match crate::core::resources::total_memory_bytes() {
            Some(total) if self.budget_bytes > total => Err(LabError::option(
                "memory",
                format!("{memory} is more than this machine has, {}", about(total as f64)),
            )),
            _ => Ok(()),
        }
    }

    fn validate_time(&self) -> Result<(), LabError> {
        let refuse = |option, reason: String| Err(LabError::option(option, reason));
        if !(self.seconds > 0.0 && self.seconds <= MAX_SECONDS) {
            return refuse(
                "seconds",
                format!(
                    "{} must be greater than 0 and at most {MAX_SECONDS} seconds",
                    self.seconds
                ),
            );
        }
        if let Some(at) = self.switch_at_seconds
            && !(at > 0.0 && at < self.seconds)
        {
            return refuse(
                "switch-at",
                format!("{at} is not within the {} seconds of the run", self.seconds),
            );
        }
        if self.switch_at_seconds.is_some() && self.distribution == Distribution::Uniform {
            return refuse("switch-at", "a uniform choice has no hot set to move".into());
        }
        if self.device_latency_us > MAX_DEVICE_LATENCY_US {
            return refuse(
                "device-us",
                format!("{} is more than {MAX_DEVICE_LATENCY_US}", self.device_latency_us),
            );
        }
        Ok(())
    }

    fn validate_work(&self) -> Result<(), LabError> {
        let refuse = |option, reason: String| Err(LabError::option(option, reason));
        if let Distribution::Latest { .. } = self.distribution {
            return refuse(
                "distribution",
                "latest needs an insertion order, which pages do not have".into(),
            );
        }
        self.distribution.validate()?;
        let (least, most) = self.round_pages;
        if least == 0 || least > most || most > MAX_ROUND_PAGES {
            return refuse(
                "round",
                format!("{least},{most}: use MIN,MAX pages with 1 <= MIN <= MAX <= {MAX_ROUND_PAGES}"),
            );
        }
        for (option, percent) in [("updates", self.update_pct), ("deletes", self.delete_pct)] {
            if !(0.0..=100.0).contains(&percent) {
                return refuse(option, format!("{percent} is not between 0 and 100 percent"));
            }
        }
        Ok(())
    }
}

fn policy(text: &str) -> Result<PolicyKind, LabError> {
    text.parse().map_err(|e| LabError::option("policy", format!("{e}")))
}

/// Parses Tyche's bias `X,Y`: the hot X percent of the pages get Y percent of the accesses. 100,100 means no bias, as
/// in Tyche.
///
/// # Errors
/// [`LabError::Option`] of `bias`.
pub fn bias(text: &str) -> Result<Distribution, LabError> {
    let numbers = text
        .split_once(',')
        .and_then(|(pages, accesses)| Some((pages.trim().parse().ok()?, accesses.trim().parse().ok()?)));
    match numbers {
        Some((100.0, 100.0)) => Ok(Distribution::Uniform),
        Some((keys_pct, operations_pct))
            if 0.0 < keys_pct && keys_pct < 100.0 && (0.0..=100.0).contains(&operations_pct) =>
        {
            Ok(Distribution::HotSet {
                keys_pct,
                operations_pct,
            })
        }
        _ => Err(LabError::option(
            "bias",
            format!(
                "`{text}`: use X,Y: the hot X percent of the pages (above 0 and below 100) get Y percent of the \
                 accesses (0 to 100), as in 20,80"
            ),
        )),
    }
}

/// Parses Tyche's pages of a round, `MIN,MAX`; one number is both.
///
/// # Errors
/// [`LabError::Option`] of `round`. The bounds are checked by [`Options::validate`].
pub fn round_pages(text: &str) -> Result<(u64, u64), LabError> {
    let (least, most) = text.split_once(',').unwrap_or((text, text));
    match (least.trim().parse(), most.trim().parse()) {
        (Ok(least), Ok(most)) => Ok((least, most)),
        _ => Err(LabError::option(
            "round",
            format!("`{text}`: use MIN,MAX pages, as in 5,20"),
        )),
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
