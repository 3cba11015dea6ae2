//! The twins of the commands of several strings. In transparent mode some of the keys may have no prefix: these are
//! native strings, which are read and written as such.

use std::ffi::CStr;

use super::access::{Done, read_string};
use super::expiry::{Condition, Expiry, Of, Options};
use super::set::put;
use crate::api::context::Class;
use crate::api::output::Output;
use crate::api::raw::{KEY_OW, KEY_UPDATE};
use crate::api::twin::is_rewritten;
use crate::api::{Context, Failure, Key, OwnedStr, Str};
use crate::prefixes::{Family, has_prefix};
use crate::store::MAX_BYTES;
use crate::store::number::integer;

type Pairs<'a, 'c> = &'a [[Str<'c>; 2]];

/// `LP.MGET key [key ...]`
pub fn mget(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, names @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    if names.is_empty() {
        return Err(Failure::Arity);
    }
    context.array(names.len());
    let mut output = Output::new(context);
    for name in names {
        let key = Key::read(context, *name);
        let reply = |value: &[u8]| {
            context.bytes(value);
            value.len()
        };
        // A value that is not a string counts as absent, as in the native command.
        match read_string(&key, reply) {
            Ok(Some(len)) => output.add(len),
            Err(failure) if failure != Failure::WRONG_TYPE => context.failure(&failure),
            _ => context.null(),
        }
        if output.is_closing() {
            break;
        }
    }
    Ok(())
}

fn pairs_of<'a, 'c>(arguments: &'a [Str<'c>]) -> Result<Pairs<'a, 'c>, Failure> {
    match arguments {
        [_, pairs @ ..] if !pairs.is_empty() && pairs.len() % 2 == 0 => Ok(pairs.as_chunks().0),
        _ => Err(Failure::Arity),
    }
}

/// Returns an error if a value is too long for a compressed string, before any is written.
fn check(pairs: Pairs<'_, '_>) -> Done {
    let too_long = pairs
        .iter()
        .map(|[_, value]| value.bytes().len())
        .find(|len| *len > MAX_BYTES);
    too_long.map_or(Ok(()), |len| Err(leafpress::TreeError::ValueTooLong { len }.into()))
}

/// Returns whether a key is native: in transparent mode, those without a prefix are.
fn is_native(name: Str<'_>) -> bool {
    is_rewritten() && !has_prefix(Family::Text, name.bytes())
}

fn is_any_there(context: Context, pairs: Pairs<'_, '_>) -> bool {
    pairs.iter().any(|[name, _]| !Key::read(context, *name).is_empty())
}

fn are_all_there(context: Context, pairs: Pairs<'_, '_>) -> bool {
    pairs.iter().all(|[name, _]| !Key::read(context, *name).is_empty())
}

/// `LP.MSET key value [key value ...]`
pub fn mset(context: Context, arguments: &[Str<'_>]) -> Done {
    let pairs = pairs_of(arguments)?;
    write_all(context, pairs, Expiry::Never)?;
    context.status(c"OK");
    Ok(())
}

/// `LP.MSETNX key value [key value ...]`
pub fn msetnx(context: Context, arguments: &[Str<'_>]) -> Done {
    let pairs = pairs_of(arguments)?;
    let is_set = !is_any_there(context, pairs);
    if is_set {
        write_all(context, pairs, Expiry::Never)?;
    }
    context.integer(i64::from(is_set));
    Ok(())
}

/// Sets all keys, the native ones by one command and the others by one. As in the native commands, a time that has
/// passed is set like any other: the server deletes the keys when it finds them expired.
fn write_all(context: Context, pairs: Pairs<'_, '_>, expiry: Expiry) -> Done {
    let (native, ours): (Vec<[Str<'_>; 2]>, Vec<_>) = pairs.iter().partition(|[name, _]| is_native(*name));
    check(&ours)?;
    let mut written = 0;
    let mut outcome = Ok(());
    for [name, value] in &ours {
        let mut key = Key::write(context, *name);
        outcome = put(context, &mut key, value.bytes(), expiry);
        drop(key);
        if outcome.is_err() {
            break;
        }
        written += 1;
        context.touched(*name);
        context.notify(Class::Text, c"set", *name);
        if matches!(expiry, Expiry::At(_)) {
            context.notify(Class::Generic, c"expire", *name);
        }
    }
    // Keys that were written before a failure stay, and replicas receive them.
    if written > 0 {
        with_command(
            &ours[..written],
            expiry,
            [c"LP.MSET", c"LP.MSETEX"],
            |command, arguments| {
                context.replicate(command, arguments);
            },
        );
    }
    if outcome.is_ok() && !native.is_empty() {
        return with_command(&native, expiry, [c"MSET", c"MSETEX"], |command, arguments| {
            context.run_natively(command, arguments)
        });
    }
    outcome
}

/// Calls `run` with the command that sets these keys, the first if they have no time to live, and its arguments.
fn with_command<R>(
    pairs: Pairs<'_, '_>,
    expiry: Expiry,
    [plain, timed]: [&CStr; 2],
    run: impl FnOnce(&CStr, &[Str<'_>]) -> R,
) -> R {
    let options = match expiry {
        Expiry::Never => return run(plain, pairs.as_flattened()),
        Expiry::Kept => vec![OwnedStr::new(b"KEEPTTL")],
        // Always as an absolute time: replicas may run the command later.
        Expiry::At(at) => vec![OwnedStr::new(b"PXAT"), OwnedStr::new(at.to_string().as_bytes())],
    };
    let count = OwnedStr::new(pairs.len().to_string().as_bytes());
    let pairs = pairs.as_flattened().iter().copied();
    let arguments: Vec<_> = std::iter::once(count.as_str())
        .chain(pairs)
        .chain(options.iter().map(OwnedStr::as_str))
        .collect();
    run(timed, &arguments)
}

/// `LP.MSETEX count key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | EXAT seconds |
/// PXAT milliseconds | KEEPTTL]`
pub fn msetex(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, count, rest @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    let count = integer(count.bytes()).filter(|count| (1..=i64::from(i32::MAX)).contains(count));
    let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    if context.is_key_request() {
        for index in (2..arguments.len()).step_by(2).take(count) {
            context.key_at(i32::try_from(index).unwrap_or(i32::MAX), KEY_OW | KEY_UPDATE);
        }
        return Ok(());
    }
    if count == 0 {
        return Err(Failure::text("ERR invalid numkeys value or out of range"));
    }
    let (pairs, rest) = rest.split_at_checked(2 * count).ok_or(Failure::SYNTAX)?;
    let pairs: Pairs<'_, '_> = pairs.as_chunks().0;
    let options = Options::of(rest, Of::SetMany)?;
    let expiry = options.expiry()?;
    let is_set = match options.condition {
        Condition::IfAbsent => !is_any_there(context, pairs),
        Condition::IfPresent => are_all_there(context, pairs),
        _ => true,
    };
    if is_set {
        write_all(context, pairs, expiry)?;
    }
    context.integer(i64::from(is_set));
    Ok(())
}
