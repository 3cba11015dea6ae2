//! What values weigh, and what it takes to free or copy them.

use crate::alloc::held;
use crate::api::context::log_warning;
use crate::store::databases::{databases, place_in};
use crate::store::map::Map;
use crate::store::value::{Borrowed, Value};

/// About how many bytes a value holds: its part of what the module holds, by its bytes.
pub fn memory(value: &Borrowed<'_>) -> usize {
    let (fixed, user_bytes) = match value {
        Borrowed::Text(text) => (0, text.length().unwrap_or_default() as u64),
        Borrowed::Map(map) => (size_of::<Map>(), map.user_bytes()),
    };
    let all = databases().totals().user_bytes.max(1);
    let part = (held() as f64 * user_bytes as f64 / all as f64) as usize;
    fixed + part
}

/// How much work it is to free a value: the server leaves what is more than a little to a thread.
pub fn free_effort(value: &Borrowed<'_>) -> usize {
    match value {
        Borrowed::Text(_) => 1,
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
