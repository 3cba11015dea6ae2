//! The twins of the commands that set one string.

use super::access::{Done, read_string, text_of};
use super::expiry::{Condition, Expiry, Of, Options, Unit};
use crate::api::context::Class;
use crate::api::raw::{KEY_ACCESS, KEY_OW, KEY_RW, KEY_UPDATE};
use crate::api::twin::is_rewritten;
use crate::api::{Context, Failure, Key, OwnedStr, Str};
use crate::store::databases::place_in;
use crate::store::text::Text;
use crate::store::value::Value;

/// Sets a key to a string, whatever it was.
pub fn put(context: Context, key: &mut Key<'_>, value: &[u8], expiry: Expiry) -> Done {
    // If it is one, the record changes in place, and so does the key in the server's table.
    if key.set_text(value, || place_in(context.database()))? {
        if expiry == Expiry::Never && key.expiry().is_some() {
            key.set_expiry(None);
        }
    } else {
        let kept = if expiry == Expiry::Kept { key.expiry() } else { None };
        let text = Text::new(place_in(context.database())?, value)?;
        key.set(Value::Text(text))?;
        if kept.is_some() {
            key.set_expiry(kept);
        }
    }
    if let Expiry::At(at) = expiry {
        key.set_expiry(Some(at));
    }
    Ok(())
}

/// Sets a key to a string as `SET` does, and notifies and replicates that. A key whose time has passed is deleted.
pub fn write(context: Context, mut key: Key<'_>, name: Str<'_>, value: Str<'_>, expiry: Expiry) -> Done {
    if expiry.is_past(context) {
        if !key.is_empty() {
            delete(context, key, name, Class::Expired);
        }
        return Ok(());
    }
    put(context, &mut key, value.bytes(), expiry)?;
    drop(key);
    context.touched(name);
    context.notify(Class::Text, c"set", name);
    match expiry {
        Expiry::Never => context.replicate(c"LP.SET", &[name, value]),
        Expiry::Kept => {
            let option = OwnedStr::new(b"KEEPTTL");
            context.replicate(c"LP.SET", &[name, value, option.as_str()]);
        }
        // Always as an absolute time: replicas may run the command later.
        Expiry::At(at) => {
            context.notify(Class::Generic, c"expire", name);
            let (option, at) = (OwnedStr::new(b"PXAT"), OwnedStr::new(at.to_string().as_bytes()));
            context.replicate(c"LP.SET", &[name, value, option.as_str(), at.as_str()]);
        }
    }
    Ok(())
}

/// Deletes a key, and notifies and replicates that.
pub fn delete(context: Context, mut key: Key<'_>, name: Str<'_>, class: Class) {
    key.delete();
    drop(key);
    context.touched(name);
    // As the servers do: replicas free what has expired in the background.
    let (event, command) = match class {
        Class::Expired => (c"expired", c"UNLINK"),
        _ => (c"del", c"DEL"),
    };
    context.notify(class, event, name);
    context.replicate(command, &[name]);
}

/// Returns the string that is about to be replaced. In transparent mode it may be native, and what takes its place is
/// compressed, as without a look at it.
fn old_of(key: &Key<'_>) -> Result<Option<Vec<u8>>, Failure> {
    match is_rewritten() {
        true => read_string(key, <[u8]>::to_vec),
        false => Ok(text_of(key)?.map(|text| text.to_vec()).transpose()?),
    }
}

/// Sets a key if its condition holds; returns whether it did, and the previous value if that is requested.
fn set_if(
    context: Context,
    name: Str<'_>,
    value: Str<'_>,
    options: &Options<'_>,
) -> Result<(bool, Option<Vec<u8>>), Failure> {
    let expiry = options.expiry()?;
    let key = Key::write(context, name);
    let needs_old = options.is_get || matches!(options.condition, Condition::IfEqual(_));
    let old = match needs_old {
        true => old_of(&key)?,
        false => None,
    };
    let is_set = match options.condition {
        Condition::Always => true,
        Condition::IfAbsent => key.is_empty(),
        Condition::IfPresent => !key.is_empty(),
        Condition::IfEqual(expected) => old.as_deref() == Some(expected),
    };
    if is_set {
        write(context, key, name, value, expiry)?;
    }
    Ok((is_set, old))
}

fn reply_old(context: Context, old: Option<&[u8]>) {
    match old {
        Some(old) => context.bytes(old),
        None => context.null(),
    }
}

/// `LP.SET key value [NX | XX | IFEQ value] [GET] [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds |
/// KEEPTTL]`
pub fn set(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, value, rest @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    if context.is_key_request() {
        let is_get = rest.iter().any(|option| option.bytes().eq_ignore_ascii_case(b"GET"));
        let flags = match is_get {
            true => KEY_RW | KEY_ACCESS | KEY_UPDATE,
            false => KEY_OW | KEY_UPDATE,
        };
        context.key_at(1, flags);
        return Ok(());
    }
    let options = Options::of(rest, Of::Set)?;
    let (is_set, old) = set_if(context, *name, *value, &options)?;
    match is_set {
        _ if options.is_get => reply_old(context, old.as_deref()),
        true => context.status(c"OK"),
        false => context.null(),
    }
    Ok(())
}

/// `LP.SETEX key seconds value`
pub fn setex(context: Context, arguments: &[Str<'_>]) -> Done {
    set_for(context, arguments, Unit::SECONDS)
}

/// `LP.PSETEX key milliseconds value`
pub fn psetex(context: Context, arguments: &[Str<'_>]) -> Done {
    set_for(context, arguments, Unit::MILLISECONDS)
}

fn set_for(context: Context, arguments: &[Str<'_>], unit: Unit) -> Done {
    let [_, name, time, value] = *arguments else {
        return Err(Failure::Arity);
    };
    let expiry = Expiry::At(unit.at(time)?);
    write(context, Key::write(context, name), name, value, expiry)?;
    context.status(c"OK");
    Ok(())
}

/// `LP.SETNX key value`
pub fn setnx(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, value] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::write(context, name);
    let is_set = key.is_empty();
    if is_set {
        write(context, key, name, value, Expiry::Never)?;
    }
    context.integer(i64::from(is_set));
    Ok(())
}

/// `LP.GETSET key value`
pub fn getset(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, value] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::write(context, name);
    let old = old_of(&key)?;
    write(context, key, name, value, Expiry::Never)?;
    reply_old(context, old.as_deref());
    Ok(())
}
