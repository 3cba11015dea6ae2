//! Removal of freed values' records: at once where they are few, in steps where they are many, not at all where the tree goes.

use std::cell::Cell;
use std::ops::Bound;
use std::time::{Duration, Instant};

use crossbeam_queue::SegQueue;
use leafpress::Error;

use super::generation::Hold;
use super::record_key::bounds_of;

/// Records that are removed at once, by the thread that runs commands.
const AT_ONCE: u64 = 64;
/// Records of one step.
const STEP: usize = 256;

static WAITING: SegQueue<Removal> = SegQueue::new();

thread_local! {
    static IS_MAIN: Cell<bool> = const { Cell::new(false) };
}

/// A value that is gone and whose records are not.
struct Removal {
    generation: Hold,
    id: u64,
}

/// Says that the calling thread is the one that runs commands: only it writes to trees.
pub fn this_is_the_main_thread() {
    IS_MAIN.set(true);
}

/// Removes a value's records, now or later.
pub fn remove(generation: &Hold, id: u64, records: u64) {
    if records == 0 || generation.is_closed() {
        return;
    }
    if records <= AT_ONCE && IS_MAIN.get() && remove_some(generation, id, usize::MAX).is_ok_and(|is_done| is_done) {
        return;
    }
    WAITING.push(Removal {
        generation: generation.clone(),
        id,
    });
}

/// How many values wait.
pub fn waiting() -> usize {
    WAITING.len()
}

/// Removes records for about `budget`; says whether some are left.
pub fn step(budget: Duration) -> Result<bool, Error> {
    let begin = Instant::now();
    while let Some(removal) = WAITING.pop() {
        while !removal.generation.is_closed() {
            match remove_some(&removal.generation, removal.id, STEP) {
                Ok(true) => break,
                Ok(false) if begin.elapsed() < budget => {}
                outcome => {
                    WAITING.push(removal);
                    return outcome.map(|_| true);
                }
            }
        }
        if begin.elapsed() >= budget {
            break;
        }
    }
    Ok(!WAITING.is_empty())
}

/// Says whether nothing of the value is left.
fn remove_some(generation: &Hold, id: u64, limit: usize) -> Result<bool, Error> {
    let bounds = bounds_of(id, (Bound::Unbounded, Bound::Unbounded))?;
    Ok(generation.tree().remove_range(bounds, limit)?.is_done)
}
