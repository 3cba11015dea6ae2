//! Upkeep between commands, on the server's timer and in its thread.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::api::Context;
use crate::api::context::log_warning;
use crate::commands::conversion::CONVERSION;
use crate::commands::survey::SURVEY;
use crate::persist::memory::note_held;
use crate::store::databases::databases;
use crate::store::generation::Hold;
use crate::store::removal;
use crate::store::settings::upkeep_budget_us;
use crate::trainings;

/// Milliseconds to the next call if more work is due, and if none is.
const SOON: i64 = 5;
const LATER: i64 = 20;

/// Conversions and surveys were requested, and take this multiple of the upkeep's time together.
const PASS_BUDGETS: u32 = 4;

/// Buffer for writes to a leaf before it is compacted, while each page that is written is held twice.
const LANDING_BYTES_WHILE_FORKED: usize = 8 << 10;

/// Whether a child of the server writes a snapshot: each page that is written meanwhile is held twice.
static IS_FORKED: AtomicBool = AtomicBool::new(false);
/// The generation that has its upkeep first.
static FIRST: AtomicUsize = AtomicUsize::new(0);
static SPENT_US: AtomicU64 = AtomicU64::new(0);
static LONGEST_US: AtomicU64 = AtomicU64::new(0);
/// As [`LONGEST_US`], since it was last reported.
static LONGEST_SINCE_REPORT_US: AtomicU64 = AtomicU64::new(0);
static FAILURES: AtomicU64 = AtomicU64::new(0);

/// The report of the upkeep.
pub struct Report {
    /// Microseconds spent on it.
    pub spent_us: u64,
    /// The longest at a time.
    pub longest_us: u64,
    /// The longest at a time since the last report.
    pub longest_since_report_us: u64,
    /// How often it failed.
    pub failures: u64,
}

/// Reports it.
pub fn report() -> Report {
    Report {
        spent_us: SPENT_US.load(Ordering::Relaxed),
        longest_us: LONGEST_US.load(Ordering::Relaxed),
        longest_since_report_us: LONGEST_SINCE_REPORT_US.swap(0, Ordering::Relaxed),
        failures: FAILURES.load(Ordering::Relaxed),
    }
}

/// A child was forked, or has ended. Meanwhile only deleted values are removed: the rest can wait.
pub fn forked(is_there: bool) {
    IS_FORKED.store(is_there, Ordering::Relaxed);
    let landing_bytes = if is_there { LANDING_BYTES_WHILE_FORKED } else { 0 };
    for generation in databases().generations() {
        generation.tree().set_min_landing_bytes(landing_bytes);
    }
}

/// Does due work for about the configured time, and conversions and surveys for a multiple of it; returns in how
/// many milliseconds to call again.
pub fn tick(context: Context) -> i64 {
    let begin = Instant::now();
    let budget = Duration::from_micros(upkeep_budget_us());
    // Half of it, so that the removal of very many values does not keep everything else waiting.
    let mut is_more = noted(removal::step(budget / 2));
    let generations: Vec<Hold> = {
        let mut databases = databases();
        databases.drop_unused();
        databases.generations().cloned().collect()
    };
    if IS_FORKED.load(Ordering::Relaxed) {
        CONVERSION.wait("a child saves");
        SURVEY.wait("a child saves");
        return later(is_more, begin);
    }
    if !generations.iter().any(|generation| generation.tree().is_training()) {
        note_held();
    }
    // Each generation is the first in turn, so that none waits for another for long.
    let first = FIRST.fetch_add(1, Ordering::Relaxed) % generations.len().max(1);
    let (before, after) = generations.split_at(first);
    for generation in after.iter().chain(before) {
        let left = budget.saturating_sub(begin.elapsed());
        if left.is_zero() {
            is_more = true;
            break;
        }
        is_more |= noted(trainings::watched(generation, |tree| tree.run_upkeep(left)));
    }
    let passes = u32::from(CONVERSION.is_running()) + u32::from(SURVEY.is_running());
    let share = budget * PASS_BUDGETS / passes.max(1);
    is_more |= CONVERSION.step(context, share);
    is_more |= SURVEY.step(context, share);
    later(is_more, begin)
}

/// Counts the time since `begin`; returns in how many milliseconds to call again.
fn later(is_more: bool, begin: Instant) -> i64 {
    let took = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
    SPENT_US.fetch_add(took, Ordering::Relaxed);
    LONGEST_US.fetch_max(took, Ordering::Relaxed);
    LONGEST_SINCE_REPORT_US.fetch_max(took, Ordering::Relaxed);
    if is_more { SOON } else { LATER }
}

/// Returns whether more work is due. Failed work is tried again at the next call, and logged at its first failure.
fn noted(outcome: Result<bool, leafpress::TreeError>) -> bool {
    outcome.unwrap_or_else(|error| {
        if FAILURES.fetch_add(1, Ordering::Relaxed) == 0 {
            log_warning(&format!("leafpress: upkeep failed: {error}"));
        }
        false
    })
}
