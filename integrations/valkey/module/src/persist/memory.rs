//! What values weigh, and what it takes to free or copy them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::alloc::held;
use crate::api::context::log_warning;
use crate::store::databases::{databases, place_in};
use crate::store::map::Map;
use crate::store::removal;
use crate::store::value::{Borrowed, Value};

/// Bytes held for a user byte, in thousandths: as it was when no training had samples.
static PER_MILLE: AtomicU64 = AtomicU64::new(1000);
/// What a tree holds without records, about.
const EMPTY_TREE: u64 = 24 << 10;
/// Between these is what any data takes; what few data take is mostly their tree.
const MIN_AND_MOST: (u64, u64) = (20, 1200);

/// Fields and bytes of a map up to which the server frees it at once, however it is set: a millisecond or two of work.
const AT_ONCE_FIELDS: u64 = 1 << 16;
const AT_ONCE_BYTES: u64 = 16 << 20;

/// Notes what is held for the data. Trainings hold copies of some of it, so that it is asked for when there is none.
pub fn note_held() {
    let totals = databases().totals();
    let held = (held() as u64).saturating_sub(totals.generations * EMPTY_TREE);
    if let Some(per_mille) = held.saturating_mul(1000).checked_div(totals.user_bytes) {
        let (least, most) = MIN_AND_MOST;
        PER_MILLE.store(per_mille.clamp(least, most), Ordering::Relaxed);
    }
}

/// About how many bytes a value holds: its part of what is held, by its bytes.
pub fn memory(value: &Borrowed<'_>) -> usize {
    let (fixed, user_bytes) = match value {
        Borrowed::Text(text) => (0, text.length().unwrap_or_default() as u64),
        Borrowed::Map(map) => (size_of::<Map>(), map.user_bytes()),
    };
    let part = user_bytes.saturating_mul(PER_MILLE.load(Ordering::Relaxed)) / 1000;
    fixed + usize::try_from(part).unwrap_or(usize::MAX)
}

/// How much work it is to free a value: the server leaves what is more than a little to a thread, if it is set to.
///
/// Its thread only hands records back to the main thread, and the server goes on to evict meanwhile. So a value goes to it only where the
/// removal of its records could be noticed, and not while memory is short: what such a value holds must be free before the server looks
/// whether to evict another.
pub fn free_effort(value: &Borrowed<'_>) -> usize {
    match value {
        Borrowed::Text(_) => 1,
        Borrowed::Map(map) if map.len() <= AT_ONCE_FIELDS && map.user_bytes() <= AT_ONCE_BYTES => 1,
        Borrowed::Map(_) if removal::is_memory_short() => {
            removal::relieve();
            1
        }
        Borrowed::Map(map) => usize::try_from(map.len()).unwrap_or(usize::MAX),
    }
}

/// A copy of a value for a database.
pub fn copy(database: i32, value: &Borrowed<'_>) -> Option<Value> {
    let copied = place_in(database).and_then(|place| match value {
        Borrowed::Text(text) => text.copy_to(place).map(Value::Text),
        Borrowed::Map(map) => map.copy_to(place).map(|map| Value::Map(Box::new(map))),
    });
    copied
        .inspect_err(|error| log_warning(&format!("leafpress: a value cannot be copied: {error}")))
        .ok()
}
