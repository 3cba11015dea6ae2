//! What stands for native commands without a twin in transparent mode.
//!
//! What these commands make stays native. The module's strings are made native for those that write; for the others the
//! command is refused.

use std::sync::atomic::{AtomicU64, Ordering};

use super::access::Done;
use super::admin::make_native;
use crate::api::command::sent_name;
use crate::api::{Context, Failure, Key, Str};
use crate::store::value::Borrowed;

static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Returns how many commands were refused.
pub fn refused() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}

fn refusal(why: &str) -> Failure {
    REFUSED.fetch_add(1, Ordering::Relaxed);
    Failure::said(format!("ERR '{}' {why}", sent_name().unwrap_or_default()))
}

/// Runs a command natively after its keys' strings were made native. Replicas do the same.
fn converted(context: Context, names: &[Str<'_>]) -> Done {
    for name in names {
        let mut key = Key::write(context, *name);
        if let Ok(Some(Borrowed::Text(_))) = key.value() {
            make_native(context, &mut key)?;
            drop(key);
            context.replicate(c"LP.EXPORT", &[*name]);
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

/// Runs a command natively that only reads its keys, unless one has a string of the module's.
fn read(context: Context, names: &[Str<'_>]) -> Done {
    for name in names {
        if let Ok(Some(Borrowed::Text(_))) = Key::read(context, *name).value() {
            return Err(refusal(
                "cannot read a compressed string: a command that writes bits, or LP.EXPORT, makes it native",
            ));
        }
    }
    Err(Failure::LeftToServer)
}

/// A command that reads the string of its first key: `BITCOUNT`, `BITPOS`, `BITFIELD_RO`.
pub fn first_text(context: Context, arguments: &[Str<'_>]) -> Done {
    read(context, &arguments[1..2])
}

/// A command that reads the strings of all of its keys: `PFCOUNT`.
pub fn all_texts(context: Context, arguments: &[Str<'_>]) -> Done {
    read(context, &arguments[1..])
}

/// A command of the expiry of fields.
pub fn fields(context: Context, arguments: &[Str<'_>]) -> Done {
    match Key::read(context, arguments[1]).value() {
        Ok(Some(Borrowed::Map(_))) => Err(refusal(
            "is not available for compressed hashes, whose fields do not expire",
        )),
        _ => Err(Failure::LeftToServer),
    }
}

/// `HSETEX`, which also makes a hash where there is none.
pub fn new_fields(context: Context, arguments: &[Str<'_>]) -> Done {
    match Key::read(context, arguments[1]).is_empty() {
        true => Err(refusal(
            "is not available for keys of leafpress.hash-prefixes: fields of compressed hashes do not expire",
        )),
        false => fields(context, arguments),
    }
}

/// A `SORT` whose patterns make keys with prefixes: it would take compressed values for absent ones.
pub fn sort(_: Context, _: &[Str<'_>]) -> Done {
    Err(refusal(
        "cannot read keys of leafpress.hash-prefixes or leafpress.string-prefixes by the patterns of BY and GET",
    ))
}
