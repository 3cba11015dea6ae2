//! The replacements of native commands without a twin in transparent mode.
//!
//! Values that these commands make stay native. The module's values are made native for commands that write what the
//! module does not support: bits, and the expiry of fields. Reads without a change are answered; other commands are
//! refused.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::access::{Done, reply_each, reply_or_null};
use super::convert::{MAX_CONVERTED_BYTES, MAX_CONVERTED_FIELDS, copy_to, make_native};
use crate::api::context::Class;
use crate::api::twin::sent_name;
use crate::api::{Context, Failure, Key, Str};
use crate::prefixes::{Family, has_prefix};
use crate::store::map::Map;
use crate::store::number::integer;
use crate::store::value::Borrowed;

/// How many commands were refused, by their names.
static REFUSED: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// Returns how many commands were refused, by their names.
pub fn refused() -> BTreeMap<String, u64> {
    REFUSED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn refusal(why: &str) -> Failure {
    let name = sent_name().unwrap_or_default();
    let failure = Failure::formatted(format!("ERR '{name}' {why}"));
    let mut refused = REFUSED.lock().unwrap_or_else(PoisonError::into_inner);
    *refused.entry(name).or_default() += 1;
    failure
}

/// Makes a key's compressed value native, here and on replicas.
fn convert(context: Context, mut key: Key<'_>, name: Str<'_>) -> Done {
    make_native(context, &mut key)?;
    drop(key);
    context.replicate(c"LP.EXPORT", &[name]);
    Ok(())
}

/// Runs a command natively after its keys' strings were made native.
fn converted(context: Context, names: &[Str<'_>]) -> Done {
    for name in names {
        let key = Key::write(context, *name);
        if let Ok(Some(Borrowed::Text(_))) = key.value() {
            convert(context, key, *name)?;
        }
    }
    Err(Failure::LeftToServer)
}

/// A command that changes the string of its first key: `SETBIT`, `BITFIELD`, `PFADD`.
pub fn first_converted(context: Context, arguments: &[Str<'_>]) -> Done {
    converted(context, &arguments[1..2])
}

/// A command that reads the strings of all of its keys and changes the first: `PFMERGE`.
pub fn all_converted(context: Context, arguments: &[Str<'_>]) -> Done {
    converted(context, &arguments[1..])
}

/// `BITOP operation destination key [key ...]`: the destination is overwritten.
pub fn bitop(context: Context, arguments: &[Str<'_>]) -> Done {
    converted(context, &arguments[3..])
}

/// Returns the arguments of the `FIELDS` clause that ends a command, if it is well-formed: those of each field, `each`
/// of them.
fn fields_clause<'a, 'c>(arguments: &'a [Str<'c>], each: usize) -> Option<&'a [Str<'c>]> {
    let clause = arguments
        .iter()
        .position(|argument| argument.bytes().eq_ignore_ascii_case(b"FIELDS"))?;
    let (count, fields) = arguments.get(clause + 1..)?.split_first()?;
    let count = usize::try_from(integer(count.bytes())?).ok()?;
    (count > 0 && count.checked_mul(each) == Some(fields.len())).then_some(fields)
}

fn is_large(map: &Map) -> bool {
    map.len() > MAX_CONVERTED_FIELDS || map.user_bytes() > MAX_CONVERTED_BYTES
}

/// Makes a compressed map native, since its fields are about to get an expiry. A command without a well-formed clause
/// is left to the server, which answers the error.
fn map_converted(context: Context, arguments: &[Str<'_>], each: usize) -> Done {
    let name = arguments[1];
    let key = Key::write(context, name);
    if let Ok(Some(Borrowed::Map(map))) = key.value()
        && fields_clause(&arguments[2..], each).is_some()
    {
        if is_large(map) {
            return Err(refusal(
                "would have to make a large compressed hash native, whose fields do not expire: LP.EXPORT does it, and \
                 stops the server meanwhile",
            ));
        }
        convert(context, key, name)?;
    }
    Err(Failure::LeftToServer)
}

/// A command that sets an expiry of fields: `HEXPIRE` and its relatives.
pub fn field_expiry(context: Context, arguments: &[Str<'_>]) -> Done {
    map_converted(context, arguments, 1)
}

/// `HSETEX key [FNX | FXX] [expiry] FIELDS count field value [field value ...]`. A hash that it makes is native.
pub fn hsetex(context: Context, arguments: &[Str<'_>]) -> Done {
    map_converted(context, arguments, 2)
}

/// Calls `reply` for each field of a command that needs no expiry in a compressed map, and leaves others to the server.
fn for_each_field(
    context: Context,
    arguments: &[Str<'_>],
    reply: impl Fn(&Map, &[u8]) -> Result<usize, Failure>,
) -> Done {
    let key = Key::read(context, arguments[1]);
    let (Ok(Some(Borrowed::Map(map))), Some(fields)) = (key.value(), fields_clause(&arguments[2..], 1)) else {
        return Err(Failure::LeftToServer);
    };
    reply_each(context, fields, |field| reply(map, field));
    Ok(())
}

/// A command that reads or removes an expiry of fields, as `HTTL` and `HPERSIST` do: no field of a compressed map has
/// one.
pub fn fields_without_expiry(context: Context, arguments: &[Str<'_>]) -> Done {
    const NO_FIELD: i64 = -2;
    const NO_EXPIRY: i64 = -1;
    for_each_field(context, arguments, |map, field| {
        context.integer(if map.contains(field)? { NO_EXPIRY } else { NO_FIELD });
        Ok(size_of::<i64>())
    })
}

/// `HGETEX key [expiry | PERSIST] FIELDS count field [field ...]`
pub fn hgetex(context: Context, arguments: &[Str<'_>]) -> Done {
    let mut options = arguments[2..]
        .iter()
        .take_while(|argument| !argument.bytes().eq_ignore_ascii_case(b"FIELDS"));
    if options.all(|option| option.bytes().eq_ignore_ascii_case(b"PERSIST")) {
        for_each_field(context, arguments, |map, field| {
            reply_or_null(context, Some(map), field)
        })
    } else {
        field_expiry(context, arguments)
    }
}

/// Returns whether native commands could not read the key's compressed value under another name.
fn loses_its_prefix(key: &Key<'_>, destination: Str<'_>) -> bool {
    let value = key.value().ok().flatten();
    value.is_some_and(|value| !has_prefix(Family::of(&value), destination.bytes()))
}

/// `RENAME key destination`: a value whose new name has no prefix becomes native.
pub fn rename(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, destination] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::look(context, name);
    if name.bytes() != destination.bytes() && loses_its_prefix(&key, destination) {
        if let Ok(Some(Borrowed::Map(map))) = key.value()
            && is_large(map)
        {
            return Err(refusal(
                "would have to make a large compressed hash native, whose new name has no prefix: LP.EXPORT does it, and \
                 stops the server meanwhile",
            ));
        }
        let usage = key.usage();
        drop(key);
        convert(context, Key::write(context, name), name)?;
        Key::look(context, name).set_usage(usage);
    }
    Err(Failure::LeftToServer)
}

/// `RENAMENX key destination`: as `RENAME`, if the destination is free.
pub fn renamenx(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, _, destination] = *arguments else {
        return Err(Failure::Arity);
    };
    if Key::look(context, destination).is_empty() {
        rename(context, arguments)
    } else {
        Err(Failure::LeftToServer)
    }
}

/// Returns the database that the options of a `COPY` name: the last one counts. `None` if there is none, or if the
/// server does not accept the options.
fn database_named(options: &[Str<'_>]) -> Option<i32> {
    let (mut named, mut rest) = (None, options);
    while let [option, others @ ..] = rest {
        rest = match others {
            [number, others @ ..] if option.bytes().eq_ignore_ascii_case(b"DB") => {
                named = Some(i32::try_from(integer(number.bytes())?).ok()?);
                others
            }
            _ if option.bytes().eq_ignore_ascii_case(b"REPLACE") => others,
            _ => return None,
        };
    }
    named
}

/// Makes the copy native that the server has made in the selected database. If it cannot be read, it is deleted: native
/// commands could not read it either.
fn convert_copy(context: Context, name: Str<'_>) -> Done {
    let mut key = Key::write(context, name);
    let converted = make_native(context, &mut key);
    if converted.is_err() {
        key.delete();
    }
    drop(key);
    let command = if converted.is_ok() { c"LP.EXPORT" } else { c"DEL" };
    context.replicate(command, &[name]);
    converted
}

/// A `COPY` with `DB`, to a name without a prefix. The server makes the copy, as in its other databases, and sends the
/// command to replicas. Then the copy becomes native there, which is sent to replicas as a command in its database.
fn copy_to_database(context: Context, arguments: &[Str<'_>], destination: Str<'_>, database: i32) -> Done {
    context.reply_natively_after(c"COPY", arguments, || {
        let _selected = context
            .selecting(database)
            .ok_or(Failure::text("ERR DB index is out of range"))?;
        convert_copy(context, destination)
    })
}

/// `COPY key destination [DB database] [REPLACE]`: a copy whose name has no prefix is native.
pub fn copy(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, destination, ref options @ ..] = *arguments else {
        return Err(Failure::Arity);
    };
    if !loses_its_prefix(&Key::look(context, name), destination) {
        return Err(Failure::LeftToServer);
    }
    let replace = match *options {
        [] => None,
        [option] if option.bytes().eq_ignore_ascii_case(b"REPLACE") => Some(option),
        _ => {
            let database = database_named(options).ok_or(Failure::LeftToServer)?;
            return copy_to_database(context, &arguments[1..], destination, database);
        }
    };
    if replace.is_none() && !Key::look(context, destination).is_empty() {
        context.integer(0);
        return Ok(());
    }
    copy_to(context, name, destination, true)?;
    context.touched(destination);
    context.notify(Class::Generic, c"copy_to", destination);
    let exported = [Some(name), Some(destination), replace];
    let exported: Vec<_> = exported.into_iter().flatten().collect();
    context.replicate(c"LP.EXPORT", &exported);
    context.integer(1);
    Ok(())
}

/// A `SORT` whose patterns make keys with prefixes: it would take compressed values for absent ones.
pub fn sort(_: Context, _: &[Str<'_>]) -> Done {
    Err(refusal(
        "cannot read keys of leafpress.hash-prefixes or leafpress.string-prefixes by the patterns of BY and GET",
    ))
}
