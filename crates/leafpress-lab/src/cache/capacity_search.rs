//! Searches the capacity to configure for a cache, so that its process grows by at most the memory.
//!
//! A cache counts the configured weights of its entries. Its overhead (pointers, tables, queues, the allocator's
//! rounding) is not counted, and is proportional to the number of entries: so the growth is roughly a multiple of the
//! capacity, and two or three fills find it.

use super::outcome::{ConfiguredCapacity, Fill};
use crate::core::LabError;

/// The growth that is accepted, as parts of the memory.
const ACCEPTED: (f64, f64) = (0.96, 1.05);
/// The tolerance of a run, whose growth is not known more precisely.
const RUN_ACCEPTED: (f64, f64) = (0.94, 1.06);
/// Runs of one cache at most.
pub(super) const MAX_RUNS: usize = 3;
/// The target.
const AIM: f64 = 1.01;
/// More fills bring no better capacity.
const MAX_FILLS: usize = 6;
/// The first capacity, as a part of the memory: small records take twice their bytes.
const FIRST: f64 = 0.5;

/// Searches the capacity. `fill` fills a new cache with a given capacity. If none fits, returns the one with the least
/// growth.
///
/// # Errors
/// Errors of `fill`.
pub(super) fn search(
    memory_bytes: u64,
    mut fill: impl FnMut(u64) -> Result<Fill, LabError>,
) -> Result<ConfiguredCapacity, LabError> {
    let memory = memory_bytes as f64;
    let part = |fill: &Fill| fill.growth_bytes as f64 / memory;
    let mut fills: Vec<Fill> = Vec::new();
    let mut capacity = memory * FIRST;
    for _ in 0..MAX_FILLS {
        let filled = fill(capacity.max(1.0) as u64)?;
        fills.push(filled);
        let is_enough = part(&filled) >= ACCEPTED.0 || filled.holds_all;
        if is_enough && part(&filled) <= ACCEPTED.1 {
            break;
        }
        capacity = next(&fills, memory);
        // A capacity that was tried gives the same result again, except by chance.
        let is_near = |fill: &Fill| (fill.capacity_bytes as f64 / capacity - 1.0).abs() < 0.01;
        if fills.iter().any(is_near) {
            break;
        }
    }
    let fitting = fills.iter().filter(|fill| part(fill) <= ACCEPTED.1);
    let best = fitting.max_by_key(|fill| fill.capacity_bytes);
    let least = fills.iter().min_by_key(|fill| fill.growth_bytes);
    Ok(ConfiguredCapacity {
        bytes: best.or(least).map_or(memory_bytes, |fill| fill.capacity_bytes),
        fills,
        runs: Vec::new(),
    })
}

/// Whether a run under a capacity fits the memory, neither too much nor too little; otherwise another capacity.
pub(super) fn correction(memory_bytes: u64, run: &Fill) -> Option<u64> {
    let part = run.growth_bytes as f64 / memory_bytes as f64;
    let fits = part <= RUN_ACCEPTED.1 && (part >= RUN_ACCEPTED.0 || run.holds_all);
    // A disturbed run must not lead far away.
    let factor = (AIM / part.max(0.1)).clamp(0.5, 1.6);
    (!fits).then(|| ((run.capacity_bytes as f64 * factor) as u64).max(1))
}

/// Selects one of several runs: the largest of those that fit, or the smallest.
pub(super) fn best_run(memory_bytes: u64, runs: &[Fill]) -> Option<usize> {
    let fits = |run: &Fill| run.growth_bytes as f64 <= memory_bytes as f64 * RUN_ACCEPTED.1;
    let runs = runs.iter().enumerate();
    let fitting = runs
        .clone()
        .filter(|(_, run)| fits(run))
        .max_by_key(|(_, run)| run.growth_bytes);
    fitting
        .or_else(|| runs.min_by_key(|(_, run)| run.growth_bytes))
        .map(|(at, _)| at)
}

/// The capacity to try next: on the line through the two fills next to the aim, or through the only one and nothing.
fn next(fills: &[Fill], memory: f64) -> f64 {
    let point = |fill: &Fill| (fill.capacity_bytes as f64, fill.growth_bytes as f64);
    let aim = memory * AIM;
    let mut points: Vec<_> = fills.iter().map(point).collect();
    points.sort_by(|one, other| (one.1 - aim).abs().total_cmp(&(other.1 - aim).abs()));
    let (capacity, growth) = points[0];
    let proportional = capacity * aim / growth.max(1.0);
    let guess = match points.get(1) {
        // A larger capacity takes more; where it took less, that was chance.
        Some((other, grown)) if (growth - grown).abs() > memory * 0.02 && (capacity > *other) == (growth > *grown) => {
            capacity + (aim - growth) * (capacity - other) / (growth - grown)
        }
        _ => proportional,
    };
    // A line through two fills that a disturbance moved may lead anywhere.
    if guess.is_finite() && guess > 0.0 {
        guess.clamp(capacity / 4.0, capacity * 4.0)
    } else {
        proportional.clamp(capacity / 4.0, capacity * 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: u64 = 64 << 20;

    /// The capacity for a cache that grows by `factor` times its capacity and `fixed` bytes, which holds `all` bytes at
    /// most.
    fn found(factor: f64, fixed: f64, all: f64) -> ConfiguredCapacity {
        let grow = |capacity_bytes: u64| {
            let held = (capacity_bytes as f64).min(all);
            Ok(Fill {
                capacity_bytes,
                growth_bytes: (held * factor + fixed) as u64,
                holds_all: capacity_bytes as f64 >= all,
            })
        };
        search(MEMORY, grow).unwrap()
    }

    #[test]
    fn finds_a_capacity_with_which_the_process_fits() {
        for (factor, fixed) in [(1.1, 0.0), (3.3, 2e6), (0.4, 5e6), (9.0, 1e6), (1.0, 30e6)] {
            let capacity = found(factor, fixed, f64::INFINITY);
            let growth = (capacity.bytes as f64 * factor + fixed) / MEMORY as f64;
            assert!(
                (0.96..=1.05).contains(&growth),
                "{factor} {fixed}: {growth} by {capacity:?}"
            );
            assert!(capacity.fills.len() <= 4, "{capacity:?}");
        }
    }

    #[test]
    fn a_cache_that_holds_all_needs_no_more() {
        let capacity = found(1.2, 0.0, 10e6);
        assert_eq!(capacity.fills.len(), 1, "{capacity:?}");
    }

    #[test]
    fn runs_that_do_not_fit_are_corrected_and_the_best_is_taken() {
        let run = |part: f64, holds_all| Fill {
            capacity_bytes: 1000,
            growth_bytes: (MEMORY as f64 * part) as u64,
            holds_all,
        };
        for (part, holds_all, next) in [
            (1.0, false, None),
            (0.5, true, None),
            (2.02, false, Some(500)),
            (0.808, false, Some(1250)),
            (9.0, true, Some(500)),
            (0.0, false, Some(1600)),
        ] {
            let corrected = correction(MEMORY, &run(part, holds_all));
            assert_eq!(corrected.map(|capacity| (capacity + 5) / 10 * 10), next, "{part}");
        }
        let best = |parts: &[f64]| best_run(MEMORY, &parts.iter().map(|part| run(*part, false)).collect::<Vec<_>>());
        assert_eq!(best(&[0.8, 1.0, 1.2]), Some(1));
        assert_eq!(best(&[1.4, 1.2, 1.3]), Some(1));
        assert_eq!(best(&[]), None);
    }

    #[test]
    fn a_cache_that_never_fits_gets_the_least() {
        let never = search(MEMORY, |capacity_bytes| {
            Ok(Fill {
                capacity_bytes,
                growth_bytes: 2 * MEMORY + capacity_bytes,
                holds_all: false,
            })
        });
        let never = never.unwrap();
        let least = never.fills.iter().map(|fill| fill.capacity_bytes).min();
        assert_eq!(Some(never.bytes), least, "{never:?}");
    }

    #[test]
    fn growth_that_goes_up_and_down_leads_nowhere_far() {
        let mut number = 0;
        let capacity = search(MEMORY, |capacity_bytes| {
            number += 1;
            let chance = if number % 2 == 0 { 0.95 } else { 1.03 };
            Ok(Fill {
                capacity_bytes,
                growth_bytes: (capacity_bytes as f64 * 1.8 * chance) as u64,
                holds_all: false,
            })
        });
        let growth = capacity.unwrap().bytes as f64 * 1.8 / MEMORY as f64;
        assert!((0.85..1.1).contains(&growth), "{growth}");
    }
}
