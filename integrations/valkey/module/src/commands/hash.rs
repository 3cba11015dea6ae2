//! The twins of the commands of hashes that read and write fields.

use std::cell::Cell;
use std::ops::Bound;

use super::access::{Done, change_or_make, map_of, remove_from, replicate_part, reply_each, reply_or_null};
use crate::api::context::{Class, log_warning};
use crate::api::output::Output;
use crate::api::{Context, Failure, Key, OwnedStr, Str};
use crate::store::map::{Map, Write, check};
use crate::store::number::{FloatError, add_floats, check_float, integer};

/// `LP.HSET key field value [field value ...]`
pub fn hset(context: Context, arguments: &[Str<'_>]) -> Done {
    let added = set_fields(context, arguments)?;
    context.integer(added);
    Ok(())
}

/// `LP.HMSET key field value [field value ...]`
pub fn hmset(context: Context, arguments: &[Str<'_>]) -> Done {
    set_fields(context, arguments)?;
    context.status(c"OK");
    Ok(())
}

/// Sets fields; returns how many are new.
fn set_fields(context: Context, arguments: &[Str<'_>]) -> Result<i64, Failure> {
    let [_, name, pairs @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    if pairs.is_empty() || pairs.len() % 2 != 0 {
        return Err(Failure::Arity);
    }
    let pairs: &[[Str<'_>; 2]] = pairs.as_chunks().0;
    let (mut added, mut done) = (0, 0);
    let outcome = change_or_make(context, *name, |map| {
        // All or nothing, as far as errors are known beforehand. The limits are those of maps: a native hash is left to
        // the server.
        for [field, value] in pairs {
            check(field.bytes(), value.bytes())?;
        }
        for [field, value] in pairs {
            added += i64::from(map.set(field.bytes(), value.bytes())? == Write::Added);
            done += 1;
        }
        Ok(())
    });
    match outcome {
        Ok(()) => written(context, *name, c"hset"),
        // Fields that were written before a failure stay, and replicas receive these only.
        Err(_) if done > 0 => {
            noted(context, *name, c"hset");
            replicate_part(context, c"LP.HSET", *name, pairs[..done].as_flattened());
        }
        Err(_) => {}
    }
    outcome.map(|()| added)
}

/// Notifies that a field was written.
fn noted(context: Context, name: Str<'_>, event: &'static std::ffi::CStr) {
    context.touched(name);
    context.notify(Class::Map, event, name);
}

/// Notifies that a command has written all of its fields, and replicates it.
fn written(context: Context, name: Str<'_>, event: &'static std::ffi::CStr) {
    noted(context, name, event);
    context.replicate_verbatim();
}

/// `LP.HSETNX key field value`
pub fn hsetnx(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, field, value] = *arguments else {
        return Err(Failure::Arity);
    };
    let is_set = change_or_make(context, name, |map| {
        check(field.bytes(), value.bytes())?;
        if map.contains(field.bytes())? {
            return Ok(false);
        }
        map.set(field.bytes(), value.bytes())?;
        Ok(true)
    })?;
    if is_set {
        written(context, name, c"hset");
    }
    context.integer(i64::from(is_set));
    Ok(())
}

/// `LP.HGET key field`
pub fn hget(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, field] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, name);
    reply_or_null(context, map_of(&key)?, field.bytes())?;
    Ok(())
}

/// `LP.HMGET key field [field ...]`
pub fn hmget(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, fields @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    if fields.is_empty() {
        return Err(Failure::Arity);
    }
    let key = Key::read(context, *name);
    let map = map_of(&key)?;
    reply_each(context, fields, |field| reply_or_null(context, map, field));
    Ok(())
}

/// `LP.HDEL key field [field ...]`
pub fn hdel(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, fields @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    if fields.is_empty() {
        return Err(Failure::Arity);
    }
    let done = Cell::new(0);
    let remove = |map: &mut Map| -> Result<u64, Failure> {
        let mut removed = 0;
        for field in fields {
            removed += u64::from(map.remove(field.bytes())?);
            done.update(|done| done + 1);
        }
        Ok(removed)
    };
    let removed = remove_from(context, *name, remove, || {
        replicate_part(context, c"LP.HDEL", *name, &fields[..done.get()]);
    })?;
    context.integer(removed as i64);
    Ok(())
}

/// `LP.HGETDEL key FIELDS count field [field ...]`
pub fn hgetdel(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, word, count, fields @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    if !word.bytes().eq_ignore_ascii_case(b"FIELDS") {
        return Err(Failure::SYNTAX);
    }
    let count = integer(count.bytes()).ok_or(Failure::NOT_INTEGER)?;
    if fields.is_empty() || usize::try_from(count) != Ok(fields.len()) {
        return Err(Failure::text(
            "ERR numfields should be greater than 0 and match the provided number of fields",
        ));
    }
    let mut values = Vec::with_capacity(fields.len());
    let done = Cell::new(0);
    let take = |map: &mut Map| -> Done {
        for field in fields {
            values.push(map.get_with(field.bytes(), <[u8]>::to_vec)?);
            map.remove(field.bytes())?;
            done.update(|done| done + 1);
        }
        Ok(())
    };
    remove_from(context, *name, take, || {
        replicate_part(context, c"LP.HDEL", *name, &fields[..done.get()]);
    })?;
    values.resize(fields.len(), None);
    context.array(values.len());
    for value in values {
        match value {
            Some(value) => context.bytes(&value),
            None => context.null(),
        }
    }
    Ok(())
}

/// `LP.HEXISTS key field`
pub fn hexists(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, field] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, name);
    let is_there = match map_of(&key)? {
        Some(map) => map.contains(field.bytes())?,
        None => false,
    };
    context.integer(i64::from(is_there));
    Ok(())
}

/// `LP.HLEN key`
pub fn hlen(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, name);
    context.integer(map_of(&key)?.map_or(0, Map::len) as i64);
    Ok(())
}

/// `LP.HSTRLEN key field`
pub fn hstrlen(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, field] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, name);
    let len = match map_of(&key)? {
        Some(map) => map.len_of(field.bytes())?,
        None => None,
    };
    context.integer(len.unwrap_or(0) as i64);
    Ok(())
}

/// `LP.HGETALL key`
pub fn hgetall(context: Context, arguments: &[Str<'_>]) -> Done {
    all(context, arguments, Context::map, 2, |field, value| {
        context.bytes(field);
        context.bytes(value);
        field.len() + value.len()
    })
}

/// `LP.HKEYS key`
pub fn hkeys(context: Context, arguments: &[Str<'_>]) -> Done {
    all(context, arguments, Context::array, 1, |field, _| {
        context.bytes(field);
        field.len()
    })
}

/// `LP.HVALS key`
pub fn hvals(context: Context, arguments: &[Str<'_>]) -> Done {
    all(context, arguments, Context::array, 1, |_, value| {
        context.bytes(value);
        value.len()
    })
}

/// Replies with a part of each record, `replies` times; `reply` returns its length.
fn all(
    context: Context,
    arguments: &[Str<'_>],
    begin: fn(Context, usize),
    replies: usize,
    mut reply: impl FnMut(&[u8], &[u8]) -> usize,
) -> Done {
    let [_, name] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, name);
    let Some(map) = map_of(&key)? else {
        begin(context, 0);
        return Ok(());
    };
    let fields = usize::try_from(map.len()).unwrap_or(usize::MAX);
    begin(context, fields);
    let mut visited = 0;
    let mut output = Output::new(context);
    let outcome = map.visit((Bound::Unbounded, Bound::Unbounded), usize::MAX, |field, value| {
        visited += 1;
        output.add(reply(field, value));
        !output.is_closing()
    });
    if visited < fields && !output.is_closing() {
        // The length is already sent: an error takes the place of an unreadable reply.
        let failure = outcome
            .err()
            .map_or(Failure::text("ERR a record is missing"), Failure::from);
        log_warning(&format!(
            "leafpress: a map has {fields} fields, and {visited} can be read: {failure:?}"
        ));
        for _ in 0..(fields - visited) * replies {
            context.failure(&failure);
        }
    }
    Ok(())
}

/// `LP.HINCRBY key field increment`
pub fn hincrby(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, field, increment] = *arguments else {
        return Err(Failure::Arity);
    };
    let increment = integer(increment.bytes()).ok_or(Failure::NOT_INTEGER)?;
    let sum = change_or_make(context, name, |map| {
        let old = match map.get_with(field.bytes(), integer)? {
            Some(old) => old.ok_or(Failure::text("ERR hash value is not an integer"))?,
            None => 0,
        };
        let sum = old
            .checked_add(increment)
            .ok_or(Failure::text("ERR increment or decrement would overflow"))?;
        map.set(field.bytes(), sum.to_string().as_bytes())?;
        Ok(sum)
    })?;
    written(context, name, c"hincrby");
    context.integer(sum);
    Ok(())
}

/// `LP.HINCRBYFLOAT key field increment`
pub fn hincrbyfloat(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, field, increment] = *arguments else {
        return Err(Failure::Arity);
    };
    match check_float(increment.bytes()) {
        Ok(()) => {}
        Err(FloatError::NotANumber) => return Err(Failure::text("ERR value is not a valid float")),
        Err(FloatError::NotFinite) => return Err(Failure::text("ERR value is NaN or Infinity")),
    }
    let sum = change_or_make(context, name, |map| {
        let old = map
            .get_with(field.bytes(), <[u8]>::to_vec)?
            .unwrap_or_else(|| b"0".to_vec());
        if check_float(&old) == Err(FloatError::NotANumber) {
            return Err(Failure::text("ERR hash value is not a float"));
        }
        let sum = add_floats(&old, increment.bytes())
            .map_err(|_| Failure::text("ERR increment would produce NaN or Infinity"))?;
        map.set(field.bytes(), &sum)?;
        Ok(sum)
    })?;
    noted(context, name, c"hincrbyfloat");
    // Replicated as a write of the sum: sums of floats may differ between machines.
    let result = OwnedStr::new(&sum);
    context.replicate(c"LP.HSET", &[name, field, result.as_str()]);
    context.bytes(&sum);
    Ok(())
}
