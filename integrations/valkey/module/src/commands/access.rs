//! Access to the values of keys, of the type that a command needs.

use std::ffi::CStr;

use crate::api::context::Class;
use crate::api::output::Output;
use crate::api::{Context, Failure, Key, Str};
use crate::store::databases::place_in;
use crate::store::map::Map;
use crate::store::value::{Borrowed, BorrowedMut, BorrowedText, Value};

/// The result of a command that has replied.
pub type Done = Result<(), Failure>;

/// Returns the key's map, if it is there.
#[inline]
pub fn map_of<'k>(key: &'k Key<'_>) -> Result<Option<&'k Map>, Failure> {
    match key.value()? {
        Some(Borrowed::Map(map)) => Ok(Some(map)),
        Some(Borrowed::Text(_)) => Err(Failure::WRONG_TYPE),
        None => Ok(None),
    }
}

/// Returns the key's string, if it is there.
#[inline]
pub fn text_of<'k>(key: &'k Key<'_>) -> Result<Option<BorrowedText<'k>>, Failure> {
    match key.value()? {
        Some(Borrowed::Text(text)) => Ok(Some(text)),
        Some(Borrowed::Map(_)) => Err(Failure::WRONG_TYPE),
        None => Ok(None),
    }
}

/// Calls `read` with the key's string, if it is there, be it native or the module's.
pub fn read_string<R>(key: &Key<'_>, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Failure> {
    match key.native_string() {
        Some(value) => Ok(Some(read(value))),
        None => match text_of(key)? {
            Some(text) => Ok(text.get_with(read)?),
            None => Ok(None),
        },
    }
}

/// Returns the key's map, to be changed, if it is there.
fn map_of_mut<'k>(key: &'k mut Key<'_>) -> Result<Option<&'k mut Map>, Failure> {
    match key.value_mut()? {
        Some(BorrowedMut::Map(map)) => Ok(Some(map)),
        Some(BorrowedMut::Text) => Err(Failure::WRONG_TYPE),
        None => Ok(None),
    }
}

/// Changes the key's map; an absent one is made, and kept if it has fields then.
pub fn change_or_make<R>(
    context: Context,
    name: Str<'_>,
    change: impl FnOnce(&mut Map) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let mut key = Key::write(context, name);
    if let Some(map) = map_of_mut(&mut key)? {
        return change(map);
    }
    let mut map = Map::new(place_in(context.database())?);
    let changed = change(&mut map);
    // The steps before a failure stay.
    if !map.is_empty() {
        key.set(Value::Map(Box::new(map)))?;
    }
    changed
}

/// Sends a command for a part of the running one to replicas and the append-only file: that with the key and the first
/// of the arguments behind it.
pub fn replicate_part(context: Context, command: &CStr, name: Str<'_>, part: &[Str<'_>]) {
    let arguments: Vec<_> = std::iter::once(name).chain(part.iter().copied()).collect();
    context.replicate(command, &arguments);
}

/// Changes the key's map by removing fields, and removes the key with the last of them. If that fails midway,
/// `replicate_done` sends what was done to replicas, and otherwise they receive the command.
pub fn remove_from<R: Default>(
    context: Context,
    name: Str<'_>,
    remove: impl FnOnce(&mut Map) -> Result<R, Failure>,
    replicate_done: impl FnOnce(),
) -> Result<R, Failure> {
    let mut key = Key::write(context, name);
    let Some(map) = map_of_mut(&mut key)? else {
        return Ok(R::default());
    };
    let before = map.len();
    let outcome = remove(map);
    let (is_changed, is_empty) = (map.len() != before, map.is_empty());
    if is_changed {
        context.touched(name);
        if is_empty {
            key.delete();
        }
        drop(key);
        context.notify(Class::Map, c"hdel", name);
        if is_empty {
            context.notify(Class::Generic, c"del", name);
        }
        match outcome {
            Ok(_) => context.replicate_verbatim(),
            Err(_) => replicate_done(),
        }
    }
    outcome
}

/// Replies with an array of an element for each field, which `reply` makes; it returns how long the element is.
pub fn reply_each(context: Context, fields: &[Str<'_>], reply: impl Fn(&[u8]) -> Result<usize, Failure>) {
    context.array(fields.len());
    let mut output = Output::new(context);
    for field in fields {
        // The array has begun, so that an error takes the place of its element.
        match reply(field.bytes()) {
            Ok(len) => output.add(len),
            Err(failure) => context.failure(&failure),
        }
        if output.is_closing() {
            break;
        }
    }
}

/// Replies with a field's value, or with null; returns how long the value is.
pub fn reply_or_null(context: Context, map: Option<&Map>, field: &[u8]) -> Result<usize, Failure> {
    let reply = |value: &[u8]| {
        context.bytes(value);
        value.len()
    };
    let found = match map {
        Some(map) => map.get_with(field, reply)?,
        None => None,
    };
    if found.is_none() {
        context.null();
    }
    Ok(found.unwrap_or_default())
}
