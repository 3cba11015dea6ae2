//! The twins of the commands of strings.

use std::time::{SystemTime, UNIX_EPOCH};

use super::access::{Done, text_of};
use crate::api::context::Class;
use crate::api::output::Output;
use crate::api::raw::{KEY_ACCESS, KEY_OW, KEY_RW, KEY_UPDATE};
use crate::api::{Context, Failure, Key, OwnedStr, Str};
use crate::store::MAX_BYTES;
use crate::store::databases::place_in;
use crate::store::number::integer;
use crate::store::text::Text;
use crate::store::value::Value;

/// The new expiry of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expiry {
    Never,
    Kept,
    At(i64),
}

/// Which keys `LP.SET` sets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    IfAbsent,
    IfPresent,
}

struct Options {
    condition: Condition,
    expiry: Expiry,
    is_get: bool,
    /// Whether the expiry was given relative to now.
    is_relative: bool,
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

fn options_of(mut rest: &[Str<'_>]) -> Result<Options, Failure> {
    let mut options = Options {
        condition: Condition::Always,
        expiry: Expiry::Never,
        is_get: false,
        is_relative: false,
    };
    // The expiry is checked when all options are known to be valid, as in the native command.
    let mut time: Option<(Unit, Str<'_>)> = None;
    while let [option, following @ ..] = rest {
        rest = following;
        let has_expiry = options.expiry != Expiry::Never || time.is_some();
        match option.bytes().to_ascii_uppercase().as_slice() {
            b"NX" if options.condition != Condition::IfPresent => options.condition = Condition::IfAbsent,
            b"XX" if options.condition != Condition::IfAbsent => options.condition = Condition::IfPresent,
            b"GET" => options.is_get = true,
            b"KEEPTTL" if !has_expiry => options.expiry = Expiry::Kept,
            unit if !has_expiry && !rest.is_empty() => {
                let unit = unit_of(unit).ok_or(Failure::SYNTAX)?;
                time = Some((unit, rest[0]));
                options.is_relative = unit.is_relative;
                rest = &rest[1..];
            }
            _ => return Err(Failure::SYNTAX),
        }
    }
    if let Some((unit, time)) = time {
        options.expiry = Expiry::At(unit.at(time)?);
    }
    Ok(options)
}

#[derive(Clone, Copy)]
struct Unit {
    milliseconds: i64,
    is_relative: bool,
}

fn unit_of(name: &[u8]) -> Option<Unit> {
    let (milliseconds, is_relative) = match name {
        b"EX" => (1000, true),
        b"PX" => (1, true),
        b"EXAT" => (1000, false),
        b"PXAT" => (1, false),
        _ => return None,
    };
    Some(Unit {
        milliseconds,
        is_relative,
    })
}

impl Unit {
    fn at(self, time: Str<'_>) -> Result<i64, Failure> {
        let time = integer(time.bytes()).ok_or(Failure::NOT_INTEGER)?;
        let begin = if self.is_relative { now_ms() } else { 0 };
        Some(time)
            .filter(|time| *time > 0)
            .and_then(|time| time.checked_mul(self.milliseconds))
            .and_then(|time| time.checked_add(begin))
            .ok_or(Failure::text("ERR invalid expire time in 'lp.set' command"))
    }
}

/// Sets a key to a string, whatever it was.
fn put(context: Context, key: &mut Key<'_>, value: &[u8], expiry: Expiry) -> Done {
    // If it is one, the record changes in place, and so does the key in the server's table.
    if key.set_text(value)? {
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

/// `LP.SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | KEEPTTL]`
pub fn set(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, value, rest @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    if context.is_asked_for_keys() {
        let is_get = rest.iter().any(|option| option.bytes().eq_ignore_ascii_case(b"GET"));
        context.key_at(
            1,
            if is_get {
                KEY_RW | KEY_ACCESS | KEY_UPDATE
            } else {
                KEY_OW | KEY_UPDATE
            },
        );
        return Ok(());
    }
    let options = options_of(rest)?;
    let mut key = Key::write(context, *name);
    let old = match options.is_get {
        true => text_of(&key)?.map(|text| text.to_vec()).transpose()?,
        false => None,
    };
    let is_set = match options.condition {
        Condition::Always => true,
        Condition::IfAbsent => key.is_empty(),
        Condition::IfPresent => !key.is_empty(),
    };
    if is_set {
        put(context, &mut key, value.bytes(), options.expiry)?;
        drop(key);
        context.touched(*name);
        context.notify(Class::Text, c"set", *name);
        if let Expiry::At(at) = options.expiry {
            context.notify(Class::Generic, c"expire", *name);
            replicate_with_time(context, *name, *value, at, options.is_relative);
        } else {
            context.replicate_verbatim();
        }
    }
    match (options.is_get, old, is_set) {
        (true, Some(old), _) => context.bytes(&old),
        (true, None, _) | (false, _, false) => context.null(),
        (false, _, true) => context.status(c"OK"),
    }
    Ok(())
}

/// Replicates a relative time as an absolute one: replicas may run the command later.
fn replicate_with_time(context: Context, name: Str<'_>, value: Str<'_>, at: i64, is_relative: bool) {
    if !is_relative {
        return context.replicate_verbatim();
    }
    let (word, at) = (OwnedStr::new(b"PXAT"), OwnedStr::new(at.to_string().as_bytes()));
    context.replicate(c"LP.SET", &[name, value, word.as_str(), at.as_str()]);
}

/// `LP.GET key`
pub fn get(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, name);
    let found = match text_of(&key)? {
        Some(text) => text.get_with(|value| context.bytes(value))?,
        None => None,
    };
    if found.is_none() {
        context.null();
    }
    Ok(())
}

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
        // A value that is not a string counts as absent, as in the native command. Native strings are read too: in
        // transparent mode some of the keys may be native.
        let found = match text_of(&key) {
            Ok(Some(text)) => text.get_with(reply),
            _ => Ok(key.native_string().map(reply)),
        };
        match found {
            Ok(Some(len)) => output.add(len),
            Ok(None) => context.null(),
            Err(error) => context.failure(&Failure::from(error)),
        }
        if output.is_closing() {
            break;
        }
    }
    Ok(())
}

/// `LP.MSET key value [key value ...]`
pub fn mset(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, pairs @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    if pairs.is_empty() || pairs.len() % 2 != 0 {
        return Err(Failure::Arity);
    }
    let pairs: &[[Str<'_>; 2]] = pairs.as_chunks().0;
    if let Some([_, value]) = pairs.iter().find(|[_, value]| value.bytes().len() > MAX_BYTES) {
        let len = value.bytes().len();
        return Err(leafpress::TreeError::ValueTooLong { len }.into());
    }
    let mut written = 0;
    let mut outcome = Ok(());
    for [name, value] in pairs {
        let mut key = Key::write(context, *name);
        outcome = put(context, &mut key, value.bytes(), Expiry::Never);
        drop(key);
        if outcome.is_err() {
            break;
        }
        written += 1;
        context.touched(*name);
        context.notify(Class::Text, c"set", *name);
    }
    if outcome.is_ok() {
        context.replicate_verbatim();
        context.status(c"OK");
    } else if written > 0 {
        // Keys that were written before a failure stay, and replicas receive them.
        context.replicate(c"LP.MSET", pairs[..written].as_flattened());
    }
    outcome
}

/// `LP.STRLEN key`
pub fn strlen(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, name);
    let len = match text_of(&key)? {
        Some(text) => text.length()?,
        None => 0,
    };
    context.integer(len as i64);
    Ok(())
}

/// `LP.GETRANGE key start end`
pub fn getrange(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, start, end] = *arguments else {
        return Err(Failure::Arity);
    };
    let start = integer(start.bytes()).ok_or(Failure::NOT_INTEGER)?;
    let end = integer(end.bytes()).ok_or(Failure::NOT_INTEGER)?;
    let key = Key::read(context, name);
    let found = match text_of(&key)? {
        Some(text) => text.get_with(|value| context.bytes(part(value, start, end)))?,
        None => None,
    };
    if found.is_none() {
        context.bytes(b"");
    }
    Ok(())
}

/// Returns the bytes from `start` to `end`, both included, and counted from the end where negative.
fn part(value: &[u8], start: i64, end: i64) -> &[u8] {
    let len = value.len() as i64;
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let from_begin = |index: i64| {
        if index < 0 {
            (len + index.max(-len)).max(0)
        } else {
            index
        }
    };
    let (start, end) = (from_begin(start), from_begin(end).min(len - 1));
    match usize::try_from(start).ok().zip(usize::try_from(end).ok()) {
        Some((start, end)) if start <= end => &value[start..=end],
        _ => &[],
    }
}

/// `LP.APPEND key value`
pub fn append(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, value] = *arguments else {
        return Err(Failure::Arity);
    };
    let mut key = Key::write(context, name);
    let old = text_of(&key)?.map(|text| text.to_vec()).transpose()?;
    let is_new = old.is_none();
    let mut whole = old.unwrap_or_default();
    let len = whole.len().saturating_add(value.bytes().len());
    if len > MAX_BYTES {
        return Err(leafpress::TreeError::ValueTooLong { len }.into());
    }
    if is_new || !value.bytes().is_empty() {
        whole.extend_from_slice(value.bytes());
        put(context, &mut key, &whole, Expiry::Kept)?;
    }
    drop(key);
    context.touched(name);
    context.notify(Class::Text, c"append", name);
    context.replicate_verbatim();
    context.integer(len as i64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_of_a_string() {
        for (start, end, expected) in [
            (0, 3, "This"),
            (-3, -1, "ing"),
            (0, -1, "This is a string"),
            (10, 100, "string"),
            (5, 3, ""),
            (-100, 3, "This"),
            (100, 200, ""),
            (-1, -5, ""),
            (i64::MIN, i64::MAX, "This is a string"),
        ] {
            assert_eq!(
                part(b"This is a string", start, end),
                expected.as_bytes(),
                "{start} {end}"
            );
        }
        assert_eq!(part(b"", 0, -1), b"");
    }
}
