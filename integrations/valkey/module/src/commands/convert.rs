//! Values that become native ones, and native values that become compressed ones.

use std::ffi::CStr;
use std::ops::Bound;

use super::access::Done;
use crate::api::context::Class;
use crate::api::key::{FieldCursor, Usage};
use crate::api::raw::{KEY_ACCESS, KEY_OW, KEY_RW, KEY_UPDATE, KEYTYPE_HASH};
use crate::api::{Context, Failure, Key, OwnedStr, Str};
use crate::store::databases::place_in;
use crate::store::map::Map;
use crate::store::text::Text;
use crate::store::value::{Borrowed, Value};

/// There is no such key.
pub const NO_KEY: Failure = Failure::text("ERR no such key");
/// The value is larger than the limits.
pub const TOO_LARGE: Failure = Failure::text("ERR the value is larger than MAXFIELDS or MAXBYTES of LP.CONVERT");

/// Larger values are converted only on request: the server stops for some hundred milliseconds.
pub const MAX_CONVERTED_FIELDS: u64 = 1 << 16;
pub const MAX_CONVERTED_BYTES: u64 = 16 << 20;

/// The largest values that are converted.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Fields of a hash.
    pub fields: u64,
    /// Bytes of a string, or of the fields and values of a hash.
    pub bytes: u64,
    /// Whether HyperLogLogs stay native, since native commands could not read them any more.
    pub leaves_counters: bool,
}

impl Limits {
    const NONE: Self = Self {
        fields: u64::MAX,
        bytes: u64::MAX,
        leaves_counters: false,
    };

    fn check(self, fields: u64, bytes: u64) -> Done {
        match fields > self.fields || bytes > self.bytes {
            true => Err(TOO_LARGE),
            false => Ok(()),
        }
    }
}

/// `LP.EXPORT key [destination [REPLACE]]`: makes a native hash or string of a key, in its place or at another key.
pub fn export(context: Context, arguments: &[Str<'_>]) -> Done {
    if context.is_key_request() {
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
    if is_same {
        if !replaces {
            return Err(Failure::text("ERR the destination is the key itself"));
        }
        export_key(context, name, Limits::NONE)?;
    } else if let Some(destination) = destination {
        copy_to(context, name, destination, replaces)?;
        context.touched(destination);
        context.notify(Class::Generic, c"lp.export", destination);
        context.replicate_verbatim();
    }
    context.status(c"OK");
    Ok(())
}

/// Makes a native value of the key's compressed one, here and on replicas. Its expiry and its use stay.
pub fn export_key(context: Context, name: Str<'_>, limits: Limits) -> Done {
    let usage = Key::look(context, name).usage();
    let mut key = Key::write(context, name);
    match key.value()? {
        None => return Err(NO_KEY),
        Some(Borrowed::Map(map)) => limits.check(map.len(), map.user_bytes())?,
        Some(Borrowed::Text(text)) => limits.check(0, text.length()? as u64)?,
    }
    make_native(context, &mut key)?;
    drop(key);
    converted(context, name, usage, c"LP.EXPORT", c"lp.export");
    Ok(())
}

/// Makes a native copy of the key's compressed value at another key.
pub fn copy_to(context: Context, name: Str<'_>, destination: Str<'_>, replaces: bool) -> Done {
    let key = Key::write(context, name);
    // Read before the destination is deleted.
    let text = match key.value()? {
        None => return Err(NO_KEY),
        Some(Borrowed::Text(text)) => Some(text.to_vec()?),
        Some(Borrowed::Map(_)) => None,
    };
    let mut target = Key::write(context, destination);
    let is_overwritten = !target.is_empty();
    if is_overwritten {
        if !replaces {
            return Err(Failure::text(
                "ERR the destination exists; say REPLACE to write over it",
            ));
        }
        target.delete();
    }
    let written = match (text, key.value()?) {
        (Some(text), _) => target.set_native_string(OwnedStr::new(&text).as_str()),
        (None, Some(Borrowed::Map(map))) => write_fields(map, &mut target),
        (None, _) => Ok(()),
    };
    if let Err(failure) = written {
        // An incomplete value must not be visible, here and on replicas.
        target.delete();
        if is_overwritten {
            context.touched(destination);
            context.replicate(c"DEL", &[destination]);
        }
        return Err(failure);
    }
    target.set_expiry(key.expiry());
    Ok(())
}

/// Reports a key whose value was converted, and converts it on replicas.
fn converted(context: Context, name: Str<'_>, usage: Usage, command: &CStr, event: &CStr) {
    Key::look(context, name).set_usage(usage);
    context.touched(name);
    context.notify(Class::Generic, event, name);
    context.replicate(command, &[name]);
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

/// `LP.IMPORT key`: makes a compressed map or string of a native hash or string, in its place.
pub fn import(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name] = *arguments else {
        return Err(Failure::Arity);
    };
    import_key(context, name, Limits::NONE)?;
    context.status(c"OK");
    Ok(())
}

/// Makes a compressed value of the key's native one, here and on replicas; returns false if it stays unchanged.
/// Its expiry and its use stay.
pub fn import_key(context: Context, name: Str<'_>, limits: Limits) -> Result<bool, Failure> {
    let usage = Key::look(context, name).usage();
    let value = match compressed(context, name, limits) {
        Ok(Some(value)) => value,
        unchanged => {
            // Redis 7.0 takes a look at the bytes of a short string for a use.
            Key::look(context, name).set_usage(usage);
            return unchanged.map(|_| false);
        }
    };
    let mut key = Key::write(context, name);
    if key.is_empty() {
        // It has expired meanwhile: Redis 7.0 reads the clock at each access.
        return Err(NO_KEY);
    }
    let expiry = key.expiry();
    key.set(value)?;
    key.set_expiry(expiry);
    drop(key);
    converted(context, name, usage, c"LP.IMPORT", c"lp.import");
    Ok(true)
}

/// Returns a compressed copy of a native value; `None` if it is compressed already, or is to stay native.
fn compressed(context: Context, name: Str<'_>, limits: Limits) -> Result<Option<Value>, Failure> {
    let key = Key::read(context, name);
    if key.is_empty() {
        return Err(NO_KEY);
    }
    if let Some(bytes) = key.native_string() {
        if limits.leaves_counters && bytes.starts_with(b"HYLL") {
            return Ok(None);
        }
        limits.check(0, bytes.len() as u64)?;
        return Ok(Some(Value::Text(Text::new(place_in(context.database())?, bytes)?)));
    }
    if key.has_type(KEYTYPE_HASH) {
        limits.check(key.native_len(), 0)?;
        drop(key);
        return Ok(Some(Value::Map(Box::new(read_fields(context, name, limits)?))));
    }
    // Of another type.
    key.value()?;
    Ok(None)
}

/// Fields that are read at a time.
const FIELDS_AT_ONCE: usize = 512;

/// Returns a compressed copy of a native hash.
fn read_fields(context: Context, name: Str<'_>, limits: Limits) -> Result<Map, Failure> {
    let mut map = Map::new(place_in(context.database())?);
    let may_have_expiry = context.has_command(c"HPEXPIRETIME");
    let (cursor, mut fields, mut has_more) = (FieldCursor::new(), Vec::new(), true);
    while has_more {
        // The key is closed before a native command runs, which may change or remove it.
        let key = Key::read(context, name);
        let mut bytes = map.user_bytes();
        while has_more && fields.len() < FIELDS_AT_ONCE && bytes <= limits.bytes {
            let before = fields.len();
            has_more = key.next_fields(&cursor, &mut fields);
            let new = fields[before..].iter();
            bytes += new
                .map(|(field, value)| (field.len() + value.len()) as u64)
                .sum::<u64>();
        }
        drop(key);
        limits.check(0, bytes)?;
        let names = fields.iter().map(|(field, _)| field.as_slice());
        if may_have_expiry && context.has_field_expiry(name, names)? {
            return Err(Failure::text(
                "ERR the hash has a field with an expiry, which compressed hashes do not have",
            ));
        }
        for (field, value) in fields.drain(..) {
            map.set(&field, &value)?;
        }
        limits.check(map.len(), 0)?;
    }
    match map.is_empty() {
        // All fields have expired, and the server is about to remove them.
        true => Err(NO_KEY),
        false => Ok(map),
    }
}
