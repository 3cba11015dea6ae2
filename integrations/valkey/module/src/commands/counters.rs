//! The twins of the commands that count in a string.

use super::access::{Done, text_of};
use super::expiry::Expiry;
use super::set::put;
use crate::api::context::Class;
use crate::api::{Context, Failure, Key, OwnedStr, Str};
use crate::store::number::{FloatError, add_floats, check_float, integer};

const NOT_FLOAT: Failure = Failure::text("ERR value is not a valid float");

/// `LP.INCR key`
pub fn incr(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name] = *arguments else {
        return Err(Failure::Arity);
    };
    add(context, name, 1)
}

/// `LP.DECR key`
pub fn decr(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name] = *arguments else {
        return Err(Failure::Arity);
    };
    add(context, name, -1)
}

/// `LP.INCRBY key increment`
pub fn incrby(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, increment] = *arguments else {
        return Err(Failure::Arity);
    };
    add(context, name, integer(increment.bytes()).ok_or(Failure::NOT_INTEGER)?)
}

/// `LP.DECRBY key decrement`
pub fn decrby(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, decrement] = *arguments else {
        return Err(Failure::Arity);
    };
    let increment = integer(decrement.bytes())
        .ok_or(Failure::NOT_INTEGER)?
        .checked_neg()
        .ok_or(Failure::text("ERR decrement would overflow"))?;
    add(context, name, increment)
}

fn add(context: Context, name: Str<'_>, increment: i64) -> Done {
    let mut key = Key::write(context, name);
    let old = match text_of(&key)? {
        Some(text) => text.get_with(integer)?.flatten().ok_or(Failure::NOT_INTEGER)?,
        None => 0,
    };
    let sum = old
        .checked_add(increment)
        .ok_or(Failure::text("ERR increment or decrement would overflow"))?;
    put(context, &mut key, sum.to_string().as_bytes(), Expiry::Kept)?;
    drop(key);
    context.touched(name);
    context.notify(Class::Text, c"incrby", name);
    context.replicate_verbatim();
    context.integer(sum);
    Ok(())
}

/// `LP.INCRBYFLOAT key increment`
pub fn incrbyfloat(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, increment] = *arguments else {
        return Err(Failure::Arity);
    };
    let mut key = Key::write(context, name);
    let old = match text_of(&key)? {
        Some(text) => text.to_vec()?,
        None => b"0".to_vec(),
    };
    // Infinity is a valid float; no sum with it is.
    if [&*old, increment.bytes()]
        .map(check_float)
        .contains(&Err(FloatError::NotANumber))
    {
        return Err(NOT_FLOAT);
    }
    let sum = add_floats(&old, increment.bytes())
        .map_err(|_| Failure::text("ERR increment would produce NaN or Infinity"))?;
    put(context, &mut key, &sum, Expiry::Kept)?;
    drop(key);
    context.touched(name);
    context.notify(Class::Text, c"incrbyfloat", name);
    // Replicated as a write of the sum: sums of floats may differ between machines.
    let (result, option) = (OwnedStr::new(&sum), OwnedStr::new(b"KEEPTTL"));
    context.replicate(c"LP.SET", &[name, result.as_str(), option.as_str()]);
    context.bytes(&sum);
    Ok(())
}
