//! The memory of values, and the effort of freeing or copying them.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::alloc::held;
use crate::api::allocator::usable_size;
use crate::api::context::log_warning;
use crate::store::chunks::CHUNK;
use crate::store::databases::{databases, place_in};
use crate::store::removal;
use crate::store::value::{Borrowed, Value};

/// Bytes held per user byte, in thousandths: measured while no training has samples.
static PER_MILLE: AtomicU64 = AtomicU64::new(1000);
/// Approximate bytes of a tree without records.
const EMPTY_TREE: u64 = 24 << 10;
/// Lower bound of [`PER_MILLE`] for any data.
const MIN_PER_MILLE: u64 = 20;
/// Upper bound while fewer bytes than the following are held, since most of these are the tree's own then.
const MAX_PER_MILLE_OF_LITTLE: u64 = 1200;
const LITTLE_BYTES: u64 = 1 << 20;

/// Records and bytes of a value up to which the server frees it at once, whatever its settings: one or two milliseconds
/// of work.
const AT_ONCE_RECORDS: u64 = 1 << 16;
const AT_ONCE_BYTES: u64 = 16 << 20;

/// Records the memory held for the data. Trainings hold copies of some of it, so this is called if none is in progress.
pub fn note_held() {
    let totals = databases().totals();
    let held = (held() as u64).saturating_sub(totals.generations * EMPTY_TREE);
    if let Some(per_mille) = held.saturating_mul(1000).checked_div(totals.user_bytes()) {
        // Records of a few bytes take many times these.
        let most = if held < LITTLE_BYTES {
            MAX_PER_MILLE_OF_LITTLE
        } else {
            u64::MAX
        };
        PER_MILLE.store(per_mille.clamp(MIN_PER_MILLE, most), Ordering::Relaxed);
    }
}

/// Returns about how many bytes a value holds: its share of the bytes held, in proportion to its bytes, and the
/// server's own record of a value of a module, a type and a pointer.
pub fn memory(value: &Borrowed<'_>) -> usize {
    static OF_SERVER: OnceLock<u64> = OnceLock::new();
    let of_server = *OF_SERVER.get_or_init(|| usable_size(size_of::<[*mut c_void; 2]>() as u64));
    let user_bytes = match value {
        Borrowed::Text(text) => text.length().unwrap_or_default() as u64,
        Borrowed::Map(map) => map.user_bytes(),
    };
    let part = user_bytes.saturating_mul(PER_MILLE.load(Ordering::Relaxed)) / 1000;
    usize::try_from(of_server + part).unwrap_or(usize::MAX)
}

/// Returns the effort of freeing a value: the server leaves all but small efforts to a thread, if it is configured to.
///
/// That thread only hands records back to the main thread, and the server continues to evict meanwhile. So it gets a
/// value only if the removal of its records could be noticed, and not while memory is short: the value's memory must be
/// free before the server checks whether to evict another one.
pub fn free_effort(value: &Borrowed<'_>) -> usize {
    let (records, bytes) = match value {
        Borrowed::Text(text) => {
            let len = text.length().unwrap_or_default() as u64;
            (len / CHUNK as u64 + 1, len)
        }
        Borrowed::Map(map) => (map.len(), map.user_bytes()),
    };
    if records <= AT_ONCE_RECORDS && bytes <= AT_ONCE_BYTES {
        return 1;
    }
    if removal::is_memory_short() {
        removal::relieve();
        return 1;
    }
    usize::try_from(records).unwrap_or(usize::MAX)
}

/// Returns a copy of a value for a database.
pub fn copy(database: i32, value: &Borrowed<'_>) -> Option<Value> {
    let copied = place_in(database).and_then(|place| match value {
        Borrowed::Text(text) => text.copy_to(place).map(Value::Text),
        Borrowed::Map(map) => map.copy_to(place).map(|map| Value::Map(Box::new(map))),
    });
    copied
        .inspect_err(|error| log_warning(&format!("leafpress: a value cannot be copied: {error}")))
        .ok()
}
