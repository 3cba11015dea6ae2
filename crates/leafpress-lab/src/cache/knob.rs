//! Which bound a cache must be told, so that its process grows by no more than the memory.
//!
//! A cache counts the bytes that it is told that its entries weigh. What it adds (pointers, tables, queues, what the allocator rounds up)
//! is in no count, and goes by the number of entries: so the growth is about a multiple of the knob, and two or three fills find it.

use super::outcome::{Fill, Knob};
use crate::core::LabError;

/// The growth that is accepted, as parts of the memory.
const ACCEPTED: (f64, f64) = (0.96, 1.05);
/// What is aimed at.
const AIM: f64 = 1.01;
/// More fills bring no better knob.
const MOST_FILLS: usize = 6;
/// The first knob, as a part of the memory: small records take twice their bytes.
const FIRST: f64 = 0.5;

/// Searches the knob. `fill` fills a new cache that is told a knob.
///
/// # Errors
/// What `fill` says, and [`LabError::System`] where even the smallest knob takes too much.
pub(super) fn search(memory_bytes: u64, mut fill: impl FnMut(u64) -> Result<Fill, LabError>) -> Result<Knob, LabError> {
    let memory = memory_bytes as f64;
    let part = |fill: &Fill| fill.growth_bytes as f64 / memory;
    let mut fills: Vec<Fill> = Vec::new();
    let mut knob = memory * FIRST;
    for _ in 0..MOST_FILLS {
        let filled = fill(knob.max(1.0) as u64)?;
        fills.push(filled);
        let is_enough = part(&filled) >= ACCEPTED.0 || filled.holds_all;
        if is_enough && part(&filled) <= ACCEPTED.1 {
            break;
        }
        knob = next(&fills, memory);
    }
    let fitting = fills.iter().filter(|fill| part(fill) <= ACCEPTED.1);
    let best = fitting.max_by_key(|fill| fill.knob_bytes);
    let Some(best) = best else {
        let least = fills.iter().map(part).fold(f64::INFINITY, f64::min);
        return Err(LabError::System(format!(
            "no bound was found under which the process grows by the memory: the least growth was {least:.2} times that"
        )));
    };
    Ok(Knob {
        bytes: best.knob_bytes,
        fills,
    })
}

/// The knob to try next: on the line through the two fills next to the aim, or through the only one and nothing.
fn next(fills: &[Fill], memory: f64) -> f64 {
    let point = |fill: &Fill| (fill.knob_bytes as f64, fill.growth_bytes as f64);
    let aim = memory * AIM;
    let mut points: Vec<_> = fills.iter().map(point).collect();
    points.sort_by(|one, other| (one.1 - aim).abs().total_cmp(&(other.1 - aim).abs()));
    let (knob, growth) = points[0];
    let proportional = knob * aim / growth.max(1.0);
    let guess = match points.get(1) {
        Some((other, grown)) if (growth - grown).abs() > memory * 0.02 && (knob - other).abs() > 1.0 => {
            knob + (aim - growth) * (knob - other) / (growth - grown)
        }
        _ => proportional,
    };
    // A line through two fills that a disturbance moved may lead anywhere.
    if guess.is_finite() && guess > 0.0 {
        guess.clamp(knob / 4.0, knob * 4.0)
    } else {
        proportional.clamp(knob / 4.0, knob * 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: u64 = 64 << 20;

    /// The knob for a cache that grows by `factor` times its knob and `fixed` bytes, which holds `all` bytes at most.
    fn found(factor: f64, fixed: f64, all: f64) -> Knob {
        let grow = |knob_bytes: u64| {
            let held = (knob_bytes as f64).min(all);
            Ok(Fill {
                knob_bytes,
                growth_bytes: (held * factor + fixed) as u64,
                holds_all: knob_bytes as f64 >= all,
            })
        };
        search(MEMORY, grow).unwrap()
    }

    #[test]
    fn a_knob_is_found_under_which_the_process_fits() {
        for (factor, fixed) in [(1.1, 0.0), (3.3, 2e6), (0.4, 5e6), (9.0, 1e6), (1.0, 30e6)] {
            let knob = found(factor, fixed, f64::INFINITY);
            let growth = (knob.bytes as f64 * factor + fixed) / MEMORY as f64;
            assert!(
                (0.96..=1.05).contains(&growth),
                "{factor} {fixed}: {growth} by {knob:?}"
            );
            assert!(knob.fills.len() <= 4, "{knob:?}");
        }
    }

    #[test]
    fn a_cache_that_holds_all_needs_no_more() {
        let knob = found(1.2, 0.0, 10e6);
        assert_eq!(knob.fills.len(), 1, "{knob:?}");
    }

    #[test]
    fn a_cache_that_never_fits_is_told() {
        let never = search(MEMORY, |knob_bytes| {
            Ok(Fill {
                knob_bytes,
                growth_bytes: 2 * MEMORY,
                holds_all: false,
            })
        });
        assert!(never.unwrap_err().to_string().contains("2.00 times"));
    }
}
