//! The twins of the commands of strings that change a key, and not its value.

use super::access::{Done, text_of};
use super::expiry::{Expiry, Of, Options};
use super::set::delete;
use crate::api::context::Class;
use crate::api::native::{Server, Since};
use crate::api::{Context, Failure, Key, OwnedStr, Str};

/// The first version whose `GETEX` checks a time before it looks at the key.
const CHECKS_TIME_FIRST: Since = Since {
    valkey: 0x09_01_00,
    redis: None,
};

/// `LP.GETEX key [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | PERSIST]`
pub fn getex(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, rest @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    let name = *name;
    let options = Options::of(rest, Of::Get)?;
    if Server::running().is(CHECKS_TIME_FIRST) {
        options.expiry()?;
    }
    let mut key = Key::write(context, name);
    let Some(text) = text_of(&key)? else {
        context.null();
        return Ok(());
    };
    let expiry = options.expiry()?;
    let value = text.to_vec()?;
    match expiry {
        Expiry::At(_) if expiry.is_past(context) => delete(context, key, name, Class::Expired),
        Expiry::At(at) => {
            key.set_expiry(Some(at));
            drop(key);
            let at = OwnedStr::new(at.to_string().as_bytes());
            context.touched(name);
            context.notify(Class::Generic, c"expire", name);
            context.replicate(c"PEXPIREAT", &[name, at.as_str()]);
        }
        _ if options.is_persist && key.expiry().is_some() => {
            key.set_expiry(None);
            drop(key);
            context.touched(name);
            context.notify(Class::Generic, c"persist", name);
            context.replicate(c"PERSIST", &[name]);
        }
        _ => {}
    }
    // After the notifications: a module may hold the client back when it gets one.
    context.bytes(&value);
    Ok(())
}

/// `LP.GETDEL key`
pub fn getdel(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::write(context, name);
    let Some(text) = text_of(&key)? else {
        context.null();
        return Ok(());
    };
    let value = text.to_vec()?;
    delete(context, key, name, Class::Generic);
    // After the notification: a module may hold the client back when it gets one.
    context.bytes(&value);
    Ok(())
}

/// `LP.DELIFEQ key value`
pub fn delifeq(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, value] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::write(context, name);
    let is_equal = match text_of(&key)? {
        Some(text) => text.get_with(|held| held == value.bytes())?.unwrap_or_default(),
        None => false,
    };
    if is_equal {
        delete(context, key, name, Class::Generic);
    }
    context.integer(i64::from(is_equal));
    Ok(())
}
