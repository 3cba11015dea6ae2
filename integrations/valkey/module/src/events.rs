//! The effects of the server's events on generations.

use crate::api::context::log_warning;
use crate::api::{Context, Key, Str};
use crate::commands::conversion::CONVERSION;
use crate::commands::survey::SURVEY;
use crate::persist::memory::copy;
use crate::store::databases::databases;
use crate::store::value::Borrowed;

/// A database is about to be emptied: its trees are dropped as wholes.
pub fn flush(database: i32) {
    databases().flush(database);
}

/// A flush has ended.
pub fn flushed() {
    databases().flushed();
}

/// Two databases have changed their places.
pub fn swap(first: i32, second: i32) {
    databases().swap(first, second);
    CONVERSION.swap(first, second);
    SURVEY.swap(first, second);
}

/// A replica loads next to its current data.
pub fn aside(is_taken: Option<bool>) {
    match is_taken {
        None => databases().begin_aside(),
        Some(is_taken) => databases().end_aside(is_taken),
    }
}

/// Largest values that are copied when a key is moved: about two milliseconds.
const MAX_COPIED_FIELDS: u64 = 1024;
const MAX_COPIED_BYTES: u64 = 256 << 10;

/// A key has come from another database. A small value is copied into a tree of its new database. A large one stays
/// where it is, and its tree is not dropped as a whole when the old database is emptied.
pub fn moved(context: Context, name: Str<'_>) {
    let mut key = Key::write(context, name);
    let copied = match key.value() {
        Ok(Some(value)) if !is_small(&value) => return value.share(),
        Ok(Some(value)) => copy(context.database(), &value),
        // Of another type.
        _ => return,
    };
    if let Some(Err(failure)) = copied.map(|copy| key.replace(copy)) {
        // The value stays in its tree, which is equivalent.
        log_warning(&format!("leafpress: a moved key stays in its old tree: {failure:?}"));
    }
}

fn is_small(value: &Borrowed<'_>) -> bool {
    match value {
        Borrowed::Text(text) => text.length().is_ok_and(|len| len as u64 <= MAX_COPIED_BYTES),
        Borrowed::Map(map) => map.len() <= MAX_COPIED_FIELDS && map.user_bytes() <= MAX_COPIED_BYTES,
    }
}
