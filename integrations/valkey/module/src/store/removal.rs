//! Removal of freed values' records: at once by the thread that runs commands, in steps if another thread frees a
//! value, not at all if the tree is dropped.
//!
//! The server counts the memory that a removal frees while it evicts, so that it must be freed before the call returns.
//! Only the rest of very large values is removed in steps between commands, and values that the server leaves to
//! another thread: other threads do not write to trees, since they could do so while the server forks.

use std::cell::Cell;
use std::ops::Bound;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_queue::SegQueue;
use leafpress::TreeError;

use super::generation::Hold;
use super::record_key::{ID_BYTES, bounds_of};

/// Records of one step between commands, and of one while a value is freed.
const STEP: usize = 1024;
const LONG_STEP: usize = 8192;
/// Approximate maximum time to free a value. The rest of a map of millions of fields is removed in steps.
const FREEING: Duration = Duration::from_millis(10);
/// Maximum time before a command, if memory is short and records wait to be removed.
const RELIEF: Duration = Duration::from_millis(2);

static WAITING: SegQueue<Removal> = SegQueue::new();
/// Bytes of fields and values that wait.
static WAITING_BYTES: AtomicU64 = AtomicU64::new(0);
static IS_SHORT: OnceLock<fn() -> bool> = OnceLock::new();

thread_local! {
    static IS_MAIN: Cell<bool> = const { Cell::new(false) };
}

/// A freed value whose records remain.
struct Removal {
    generation: Hold,
    id: u64,
    /// Bytes of the fields and values that remain.
    user_bytes: u64,
}

impl Removal {
    /// Has it wait.
    fn wait(self) {
        WAITING_BYTES.fetch_add(self.user_bytes, Ordering::Relaxed);
        WAITING.push(self);
    }

    /// Returns the next one that waits.
    fn next() -> Option<Self> {
        let removal = WAITING.pop()?;
        WAITING_BYTES.fetch_sub(removal.user_bytes, Ordering::Relaxed);
        Some(removal)
    }
}

/// Declares that the calling thread is the one that runs commands: only it writes to trees.
pub fn this_is_the_main_thread() {
    IS_MAIN.set(true);
}

/// Removes a value's records: on the main thread for about [`FREEING`], the rest later. While a flush frees
/// very many values whose tree stays, since it has values in another database, they are all removed later.
pub fn remove(generation: &Hold, id: u64, records: u64, user_bytes: u64) {
    if records == 0 || generation.is_closed() {
        return;
    }
    let mut left = user_bytes;
    if IS_MAIN.get() && !generation.is_emptied() {
        // Waiting values already count as freed by this call, so that the server evicts no further value for it.
        relieve();
        let begin = Instant::now();
        let mut outcome = Ok(false);
        while matches!(outcome, Ok(false)) && begin.elapsed() < FREEING {
            outcome = remove_some(generation, id, LONG_STEP, &mut left);
        }
        if matches!(outcome, Ok(true)) {
            return;
        }
    }
    let removal = Removal {
        generation: generation.clone(),
        id,
        user_bytes: left,
    };
    removal.wait();
}

/// Returns how many values wait, and the bytes of their fields and values.
pub fn waiting() -> (u64, u64) {
    (WAITING.len() as u64, WAITING_BYTES.load(Ordering::Relaxed))
}

/// Sets the function that reports whether the server uses more memory than its limit.
pub fn set_shortage_check(is_short: fn() -> bool) {
    let _ = IS_SHORT.set(is_short);
}

/// Returns whether the server uses more memory than its limit.
pub fn is_memory_short() -> bool {
    IS_SHORT.get().is_some_and(|is_short| is_short())
}

/// Removes waiting records while memory is short, for a bounded time: the server would evict instead.
pub fn relieve() {
    let begin = Instant::now();
    while !WAITING.is_empty() && is_memory_short() && begin.elapsed() < RELIEF {
        // The upkeep tries failures again, and reports them.
        if step(Duration::ZERO).is_err() {
            return;
        }
    }
}

/// Removes records for about `budget`, of one step at least; returns whether some are left.
pub fn step(budget: Duration) -> Result<bool, TreeError> {
    let begin = Instant::now();
    while let Some(mut removal) = Removal::next() {
        while !removal.generation.is_closed() {
            match remove_some(&removal.generation, removal.id, STEP, &mut removal.user_bytes) {
                Ok(true) => break,
                Ok(false) if begin.elapsed() < budget => {}
                outcome => {
                    removal.wait();
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

/// Removes up to `limit` records of a value, and subtracts the bytes of their fields and values from `left`; returns
/// whether nothing of the value is left.
fn remove_some(generation: &Hold, id: u64, limit: usize, left: &mut u64) -> Result<bool, TreeError> {
    let bounds = bounds_of(id, (Bound::Unbounded, Bound::Unbounded))?;
    let removed = generation.tree().remove_range(bounds, limit)?;
    let user_bytes = removed
        .key_and_value_bytes
        .saturating_sub(removed.records * ID_BYTES as u64);
    *left = left.saturating_sub(user_bytes);
    Ok(removed.is_done)
}
