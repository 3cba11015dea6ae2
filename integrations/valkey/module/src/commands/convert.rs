//! Values that become native ones, and native values that become compressed ones.

use std::ops::Bound;

use super::access::Done;
use crate::api::context::Class;
use crate::api::key::FieldCursor;
use crate::api::raw::{KEY_ACCESS, KEY_OW, KEY_RW, KEY_UPDATE, KEYTYPE_HASH};
use crate::api::{Context, Failure, Key, OwnedStr, Str};
use crate::store::databases::place_in;
use crate::store::map::Map;
use crate::store::text::Text;
use crate::store::value::{Borrowed, BorrowedMut, Value};

const NO_KEY: Failure = Failure::text("ERR no such key");

/// `LP.EXPORT key [destination [REPLACE]]`: makes a native hash or string of a key, in its place or at another key.
pub fn export(context: Context, arguments: &[Str<'_>]) -> Done {
    if context.is_asked_for_keys() {
        context.key_at(1, KEY_RW | KEY_ACCESS | KEY_UPDATE);
        if arguments.len() > 2 {
            context.key_at(2, KEY_OW | KEY_UPDATE);
        }
        return Ok(());
    }
    let (name, destination, replaces) = match *arguments {
        [_, name] => (name, None, true),
        [_, name, destination] => (name, Some(destination), false),
        [_, name, destination, option] if option.bytes().eq_ignore_ascii_case(b"REPLACE") => {
            (name, Some(destination), true)
        }
        [_, _, _, _] => return Err(Failure::SYNTAX),
        _ => return Err(Failure::Arity),
    };
    let is_same = destination.is_none_or(|destination| destination.bytes() == name.bytes());
    let mut key = Key::write(context, name);
    if key.value()?.is_none() {
        return Err(NO_KEY);
    }
    if is_same {
        if !replaces {
            return Err(Failure::text("ERR the destination is the key itself"));
        }
        make_native(context, &mut key)?;
    } else if let Some(destination) = destination {
        let mut target = Key::write(context, destination);
        if !target.is_empty() {
            if !replaces {
                return Err(Failure::text(
                    "ERR the destination exists; say REPLACE to write over it",
                ));
            }
            target.delete();
        }
        match key.value_mut()? {
            Some(BorrowedMut::Map(map)) => {
                if let Err(failure) = write_fields(map, &mut target) {
                    // An incomplete value must not be visible.
                    target.delete();
                    return Err(failure);
                }
            }
            Some(BorrowedMut::Text(text)) => target.set_native_string(OwnedStr::new(&text.to_vec()?).as_str())?,
            None => {}
        }
        target.set_expiry(key.expiry());
    }
    drop(key);
    let written = destination.unwrap_or(name);
    context.touched(written);
    context.notify(Class::Generic, c"lp.export", written);
    context.replicate_verbatim();
    context.status(c"OK");
    Ok(())
}

/// Makes the key's value a native one. Its expiry stays. If it cannot be read, it stays unchanged.
pub fn make_native(context: Context, key: &mut Key<'_>) -> Done {
    let expiry = key.expiry();
    let native = Native::take(context, key)?;
    key.delete();
    let written = native.write(key);
    if written.is_err() {
        key.delete();
        native.give_back(context, key)?;
    }
    key.set_expiry(expiry);
    written
}

/// A value taken from its key, which is about to receive the native one.
enum Native {
    Fields(Box<Map>),
    Bytes(Vec<u8>),
}

impl Native {
    /// Leaves an empty map in the key, so that its previous value outlives it.
    fn take(context: Context, key: &mut Key<'_>) -> Result<Self, Failure> {
        if let Some(Borrowed::Text(text)) = key.value()? {
            return Ok(Self::Bytes(text.to_vec()?));
        }
        let empty = Map::new(place_in(context.database())?);
        match key.replace(Value::Map(Box::new(empty)))? {
            Value::Map(map) => Ok(Self::Fields(map)),
            Value::Text(text) => Ok(Self::Bytes(text.to_vec()?)),
        }
    }

    fn write(&self, key: &mut Key<'_>) -> Done {
        match self {
            Self::Fields(map) => write_fields(map, key),
            Self::Bytes(bytes) => key.set_native_string(OwnedStr::new(bytes).as_str()),
        }
    }

    /// Makes it the key's value again.
    fn give_back(self, context: Context, key: &mut Key<'_>) -> Done {
        key.set(match self {
            Self::Fields(map) => Value::Map(map),
            Self::Bytes(bytes) => Value::Text(Text::new(place_in(context.database())?, &bytes)?),
        })
    }
}

fn write_fields(map: &Map, key: &mut Key<'_>) -> Done {
    for record in map.range((Bound::Unbounded, Bound::Unbounded))? {
        let (field, value) = record?;
        key.set_native_field(OwnedStr::new(&field).as_str(), OwnedStr::new(&value).as_str())?;
    }
    Ok(())
}

/// `LP.IMPORT key`: makes a compressed map or string of a native hash or string, in its place. Its expiry stays.
pub fn import(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, name);
    let value = if key.is_empty() {
        return Err(NO_KEY);
    } else if let Some(bytes) = key.native_string() {
        Value::Text(Text::new(place_in(context.database())?, bytes)?)
    } else if key.has_type(KEYTYPE_HASH) {
        drop(key);
        Value::Map(Box::new(read_fields(context, name)?))
    } else {
        // It is compressed already, or of another type.
        key.value()?;
        context.status(c"OK");
        return Ok(());
    };
    let mut key = Key::write(context, name);
    let expiry = key.expiry();
    key.set(value)?;
    key.set_expiry(expiry);
    drop(key);
    context.touched(name);
    context.notify(Class::Generic, c"lp.import", name);
    context.replicate_verbatim();
    context.status(c"OK");
    Ok(())
}

/// Fields that are read at a time.
const FIELDS_AT_ONCE: usize = 512;

/// Returns a compressed copy of a native hash.
fn read_fields(context: Context, name: Str<'_>) -> Result<Map, Failure> {
    let mut map = Map::new(place_in(context.database())?);
    let may_have_expiry = context.has_command(c"HPEXPIRETIME");
    let (cursor, mut fields, mut has_more) = (FieldCursor::new(), Vec::new(), true);
    while has_more {
        // The key is closed before a native command runs, which may change or remove it.
        let key = Key::read(context, name);
        while has_more && fields.len() < FIELDS_AT_ONCE {
            has_more = key.next_fields(&cursor, &mut fields);
        }
        drop(key);
        let names = fields.iter().map(|(field, _)| field.as_slice());
        if may_have_expiry && context.has_field_expiry(name, names)? {
            return Err(Failure::text(
                "ERR the hash has a field with an expiry, which compressed hashes do not have",
            ));
        }
        for (field, value) in fields.drain(..) {
            map.set(&field, &value)?;
        }
    }
    match map.is_empty() {
        // All fields have expired, and the server is about to remove them.
        true => Err(NO_KEY),
        false => Ok(map),
    }
}
