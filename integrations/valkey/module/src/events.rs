//! What the server's events do to generations.

use crate::api::context::log_warning;
use crate::api::{Context, Key, Str};
use crate::store::databases::{databases, place_in};
use crate::store::value::{Borrowed, Value};

/// A database is about to be emptied: its trees go as wholes.
pub fn flush(database: i32) {
    databases().flush(database);
}

/// Two databases have changed their places.
pub fn swap(first: i32, second: i32) {
    databases().swap(first, second);
}

/// A replica loads next to its current data.
pub fn aside(is_taken: Option<bool>) {
    match is_taken {
        None => databases().begin_aside(),
        Some(is_taken) => databases().end_aside(is_taken),
    }
}

/// A key has come from another database: its records follow, since that database may be emptied, and its trees with it.
pub fn moved(context: Context, name: Str<'_>) {
    let mut key = Key::write(context, name);
    let copied = match key.value() {
        Ok(Some(value)) => place_in(context.database()).and_then(|place| match value {
            Borrowed::Text(text) => text.copy_to(place).map(Value::Text),
            Borrowed::Map(map) => map.copy_to(place).map(|map| Value::Map(Box::new(map))),
        }),
        // Of another type.
        _ => return,
    };
    match copied.map(|copy| key.replace(copy)) {
        Ok(Ok(old)) => drop(old),
        // It stays where it was, and is as good there.
        Ok(Err(failure)) => log_warning(&format!("leafpress: a moved key stays in its old tree: {failure:?}")),
        Err(error) => log_warning(&format!("leafpress: a moved key stays in its old tree: {error}")),
    }
}
