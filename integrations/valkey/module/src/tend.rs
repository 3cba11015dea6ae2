//! Upkeep between commands, on the server's timer and in its thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::api::context::log_warning;
use crate::store::databases::databases;
use crate::store::generation::Hold;
use crate::store::removal;
use crate::store::settings::tend_budget_us;

/// Milliseconds to the next call where more is to be done, and where nothing is.
const SOON: i64 = 5;
const LATER: i64 = 20;

static SPENT_US: AtomicU64 = AtomicU64::new(0);
static LONGEST_US: AtomicU64 = AtomicU64::new(0);
static FAILURES: AtomicU64 = AtomicU64::new(0);

/// Microseconds spent on it, the longest at a time, and how often it failed.
pub fn spent() -> (u64, u64, u64) {
    (
        SPENT_US.load(Ordering::Relaxed),
        LONGEST_US.load(Ordering::Relaxed),
        FAILURES.load(Ordering::Relaxed),
    )
}

/// Does what is due for about as long as is allowed; says in how many milliseconds to call again.
pub fn tick() -> i64 {
    let begin = Instant::now();
    let budget = Duration::from_micros(tend_budget_us());
    let mut is_more = noted(removal::step(budget));
    let generations: Vec<Hold> = {
        let mut databases = databases();
        databases.drop_unused();
        databases.generations().cloned().collect()
    };
    for generation in &generations {
        let left = budget.saturating_sub(begin.elapsed());
        if left.is_zero() {
            is_more = true;
            break;
        }
        is_more |= noted(generation.tree().tend(left));
    }
    let took = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
    SPENT_US.fetch_add(took, Ordering::Relaxed);
    LONGEST_US.fetch_max(took, Ordering::Relaxed);
    if is_more { SOON } else { LATER }
}

/// Whether more is to be done. What failed is tried again at the next call, and logged when it first fails.
fn noted(outcome: Result<bool, leafpress::Error>) -> bool {
    outcome.unwrap_or_else(|error| {
        if FAILURES.fetch_add(1, Ordering::Relaxed) == 0 {
            log_warning(&format!("leafpress: upkeep failed: {error}"));
        }
        false
    })
}
